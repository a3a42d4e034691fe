# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
# Needs: nginx-light zstd
"""Records to HTTP servers, also as OTLP: all encodings, and whatever goes wrong."""

import os
import subprocess
import time
from unittest import mock

from lib import http_lab
from lib import ipfix_lab
from lib import lab
from lib import otlp
from lib import otlp_lab
from lib import traffic
from lib.record_sinks import sink_section, take_host
from lib.service import ServiceTest

LIMIT_MS = 20  # that a call may take of its thread
RECORDS = 20_000


class Encodings(http_lab.HttpTest):
    def check_encoding(self, encoding, more=""):
        collector = self.collector(encoding=encoding)
        self.feed(self.spec(f"encoding={encoding}&{more}"), "--records", RECORDS)
        stats = self.end()
        self.check(collector, stats)
        self.assertEqual([], self.log())
        self.assertEqual(stats["counters"]["requests"], len(collector.requests))
        return collector

    def test_each_has_all_records(self):
        """Compressed ones, without anything that a decompressor would have to skip: OpenSearch does not."""
        for encoding, more, header, head in (
                ("array", "", ("Content-Type", "application/json"), None),
                ("loki", "label.site=a", ("Content-Type", "application/json"), None),
                ("bulk", "", ("Content-Type", "application/x-ndjson"), None),
                ("json", "compress=gzip", ("Content-Encoding", "gzip"), b"\x1f\x8b\x08\0"),
                ("json", "compress=zstd", ("Content-Encoding", "zstd"), b"\x28\xb5\x2f\xfd")):
            with self.subTest(encoding=encoding, more=more):
                self.port = ipfix_lab.ipfix.free_port()
                collector = self.check_encoding(encoding, more)
                self.assertEqual(header[1], collector.requests[0][1][header[0]])
                if head:
                    self.assertEqual({head}, collector.heads)

    def test_headers_parameters_and_passwords(self):
        for name, text in (("headers", "X-Scope-OrgID: flows\n\nx-more: 1\n"),
                           ("password", "secret\n"), ("token", "t0ken\n")):
            lab.write(self.lab.path(name), text)
        collector = self.collector()
        own = f"header.X-One=a b&header_file={self.lab.path('headers')}"
        users = (f"user=me&password_file={self.lab.path('password')}",
                 f"token_file={self.lab.path('token')}")
        for user in users:
            self.feed(self.spec(f"{own}&{user}&param.query=INSERT INTO f %26",
                                path="/x"), "--records", 10)
            self.end()
        (path, basic), (_, bearer) = collector.requests
        self.assertEqual("/x?query=INSERT%20INTO%20f%20%26", path)
        self.assertEqual("Basic bWU6c2VjcmV0", basic["Authorization"])
        self.assertEqual("Bearer t0ken", bearer["Authorization"])
        self.assertEqual(("a b", "flows", "1"), tuple(
            basic[name] for name in ("X-One", "X-Scope-OrgID", "x-more")))

    def test_proxy_is_a_matter_of_the_spec_alone(self):
        collector = self.collector()
        with mock.patch.dict(os.environ, no_proxy="*"):
            self.feed(f"http://192.0.2.9/x?proxy=http://127.0.0.1:{self.port}",
                      "--records", 10)
        self.end()
        self.assertEqual("http://192.0.2.9/x", collector.requests[0][0])

    def test_what_is_wrong_is_refused(self):
        cases = {"http": (("encoding=xml", "encoding"), ("ca=/etc/hostname", "it needs https"),
                          ("user=me", "password_file"), ("header.a b=c", "not a header"),
                          ("encoding=loki&label.1=c", "not a label"),
                          ("encoding=loki&label.type=c", "choose another name"),
                          ("batch_bytes=1", "batch_bytes"), ("token_file=/nowhere", "No such file"),
                          ("compress=zstd&batch_bytes=2M", "at most 1M"), ("nonsense=1", "nonsense")),
                 "otlp+http": (("encoding=json", "encoding"), ("records=stats", "cannot represent"),
                               ("records=flow,stats", "cannot represent"),
                               ("field.host.ip=1", "is a field of all records"),
                               ("ca=/etc/hostname", "it needs https"))}
        for self.scheme, own in cases.items():
            for more, words in own:
                self.assertIn(words, self.refusal(self.spec(more)), more)
        for url in "http:x", "http://", "http://me:secret@127.0.0.1/":
            said = self.refusal(url)
            self.assertIn("URL", said, url)
            self.assertNotIn("secret", said, url)

    def refusal(self, url):
        self.feed(url, "--records", 1)
        self.process.wait(60)
        return " ".join(self.log())


