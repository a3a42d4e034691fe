# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
"""A topology with an observer on it, and what its records say wrong."""

import json
import os
from collections import defaultdict

from lib import lab
from lib import topology_observed
from lib import topology_truth
from lib import topology_tunnels
from lib.observer import Observer, points
from lib.topology import Tuple
from lib.topology_build import Network

UDP = 17
DIRECTIONS = {(0,): "ingress", (1,): "egress", (0, 1): "both"}


class BuildLab(lab.Lab):
    """A lab of many namespaces, taken away with one command."""

    def __init__(self):
        super().__init__()
        self.names = []

    def name(self, node):
        self.names.append(f"{lab.PREFIX}{os.getpid()}-{node.name}")
        return self.names[-1]

    def close(self):
        super().close()
        lab.run(lab.IP, "-force", "-batch", "-", check=False, input="\n".join(
            f"netns del {name}" for name in self.names))
        self.names = []


def selection(topology, places, home):
    """netobsctl's options for the observed interfaces, run in @home's namespace."""
    options = ["--direction", DIRECTIONS[topology.ways]]
    for node, place in places.items():
        devices = [device for device in node.devices.values()
                   if device in topology.observed]
        prefix = "" if node is home else f"netns:{place.name}/"
        if len(devices) == len(node.devices):
            options += ["-i", f"{prefix}/./"]
        else:
            for device in devices:
                options += ["-i", prefix + device.name]
    return options


def home_of(topology):
    """Where the observer runs: where the first observed interface is."""
    return next(node for node in topology.nodes
                if any(device in topology.observed
                       for device in node.devices.values()))


def record_tuple(record):
    """Of a tunnel, the outer one."""
    outer = "Outer" if "TunnelType" in record else ""
    return Tuple(*(record[outer + name] for name in ("SrcAddr", "DstAddr", "SrcPort", "DstPort")))


def grouped(records, first):
    """{tuple: records}. @first: of conversations, topology_truth.conversations()"""
    found = defaultdict(list)
    for record in of_udp(records):
        key = record_tuple(record)
        found[first.get(key, key)].append(record)
    return found


def of_udp(records):
    return [record for record in records if record["Proto"] == UDP]


def vlan_ids(record):
    return tuple(record[name] for name in ("OuterVlanId", "VlanId")
                 if name in record)


def wrong_flow(key, records, want, may_miss):
    """Describe the errors in the @records of one tuple."""
    for name, real in (("Packets", want.packets), ("Bytes", want.bytes)):
        ours = sum(record[name] for record in records)
        if ours != real and not (may_miss and 0 < ours < real):
            yield f"{key}: {ours} {name}, really {real}"
    seen = {point for record in records for point in points(record)}
    if seen != want.points and not (may_miss and seen < want.points):
        yield f"{key}: seen at {sorted(seen)}, really {sorted(want.points)}"
    tags = {vlan_ids(record) for record in records}
    entries = {tuple(vlan for _, vlan in tags) for tags in want.entries}
    if tags != entries:
        yield f"{key}: VLANs {tags}, really {entries}"


def wrong_result(topology, result):
    """Describe the errors in an observer's records and statistics."""
    want = topology_truth.expected(topology)
    ours = grouped(result.records, topology_truth.conversations(topology))
    inner = topology_tunnels.inner_tuples(topology)
    # Of packets that take several ways, those of one may be taken for those of the other.
    may_miss = topology_observed.joins_behind_bridges(topology) or \
        topology_observed.returns_copies(topology) or not topology.is_clear and (
        "inferred_packets" in result.stats["seen"] or
        not topology_observed.has_one_way_each(topology))
    found = []
    for key in sorted(set(ours) | set(want), key=str):
        found += wrong_flow(key, ours.get(key, []),
                            want.get(key, topology_truth.Expected()), may_miss)
    found += wrong_inner(result.records, inner)
    found += wrong_loopback(result.records)
    if topology.nat:
        found += wrong_ids(ours, inner)
    try:
        result.check_conservation()
    except AssertionError as error:
        found.append(f"conservation: {error}")
    # What IPv6 says of itself is no traffic of ours.
    noise = sum(record["Packets"] for record in result.records
                if record["Proto"] != UDP) + result.total("unparsed")[0]
    seen = result.total("seen")[0] - noise
    real = sum(total.packets for total in want.values())
    if seen != real and not (may_miss and seen < real):
        found.append(f"{seen} packets seen, really {real}")
    return found


