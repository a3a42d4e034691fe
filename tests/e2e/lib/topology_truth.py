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


def seen_of(topology, walk):
    """[(tuple, its crossings of observed points)], each to count once."""
    flows = defaultdict(list)
    for crossing in walk.crossings:
        if is_seen(topology, crossing):
            flows[crossing.flow].append(crossing)
    return flows.items()


def expected(topology):
    """{tuple: Expected} of all that is sent."""
    totals = defaultdict(Expected)
    for flow, count, walk in topology.walks():
        for key, crossings in seen_of(topology, walk):
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