class Faults(http_lab.FaultsTest):
    def test_items_of_bulk_are_accounted_for_one_by_one(self):
        self.check_erratic("encoding=bulk", encoding="bulk")

    def test_certificate_that_is_not_trusted_gets_nothing(self):
        certificates = ipfix_lab.Certificates(self.lab.path("certs"))
        self.scheme = "https"
        collector = self.collector(context=certificates.server("server"))
        self.feed(self.spec(), "--records", 10, "--drain", 3)
        stats = self.end(code=1)
        self.assertEqual(10, stats["pending"]["records"])
        self.assertEqual([], collector.requests)
        self.assert_once("certificate")

    def test_server_that_refuses_by_its_configuration_gets_all_later(self):
        collector = self.collector()
        collector.deed = "403"
        self.feed(self.spec(), "--rate", 1000, "--seconds", 4, "--drain", 20)
        lab.wait_for(lambda: len(collector.requests) > 2, "requests")
        collector.deed = None
        self.check(collector, self.end())
        self.assert_once("does not accept records: HTTP status 403: "
                         "<html>no</html>; trying again",
                         "accepts records again (outage of")

    def test_server_that_refuses_everything_is_not_asked_for_each_record(self):
        for encoding in "json", "bulk":
            self.port = ipfix_lab.ipfix.free_port()
            collector = self.collector(encoding=encoding)
            collector.deed = "400"
            self.feed(self.spec(f"encoding={encoding}"), "--records", RECORDS)
            stats = self.end()
            self.assertEqual(RECORDS, stats["dropped"]["refused"]["records"])
            self.assertLess(len(collector.requests), 500)
            self.assert_once("refuses records permanently: HTTP status 400",
                             "refused")

    def test_bad_records_in_a_row_do_not_drop_the_good_behind_them(self):
        collector = self.collector()
        collector.is_bad = lambda n: n < 250 or n % 100 == 99
        self.feed(self.spec("batch_records=250&requests=1"), "--records", 2000)
        dropped = self.end()["dropped"]
        bad = set(filter(collector.is_bad, range(2000)))
        self.assertEqual(len(bad), dropped["refused"]["records"])
        self.assertEqual(set(range(2000)) - bad, set(collector.accepted))

    def test_request_is_open_until_its_answer_has_ended(self):
        collector = self.collector(encoding="bulk")
        collector.deed, collector.poison = "late_end", 10
        self.feed(self.spec("encoding=bulk&batch_records=20&requests=2"),
                  "--records", 500)
        self.check(collector, self.end(), range(9, 500, 10))
        self.assertLessEqual(collector.most_open, 2)
        self.assert_once("refuses records permanently: items of _bulk", "refused")

    def test_answers_are_read_as_far_as_they_matter(self):
        """In pieces if they are long, and not without an end: the status was there before."""
        for encoding in "json", "bulk":
            for padding in 1 << 20, 5 << 20:
                self.port = ipfix_lab.ipfix.free_port()
                collector = self.collector(encoding=encoding)
                collector.padding = b" " * padding
                self.feed(self.spec(f"encoding={encoding}&batch_records=100"),
                          "--records", 2000)
                self.check(collector, self.end())
                self.assertEqual({n: 1 for n in range(2000)}, collector.accepted)

    def test_records_that_are_skipped_on_disk_hold_nothing_up(self):
        spool = f"spool=disk:{self.lab.path('spool')}"
        self.feed(self.spec(f"{spool}&records=flow,stats"), "--records", 100,
                  "--stats", 10, "--drain", 0.1)
        self.end(code=1)
        collector = self.collector()
        self.feed(self.spec(f"{spool}&batch_delay=60s"), "--records", 0)
        stats = self.end()
        self.assertEqual(10, stats["dropped"]["unsupported"]["records"])
        self.assertEqual({n: 1 for n in range(100)}, collector.accepted)

    def test_no_call_takes_long(self):
        collector = self.collector(seed=1)
        collector.slow_s = 0.5

        def longest_call():
            self.feed(self.spec("compress=gzip&batch_bytes=1M&timeout=1"),
                      "--rate", 20_000, "--seconds", 3, "--drain", 60, "--times")
            self.end()
            self.note(f"longest call {self.longest_ms} ms of CPU time")
            return self.longest_ms

        self.assertLess(lab.least(longest_call, LIMIT_MS), LIMIT_MS)


