# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
"""
What records must say of a topology's traffic, by the meaning of "counted once".

A packet and the copies that were made of it count once, also where a part of its
way is not observed. What is translated is one flow before and another after.
"""

from collections import defaultdict
from dataclasses import dataclass, field

from lib.topology import IN, OUT

IP_UDP = {4: 28, 6: 48}


@dataclass
class Expected:
    """One tuple's totals, where it was seen, and by which tags it entered."""

    packets: int = 0
    bytes: int = 0
    points: set = field(default_factory=set)
    entries: set = field(default_factory=set)  # tags at the first point


def is_seen(topology, crossing):
    return crossing.device in topology.observed and \
        crossing.way in topology.ways


def has_nat(topology):
    return any(node.snat or node.dnat for node in topology.nodes)


def sent_at(crossing):
    """
    Where a packet left the namespace whose conntrack entry it has: macvlans keep that on its way to an
    interface elsewhere, and tc takes it from what it redirects to an ifb. What came by an ifb on its way
    in has got it behind that.
    """
    while crossing.parent and crossing.parent.way == OUT and \
            crossing.parent.device.lower is crossing.device:
        crossing = crossing.parent
    passed = (crossing, crossing.parent) if crossing.parent else (crossing,)
    is_taken = any(one.device.kind == "ifb" and one.flow == crossing.flow for one in passed)
    return None if is_taken else crossing


def conversations(topology):
    """
    {tuple: that which its packets had before}, as far as the observer knows translations: by
    packets that leave the namespace that translates, by an observed interface, or one below it.
    """
    first = {}
    for _, _, walk in topology.walks() if topology.nat else ():
        for one in walk.crossings:
            here = sent_at(one) if one.way == OUT and is_seen(topology, one) else None
            before = here and here.parent
            while before and before.device.ns is here.device.ns and before.flow == here.flow:
                before = before.parent
            if before and before.flow != here.flow:
                first[here.flow] = first.get(before.flow, before.flow)
    return first


def joined(topology):
    """{"nat"}: an observer sees packets before a translation that it knows, and after it."""
    for view in topology.views():
        first = conversations(view)
        for _, _, walk in view.walks():
            seen = {one.flow for one in walk.crossings if is_seen(view, one)}
            if len({first.get(flow, flow) for flow in seen}) < len(seen):
                return {"nat"}
    return set()


def seen_of(topology, walk, first):
    """[(tuple, its crossings of observed points)], each to count once. @first: conversations()"""
    flows = defaultdict(list)
    for crossing in walk.crossings:
        if is_seen(topology, crossing):
            flows[first.get(crossing.flow, crossing.flow)].append(crossing)
    return flows.items()


def expected(topology):
    """{tuple: Expected} of all that is sent; of a conversation, the first tuple."""
    totals = defaultdict(Expected)
    first = conversations(topology)
    for flow, count, walk in topology.walks():
        for key, crossings in seen_of(topology, walk, first):
            total = totals[key]
            total.packets += count
            total.bytes += count * (
                flow.size + IP_UDP[6 if ":" in key.src else 4])
            total.points |= {(one.device.name, one.way) for one in crossings}
            total.entries.add(crossings[0].tags)
    return dict(totals)


def device_counts(topology):
    """{(device, way): packets}, the expected values of the kernel's own counters."""
    counts = defaultdict(int)
    for _, count, walk in topology.walks():
        for crossing in walk.crossings:
            if crossing.is_counted:
                counts[crossing.device, crossing.way] += count
            if crossing.device.kind == "ifb" and crossing.way == OUT:
                counts[crossing.device, IN] += count # what an ifb gets, it has received
    return counts
