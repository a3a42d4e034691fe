#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
"""Records to receivers of OTLP over gRPC: what they say, and whatever goes wrong."""

import collections
import time

from lib import certs
from lib import grpc_lab
from lib import lab
from lib import observer
from lib import otlp
from lib import otlp_lab
from lib import traffic


class OtlpGrpcTest(grpc_lab.GrpcTest):
    def numbers(self, collector):
        """How often each record was accepted."""
        came = collections.Counter(log.attributes["netobs.bytes"] - 1
                                   for log in collector.logs())
        came.subtract(collector.rejected())
        return +came


class Records(OtlpGrpcTest):
    def test_they_say_what_json_says(self):
        a, b = self.lab.ns("a"), self.lab.ns("b")
        self.lab.wire(a, "eth0", ["192.0.2.1/24"], b, "eth0", ["192.0.2.2/24"])
        collector = otlp_lab.GrpcReceiver(self.lab, ns=a).start()

        def talk():
            traffic.ping(a, "192.0.2.2", 10)
            traffic.tcp(a, "192.0.2.1", b, "192.0.2.2", 100000, answer=10)

        told = observer.flows_beside(self.lab, a, collector.spec(
            "agent_ip=192.0.2.1", "field.site=berlin", "batch_delay=0"), talk, "?host=no")
        self.assertGreaterEqual(len(told), 4)
        self.assertEqual([otlp.expected(line) for line in told],
                         [log.attributes for log in collector.logs()])
        for request in collector.requests():
            self.assertEqual("berlin", request.resource["site"])
            self.assertEqual("netobs", request.resource["service.name"])


class Tls(OtlpGrpcTest):
    def test_both_sides_have_certificates(self):
        made = certs.Certificates(self.lab.path("certs"))
        made.sign("server", "IP:127.0.0.1")
        made.sign("client", "DNS:client.test")
        collector = otlp_lab.GrpcReceiver(
            self.lab, "--cert", made.path("server.pem"), "--key", made.path("server.key"),
            "--ca", made.path("ca.pem")).start()
        feed = self.feed(collector, f"ca={made.path('ca.pem')}", f"cert={made.path('client.pem')}",
                         f"key_file={made.path('client.key')}", seconds=1)
        self.check_all_came(collector, feed.finish())
        self.check_told_once(feed)


class Faults(OtlpGrpcTest, grpc_lab.FaultsTest):
    make = otlp_lab.GrpcReceiver

    def test_partial_success_is_counted(self):
        """Also through kills: a batch that was sent again is rejected again, and counts once."""
        self.collector.set_mode("partial", 10)
        self.collector.start()
        feed = self.feed_at_once(4)
        self.collector.end()
        time.sleep(0.5)
        self.collector.start()
        result = feed.finish()
        bad = [n for n in range(result["written"]) if (n + 1) % 10 == 0]
        self.check_all_came(self.collector, result, but=bad)
        self.assertEqual(set(bad), set(self.collector.rejected()))
        self.assertIn("refuses records permanently: partial success: poison",
                      " ".join(feed.messages()))

    def test_receiver_says_how_long_to_wait(self):
        self.collector.set_mode("retry-info", 4)
        self.collector.start()
        feed = self.feed(self.collector, seconds=2)
        feed.wait_message("UNAVAILABLE: later")
        self.collector.set_mode("ok")
        self.check_all_came(self.collector, feed.finish())
        first, second, *_ = self.collector.call_times()
        self.assertGreater(second - first, 3.9)

    def test_records_wait_on_disk_for_a_receiver_that_comes_later(self):
        self.collector.start().end()
        spool = f"spool=disk:{self.lab.path('spool')}"
        first = self.feed(self.collector, spool, seconds=1, drain=0.1).finish(1)
        self.collector.start()
        feed = grpc_lab.Feed(self.lab, self.collector.spec(spool), "--first", first["written"],
                             "--records", 1000)
        result = feed.finish()
        self.assertEqual(first["written"], result["stats"]["recovered"]["records"])
        self.assertEqual(set(range(first["written"] + 1000)),
                         set(self.numbers(self.collector)))


if __name__ == "__main__":
    lab.main(at_once=5)
