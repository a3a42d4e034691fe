# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
# Needs: nftables
"""Records to collectors by gRPC, also as OTLP: whatever goes wrong, and TLS."""

import collections
import socket
import time

from lib import certs
from lib import grpc_lab
from lib import lab
from lib import otlp_lab


class Faults(grpc_lab.FaultsTest):

    def test_collector_that_never_answers(self):
        self.collector.set_mode("hang")
        self.collector.start()
        feed = self.feed(self.collector, "deadline=500ms", seconds=4)
        feed.wait_line("no answer within 0.5 s")
        time.sleep(2)
        self.check_recovers(self.collector,
                            lambda: self.collector.set_mode("ok"))
        self.check_all_came(self.collector, feed.finish())
        self.check_told_once(feed, "DEADLINE_EXCEEDED: no answer within 0.5 s",
                             "accepts records again")

    def test_listener_that_says_nothing(self):
        with socket.create_server(("127.0.0.1", 0)) as listener:
            self.collector.port = listener.getsockname()[1]
            feed = self.feed(self.collector, "deadline=300ms", seconds=0.5,
                             drain=3)
            result = feed.finish(1)
        self.assertEqual(0, result["stats"]["delivered"]["records"])
        self.check_told_once(feed, "no answer in time; trying again")

    def test_collector_of_something_else(self):
        with socket.create_server(("127.0.0.1", 0)) as listener:
            self.collector.port = listener.getsockname()[1]
            feed = self.feed(self.collector, seconds=1, drain=3)
            for _ in range(2):
                peer, _ = listener.accept()
                with peer:
                    peer.recv(10)
                    peer.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n" * 3)
                    peer.settimeout(lab.PATIENCE_S)
                    while peer.recv(1 << 16):
                        pass
            feed.finish(1)
        self.check_told_once(feed, "it does not speak HTTP/2; trying again")

    def test_messages_that_are_too_large_are_halved(self):
        self.collector.options = ("--max-message", 50000)
        self.collector.start()
        feed = self.feed(self.collector, seconds=2, rate=20000)
        self.check_all_came(self.collector, feed.finish())
        self.assertGreater(50000, max(map(len, self.collector.messages())))
        self.check_told_once(feed)

    def test_link_that_is_cut(self):
        a, b = self.lab.ns("a"), self.lab.ns("b")
        self.lab.wire(a, "eth0", ["192.0.2.1/24"], b, "eth0",
                      ["192.0.2.2/24"])
        self.collector.ns = b
        self.collector.address = "192.0.2.2"
        self.collector.start()
        feed = self.feed(self.collector, "batch_delay=10ms", "deadline=1s",
                         seconds=6, ns=a)
        lab.wait_for(self.collector.has_any, "records")
        b.run("nft", "add table ip cut; add chain ip cut in "
              "{ type filter hook input priority 0; policy drop; }")
        feed.wait_line("no answer in time")
        time.sleep(2)
        self.check_recovers(self.collector,
                            lambda: b.run("nft", "delete table ip cut"))
        self.check_all_came(self.collector, feed.finish())


class Otlp(grpc_lab.GrpcTest):
    make = otlp_lab.GrpcReceiver
    RATE = 1000 # since Python decodes these

    def numbers(self, collector):
        """How often each record was accepted."""
        came = collections.Counter(log.attributes["netobs.bytes"] - 1
                                   for log in collector.logs())
        came.subtract(collector.rejected())
        return +came


class OtlpFaults(Otlp, grpc_lab.FaultsTest):
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
                      " ".join(feed.lines))


class Tls(grpc_lab.GrpcTest):
    make = grpc_lab.Collector

    def test_both_sides_have_certificates(self):
        signed = certs.Certificates(self.lab.path("certs"))
        signed.sign("server", "DNS:collector.test", "IP:127.0.0.1")
        signed.sign("client", "DNS:client.test")
        collector = self.make(self.lab, "--cert", signed.path("server.pem"), "--key", signed.path("server.key"),
                              "--ca", signed.path("ca.pem")).start()
        feed = self.feed(collector, f"ca={signed.path('ca.pem')}", f"cert={signed.path('client.pem')}",
                         f"key_file={signed.path('client.key')}", seconds=1)
        self.check_all_came(collector, feed.finish())
        self.check_told_once(feed)


class OtlpTls(Otlp, Tls):
    """OTLP over TLS."""


if __name__ == "__main__":
    lab.main(at_once=6)
