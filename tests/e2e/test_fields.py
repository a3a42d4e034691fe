# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
# Needs: tshark
"""What a record says besides its counts: each field against the capture."""

import socket
import struct
import time

from lib import frames as f
from lib import ipfix
from lib import lab
from lib import traffic
from lib import truth
from lib.exact import ExactTest

# Each record has these; what else it has depends on the packets.
ALWAYS = {"TimeFlowStartMs", "TimeFlowEndMs", "SrcAddr", "DstAddr", "Proto",
          "Etype", "Bytes", "Packets", "Dscp", "SrcMac", "DstMac", "L2Bytes",
          "Interfaces", "IfDirections", "IfIndexes", "NetnsInode",
          "FlowEndReason", "EcnSeen", "TtlMin", "TtlMax"}
PORTS = {"SrcPort", "DstPort"}
ICMP = {"IcmpType", "IcmpCode"}
# linux/in6.h: a sender leases a label before it may use it.
IPV6_FLOWLABEL_MGR, IPV6_FLOWINFO_SEND = 32, 33
ACTION_GET, SHARE_ANY, FLAG_CREATE = 0, 255, 1
FLOW_LABEL_IPV6 = 31  # IPFIX
LABELLED = 5002


def lease(sender, dest, label):
    request = socket.inet_pton(socket.AF_INET6, dest) + struct.pack(
        "!I", label) + struct.pack("=BBHHHI", ACTION_GET, SHARE_ANY, FLAG_CREATE, 0, 0, 0)
    sender.setsockopt(socket.IPPROTO_IPV6, IPV6_FLOWLABEL_MGR, request)
    sender.setsockopt(socket.IPPROTO_IPV6, IPV6_FLOWINFO_SEND, 1)


