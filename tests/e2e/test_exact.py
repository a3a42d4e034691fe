#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
"""
Counts are exact: the records of plain traffic against a capture taken at the
same point, and against the interface's own counters. No tolerance.
"""

from lib import lab
from lib import traffic
from lib import truth
from lib.exact import ExactTest
from lib.observer import EGRESS, INGRESS, points

SIZE = lab.sized(20 << 20)
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

    def test_tcp_ipv4(self):
        self.compare(lambda: traffic.tcp(
            self.a, self.A4, self.b, self.B4, SIZE, answer=SIZE // 20),
            ipv6=False)

    def test_tcp_ipv6(self):
        self.compare(lambda: traffic.tcp(
            self.a, self.A6, self.b, self.B6, SIZE, answer=SIZE // 20))

    def test_udp(self):
        sizes = [1, 18, 19, 500, 1471, 1472] * 200
        _, real = self.compare(lambda: (
            traffic.udp(self.a, self.A4, self.b, self.B4, sizes),
            traffic.udp(self.b, self.B6, self.a, self.A6, sizes[:-1])))
        # Over IPv6 the two longest take a second fragment.
        self.assertEqual({self.A4: 1200, self.B6: 1199 + 399},
                         {key[0]: total.packets
                          for key, total in real.items()})

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

    def test_icmp(self):
        _, real = self.compare(lambda: (
            traffic.ping(self.a, self.B4, 20),
            traffic.ping(self.a, self.B4, 5, 20, "-R"), # IPv4 options
            traffic.udp_refused(self.a, self.A4, self.B4)))
        kinds = {(key[2], key[5], key[6]) for key in real}
        self.assertEqual({(1, 8, 0), (1, 0, 0), (1, 3, 3), (17, None, None)},
                         kinds)

    def test_icmpv6(self):
        # Real neighbour discovery, too: remove the entries that the lab configured.
        def send():
            for ns, other in ((self.a, self.B6), (self.b, self.A6)):
                ns.ip("neigh", "del", other, "dev", "eth0")
            traffic.ping(self.a, self.B6, 20)
            traffic.udp_refused(self.a, self.A6, self.B6)
        _, real = self.compare(send)
        kinds = {key[5] for key in real}
        self.assertLessEqual({128, 129, 135, 136, 1}, kinds)

    def test_fragments_of_ping(self):
        _, real = self.compare(lambda: (
            traffic.ping(self.a, self.B4, 5, 4000),
            traffic.ping(self.a, self.B6, 5, 4000)))
        # 3 fragments each; all of them in the flow that the first one names.
        self.assertEqual(sorted([15] * 4),
                         sorted(total.packets for total in real.values()))

    def test_fragments_of_udp(self):
        result, real = self.compare(lambda: (
            traffic.udp(self.a, self.A4, self.b, self.B4, [8000] * 10),
            traffic.udp(self.a, self.A6, self.b, self.B6, [8000] * 10)))
        self.assertEqual({60}, {total.packets for total in real.values()})
        self.assertEqual({5002}, {r["DstPort"] for r in result.records
                                  if r["Proto"] == 17})

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
