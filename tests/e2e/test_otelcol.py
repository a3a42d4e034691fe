# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
# Label: ecosystem
"""A real OpenTelemetry Collector has the records that netobs says it delivered."""

import collections
import http.client
import json
import time

from lib import grpc_lab
from lib import http_lab
from lib import lab
from lib import otelcol
from lib import otlp
from lib import traffic
from lib.record_sinks import sink_section, take_host
from lib.service import ServiceTest

SUMS = {"Flows": "flows", "Packets": "packets", "Bytes": "bytes",
        "Connections": "connections.ended", "ConnectionsFailed": "connections.failed"}
HISTOGRAMS = {"rtt": "Rtt", "app_latency": "AppLatency"}
TARGETS = ("otlp://127.0.0.1", "otlp+http://127.0.0.1",
           "otlp+http://127.0.0.1:4318/v1/logs?compress=gzip")


class Proxy(http_lab.Collector):
    """In front of a Collector, which answers what it is asked: it misbehaves at random."""

    def __init__(self, *arguments, path="/v1/logs", **options):
        self.cut = []  # requests that the Collector has, with an answer that is cut off
        self.rejects = 0  # so many of each request, as it says
        super().__init__(*arguments, **options)
        self.ns, self.path = arguments[0], path

    def decode(self, body):
        return [body]

    def forward(self, body):
        with self.ns:
            connection = http.client.HTTPConnection("127.0.0.1", otelcol.HTTP, timeout=lab.PATIENCE_S)
            connection.connect()
        connection.request("POST", self.path, body, {"Content-Type": "application/x-protobuf"})
        answer = connection.getresponse()
        found = http_lab.Answer(answer.status, answer.read())
        connection.close()
        return found

    def take(self, records, is_unanswered):
        with self.lock:
            answer = self.forward(records[0])
            if is_unanswered:
                self.cut.append(records[0])
            if self.rejects and answer.status == 200:
                return http_lab.Answer(200, otlp.response(self.rejects, "poison"))
            return answer


