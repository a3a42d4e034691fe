# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
"""
Packets are packets of the wire also where the kernel handles several at once:
TSO, GSO, GRO, UDP segmentation, buffers of virtual machines.

Where an offload is on, a capture at the same point has the large buffers too.
The truth is then taken where the segments are made: at the next interface on
the way whose offloads are off, where they leave one by one.
"""

import socket
import struct

from lib import frames
from lib import lab
from lib import traffic
from lib import truth
from lib.exact import ExactTest
from lib.observer import Observer

SEGMENTATION = ("tso", "gso", "tx-udp-segmentation")
MTU_FRAME = 1514
SIZE = lab.sized(20 << 20)
ATTEMPTS = 4


def largest_frame(file):
    """By the record headers of a pcap file that tcpdump wrote here."""
    with open(file, "rb") as capture:
        data = capture.read()
    at, largest = 24, 0
    while at < len(data):
        kept, length = struct.unpack_from("=II", data, at + 8)
        at += 16 + kept
        largest = max(largest, length)
    return largest


def is_large(file):
    return largest_frame(file) > 2 * MTU_FRAME


class Offload(ExactTest):
    def route(self):
        """a -- in0 r out0 -- b: a's segments are made when they leave out0."""
        self.a, self.r, self.b = (self.lab.ns(tag, ipv6=True) for tag in "arb")
        self.lab.wire(self.a, "eth0", ["192.0.2.1/24", "2001:db8::1/64"],
                      self.r, "in0", ["192.0.2.254/24", "2001:db8::fe/64"])
        self.lab.wire(
            self.r, "out0", ["198.51.100.254/24", "2001:db8:1::fe/64"],
            self.b, "eth0", ["198.51.100.1/24", "2001:db8:1::1/64"],
            offload=False)
        self.r.sysctl("ipv4/ip_forward", 1)
        self.r.sysctl("ipv6/conf/all/forwarding", 1)
        self.r.offload("out0", "tx-udp-segmentation", on=False)
        for ns, v4, v6 in ((self.a, "192.0.2.254", "2001:db8::fe"),
                           (self.b, "198.51.100.254", "2001:db8:1::fe")):
            ns.ip("route", "add", "default", "via", v4)
            ns.ip("-6", "route", "add", "default", "via", v6)

    def lost_on_the_way(self, points):
        """Packets that any interface dropped, in the namespaces of all points."""
        return sum(ns.dropped() for ns in {id(ns): ns for ns, _ in points}.values())

    def watch_without_loss(self, traffic, points, captures):
        """A busy host may drop packets between the points: then once more."""
        for _ in range(ATTEMPTS):
            before = self.lost_on_the_way(points + captures)
            watched = self.watch(traffic, points, captures)
            if self.lost_on_the_way(points + captures) == before:
                return watched
        return self.fail(f"packets were lost on the way, in {ATTEMPTS} attempts")

    def over_router(self, send, offload="tcp-segmentation-offload"):
        """
        Observe a and r, where buffers are large; truth at out0. COMPAT(5.10):
        a veth cannot carry large UDP buffers, and they are cut before it.
        """
        self.route()
        is_carried = self.a.has_offload("eth0", offload)
        points = [(self.a, "eth0"), (self.r, "in0")]
        results, files = self.watch_without_loss(
            send, points, [(self.r, "out0"), *points])
        self.assertLessEqual(largest_frame(files[0]), MTU_FRAME)
        for (_, name), result, file in zip(points, results, files[1:]):
            self.assertEqual(is_carried, is_large(file))
            self.assert_exact(result, truth.sums(files[0]),
                              f"{name}, buffers up to {largest_frame(file)}:")

    def test_tcp_segmented_later(self):
        self.over_router(lambda: (
            traffic.tcp(self.a, "192.0.2.1", self.b, "198.51.100.1", SIZE),
            traffic.tcp(self.a, "2001:db8::1", self.b, "2001:db8:1::1", SIZE)))

    def test_udp_segmented_later(self):
        # 50 segments, the last one short; then 40 full ones.
        self.over_router(lambda: (
            traffic.udp(self.a, "192.0.2.1", self.b, "198.51.100.1",
                        [49 * 1200 + 7] * 20, segment=1200),
            traffic.udp(self.a, "2001:db8::1", self.b, "2001:db8:1::1",
                        [40 * 1000] * 20, segment=1000)),
            "tx-udp-segmentation")

    def test_segments_made_right_after_the_hook(self):
        self.join(offload=False)
        self.a.offload("eth0", *SEGMENTATION, on=False)
        (result,), (file,) = self.watch(
            lambda: (traffic.tcp(self.a, self.A4, self.b, self.B4, SIZE),
                     traffic.udp(self.a, self.A6, self.b, self.B6,
                                 [30 * 1400 + 1] * 20, segment=1400)),
            [(self.a, "eth0")], [(self.a, "eth0")])
        real = truth.sums(file)
        self.assert_exact(result, real)
        self.assert_l2_exact(result, real)

    def joins_segments(self):
        """
        Whether b's interface does, without netobs. COMPAT(<5.13): a veth does
        not, unless it has an XDP program.
        """
        tap = truth.Capture(self.lab, self.b, "eth0")
        traffic.tcp(self.a, self.A4, self.b, self.B4, SIZE)
        tap.stop()
        return is_large(tap.file)

    def test_gro_at_the_receiver(self):
        # a sends single segments; b's interface joins them before tc ingress.
        self.join(offload=False)
        self.b.offload("eth0", "gro", on=True)
        joins = self.joins_segments()
        (result,), files = self.watch_without_loss(
            lambda: (traffic.tcp(self.a, self.A4, self.b, self.B4, SIZE),
                     traffic.tcp(self.a, self.A6, self.b, self.B6, SIZE)),
            [(self.b, "eth0")], [(self.a, "eth0"), (self.b, "eth0")])
        self.assertEqual(joins, is_large(files[1]))
        self.assert_exact(result, truth.sums(files[0]),
                          f"buffers up to {largest_frame(files[1])}:")
        self.assert_l2_exact(result, truth.sums(files[0]))

    def test_large_buffers_are_counted_once(self):
        """The router's two interfaces as one observer: in large, out large."""
        self.route()
        tap = truth.Capture(self.lab, self.r, "out0")
        observer = Observer(self.lab, self.r, "-x", "lo", "--interval", "0.1")
        observer.wait_attached((self.r, "in0"), (self.r, "out0"))
        traffic.tcp(self.a, "192.0.2.1", self.b, "198.51.100.1", SIZE,
                    answer=SIZE)
        tap.stop()
        result = observer.stop()
        result.check_conservation()
        self.assert_exact(result, truth.sums(tap.file))

    def test_buffer_of_a_virtual_machine(self):
        """virtio: the guest gives a segment size, but no number of segments."""
        self.route()
        tun = traffic.Tun(self.lab, self.r, "tun0", traffic.IFF_TUN |
                          traffic.IFF_NO_PI | traffic.IFF_VNET_HDR)
        self.r.address("tun0", "203.0.113.254/24")
        payload = bytes(5 * 1000 + 300)
        packet = frames.ipv4("203.0.113.1", "198.51.100.1", frames.TCP,
                             frames.tcp(4000, 5001, frames.ACK, payload,
                                        options=b"\1" * 12))
        # struct virtio_net_hdr: a checksum is due at 20 + 16; GSO TCPv4.
        header = struct.pack("=BBHHHH", 1, 1, 52, 1000, 20, 16)
        packet = bytearray(packet)
        pseudo = socket.inet_aton("203.0.113.1") + \
            socket.inet_aton("198.51.100.1") + \
            struct.pack("!HH", frames.TCP, len(packet) - 20)
        packet[36:38] = struct.pack("!H", frames.checksum(pseudo) ^ 0xffff)

        def send():
            for _ in range(10):
                tun.write(header + packet)
        (result,), (file,) = self.watch(
            send, [(self.r, "tun0")], [(self.r, "out0")],
            "--direction", "ingress")
        real = {key: total for key, total in truth.sums(file).items()
                if key[0] == "203.0.113.1"}
        self.assertEqual([60], [total.packets for total in real.values()])
        self.assert_exact(result, real)


if __name__ == "__main__":
    lab.main(at_once=3)
