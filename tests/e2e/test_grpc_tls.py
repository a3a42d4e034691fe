#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
"""gRPC over TLS, what is wrong with certificates, and with specs."""

from lib import certs
from lib import grpc_lab
from lib import lab
from lib import observer


class Tls(grpc_lab.GrpcTest):
    def setUp(self):
        super().setUp()
        self.certs = certs.Certificates(self.lab.path("certs"))
        self.certs.sign("server", "DNS:collector.test", "IP:127.0.0.1")
        self.certs.sign("client", "DNS:client.test")
        self.certs.sign("expired", "IP:127.0.0.1", days=0)
        self.ca = f"ca={self.certs.path('ca.pem')}"
        self.own = [f"cert={self.certs.path('client.pem')}",
                    f"key_file={self.certs.path('client.key')}"]

    def collector(self, name="server", mutual=False):
        options = ["--cert", self.certs.path(f"{name}.pem"), "--key",
                   self.certs.path(f"{name}.key")]
        if mutual:
            options += ["--ca", self.certs.path("ca.pem")]
        return grpc_lab.Collector(self.lab, *options).start()

    def check_works(self, collector, *options):
        feed = self.feed(collector, *options, seconds=1)
        self.check_all_came(collector, feed.finish())
        self.check_told_once(feed)

    def check_fails(self, collector, message, *options):
        feed = self.feed(collector, *options, seconds=0.5, drain=2.5)
        result = feed.finish(1)
        self.assertEqual(result["written"],
                         result["stats"]["pending"]["records"])
        self.check_told_once(feed, message)
        self.assertFalse(collector.has_any())

    def test_address_is_in_the_certificate(self):
        self.check_works(self.collector(), self.ca)

    def test_name_is_in_the_certificate(self):
        self.check_works(self.collector(), self.ca,
                         "server_name=collector.test")

    def test_both_sides_have_certificates(self):
        self.check_works(self.collector(mutual=True), self.ca, *self.own)

    def test_certificate_that_is_asked_for_is_missing(self):
        self.check_fails(self.collector(mutual=True),
                         "it requires a client certificate", self.ca)

    def test_certificate_is_for_another_name(self):
        self.check_fails(self.collector(),
                         "the certificate of other.test is for another name",
                         self.ca, "server_name=other.test")

    def test_certificate_has_expired(self):
        self.check_fails(self.collector("expired"),
                         "the certificate of 127.0.0.1 has expired", self.ca)

    def test_authority_is_not_known(self):
        self.check_fails(self.collector(), "is not from a trusted authority",
                         "tls=yes")

    def test_collector_without_tls(self):
        self.check_fails(grpc_lab.Collector(self.lab).start(), "127.0.0.1",
                         self.ca)

    def test_collector_with_tls_that_is_not_asked_for(self):
        self.check_fails(self.collector(), "trying again")


class Specs(grpc_lab.GrpcTest):
    def test_wrong_specs_are_refused_with_the_reason(self):
        for spec, reason in (
                ("grpc", "//HOST:PORT is missing"),
                ("grpc://localhost", "has no port"),
                ("grpc://localhost:0", "not from 1 to 65535"),
                ("grpc://::1:9999", "must be in brackets"),
                ("grpc://h:1?deadline=0", "option deadline"),
                ("grpc://h:1?batch_bytes=5M", "option batch_bytes"),
                ("grpc://h:1?agent_ip=h", "option agent_ip"),
                ("grpc://h:1?tls=maybe", "option tls"),
                ("grpc://h:1?tls=no&ca=/x", "option ca is for TLS only"),
                ("grpc://h:1?ca=/nonexistent", "No such file"),
                ("grpc://h:1?cert=/dev/null", "need each other"),
                ("grpc://h:1?speed=1", "unknown option 'speed'")):
            with self.subTest(spec):
                done = observer.flows(self.lab, "-r", "/dev/null", "-o", spec)
                self.assertEqual(2, done.code, done.errors)
                self.assertIn(reason, done.errors)


if __name__ == "__main__":
    lab.main(at_once=4)
