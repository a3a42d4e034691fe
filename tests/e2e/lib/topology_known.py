# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
"""Whether an observer of a random topology can know what it has to say."""

from dataclasses import replace

from lib import topology_truth
from lib.topology import IN, OUT
from lib.topology_observed import above, crossed_again, is_copy


def returns_translated(walk):
    """
    Whether copies of packets come back into the namespace that has translated them, other than by the
    interface that they left by: there, they look like packets that were not translated.
    """
    for crossing in walk.crossings:
        for sent in above(crossing) if crossing.way == IN else ():
            if sent.way == OUT and sent.flow == crossing.flow and sent.parent and \
                    sent.device.ns is sent.parent.device.ns is crossing.device.ns and \
                    sent.parent.flow != sent.flow and crossing.device is not sent.device and \
                    crossing.device not in (sent.device.lower, *sent.device.ports):
                return True
    return False


def copies_translated(walk, first):
    """
    Whether a copy that tc sends passes a point that its packet passes with another tuple of the conversation:
    with a filter, both may be packets that matched there first. @first: topology_truth.conversations()
    """
    passed = {}
    for crossing in walk.crossings:
        point = crossing.device, crossing.way, first.get(crossing.flow, crossing.flow)
        before = passed.setdefault(point, crossing)
        ways = (before, *above(before), crossing, *above(crossing))
        if before.flow != crossing.flow and any(map(is_copy, ways)):
            return True
    return False


def is_nat_knowable(topology):
    """Whether an observer with --nat can tell which tuples are one conversation's, and count once."""
    first = topology_truth.conversations(replace(topology, nat=True))
    walks = [walk for _, _, walk in topology.walks()]
    if any(returns_translated(walk) or copies_translated(walk, first) for walk in walks):
        return False
    again = {device for walk in walks for device in crossed_again(walk, first)}
    return not again or (topology.ways == (IN, OUT) and again <= topology.observed)
