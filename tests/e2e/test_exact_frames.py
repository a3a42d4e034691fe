# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
"""
Frames this kernel does not make by itself, written to the wire byte by byte:
VLAN and QinQ tags, MPLS, IPv6 extension headers, padding, and what is no IP.

Each is observed twice: where it leaves, with its tags in the frame; and where
it arrives, where the kernel has moved the first tag beside the frame.
"""

import collections

from lib import frames as f
from lib import lab
from lib import truth
from lib.exact import ExactTest

PAYLOAD = bytes(100)
UDP = f.udp(1000, 2000, PAYLOAD)
REPEAT = 50


class Frames(ExactTest):
    def v4(self, payload=UDP, proto=f.UDP, **fields):
        return f.ipv4(self.A4, self.B4, proto, payload, **fields)

    def v6(self, payload=UDP, proto=f.UDP, **fields):
        return f.ipv6(self.A6, self.B6, proto, payload, **fields)

    def frame(self, kind, payload):
        return f.ether(self.mac_b, self.mac_a, kind, payload)

    def both_ends(self, make):
        """Send make()'s frames, and compare at the sender and the receiver."""
        self.join(offload=False, ipv6=False)
        frames = make()
        points = [(self.a, "eth0"), (self.b, "eth0")]
        results, files = self.watch(
            lambda: self.a.send_frames("eth0", frames * REPEAT),
            points, points)
        for (ns, _), result, file in zip(points, results, files):
            sent = [(key, total) for key, total in truth.sums(file).items()
                    if key[0] in (self.A4, self.A6)]
            # Only sent packets: the receiver may answer.
            ours = [record for record in result.records
                    if record["SrcAddr"] in (self.A4, self.A6)]
            result.records = ours
            self.assert_exact(result, dict(sent), ns.name[-1])
            self.assert_l2_exact(result, dict(sent))
        return results, dict(sent)

    def test_vlan(self):
        results, real = self.both_ends(lambda: [
            self.frame(f.VLAN, f.vlan(5, f.IPV4, self.v4())),
            self.frame(f.VLAN, f.vlan(0, f.IPV4, self.v4(), priority=5)),
            self.frame(f.VLAN, f.vlan(4094, f.IPV6, self.v6())),
            self.frame(f.IPV4, self.v4())])
        for result in results:
            self.assertEqual({5, 0, 4094, None},
                             {r.get("VlanId") for r in result.records})
            self.assertNotIn("OuterVlanId", str(result.records))
        self.assertEqual([REPEAT] * 4, [t.packets for t in real.values()])

    def test_qinq(self):
        inner = f.vlan(7, f.IPV4, self.v4())
        results, _ = self.both_ends(lambda: [
            self.frame(f.QINQ, f.vlan(100, f.VLAN, inner)),
            self.frame(f.VLAN, f.vlan(200, f.VLAN, inner)),
            self.frame(f.QINQ, f.vlan(100, f.VLAN,
                                      f.vlan(8, f.IPV6, self.v6())))])
        for result in results:
            self.assertEqual(
                {(7, 100), (7, 200), (8, 100)},
                {(r["VlanId"], r["OuterVlanId"]) for r in result.records})

    def test_mpls(self):
        self.both_ends(lambda: [
            self.frame(f.MPLS, f.mpls([16], self.v4())),
            self.frame(f.MPLS, f.mpls([16, 17, 18], self.v6())),
            self.frame(f.VLAN, f.vlan(9, f.MPLS, f.mpls([20], self.v4())))])

    def test_ipv6_extension_headers(self):
        def chain(*headers):
            """(protocol, bytes of a header given what follows) to a packet."""
            kinds = [kind for kind, _ in headers] + [f.UDP]
            body = b"".join(make(kinds[at + 1])
                            for at, (_, make) in enumerate(headers))
            return self.v6(body + UDP, kinds[0])
        hop = (f.HOP_BY_HOP, f.extension)
        opts = (f.DEST_OPTIONS, lambda kind: f.extension(kind, 24))
        route = (f.ROUTING, lambda kind: f.routing(kind, self.B6))
        atomic = (f.FRAGMENT, lambda kind: f.fragment6(kind, 0, 0, 77))
        results, _ = self.both_ends(lambda: [
            self.frame(f.IPV6, chain(hop)),
            self.frame(f.IPV6, chain(opts)),
            self.frame(f.IPV6, chain(hop, opts, route, opts)),
            self.frame(f.IPV6, chain(hop, atomic))])
        for result in results:
            self.assertEqual({(17, 1000, 2000)},
                             {(r["Proto"], r["SrcPort"], r["DstPort"])
                              for r in result.records})

    def test_ipv4_options_and_padding(self):
        def make():
            short = self.v4(f.udp(7, 7), options=b"\1" * 8)
            # What a network card adds to reach 60 bytes is not the packet's.
            padded = self.v4(f.udp(9, 9)).ljust(60 - 14, b"\0")
            return [self.frame(f.IPV4, short), self.frame(f.IPV4, padded)]
        results, _ = self.both_ends(make)
        for result in results:
            # An interval may end in between.
            sums = collections.Counter()
            for r in result.records:
                sums[r["SrcPort"], "Bytes"] += r["Bytes"]
                sums[r["SrcPort"], "L2Bytes"] += r["L2Bytes"]
            self.assertEqual((28 + 8) * REPEAT, sums[7, "Bytes"])
            self.assertEqual(28 * REPEAT, sums[9, "Bytes"])
            self.assertEqual(60 * REPEAT, sums[9, "L2Bytes"])
            self.assertEqual({7, 9}, {port for port, _ in sums})

    def test_what_is_no_flow_is_counted_by_reason(self):
        self.join(offload=False, ipv6=False)
        lldp = self.frame(0x88cc, bytes(46))
        frames = {
            "arp": self.frame(f.ARP, f.arp(self.mac_a, self.A4, self.B4)),
            "not_ip": lldp,
            "short": self.frame(f.IPV4, self.v4()[:19]),
            "bad_header": self.frame(f.IPV4, b"\x41" + self.v4()[1:]),
            "too_deep": self.frame(f.MPLS, f.mpls(range(16, 48), self.v4())),
            "ppp": self.frame(0x8863, bytes(46)),
        }
        def send():
            for count, frame in enumerate(frames.values(), 1):
                self.a.send_frames("eth0", [frame] * count)
        (result,), (file,) = self.watch(
            send, [(self.a, "eth0")], [(self.a, "eth0")],
            "--direction", "egress")
        unparsed = result.stats["unparsed"]
        self.assertEqual(
            {"wlan": 0, "link_type": 0} |
            {reason: count for count, reason in enumerate(frames, 1)},
            {reason: leaf["packets"] for reason, leaf in unparsed.items()})
        total, _ = truth.frames_and_bytes(file)
        # The capture has the answer to the ARP request too.
        self.assertEqual(total - 1, result.stats["seen"]["packets"])
        self.assertEqual([], result.records)
        self.note(f"by reason: {unparsed}")

    def test_stray_fragments_have_no_ports(self):
        later = f.ipv4(self.A4, self.B4, f.UDP, bytes(64), ident=5,
                       fragment=100)
        self.join(offload=False, ipv6=False)
        (result,), _ = self.watch(
            lambda: self.a.send_frames(
                "eth0", [self.frame(f.IPV4, later)] * REPEAT),
            [(self.a, "eth0")], [], "--direction", "egress")
        (record,) = result.records
        self.assertEqual((REPEAT, REPEAT * 84), result.exported())
        self.assertNotIn("SrcPort", record)


if __name__ == "__main__":
    lab.main(at_once=3)
