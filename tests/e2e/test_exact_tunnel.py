# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
"""
Counts are exact inside and outside of a VXLAN tunnel, in GTP-U, behind the segments of SRv6,
and on a tun device, whose packets have no Ethernet header.
"""

import socket
import struct

from lib import frames as f
from lib import lab
from lib import traffic
from lib import truth
from lib.exact import ExactTest

VNI = 4242
SEGMENTATION = ("tso", "gso", "tx-udp-segmentation", "tx-udp_tnl-segmentation",
                "tx-udp_tnl-csum-segmentation")
SIZE = lab.sized(10 << 20)


class Vxlan(ExactTest):
    A, B = "10.9.0.1", "10.9.0.2"

    def overlay(self):
        """vxlan0 over eth0 on both sides, with static forwarding entries."""
        self.join(offload=False, ipv6=False)
        self.a.offload("eth0", *SEGMENTATION, on=False)
        macs = self.lab.mac(), self.lab.mac()
        ends = ((self.a, self.A4, self.B4, self.A, self.B, *macs),
                (self.b, self.B4, self.A4, self.B, self.A, *macs[::-1]))
        for ns, local, remote, address, other, mac, other_mac in ends:
            ns.ip("link", "add", "vxlan0", "address", mac, "type", "vxlan",
                  "id", VNI, "local", local, "remote", remote, "dev", "eth0",
                  "dstport", "4789", "nolearning")
            ns.ip("link", "set", "vxlan0", "up")
            ns.address("vxlan0", f"{address}/24")
            ns.neighbour("vxlan0", other_mac, other)

    def send(self):
        traffic.ping(self.a, self.B, 10)
        traffic.udp(self.a, self.A, self.b, self.B, [10, 1400] * 100)
        traffic.tcp(self.a, self.A, self.b, self.B, SIZE, answer=SIZE // 10)

    def test_inner_and_outer(self):
        """
        The wire under the tunnel shows the inner flow with the tunnel's ends;
        the tunnel's device shows the plain inner flow. Truth for both is the
        capture under the tunnel, where all segments are made.
        """
        self.overlay()
        (wire, tunnel), (file,) = self.watch(
            self.send, [(self.a, "eth0"), (self.a, "vxlan0")],
            [(self.a, "eth0")])
        self.assert_exact(wire, truth.sums(file), "under the tunnel:")
        self.assert_exact(tunnel, truth.sums(file, whole=False),
                          "in the tunnel:")
        for record in wire.records:
            self.assertEqual("vxlan", record["TunnelType"])
            self.assertEqual(VNI, record["Vni"])
            self.assertEqual({self.A4, self.B4}, {record["OuterSrcAddr"],
                                                  record["OuterDstAddr"]})
            self.assertEqual(record["SrcAddr"] == self.A,
                             record["OuterSrcAddr"] == self.A4)
            self.assertEqual(4789, record["OuterDstPort"])
        self.assertNotIn("Outer", str(tunnel.records))
        self.assertNotIn("TunnelType", str(tunnel.records))

    def test_what_is_not_opened_is_the_outer_flow(self):
        """ARP in the tunnel: the outer UDP flow carries it."""
        self.overlay()
        (result,), (file,) = self.watch(
            lambda: self.a.send_frames("vxlan0", [f.ether(
                "ff:ff:ff:ff:ff:ff", "02:00:00:00:00:01", f.ARP,
                f.arp("02:00:00:00:00:01", self.A, "10.9.0.77"))] * 10),
            [(self.a, "eth0")], [(self.a, "eth0")], "--direction", "egress")
        self.assert_exact(result, truth.sums(file, inner=False))
        self.assertEqual({4789}, {r["DstPort"] for r in result.records})


class Gtpu(ExactTest):
    TEID, PORT = 0xcafe0001, 2152
    PHONE, SERVER = "10.45.0.2", "198.51.100.7"

    @staticmethod
    def message(kind, teid, payload, options=b""):
        flags = 0x34 if options else 0x30
        return struct.pack("!BBHI", flags, kind, len(options + payload), teid) + options + payload

    def messages(self):
        """User data with and without the header of 5G, and an echo request."""
        session = bytes((0, 0, 0, 0x85, 1, 0x10, 9, 0))
        for size in range(0, 1200, 100):
            packet = f.ipv4(self.PHONE, self.SERVER, f.UDP, f.udp(5000, 53, bytes(size)))
            yield self.message(255, self.TEID, packet)
            yield self.message(255, self.TEID, packet, session)
        yield self.message(1, 0, b"\0\0\0\0")

    def test_user_data_is_the_inner_flow(self):
        self.join(offload=False, ipv6=False)

        def send():
            with traffic.make_socket(self.b, socket.SOCK_DGRAM, self.B4, self.PORT) as to, \
                    traffic.make_socket(self.a, socket.SOCK_DGRAM, self.A4, self.PORT) as out:
                for message in self.messages():
                    out.sendto(message, (self.B4, self.PORT))
                    to.recv(2000)
        (result,), (file,) = self.watch(send, [(self.a, "eth0")], [(self.a, "eth0")])
        self.assert_exact(result, truth.sums(file))
        echo, data = sorted(result.records, key=lambda one: one["Packets"])
        self.assertEqual(24, data["Packets"])
        self.assertEqual(("gtpu", self.TEID, self.A4, self.B4, self.PORT),
                         tuple(data[key] for key in ("TunnelType", "Vni", "OuterSrcAddr",
                                                     "OuterDstAddr", "OuterDstPort")))
        self.assertEqual(self.PORT, echo["DstPort"])
        self.assertNotIn("TunnelType", echo)


class Srv6(ExactTest):
    A, B = "10.9.0.1", "10.9.0.2"

    def segments(self):
        """Packets go through two segments at the other side, where the second one takes them out."""
        self.join(offload=False)
        self.a.offload("eth0", "tso", "gso", "gro", on=False)
        self.b.offload("eth0", "tso", "gso", "gro", on=False)
        ends = ((self.a, self.A, self.B, self.B6, "a", "b"),
                (self.b, self.B, self.A, self.A6, "b", "a"))
        for ns, address, other, gateway, here, there in ends:
            for key in "conf/all/forwarding", "conf/all/seg6_enabled", "conf/eth0/seg6_enabled":
                ns.sysctl(f"ipv6/{key}", 1)
            ns.address("lo", f"{address}/32")
            ns.ip("-6", "route", "add", f"fc00:{there}::/64", "via", gateway, "dev", "eth0")
            ns.ip("route", "add", other, "encap", "seg6", "mode", "encap", "segs",
                  f"fc00:{there}::1,fc00:{there}::2", "dev", "eth0", "src", address,
                  "mtu", "1300")
            ns.ip("-6", "route", "add", f"fc00:{here}::1", "encap", "seg6local", "action", "End",
                  "dev", "eth0")
            ns.ip("-6", "route", "add", f"fc00:{here}::2", "encap", "seg6local", "action", "End.DX4",
                  "nh4", address, "dev", "eth0")

    def test_the_inner_flow_and_the_last_segment(self):
        self.segments()

        def send():
            traffic.ping(self.a, self.B, 10)
            traffic.udp(self.a, self.A, self.b, self.B, [10, 1200] * 100)
            traffic.tcp(self.a, self.A, self.b, self.B, SIZE // 10, answer=SIZE // 100)
        (result,), (file,) = self.watch(send, [(self.a, "eth0")], [(self.a, "eth0")])
        self.assert_exact(result, truth.sums(file))
        # Without neighbour discovery.
        records = [record for record in result.records if record["Proto"] != 58]
        self.assertEqual({1, 6, 17}, {record["Proto"] for record in records})
        for record in records:
            self.assertEqual("srv6", record["TunnelType"])
            there = "b" if record["SrcAddr"] == self.A else "a"
            self.assertEqual(f"fc00:{there}::2", record["OuterDstAddr"])


class TunDevice(ExactTest):
    HERE, THERE = "203.0.113.1", "203.0.113.2"
    HERE6, THERE6 = "2001:db8:2::1", "2001:db8:2::2"

    def test_packets_without_link_header(self):
        ns = self.lab.ns("t", ipv6=True)
        tun = traffic.Tun(self.lab, ns, "tun0")
        ns.address("tun0", f"{self.HERE}/24", f"{self.HERE6}/64")
        echo = f.icmp(8, 0, b"\0\1\0\1" + bytes(32))
        echo = echo[:2] + f.checksum(echo).to_bytes(2, "big") + echo[4:]

        def send():
            for address, dest in ((self.HERE, self.THERE),
                                  (self.HERE6, self.THERE6)):
                with traffic.make_socket(ns, traffic.socket.SOCK_DGRAM,
                                         address) as out:
                    for size in range(0, 1400, 100):
                        out.sendto(bytes(size), (dest, 9))
                        while tun.read()[0] >> 4 != (6 if ":" in dest else 4):
                            pass
            for _ in range(20):  # the kernel answers these
                tun.write(f.ipv4(self.THERE, self.HERE, f.ICMP, echo))
                tun.read()
        (result,), (file,) = self.watch(send, [(ns, "tun0")], [(ns, "tun0")])
        real = truth.sums(file)
        self.assert_exact(result, real)
        self.assertEqual(4, len(real))
        for record in result.records:
            for absent in ("SrcMac", "DstMac", "L2Bytes"):
                self.assertNotIn(absent, record)


if __name__ == "__main__":
    lab.main(at_once=3)
