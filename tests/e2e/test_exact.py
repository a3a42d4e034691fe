# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
"""
Counts are exact: the records of plain traffic against a capture taken at the
same point, and against the interface's own counters. No tolerance.
"""

import collections

from lib import lab
from lib import traffic
from lib import truth
from lib.exact import ExactTest
from lib.observer import EGRESS, INGRESS, points

SIZE = lab.sized(20 << 20)
SIZES = [1, 18, 19, 500, 1471, 1472] * 200
FRAGMENTED = 5004 # port of datagrams of 8000 bytes
FLOWS = lab.sized(5000)
ATTEMPTS = 3  # on a busy machine queues may be full


class Exact(ExactTest):
    def compare(self, send, *arguments, ipv6=True):
        """Observe and capture a's end of the wire."""
        self.join(offload=False, ipv6=ipv6)
        for _ in range(ATTEMPTS):
            before = self.a.counters("eth0")
            (result,), (file,) = self.watch(send, [(self.a, "eth0")],
                                            [(self.a, "eth0")], *arguments)
            real = truth.sums(file)
            self.assert_exact(result, real)
            self.assert_l2_exact(result, real)
            after = self.a.counters("eth0")
            # The interface does not count packets that find the peer's queue full.
            if before["tx"]["dropped"] == after["tx"]["dropped"]:
                break
        if not ipv6:
            # With IPv6 there may be multicast reports before and after.
            self.assert_counters(result, before, after)
        return result, real

    def assert_counters(self, result, before, after):
        """The interface counts frames and their bytes, as L2Bytes does."""
        def grown(unit):
            return sum(after[way][unit] - before[way][unit]
                       for way in ("rx", "tx"))
        packets, _ = result.exported()
        octets = sum(record["L2Bytes"] for record in result.records)
        self.assertEqual((packets, octets), (grown("packets"), grown("bytes")))
        self.note(f"interface counters too: {packets} frames, {octets} bytes")

    def test_ipv4(self):
        def send():
            traffic.tcp(self.a, self.A4, self.b, self.B4, SIZE, answer=SIZE // 20)
            traffic.udp(self.a, self.A4, self.b, self.B4, SIZES)
            traffic.udp(self.a, self.A4, self.b, self.B4, [8000] * 10, port=FRAGMENTED)
            traffic.ping(self.a, self.B4, 20)
            traffic.ping(self.a, self.B4, 5, 20, "-R") # options
            traffic.ping(self.a, self.B4, 5, 4000)
            traffic.udp_refused(self.a, self.A4, self.B4)
        result, real = self.compare(send, ipv6=False)
        self.assertEqual({(6, None, None), (1, 8, 0), (1, 0, 0), (1, 3, 3), (17, None, None)},
                         {(key[2], key[5], key[6]) for key in real})
        # Three fragments of each large echo, all of them in the flow that the first one names.
        self.check_packets(result, real, {8: 40, 0: 40, 3: 1}, {5002: len(SIZES), FRAGMENTED: 60, 5003: 1})

    def test_ipv6(self):
        def send():
            # Real neighbour discovery, too: remove the entries that the lab configured.
            for ns, other in ((self.a, self.B6), (self.b, self.A6)):
                ns.ip("neigh", "del", other, "dev", "eth0")
            traffic.tcp(self.a, self.A6, self.b, self.B6, SIZE, answer=SIZE // 20)
            traffic.udp(self.b, self.B6, self.a, self.A6, SIZES[:-1])
            traffic.udp(self.a, self.A6, self.b, self.B6, [8000] * 10, port=FRAGMENTED)
            traffic.ping(self.a, self.B6, 20)
            traffic.ping(self.a, self.B6, 5, 4000)
            traffic.udp_refused(self.a, self.A6, self.B6)
        result, real = self.compare(send)
        self.assertLessEqual({128, 129, 135, 136, 1}, {key[5] for key in real})
        # The two longest datagrams take a second fragment.
        self.check_packets(result, real, {128: 35, 129: 35, 1: 1}, {5002: 1199 + 399, FRAGMENTED: 60, 5003: 1})

    def check_packets(self, result, real, types, ports):
        """@types: packets of ICMP; @ports: of UDP, of which fragments have those of the first one"""
        self.assertEqual(types, {key[5]: total.packets for key, total in real.items() if key[5] in types})
        found = collections.Counter()
        for record in result.records:
            if record["Proto"] == 17:
                found[record["DstPort"]] += record["Packets"]
        self.assertEqual(ports, found)

    def test_udp_flood_of_many_flows(self):
        sent = {}
        def send():
            sent.update(traffic.flood(
                self.lab, self.a, "eth0", "--flows", FLOWS, "--packets", 6 * FLOWS,
                "--rate", 30000, "--cpus", traffic.two_cpus(), "--payload", 100))
        result, real = self.compare(send, "--interval", "0.2",
                                    ipv6=False)
        self.assertEqual(FLOWS, len(real))
        self.assertEqual((sent["packets"], sent["bytes"]), result.exported())
        self.assertEqual(0, sent["refused"])

    def test_lo_counts_both_directions_once(self):
        self.join()
        (result,), _ = self.watch(
            lambda: traffic.ping(self.a, self.A4, 10), [(self.a, "lo")], [])
        self.assertEqual((20, 20 * 84), result.exported())
        for record in result.records:
            self.assertEqual([("lo", INGRESS), ("lo", EGRESS)],
                             points(record))


if __name__ == "__main__":
    lab.main()
