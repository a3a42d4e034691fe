# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
"""Flows of a random topology that are tunnels of others: what they carry is what records are about."""

import random
from dataclasses import replace

from lib import frames
from lib.topology import Tuple

TUNNELLED = 0.4


def passed(topology, flow):
    """The tuples that packets of a flow have on their way."""
    walks = [walk for one, _, walk in topology.walks() if one is flow]
    return {flow.flow, *(one.flow for walk in walks for one in walk.crossings),
            *(arrived for walk in walks for _, arrived in walk.arrived)}


def set_port(topology, flow, port):
    """Have a flow sent to another port, which NAT keeps. @return False: it would not be alone then"""
    known = passed(topology, flow)
    others = {one for other in topology.flows if other is not flow for one in passed(topology, other)}
    changed = {one: replace(one, dport=port) for one in known}
    matched = {action.port for device in topology.devices() for action in device.actions.values()}
    if flow.flow.src == flow.flow.dst or others & {*known, *changed.values()} or \
            matched & {port, *(one.dport for one in known)}:
        return False
    for node in topology.nodes:
        for table in node.snat, node.dnat:
            for old in known & table.keys():
                table[changed[old]] = replace(table.pop(old), dport=port)
    flow.flow = changed[flow.flow]
    return True


def add_tunnels(topology):
    """Draws numbers of its own, so that all else of a seed's network is as without it."""
    rng = random.Random(f"{topology.seed} tunnels")
    for number, flow in enumerate(topology.flows, 1):
        port, wrap = rng.choice(list(frames.UDP_TUNNELS.values()))
        is_ipv6 = rng.random() < 0.5
        if rng.random() >= TUNNELLED or not set_port(topology, flow, port):
            continue
        src, dst = (f"fd16::{number}", f"fd17::{number}") if is_ipv6 else \
            (f"172.16.{number}.1", f"172.17.{number}.1")
        flow.inner = Tuple(src, dst, 1000, 2000)
        flow.payload = wrap(*frames.ip(src, dst, frames.UDP, frames.udp(1000, 2000, bytes(flow.size))))
        flow.size = len(flow.payload)


def inner_tuples(topology):
    """{tuple of a tunnel's packets anywhere on their way: the tuple in it}"""
    return {one: flow.inner for flow in topology.flows if flow.inner for one in passed(topology, flow)}
