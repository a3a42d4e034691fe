#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
"""Records to receivers of OTLP over HTTP: what they say, and whatever goes wrong."""

import json
import os
import time

from lib import http_lab
from lib import ipfix_lab
from lib import lab
from lib import observer
from lib import otlp
from lib import otlp_lab
from lib import traffic
from lib.record_sinks import sink_section, take_host
from lib.service import ServiceTest

RECORDS = 20_000


class OtlpTest(http_lab.HttpTest):
    scheme = "otlp+http"

    def collector(self, **options):
        collector = otlp_lab.HttpReceiver(self.ns, port=self.port, **options)
        self.addCleanup(collector.stop)
        return collector

    def spec(self, more="", path=""):
        return super().spec(more, path)

    def check_rejected(self, collector, stats):
        """What netobs counts as refused is what the receiver rejected, record by record."""
        refused = stats["dropped"]["refused"]["records"]
        self.assertEqual(collector.rejected, refused)
        self.assertEqual(sum(collector.accepted.values()), stats["delivered"]["records"])
        self.assertEqual(stats["taken"]["records"], stats["delivered"]["records"] + refused)


class Records(OtlpTest):
    def test_they_say_what_json_says(self):
        a, b = self.lab.ns("a", ipv6=True), self.lab.ns("b", ipv6=True)
        self.lab.wire(a, "eth0", ["192.0.2.1/24", "2001:db8::1/64"],
                      b, "eth0", ["192.0.2.2/24", "2001:db8::2/64"])
        collector = otlp_lab.HttpReceiver(a, port=self.port)
        self.addCleanup(collector.stop)

        def talk():
            traffic.ping(a, "192.0.2.2", 10)
            traffic.ping(a, "2001:db8::2", 10)
            traffic.udp(a, "192.0.2.1", b, "192.0.2.2", [972] * 30, tos=0xb8)
            traffic.tcp(a, "192.0.2.1", b, "192.0.2.2", 100000, answer=10)

        told = observer.flows_beside(self.lab, a, self.spec(
            "requests=1&field.site=berlin&agent_ip=192.0.2.9"), talk, "?host=no")
        logs = collector.logs()
        self.assertGreaterEqual(len(logs), 7)
        self.assertEqual([otlp.expected(line) for line in told],
                         [log.attributes for log in logs])
        self.assertEqual([line["TimeFlowEndMs"] for line in told],
                         [log.time // 10**6 for log in logs])
        self.assertEqual({("netobs.flow", "INFO")},
                         {(log.event, log.severity_text) for log in logs})
        self.check_head(collector)

    def check_head(self, collector):
        for request in collector.found:
            self.assertEqual("netobs", request.resource["service.name"])
            self.assertEqual("berlin", request.resource["site"])
            self.assertEqual(["192.0.2.9"], request.resource["host.ip"])
            self.assertEqual(os.uname().nodename, request.resource["host.name"])
            self.assertEqual(b"netobs", request.scope["name"])
            self.assertEqual(("netobs.names.version", 1),
                             otlp.attribute(request.scope["attribute"]))
        self.assertEqual({"/v1/logs"}, {path for path, _ in collector.requests})
        self.assertEqual({"application/x-protobuf"},
                         {headers["Content-Type"] for _, headers in collector.requests})

    def test_all_are_delivered_once_also_compressed(self):
        for more in "", "compress=gzip", "compress=zstd&batch_records=100":
            self.port = ipfix_lab.ipfix.free_port()
            collector = self.collector()
            self.feed(self.spec(more), "--records", RECORDS)
            self.check(collector, self.end())
            self.assertEqual([], self.log())

    def test_what_is_wrong_is_refused(self):
        for more, words in (("encoding=json", "encoding"), ("records=stats", "cannot represent"),
                            ("records=flow,stats", "cannot represent"),
                            ("field.Bytes=1", "is a field of flow records"),
                            ("ca=/etc/hostname", "it needs https")):
            self.feed(self.spec(more), "--records", 1)
            self.process.wait(60)
            self.assertIn(words, " ".join(self.log()), more)


class Faults(OtlpTest, http_lab.FaultsTest):
    def check_erratic(self, *arguments, **options):
        collector, stats = super().check_erratic(*arguments, **options)
        self.note(f"{collector.rejected} rejected")
        self.check_rejected(collector, stats)
        return collector, stats

    def test_partial_success_is_counted(self):
        collector = self.collector()
        collector.poison = 10
        self.feed(self.spec("batch_records=250&requests=3"), "--records", RECORDS)
        stats = self.end()
        self.assertEqual(RECORDS // 10, stats["dropped"]["refused"]["records"])
        self.check_rejected(collector, stats)
        self.assertEqual({1}, set(collector.accepted.values()))
        self.assert_once("refuses records permanently: partial success: poison", "refused")

    def test_all_rejected(self):
        collector = self.collector()
        collector.poison = 1
        self.feed(self.spec(), "--records", RECORDS)
        stats = self.end()
        self.assertEqual(RECORDS, stats["dropped"]["refused"]["records"])
        self.check_rejected(collector, stats)

    def test_what_is_lost_is_neither_delivered_nor_refused(self):
        """While the spool was full; what was kept is rejected in part, over failures."""
        self.feed(self.spec("spool.max_bytes=1M&batch_records=100&timeout=10"),
                  "--rate", 5000, "--records", RECORDS, "--drain", 60)
        lab.wait_for(lambda: any("drop" in line for line in self.log()), "a full spool")
        collector = self.collector(seed=1)
        collector.poison = 10
        stats = self.end()
        dropped = {reason: count["records"] for reason, count in stats["dropped"].items()
                   if count["records"]}
        self.note(f"{dropped}, {stats['delivered']['records']} delivered")
        self.assertEqual({"spool_full", "refused"}, set(dropped))
        self.assertEqual(dropped["refused"], collector.rejected)
        self.assertEqual(stats["delivered"]["records"], sum(collector.accepted.values()))
        self.assertEqual(RECORDS, stats["delivered"]["records"] + sum(dropped.values()))
        self.assertEqual({1}, set(collector.accepted.values()))

    def test_warning_rejects_nothing(self):
        collector = self.collector()
        collector.says = "use v2"
        self.feed(self.spec("batch_records=100"), "--records", 1000)
        self.check(collector, self.end())
        self.assert_once("accepts records with a warning: use v2")

    def test_server_of_something_else_has_accepted_nothing(self):
        for garbage in b"Ok.", b'{"partialSuccess":{}}', b"<html></html>":
            self.port = ipfix_lab.ipfix.free_port()
            collector = self.collector()
            collector.garbage = garbage
            self.feed(self.spec(), "--records", 100, "--drain", 20)
            lab.wait_for(lambda: len(collector.requests) > 1, "a second request")
            self.assertEqual({}, collector.accepted)
            collector.garbage = None
            self.check(collector, self.end())
            self.assert_once("the answer is not that of OTLP", "accepts records again")

    def test_bad_request_refuses_its_records_alone(self):
        collector = self.collector()
        collector.deed = "400"
        self.feed(self.spec("batch_records=100"), "--records", 1000)
        self.assertEqual(1000, self.end()["dropped"]["refused"]["records"])

    def test_retry_after_is_waited_for(self):
        collector = self.collector()
        collector.deed = "429"
        self.feed(self.spec(), "--records", 100, "--drain", 20)
        times = []

        def has_second():
            while len(times) < len(collector.requests):
                times.append(time.monotonic())
            return len(times) > 1

        lab.wait_for(has_second, "two requests")
        self.assertGreater(times[1] - times[0], 0.9)
        collector.deed = None
        self.check(collector, self.end())


class Service(ServiceTest):
    def test_groups_are_metrics_that_add_up_to_the_flows(self):
        collector = otlp_lab.HttpReceiver(self.a)
        self.addCleanup(collector.stop)
        collector.entry = otlp.Point
        groups = self.lab.path("groups")
        self.write('[group "services"]', "by = service,client", "series = 8", "records = yes",
                   "[host]", "field.site = berlin",
                   *sink_section("groups", f"json:{groups}", "records = group"),
                   *sink_section("metrics", f"otlp+http://127.0.0.1:{collector.port}",
                                 "records = group"))
        self.start()
        for port in range(5000, 5040):
            traffic.udp(self.a, self.A4, self.b, self.B4, [100] * (1 + port % 40), port=port)
        self.stop()
        with open(groups, encoding="utf-8") as file:
            told = list(take_host(map(json.loads, file)))
        for request in collector.found:
            self.assertEqual("berlin", request.resource["site"])
        self.assertEqual({"/v1/metrics"}, {path for path, _ in collector.requests})
        self.assertEqual({"group", "other"}, {point.attributes["netobs.series"]
                                              for point in collector.logs()})
        for key, unit in ("Flows", "{flow}"), ("Packets", "{packet}"), ("Bytes", "By"):
            name = f"netobs.group.{key.lower()}"
            points = [point for point in collector.logs() if point.name == name]
            self.assertEqual({unit}, {point.unit for point in points})
            self.assertEqual(
                [(record[key], record["TimeMs"], record["TimeFlowStartMs"],
                  record.get("ServerPort")) for record in told],
                [(point.value, point.time // 10**6, point.start // 10**6,
                  point.attributes.get("server.port")) for point in points])

    def test_sessions_are_log_records(self):
        collector = otlp_lab.HttpReceiver(self.a)
        self.addCleanup(collector.stop)
        lines = self.lab.path("sessions")
        self.write("[sessions]", "enabled = yes", *sink_section("lines", f"json:{lines}", "records = session"),
                   *sink_section("otlp", f"otlp+http://127.0.0.1:{collector.port}",
                                 "records = session", "requests = 1"))
        self.start()
        for port in range(5000, 5010):
            traffic.tcp(self.a, self.A4, self.b, self.B4, 1000, port=port)
        self.stop()
        with open(lines, encoding="utf-8") as file:
            told = list(take_host(map(json.loads, file)))
        self.assertGreaterEqual(len(told), 20)
        self.assertEqual([otlp.expected(line) for line in told],
                         [log.attributes for log in collector.logs()])
        self.assertEqual({"netobs.session"}, {log.event for log in collector.logs()})
        self.assertTrue(any("process.pid" in log.attributes for log in collector.logs()))


if __name__ == "__main__":
    lab.main(at_once=5)
