# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
# Needs: nftables
"""
Filters in the kernel: what they accept is what a capture with the same expression has,
what they reject is counted, and a flow is counted once where only a part of its way
matches.
"""

import re
import time

from lib import capfile
from lib import frames as f
from lib import lab
from lib import observer
from lib import traffic
from lib import truth
from lib.exact import ExactTest
from lib.observer import Observer
from lib.once import OnceTest

EXPRESSIONS = (
    "tcp port 5001",
    "udp and greater 500",
    "icmp or (ip6 and udp dst port 5002)",
    "not tcp and host 192.0.2.2",
    "src net 192.0.2.0/31 and tcp[tcpflags] & tcp-syn != 0",
    "udp and (ip[2:2] > 1000 or ip6[4:2] > 1000)",
    "arp or icmp6",
)


class Filter(ExactTest):
    def send(self):
        sizes = [1, 500, 1472] * 20
        traffic.tcp(self.a, self.A4, self.b, self.B4, 1 << 20)
        traffic.udp(self.a, self.A4, self.b, self.B4, sizes)
        traffic.udp(self.b, self.B6, self.a, self.A6, sizes)
        traffic.ping(self.a, self.B4, 10)

    def compare(self, expression):
        capture = truth.Capture(self.lab, self.a, "eth0", expression)
        run = Observer(self.lab, self.a, "-i", "eth0", *expression.split())
        run.wait_attached((self.a, "eth0"))
        self.send()
        capture.stop()
        result = run.stop()
        result.check_conservation()
        self.assert_same(result, truth.sums(capture.file), expression)
        self.assertGreater(result.total("filtered"), (0, 0))

    def assert_same(self, result, real, expression):
        ours = truth.record_sums(result.records)
        self.assertEqual([], truth.differences(ours, real), expression)
        self.note(f"{expression}: {truth.summary(real)}")

    def test_what_tcpdump_captures(self):
        self.join(offload=False)
        for expression in EXPRESSIONS:
            self.compare(expression)

    def test_offloaded_packets_are_counted_as_on_the_wire(self):
        self.join(ipv6=False)
        size = 4 << 20
        run = Observer(self.lab, self.a, "-i", "eth0", "udp").wait_attached(
            (self.a, "eth0"))
        traffic.tcp(self.a, self.A4, self.b, self.B4, size)
        result = run.stop()
        result.check_conservation()
        packets, octets = result.total("filtered")
        self.assertGreater(packets, size // 1448)
        self.assertGreater(octets, size + packets * 52 - 1000)

    def test_link_without_header(self):
        ns = self.lab.ns("a")
        tun = traffic.Tun(self.lab, ns, "tun0")
        ns.address("tun0", "192.0.2.1/24")
        run = Observer(self.lab, ns, "-i", "tun0", "udp", "port", "53")
        run.wait_attached((ns, "tun0"))
        for port in [53] * 7 + [54] * 5:
            tun.write(f.ipv4("192.0.2.2", "192.0.2.1", f.UDP,
                             f.udp(1000, port, bytes(20))))
        result = run.stop()
        result.check_conservation()
        self.assertEqual(7, sum(record["Packets"] for record in result.records
                                if record["SrcPort"] == 1000))
        self.assertGreaterEqual(result.total("filtered")[0], 5)
        refused = observer.flows(self.lab, "-i", "tun0", "ether", "host",
                                 "02:00:00:00:00:01", ns=ns)
        self.assertEqual(1, refused.code)
        self.assertIn("without Ethernet header", refused.errors)

    def test_link_that_the_filter_does_not_fit(self):
        ns = self.lab.ns("a")
        run = Observer(self.lab, ns, "ether", "host", "02:00:00:00:00:01")
        run.wait_attached((ns, "lo"))
        ns.run("ip", "tuntap", "add", "tun0", "mode", "tun")
        for mtu in range(1300, 1310):
            ns.run("ip", "link", "set", "tun0", "mtu", str(mtu))
        lab.wait_for(lambda: "tun0: link type" in run.messages(), "a warning")
        time.sleep(0.5)
        result = run.stop()
        self.assertEqual(1, run.messages().count("tun0: link type"))
        self.assertEqual(1, run.messages().count("without Ethernet header"))
        self.assertEqual([], result.records)


class Once(OnceTest):
    def watch_udp(self, ns, names, send, *expression):
        run = Observer(self.lab, ns, *expression).wait_attached(
            *((ns, name) for name in names))
        send()
        result = run.stop()
        result.check_conservation()
        return [(record["SrcAddr"], record["DstAddr"], record["Packets"])
                for record in result.records if record["Proto"] == 17]

    def test_translated(self):
        """Before and after the translation there are two flows; one matches."""
        a, r, b = self.routed()
        r.run("nft", "add table ip nat; add chain ip nat out { type nat hook "
              "postrouting priority 100 ; }; add rule ip nat out oifname out0 "
              "snat to 198.51.100.254")
        outside = "198.51.100.254", "198.51.100.1", 25
        inside = "192.0.2.1", "198.51.100.1", 25
        for expression, expected in ((outside[0], outside), (inside[0], inside)):
            flows = self.watch_udp(
                r, ["in0", "out0"], lambda: traffic.udp(
                    a, "192.0.2.1", b, "198.51.100.1", [72] * 25),
                f"udp and src host {expression}")
            self.assertEqual([expected], flows)

    def test_matched_at_a_later_point(self):
        """The router decrements TTLs: all, or the smaller ones, match when they leave."""
        a, r, b = self.routed()
        for expression in ("ip[8] = 63", "ip[8] = 63 or ip[2:2] > 200"):
            flows = self.watch_udp(
                r, ["in0", "out0"], lambda: traffic.udp(
                    a, "192.0.2.1", b, "198.51.100.1", [72, 500] * 20),
                f"udp and ({expression})")
            self.assertEqual([("192.0.2.1", "198.51.100.1", 40)], flows)


class Replay(lab.LabTest):
    MAC = "02:00:00:00:00:01", "02:00:00:00:00:02"

    def save(self, kind, snap=65535):
        packets = [(10 ** 18 + at, f.ether(*self.MAC, f.IPV4, f.ipv4(
            "192.0.2.1", "192.0.2.2", f.UDP, f.udp(1000, 50 + at % 3,
                                                   bytes(at * 10)))))
                   for at in range(60)]
        packets.append((10 ** 18 + 60, f.ether(*self.MAC, 0x806, bytes(28))))
        path = self.lab.path(f"file-{kind}")
        with open(path, "wb") as file:
            file.write(capfile.pcap(kind, [
                (at, capfile.link(kind, frame)) for at, frame in packets],
                snap=snap))
        return path

    def replay(self, path, expression):
        result = observer.flows(self.lab, "-o", "json", "--stats", "-r", path,
                                expression)
        self.assertEqual(0, result.code, result.errors)
        result.check_conservation()
        return result

    def test_what_tcpdump_reads(self):
        for kind in (capfile.ETHERNET, capfile.SLL2):
            path = self.save(kind)
            for expression in ("udp port 51", "ip[2:2] > 300", "arp",
                               "not udp dst port 50"):
                count = lab.run("tcpdump", "--count", "-n", "-r", path, expression)
                wanted = int(re.search(r"^(\d+) packet", count, re.M)[1])
                result = self.replay(path, expression)
                unparsed = result.total("unparsed")[0]
                self.assertEqual(wanted, result.exported()[0] + unparsed)

    def test_lengths_of_cut_packets_are_those_on_the_wire(self):
        path = self.save(capfile.ETHERNET, snap=64)
        self.assertEqual(10, self.replay(path, "udp and greater 536")
                         .exported()[0])

    def test_headers_that_a_file_has_not(self):
        result = observer.flows(self.lab, "-r", self.save(capfile.RAW),
                                "ether host 02:00:00:00:00:01")
        self.assertEqual(1, result.code)
        self.assertIn("without Ethernet header", result.errors)


if __name__ == "__main__":
    lab.main("filters in the kernel", at_once=5)