def wrong_ids(conversations, inner):
    """All faces of a conversation have its id, and no other conversation has. @inner: inner_tuples()"""
    owners = {}
    for key, records in conversations.items():
        key = inner.get(key, key)
        for one in {record.get("ConversationId") for record in records}:
            if not one or owners.setdefault(one, key) != key:
                yield f"{key}: ConversationId {one}, as {owners.get(one)}"
        if len({record.get("ConversationId") for record in records}) > 1:
            yield f"{key}: several ConversationIds"


def wrong_inner(records, inner):
    """What is in a tunnel, and nothing else."""
    for record in of_udp(records):
        key = record_tuple(record)
        ours = Tuple(*(record[name] for name in ("SrcAddr", "DstAddr", "SrcPort", "DstPort")))
        if inner.get(key, key) != ours:
            yield f"{key}: {ours} in it, really {inner.get(key)}"


def wrong_loopback(records):
    """What a loopback saw is in records of its own."""
    for record in records:
        if "lo" in record["Interfaces"] and \
                set(record["Interfaces"]) != {"lo"}:
            yield f"{record_tuple(record)}: loopback and others: " \
                f"{record['Interfaces']}"


class Watch:
    """Observers of a network, which may begin and end at different times."""

    def __init__(self, where, network):
        self.where, self.network = where, network
        self.topology = network.topology
        self.running = {} # view -> observer

    def start(self, view):
        places = self.network.places
        home = home_of(view)
        observer = Observer(self.where, places[home], "--interval", str(view.interval),
                            *selection(view, places, home), *["--nat"] * view.nat,
                            *view.filter)
        observer.wait_observing(len(view.observed))
        view.rounds = 0
        self.running[view] = observer

    def send(self):
        self.network.send_all()
        for view in self.running:
            view.rounds += 1

    def stop(self, view):
        """What is wrong."""
        result = self.running.pop(view).stop()
        view.records = result.records
        who = "the second observer: " if view is self.topology.second else ""
        return [who + line for line in wrong_result(view, result)]

    def run(self, attach):
        """What is wrong. A second observer leaves the first one running, or the other way."""
        topology, wrong = self.topology, []
        self.start(topology)
        if attach:
            attach(self.network)
        if topology.second:
            if topology.is_second_late:
                self.send()
            self.start(topology.second)
            self.send()
            wrong += self.stop(topology if topology.is_second_last else topology.second)
        self.send()
        for view in list(self.running):
            wrong += self.stop(view)
        return wrong


def observe(topology, attach=None):
    """
    Build, watch, send; ([what is wrong], records). @attach: is called with the
    network once the observer is there.
    """
    where = BuildLab()
    try:
        network = Network(where, topology)
        wrong = Watch(where, network).run(attach)
        wrong = [f"the lab differs from its model: {line}"
                 for line in network.differences()] + wrong
        return wrong, topology.records
    finally:
        where.close()


def report_view(view):
    """What an observer should say, and what it says."""
    lines = ["Expected:"]
    lines += [f"  {key}: {total.packets} packets, {total.bytes} octets, tags "
              f"{total.entries}" for key, total in topology_truth.expected(view).items()]
    lines.append("Records:")
    return lines + [f"  {json.dumps(record)}" for record in view.records]


def report(topology, wrong):
    """All that one needs to understand a failure."""
    lines = [topology.describe(), "Crossed (* observed):"]
    for flow, count, walk in topology.walks():
        lines.append(f"  {count} of {flow.flow}")
        for one in walk.crossings:
            stars = "".join("*" if topology_truth.is_seen(view, one) else " "
                            for view in topology.views())
            lines.append(f"   {stars} {one} {one.flow} {one.tags or ''}")
    for view in topology.views():
        lines += report_view(view)
    return "\n".join(lines + ["Wrong:"] + [f"  {line}" for line in wrong])
