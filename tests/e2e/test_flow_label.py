#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
"""The IPv6 flow label: of each direction, in all encodings."""

import socket
import struct
import subprocess

from lib import bpf
from lib import grpc_lab
from lib import ipfix
from lib import lab
from lib import observer
from lib import traffic

A, B = "2001:db8::1", "2001:db8::2"
PORT = 5002
# linux/in6.h: a sender leases a label before it may use it.
IPV6_FLOWLABEL_MGR, IPV6_FLOWINFO_SEND = 32, 33
ACTION_GET, SHARE_ANY, FLAG_CREATE = 0, 255, 1
FLOW_LABEL_IPV6 = 31  # IPFIX


def lease(sender, dest, label):
    request = socket.inet_pton(socket.AF_INET6, dest) + struct.pack(
        "!I", label) + struct.pack("=BBHHHI", ACTION_GET, SHARE_ANY, FLAG_CREATE,
                                   0, 0, 0)
    sender.setsockopt(socket.IPPROTO_IPV6, IPV6_FLOWLABEL_MGR, request)
    sender.setsockopt(socket.IPPROTO_IPV6, IPV6_FLOWINFO_SEND, 1)


class FlowLabel(grpc_lab.GrpcTest):
    def setUp(self):
        super().setUp()
        self.a, self.b = self.lab.ns("a", ipv6=True), self.lab.ns("b", ipv6=True)
        self.lab.wire(self.a, "eth0", [f"{A}/64", "192.0.2.1/24"],
                      self.b, "eth0", [f"{B}/64", "192.0.2.2/24"])

    def talk(self, label_a, label_b):
        """A datagram each way of each of the labels, in their order."""
        with traffic.make_socket(self.a, socket.SOCK_DGRAM, A, PORT) as a, \
                traffic.make_socket(self.b, socket.SOCK_DGRAM, B, PORT) as b:
            for sender, receiver, dest, labels in ((a, b, B, label_a),
                                                   (b, a, A, label_b)):
                for label in labels:
                    lease(sender, dest, label)
                    sender.sendto(b"label", (dest, PORT, label, 0))
                    receiver.recv(100)

    def observe(self, send, *outputs):
        process = self.lab.spawn(
            observer.netobsctl(), "flows", "-i", "eth0", *(
                word for output in outputs for word in ("-o", output)),
            "--interval", "60", ns=self.a,
            stderr=subprocess.PIPE, text=True)
        lab.wait_for(lambda: bpf.attached(self.a, "eth0") == 2, "netobsctl")
        send()
        self.assertEqual("", observer.interrupt(process)[1])

    def lines(self, path):
        return [record for record in lab.json_lines(path) if record.get("SrcPort") == PORT]

    def test_each_host_has_its_own_in_all_encodings(self):
        collector = grpc_lab.Collector(self.lab, ns=self.a).start()
        lines, messages = self.lab.path("lines"), self.lab.path("flows.ipfix")
        def send():
            self.talk([0xbeef5], [0x12345])
            traffic.udp(self.a, "192.0.2.1", self.b, "192.0.2.2", [10], port=PORT,
                        sport=PORT)
        self.observe(send, f"json:{lines}", f"ipfix:file:{messages}?record=extended",
                     collector.spec("batch_delay=0"))
        expected = {A: 0xbeef5, B: 0x12345, "192.0.2.1": None}
        self.assertEqual(expected, {
            record["SrcAddr"]: record.get("Ipv6FlowLabel")
            for record in self.lines(lines)})
        flows = [record.fields for record in ipfix.read_file(messages)
                 if record.fields.get(7) == struct.pack("!H", PORT)]
        self.assertEqual({label and struct.pack("!I", label)
                          for label in expected.values()},
                         {fields.get(FLOW_LABEL_IPV6) for fields in flows})
        self.assertEqual({label or 0 for label in expected.values()}, {
            record.ipv6_flow_label for record in collector.records()
            if record.transport.src_port == PORT})

    def test_first_of_a_record_is_kept(self):
        lines = self.lab.path("lines")
        self.observe(lambda: self.talk([0x11111, 0x22222, 0x33333], [0x44444, 0x55555]),
                     f"json:{lines}")
        self.assertEqual(
            {(A, 0x11111, 3), (B, 0x44444, 2)},
            {(record["SrcAddr"], record["Ipv6FlowLabel"], record["Packets"])
             for record in self.lines(lines)})


if __name__ == "__main__":
    lab.main()
