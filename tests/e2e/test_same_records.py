#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
"""Records by gRPC, HTTP and OTLP say what JSON lines say."""

import os
import subprocess

from lib import bpf
from lib import flow_proto
from lib import grpc_lab
from lib import http_lab
from lib import lab
from lib import observer
from lib import otlp
from lib import otlp_lab
from lib import traffic

A4, B4, A6, B6 = "192.0.2.1", "192.0.2.2", "2001:db8::1", "2001:db8::2"
HIGH_PORT = 65001 # of a server; its clients' ports are lower
ECS = {"SrcAddr": "source.ip", "SrcPort": "source.port", "DstAddr": "destination.ip",
       "DstPort": "destination.port", "Proto": "network.iana_number",
       "Bytes": "network.bytes", "Packets": "network.packets",
       "TimeFlowStartMs": "event.start", "TimeFlowEndMs": "event.end"}


class AnyRecords(http_lab.Collector):
    def take(self, records, is_unanswered):
        with self.lock:
            self.lines += records
        return http_lab.Answer(200, b'{"errors":false,"items":[]}')


class Records(lab.LabTest):
    def setUp(self):
        super().setUp()
        self.a, self.b = self.lab.ns("a", ipv6=True), self.lab.ns("b", ipv6=True)
        self.lab.wire(self.a, "eth0", [f"{A4}/24", f"{A6}/64"], self.b, "eth0", [f"{B4}/24", f"{B6}/64"])

    def talk(self):
        for address in B4, B6:
            traffic.ping(self.a, address, 10)
        traffic.udp(self.a, A4, self.b, B4, [972] * 30, tos=0xb8)
        traffic.udp_refused(self.a, A4, B4)
        traffic.tcp(self.a, A4, self.b, B4, 100000, answer=10)
        traffic.tcp(self.a, A6, self.b, B6, 10, answer=70000)
        traffic.tcp(self.a, A4, self.b, B4, 1000, port=HIGH_PORT)

    def observe(self, *specs):
        """@return what `netobsctl flows` says of the talk, as JSON; sinks get it too"""
        path = self.lab.path("lines")
        process = self.lab.spawn(
            observer.netobsctl(), "flows", "-i", "eth0", "--interval", "0.2", "-o", f"json:{path}?host=no",
            *(word for spec in specs for word in ("-o", spec)), ns=self.a, stderr=subprocess.PIPE, text=True)
        lab.wait_for(lambda: bpf.attached(self.a, "eth0") == 2, "netobsctl")
        self.talk()
        self.assertEqual("", observer.interrupt(process)[1])
        return lab.json_lines(path)

    def server(self, kind, **options):
        server = kind(self.a, **options)
        self.addCleanup(server.stop)
        return server

    def test_each_says_what_json_says(self):
        grpc = grpc_lab.Collector(self.lab, ns=self.a).start()
        http, bulk = self.server(http_lab.Collector), self.server(AnyRecords, encoding="bulk")
        receiver = self.server(otlp_lab.HttpReceiver)
        stream = otlp_lab.GrpcReceiver(self.lab, ns=self.a, name="otlp").start()
        told = self.observe(
            grpc.spec(f"agent_ip={A4}", "batch_delay=0"),
            f"http://127.0.0.1:{http.port}/flows?requests=1&host=no",
            f"http://127.0.0.1:{bulk.port}/?requests=1&encoding=bulk&layout=ecs&agent_ip=192.0.2.9&field.site=b",
            f"otlp+http://127.0.0.1:{receiver.port}?requests=1&field.site=berlin&agent_ip=192.0.2.9",
            stream.spec("agent_ip=192.0.2.9", "field.site=berlin", "batch_delay=0"))
        self.note(f"{len(told)} records")
        self.assertGreaterEqual(len(told), 13)
        self.assertTrue(any(line.get("Ipv6FlowLabel") for line in told))
        self.check_grpc(told, grpc)
        self.assertEqual(told, http.lines)
        self.assertEqual({"/flows"}, {path for path, _ in http.requests})
        self.check_ecs(told, bulk.lines)
        for collector, requests in (receiver, receiver.found), (stream, stream.requests()):
            self.check_otlp(told, collector.logs(), requests)
        self.assertEqual({("/v1/logs", "application/x-protobuf")},
                         {(path, headers["Content-Type"]) for path, headers in receiver.requests})

    def check_grpc(self, told, collector):
        records = collector.records()
        self.assertEqual([flow_proto.expected(line) for line in told],
                         [flow_proto.decoded(record) for record in records])
        for record in records:
            self.assertEqual(A4, flow_proto.ip(record.agent_ip))
            self.assertTrue(record.HasField("time_flow_rtt"))
        # A reader of NetObserv's fields alone, which have its meaning.
        netobserv = flow_proto.load_netobserv(self.lab)
        records = [record for message in collector.messages()
                   for record in netobserv.Records.FromString(message).entries]
        self.assertEqual([(line["L2Bytes"], line["Packets"]) for line in told],
                         [(record.bytes, record.packets) for record in records])
        for port in 5001, HIGH_PORT:
            client, server = (self.flags(records, f"{end}_port", port) for end in ("dst", "src"))
            self.assertEqual((0x002, 0x100), (client & 0x102, server & 0x102), port)

    @staticmethod
    def flags(records, end, port):
        """Of all records with this port there."""
        found = 0
        for record in records:
            if getattr(record.transport, end) == port:
                found |= record.flags
        return found

    def check_ecs(self, told, lines):
        """The names of the Elastic Common Schema, beside members of our own."""
        for line, found in zip(told, lines, strict=True):
            self.assertEqual("8.11.0", found.pop("ecs.version"))
            self.assertEqual(line["TimeFlowEndMs"], found.pop("@timestamp"))
            network = {0x800: "ipv4", 0x86dd: "ipv6"}[line["Etype"]]
            self.assertEqual(("event", ["network"], "netobs.flow", network, "192.0.2.9", "b"), tuple(
                found.pop(name) for name in ("event.kind", "event.category", "event.dataset",
                                             "network.type", "host.ip", "site")))
            self.assertEqual({1: None, 6: "tcp", 17: "udp", 58: None}[line["Proto"]],
                             found.pop("network.transport", None))
            self.assertEqual(os.uname().nodename, found.pop("host.name"))
            found.pop("host.id", None)
            self.assertEqual({ECS.get(key, otlp.rule_name(key)): value for key, value in line.items()}, found)

    def check_otlp(self, told, logs, requests):
        self.assertEqual([otlp.expected(line) for line in told], [log.attributes for log in logs])
        self.assertEqual([line["TimeFlowEndMs"] for line in told], [log.time // 10**6 for log in logs])
        self.assertEqual({("netobs.flow", "INFO")}, {(log.event, log.severity_text) for log in logs})
        for request in requests:
            self.assertEqual(("netobs", "berlin", ["192.0.2.9"], os.uname().nodename), tuple(
                request.resource[name] for name in ("service.name", "site", "host.ip", "host.name")))
            self.assertEqual(b"netobs", request.scope["name"])
            self.assertEqual(("netobs.names.version", 1), otlp.attribute(request.scope["attribute"]))


if __name__ == "__main__":
    lab.main()
