# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
# Needs: nftables tcpdump
"""The steps of netobsctl trace at three interfaces, compared with what tcpdump sees there.

The kernel copies a packet that leaves for tcpdump between the queue and the driver, and one that comes
between the interface and the protocol, with the time of then or of when it came. So each time of tcpdump has
a step before and one behind it, without any tolerance.
"""

import collections
import math
import struct

from lib import lab
from lib import packets
from lib.tracer import Trace, Tracer, union, has_all

ETHERNET, IPV4, TCP, UDP, SYN = 14, b"\x08\x00", 6, 17, 2
VXLAN_PORT, UDP_AND_VXLAN = 4789, 16

Segment = collections.namedtuple("Segment", "begin end ns")
# An interface, the other end of its cable, and the direction of bytes that leave it.
Place = collections.namedtuple("Place", "ns interface peer_ns peer out")


def parse(frame, length):
    """(ends, sequence number, flags, bytes) of a TCP segment, in VXLAN or not; or None."""
    if frame[12:14] != IPV4:
        return None
    at = ETHERNET + (frame[ETHERNET] & 15) * 4
    ports = struct.unpack_from("!HH", frame, at)
    if frame[ETHERNET + 9] == UDP and ports[1] == VXLAN_PORT:
        return parse(frame[at + UDP_AND_VXLAN:], length - at - UDP_AND_VXLAN)
    if frame[ETHERNET + 9] != TCP:
        return None
    number, = struct.unpack_from("!I", frame, at + 4)
    ends = frame[ETHERNET + 12:ETHERNET + 20], ports
    return ends, number, frame[at + 13], length - at - (frame[at + 12] >> 4) * 4


def by_first_number(captured):
    """Segments with data of each stream, by the sequence number of its first byte: NAT leaves it."""
    first, found = {}, collections.defaultdict(list)
    for packet in captured:
        segment = parse(packet.data, packet.length)
        if not segment:
            continue
        ends, number, flags, size = segment
        if flags & SYN:
            first[ends] = (number + 1) & 0xffffffff
        elif size:
            offset = (number - first[ends]) & 0xffffffff
            found[first[ends]].append(Segment(offset, offset + size, packet.ns))
    return found


def steps(journey, point, ns, interface):
    """When the bytes passed a point, by any attempt."""
    return [journey["TimeNs"] + step["AfterNs"] for step in journey["Steps"]
            if step["Point"] == point and step["NetnsInode"] == ns.inode
            and step["Interface"] == interface]


def next_steps(journey, ns, interface):
    """When the bytes were behind an interface that received them; never, if they were dropped."""
    found = []
    for number, step in enumerate(journey["Steps"]):
        if step["Point"] != "receive" or step["NetnsInode"] != ns.inode \
                or step["Interface"] != interface:
            continue
        found.append(next((journey["TimeNs"] + one["AfterNs"]
                           for one in journey["Steps"][number + 1:]
                           if one.get("NetnsInode") == ns.inode
                           and one.get("Attempt") == step.get("Attempt")), math.inf))
    return found


class Points(Trace):
    def check_journey(self, journey, segments, place, where):
        end = journey["Offset"] + journey["Bytes"]
        seen = sorted(one.ns for one in segments
                      if one.begin < end and one.end > journey["Offset"])
        own = place.ns, place.interface
        if journey["Direction"] == place.out:
            before, after = steps(journey, "queue", *own), steps(journey, "transmit", *own)
        else:
            before = steps(journey, "transmit", place.peer_ns, place.peer)
            after = next_steps(journey, *own)
        # What a loaded host sends again after the arrival is counted, and has no steps.
        shown = min(len(before), len(after))
        self.assertLessEqual(shown, len(seen), where)
        attempts = 1 + max(step.get("Attempt", 0) for step in journey["Steps"])
        ended = journey["TimeNs"] + journey["TotalNs"]
        again = [at for at in seen[shown:] if at <= ended]
        self.assertLessEqual(len(again), journey["Attempts"] - attempts, where)
        for first, at, last in zip(sorted(before), seen, sorted(after)):
            self.assertTrue(first <= at <= last, f"{where}: {first} {at} {last}")

    def check_place(self, place, captured, journeys, where):
        streams = by_first_number(captured)
        own = collections.defaultdict(list)
        for one in journeys:
            own[(one["Seq"] - one["Offset"]) & 0xffffffff].append(one)
        self.assertEqual(set(streams), set(own), where)
        for number, segments in streams.items():
            text = f"{where}: {place.interface}, stream {number}"
            ranges, double = union((one["Offset"], one["Offset"] + one["Bytes"])
                                   for one in own[number])
            saw, _ = union((one.begin, one.end) for one in segments)
            self.assertEqual((ranges, double), (saw, 0), text)
            for one in own[number]:
                self.check_journey(one, segments, place, f"{text}: {one}")

    def test_each_step_is_where_tcpdump_sees_its_bytes(self):
        network, where = self.network()
        places = [Place(network.client, "c0", network.router, "rc", 0),
                  Place(network.router, "rc", network.client, "c0", 1),
                  Place(network.server, "s0", network.router, "rs", 1)]
        taps = [packets.Tcpdump(self.lab, place.ns, place.interface,
                                self.lab.path(f"tap-{place.interface}"), "-s", "200")
                for place in places]
        tracer = Tracer(self, network.address[1])
        spoken = list(self.talk(network, lab.sized(15)))
        journeys = tracer.stop()
        self.assertTrue(all(one.client for one in spoken), where)
        for place, tap in zip(places, taps):
            self.check_place(place, tap.stop().packets, journeys, where)


if __name__ == "__main__":
    lab.main("tracepoints of processes that write", has_all)