class Fields(ExactTest):
    def observe(self, send, *arguments):
        self.join(offload=False)
        (result,), (file,) = self.watch(send, [(self.a, "eth0")],
                                        [(self.a, "eth0")], *arguments)
        real = truth.sums(file)
        if "egress" in arguments:
            real = {key: total for key, total in real.items()
                    if key[0] in (self.A4, self.A6)}
        records = {}
        for record in result.records:
            if record["Proto"] == 58 and record["IcmpType"] in truth.NOISE:
                continue
            self.assertNotIn(truth.record_key(record), records)
            records[truth.record_key(record)] = record
        self.assertEqual(set(real), set(records))
        return records, real

    def frame(self, payload, kind=f.IPV4):
        return f.ether(self.mac_b, self.mac_a, kind, payload)

    def send(self, *frames):
        self.a.send_frames("eth0", frames)

    def test_presence(self):
        records, real = self.observe(lambda: (
            traffic.tcp(self.a, self.A4, self.b, self.B4, 1000),
            traffic.udp(self.a, self.A6, self.b, self.B6, [100]),
            traffic.ping(self.a, self.B4, 2), traffic.ping(self.a, self.B6, 2),
            self.send(self.frame(f.ipv4(self.A4, self.B4, 89, bytes(24))))))
        expected = {6: PORTS | {"Flags", "TcpCombined"}, 17: PORTS, 1: ICMP, 58: ICMP,
                    89: set()}
        self.assertEqual(set(expected),
                         {r["Proto"] for r in records.values()})
        for key, record in records.items():
            label = {"Ipv6FlowLabel"} if real[key].labels[0] else set()
            self.assertEqual(ALWAYS | expected[record["Proto"]] | label, set(record))
            self.assertEqual(real[key].labels[0], record.get("Ipv6FlowLabel", 0))
            (macs,) = real[key].macs
            self.assertEqual(macs, (record["SrcMac"], record["DstMac"]))
            self.assertEqual({self.mac_a, self.mac_b}, set(macs))
            self.assertEqual(["eth0"], record["Interfaces"])
            self.assertEqual([self.a.ifindex("eth0")], record["IfIndexes"])
            self.assertEqual(self.a.inode, record["NetnsInode"])
            self.assertEqual(0x86dd if ":" in record["SrcAddr"] else 0x0800,
                             record["Etype"])

    def send_labels(self, *labels):
        """A datagram each way with each of the labels of a, and of b."""
        with traffic.make_socket(self.a, socket.SOCK_DGRAM, self.A6, LABELLED) as a, \
                traffic.make_socket(self.b, socket.SOCK_DGRAM, self.B6, LABELLED) as b:
            for sender, receiver, dest, own in (a, b, self.B6, labels[0]), (b, a, self.A6, labels[1]):
                for label in own:
                    lease(sender, dest, label)
                    sender.sendto(b"label", (dest, LABELLED, label, 0))
                    receiver.recv(100)

    def test_flow_labels_are_the_first_ones_of_each_direction(self):
        """Also in IPFIX."""
        path = self.lab.path("flows.ipfix")
        records, _ = self.observe(lambda: self.send_labels([0x11111, 0x22222, 0x33333], [0x44444, 0x55555]),
                                  "--interval", "60", "-o", f"ipfix:file:{path}?record=extended")
        self.assertEqual({(self.A6, 0x11111, 3), (self.B6, 0x44444, 2)}, {
            (record["SrcAddr"], record["Ipv6FlowLabel"], record["Packets"])
            for record in records.values() if record.get("SrcPort") == LABELLED})
        self.assertEqual({struct.pack("!I", label) for label in (0x11111, 0x44444)}, {
            record.fields[FLOW_LABEL_IPV6] for record in ipfix.read_file(path)
            if record.fields.get(7) == struct.pack("!H", LABELLED)})

    def test_tcp_flags_are_those_of_all_packets(self):
        """A real connection, and combinations no stack would send."""
        odd = [f.SYN | f.URG, f.FIN | f.PSH | f.URG, 0, f.ECE | f.CWR | f.ACK,
               0x100 | f.ACK]
        def send():
            traffic.tcp(self.a, self.A4, self.b, self.B4, 50000, answer=9000)
            self.send(*(self.frame(f.ipv4(self.A4, self.B4, f.TCP, f.tcp(
                100 + n, 9, flags))) for n, flags in enumerate(odd)))
            self.send(*(self.frame(f.ipv4(self.A4, self.B4, f.TCP, f.tcp(
                99, 9, 1 << bit))) for bit in (0, 3, 6)))
        records, real = self.observe(send)
        flags = {key: r["Flags"] for key, r in records.items()
                 if r["Proto"] == 6}
        self.assertEqual({key: real[key].flags for key in flags}, flags)
        by_port = {key[3]: value for key, value in flags.items()}
        self.assertEqual(odd, [by_port[100 + n] for n in range(len(odd))])
        self.assertEqual(0x49, by_port[99])
        self.note(f"flags {sorted(set(flags.values()))}")

    def test_dscp_ecn_and_ttl(self):
        def send():
            for tos, ttl in ((0, 64), (46 << 2, 64), (10 << 2 | 1, 9),
                             (10 << 2 | 3, 255), (8 << 2 | 2, 31)):
                self.send(
                    self.frame(f.ipv4(self.A4, self.B4, f.UDP, f.udp(1, 2),
                                      tos=tos, ttl=ttl)),
                    self.frame(f.ipv6(self.A6, self.B6, f.UDP, f.udp(1, 2),
                                      tclass=tos, hops=ttl), f.IPV6))
        records, real = self.observe(send, "--direction", "egress")
        records = {key: r for key, r in records.items() if r["DstPort"] == 2}
        self.assertEqual(2, len(records))
        for key, record in records.items():
            self.assertEqual(real[key].dscps[-1], record["Dscp"])
            self.assertEqual(real[key].ecn, record["EcnSeen"])
            self.assertEqual((min(real[key].ttls), max(real[key].ttls)),
                             (record["TtlMin"], record["TtlMax"]))
            self.assertEqual((9, 255, 0b1111), (
                record["TtlMin"], record["TtlMax"], record["EcnSeen"]))

    def test_icmp_types_and_codes(self):
        kinds = [(3, 1), (3, 13), (11, 0), (5, 1), (13, 0)]
        kinds6 = [(1, 4), (3, 0), (2, 0), (129, 0)]
        records, _ = self.observe(lambda: self.send(
            *(self.frame(f.ipv4(self.A4, self.B4, f.ICMP, f.icmp(*kind)))
              for kind in kinds),
            *(self.frame(f.ipv6(self.A6, self.B6, f.ICMPV6, f.icmp(*kind)),
                         f.IPV6) for kind in kinds6)), "--direction", "egress")
        found = {proto: sorted((r["IcmpType"], r["IcmpCode"])
                               for r in records.values()
                               if r["Proto"] == proto) for proto in (1, 58)}
        self.assertEqual({1: sorted(kinds), 58: sorted(kinds6)}, found)

    def test_times_are_those_of_the_packets(self):
        """Within a timer tick or so of the wall clock: 100 ms are plenty."""
        def send():
            with traffic.make_socket(self.a, socket.SOCK_DGRAM, self.A4) as own:
                for _ in range(2):
                    own.sendto(b"x", (self.B4, 9))
                    time.sleep(0.3)

        self.join(offload=False)
        before = time.time() * 1000
        (result,), _ = self.watch(send, [(self.a, "eth0")], [], "--direction", "egress")
        after = time.time() * 1000
        record = next(r for r in result.records if r["Proto"] == 17)
        times = [before - 100, record["TimeFlowStartMs"], record["TimeFlowEndMs"], after + 100]
        self.assertEqual(sorted(times), times)
        self.assertGreaterEqual(times[2] - times[1], 290)


if __name__ == "__main__":
    lab.main(at_once=3)