class Feeds(lab.LabTest):
    def setUp(self):
        super().setUp()
        self.ns = self.lab.ns("c")
        self.collector = otelcol.Collector(self.lab, self.ns).start()

    def feed(self, spec, *options):
        return grpc_lab.Feed(self.lab, spec, *options, ns=self.ns)

    def numbers(self):
        return collections.Counter(
            otelcol.attributes(record["attributes"])["netobs.bytes"] - 1
            for record in self.collector.logs())

    def test_each_record_is_there_once(self):
        for i, target in enumerate(TARGETS):
            result = self.feed(target, "--records", 20_000, "--first", 20_000 * i).finish()
            self.assertEqual(20_000, result["stats"]["delivered"]["records"])
        self.collector.end()
        self.assertEqual({n: 1 for n in range(20_000 * len(TARGETS))}, self.numbers())
        record, = (record for record in self.collector.logs() if record["attributes"][0] and
                   otelcol.attributes(record["attributes"])["netobs.bytes"] == 1)
        self.assertEqual("1700000005000000000", record["timeUnixNano"])
        self.assertEqual((9, "INFO"), (record["severityNumber"], record["severityText"]))
        self.assertEqual("netobs.flow", record["eventName"])

    def test_proxy_that_misbehaves_at_random(self):
        """429, 5xx, resets and answers that are cut off: what was delivered is there, and no more than that
        beside what was cut off."""
        proxy = Proxy(self.ns, seed=self.seed)
        self.addCleanup(proxy.stop)
        feed = self.feed(f"otlp+http://127.0.0.1:{proxy.port}?timeout=10&requests=4&"
                         "batch_records=100", "--rate", 1000, "--records", 10_000, "--drain", 100)
        result = feed.finish()
        self.assertEqual(10_000, result["stats"]["delivered"]["records"])
        self.collector.end()
        found = self.numbers()
        self.assertEqual(set(range(10_000)), set(found))
        again = sum(found.values()) - len(found)
        cut = sum(len(otlp.Request(body).logs) for body in proxy.cut)
        self.note(f"{dict(proxy.deeds)}, {again} came again, {cut} with a cut answer")
        self.assertEqual(again, cut)

    def test_partial_success(self):
        """Of each batch, some are refused, as the answer says: these are not among those delivered."""
        proxy = Proxy(self.ns)
        self.addCleanup(proxy.stop)
        proxy.rejects = 3
        stats = self.feed(f"otlp+http://127.0.0.1:{proxy.port}?batch_records=100", "--records",
                          1000).finish()["stats"]
        refused = 3 * len(proxy.requests)
        self.assertGreaterEqual(refused, 30)
        self.assertEqual((1000 - refused, refused), (stats["delivered"]["records"],
                                                     stats["dropped"]["refused"]["records"]))
        self.collector.end()
        self.assertEqual({n: 1 for n in range(1000)}, self.numbers())

    def test_it_restarts(self):
        """In order: what it has acknowledged, it has then written."""
        for target in TARGETS[:2]:
            before = set(self.numbers())
            feed = self.feed(target + "?batch_delay=10ms", "--rate", 5000, "--seconds", 5,
                             "--first", len(before))
            time.sleep(1.5)
            self.collector.end()
            time.sleep(1.5)
            self.collector.start()
            result = feed.finish()
            self.assertEqual(result["written"], result["stats"]["delivered"]["records"])
            self.collector.end()
            found = self.numbers()
            self.assertEqual(set(range(len(before) + result["written"])), set(found))
            self.note(f"{target}: {result['written']} records, "
                      f"{sum(found.values()) - len(found)} came again")
            self.collector.start()

    def test_message_that_it_does_not_accept(self):
        """More than its 4 MiB over gRPC would be: batches stay below. A path that it has not is told."""
        feed = self.feed("otlp+http://127.0.0.1:4318/v2/logs", "--records", 10, "--drain", 2)
        feed.finish(1)
        self.assertIn("HTTP status 404", " ".join(feed.lines))
        feed = self.feed("otlp://127.0.0.1?batch_bytes=4M", "--records", 50_000)
        result = feed.finish()
        self.assertEqual(50_000, result["stats"]["delivered"]["records"])
        self.assertEqual([], feed.lines)