class OtlpTest(http_lab.HttpTest):
    scheme = "otlp+http"

    make = otlp_lab.HttpReceiver

    def spec(self, more="", path=""):
        return super().spec(more, path)

    def check_rejected(self, collector, stats):
        """What netobs counts as refused is what the receiver rejected, record by record."""
        refused = stats["dropped"]["refused"]["records"]
        self.assertEqual(collector.rejected, refused)
        self.assertEqual(sum(collector.accepted.values()), stats["delivered"]["records"])
        self.assertEqual(stats["taken"]["records"], stats["delivered"]["records"] + refused)


class OtlpFaults(OtlpTest, http_lab.FaultsTest):
    def test_all_are_delivered_once_also_compressed(self):
        for more in "", "compress=gzip", "compress=zstd&batch_records=100":
            self.port = ipfix_lab.ipfix.free_port()
            collector = self.collector()
            self.feed(self.spec(more), "--records", RECORDS)
            self.check(collector, self.end())
            self.assertEqual([], self.log())

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


CONFIG = """
daemon off; master_process off; pid {dir}/pid; error_log {dir}/error;
events {{ }}
http {{
	access_log {dir}/access;
	client_body_temp_path {dir}/body; proxy_temp_path {dir}/proxy;
	fastcgi_temp_path {dir}/f; uwsgi_temp_path {dir}/u; scgi_temp_path {dir}/s;
	client_max_body_size 100k;
	server {{
		listen 127.0.0.1:{port};
		location / {{ proxy_pass http://127.0.0.1:{behind}; }}
	}}
}}
"""


class Nginx(http_lab.HttpTest):
    def setUp(self):
        super().setUp()
        self.behind = ipfix_lab.ipfix.free_port()
        config = self.lab.path("nginx.conf")
        lab.write(config, CONFIG.format(dir=self.lab.dir, port=self.port,
                                        behind=self.behind))
        self.nginx = self.lab.spawn("nginx", "-c", config, "-p", self.lab.dir,
                                    ns=self.ns, stderr=subprocess.DEVNULL)
        self.addCleanup(self.nginx.kill)
        lab.wait_for(lambda: os.path.exists(self.lab.path("pid")), "nginx")

    def test_limit_of_bodies_and_a_server_behind_it_that_is_away(self):
        """413, then 502, from a real server."""
        self.feed(self.spec("batch_bytes=2M"), "--rate", 5000, "--seconds", 4,
                  "--drain", 30)
        lab.wait_for(lambda: " 502 " in self.access(), "an answer 502")
        collector = http_lab.Collector(self.ns, port=self.behind)
        self.addCleanup(collector.stop)
        self.check(collector, self.end())
        self.assertIn(" 413 ", self.access())
        self.assert_once("HTTP status 502", "accepts records again")

    def access(self):
        return lab.read(self.lab.path("access"))


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
        told = list(take_host(lab.json_lines(groups)))
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
        told = list(take_host(lab.json_lines(lines)))
        self.assertGreaterEqual(len(told), 20)
        self.assertEqual([otlp.expected(line) for line in told],
                         [log.attributes for log in collector.logs()])
        self.assertEqual({"netobs.session"}, {log.event for log in collector.logs()})
        self.assertTrue(any("process.pid" in log.attributes for log in collector.logs()))


if __name__ == "__main__":
    lab.main(at_once=6)