class Service(ServiceTest):
    def test_records_of_all_types_are_those_in_json(self):
        collector = otelcol.Collector(self.lab, self.a).start()
        types = "records = flow,session"
        self.write("[sessions]", "enabled = yes", "[group \"services\"]", "by = service,client", "series = 8",
                   "records = yes", "histograms = rtt, app_latency",
                   *sink_section("lines", f"json:{self.lab.path('lines')}", types),
                   *sink_section("logs", "otlp://127.0.0.1", types, "agent_ip = 192.0.2.9",
                                 "field.site = berlin"),
                   *sink_section("groups", f"json:{self.lab.path('groups')}", "records = group"),
                   *sink_section("metrics", "otlp+http://127.0.0.1", "records = group"),
                   more="rtt = yes")
        self.start()
        for port in range(5000, 5020):
            client, server = traffic.connected(self.a, self.A4, self.b, self.B4, port)
            with client, server:
                traffic.exchange(client, server, [1000 * (port - 4999)] * 3)
        self.stop()
        collector.end()
        told = self.told("lines")
        self.assertLessEqual({"netobs.flow", "netobs.session"}, set(map(otlp.event_of, told)))
        self.assertEqual(self.sorted((otlp.event_of(line), otlp.expected(line)) for line in told),
                         self.sorted((record["eventName"],
                                      otelcol.attributes(record["attributes"]))
                                     for record in collector.logs()))
        for resource in collector.resources():
            self.assertEqual(("netobs", "berlin", ["192.0.2.9"]), tuple(
                resource[name] for name in ("service.name", "site", "host.ip")))
        groups = self.told("groups")
        sums = self.check_metrics(collector, groups)
        self.assertGreaterEqual(sums["netobs.group.connections.ended"], 20)
        for name, key in HISTOGRAMS.items():
            self.check_histograms(f"netobs.group.{name}.duration", f"{key}Histogram", collector, groups)

    def test_sums_through_a_proxy_that_misbehaves(self):
        """The Collector's sums are those of the records, and those that came again behind a cut answer."""
        collector = otelcol.Collector(self.lab, self.a).start()
        proxy = Proxy(self.a, seed=self.seed, slow_s=3, path="/v1/metrics")
        self.addCleanup(proxy.stop)
        self.write('[group "services"]', "by = service,client", "records = yes",
                   *sink_section("groups", f"json:{self.lab.path('groups')}", "records = group"),
                   *sink_section("metrics", f"otlp+http://127.0.0.1:{proxy.port}", "timeout = 2",
                                 "records = group"))
        self.start()

        def talk():
            traffic.udp(self.a, self.A4, self.b, self.B4, [100] * 5)
            return not proxy.plan

        lab.wait_for(talk, "all misdeeds", 200)
        self.stop()
        collector.end()
        again = collections.Counter()
        for body in proxy.cut:
            for point in otlp.Request(body, otlp.Point).logs:
                again[point.name] += point.value
        self.note(f"{dict(proxy.deeds)}, came again: {dict(again)}")
        self.assertGreater(len(again), 0)
        self.check_metrics(collector, self.told("groups"), again)

    def check_metrics(self, collector, groups, again=collections.Counter()):
        sums = collections.Counter()
        for metric, point in collector.points():
            self.assertEqual(1, metric["sum"]["aggregationTemporality"])
            self.assertTrue(metric["sum"]["isMonotonic"])
            sums[metric["name"]] += int(point["asInt"])
        self.assertGreater(len(groups), 8)
        for key, name in SUMS.items():
            name = f"netobs.group.{name}"
            self.assertEqual(sum(record.get(key, 0) for record in groups) + again[name], sums[name])
        self.note(f"{len(groups)} groups, {dict(sums)}")
        return sums

    def check_histograms(self, name, key, collector, groups):
        """Buckets are (2^index, 2^(index + 1)] us, and classes (8 us * 2^i, 16 us * 2^i]."""
        found, told, total_us = collections.Counter(), collections.Counter(), 0
        for metric, point in collector.points("exponentialHistogram"):
            if metric["name"] != name:
                continue
            self.assertEqual((1, "us"), (metric["exponentialHistogram"]["aggregationTemporality"],
                                         metric["unit"]))
            self.assertEqual((0, 16), (point.get("scale", 0), point["zeroThreshold"]))
            buckets = point.get("positive", {})
            counts = [int(count) for count in buckets.get("bucketCounts", ())]
            counts = {int(buckets.get("offset", 0)) + i: count for i, count in enumerate(counts)}
            zero = int(point.get("zeroCount", 0))
            self.assertEqual(int(point["count"]), zero + sum(counts.values()))
            found.update(counts)
            found[None] += zero
            total_us += point["sum"]
        for record in groups:
            zero, *counts = record.get(key, (0,))
            told.update({4 + i: count for i, count in enumerate(counts)})
            told[None] += zero
        self.assertEqual(+told, +found)
        self.assertAlmostEqual(sum(record.get(f"{key}SumNs", 0) for record in groups) / 1000, total_us,
                               places=3)
        self.assertGreater(found.total(), 0)

    def told(self, name):
        return list(take_host(lab.json_lines(self.lab.path(name))))

    @staticmethod
    def sorted(records):
        return sorted(json.dumps(record, sort_keys=True) for record in records)


if __name__ == "__main__":
    lab.main(first=("Service",))
