#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
# Needs: nftables
"""Records to collectors by gRPC: all fields, and whatever goes wrong."""

import signal
import socket
import time

from lib import flow_proto
from lib import grpc_lab
from lib import lab
from lib import observer
from lib import traffic


class Fields(grpc_lab.GrpcTest):
    def test_each_record_says_what_json_says(self):
        a, b = self.lab.ns("a", ipv6=True), self.lab.ns("b", ipv6=True)
        self.lab.wire(a, "eth0", ["192.0.2.1/24", "2001:db8::1/64"],
                      b, "eth0", ["192.0.2.2/24", "2001:db8::2/64"])
        collector = grpc_lab.Collector(self.lab, ns=a).start()

        def talk():
            traffic.ping(a, "192.0.2.2", 10)
            traffic.ping(a, "2001:db8::2", 10)
            traffic.udp(a, "192.0.2.1", b, "192.0.2.2", [972] * 30, tos=0xb8)
            traffic.udp_refused(a, "192.0.2.1", "192.0.2.2")
            traffic.tcp(a, "192.0.2.1", b, "192.0.2.2", 100000, answer=10)
            traffic.tcp(a, "2001:db8::1", b, "2001:db8::2", 10, answer=70000)

        told = observer.flows_beside(
            self.lab, a, collector.spec("agent_ip=192.0.2.1", "batch_delay=0"), talk)
        records = collector.records()
        self.assertGreaterEqual(len(records), 11)
        self.assertEqual([flow_proto.expected(line) for line in told],
                         [flow_proto.decoded(record) for record in records])
        for record in records:
            self.assertEqual("192.0.2.1", flow_proto.ip(record.agent_ip))
            self.assertTrue(record.HasField("time_flow_rtt"))
        self.check_netobserv(collector, told)
        self.note(f"{len(records)} records")

    def check_netobserv(self, collector, told):
        """A reader of NetObserv's fields alone, which have its meaning."""
        netobserv = flow_proto.load_netobserv(self.lab)
        records = [record for message in collector.messages()
                   for record in netobserv.Records.FromString(message).entries]
        self.assertEqual([line["L2Bytes"] for line in told],
                         [record.bytes for record in records])
        self.assertEqual([line["Packets"] for line in told],
                         [record.packets for record in records])
        flags = self.tcp_flags(records, 5001)
        self.assertEqual({"client": 0x002, "server": 0x100},
                         {side: value & 0x102 for side, value in flags.items()})

    def test_server_of_a_higher_port_is_the_server(self):
        a, b = self.lab.ns("a"), self.lab.ns("b")
        self.lab.wire(a, "eth0", ["192.0.2.1/24"], b, "eth0",
                      ["192.0.2.2/24"])
        collector = grpc_lab.Collector(self.lab, ns=a).start()
        observer.flows_beside(
            self.lab, a, collector.spec("batch_delay=0"),
            lambda: traffic.tcp(a, "192.0.2.1", b, "192.0.2.2", 1000, port=65001))
        flags = self.tcp_flags(collector.records(), 65001)
        self.assertEqual(0x002, flags["client"] & 0x102, flags)
        self.assertEqual(0x100, flags["server"] & 0x102, flags)

    @staticmethod
    def tcp_flags(records, port):
        """Of all records of either side of connections to this port."""
        flags = {"client": 0, "server": 0}
        for record in records:
            if record.transport.src_port == port:
                flags["server"] |= record.flags
            elif record.transport.dst_port == port:
                flags["client"] |= record.flags
        return flags


class Faults(grpc_lab.FaultsTest):
    def test_collector_that_is_away_at_first(self):
        self.collector.start().end()
        feed = self.feed(self.collector, seconds=2)
        feed.wait_message("refused")
        time.sleep(3) # several attempts
        self.check_recovers(self.collector, self.collector.start)
        self.check_all_came(self.collector, feed.finish())
        self.check_told_once(feed, "Connection refused; trying again",
                             "connected to 127.0.0.1")

    def test_name_that_does_not_resolve(self):
        ns = self.lab.ns("a")
        self.collector.start()
        feed = self.feed(self.collector, host="nowhere.invalid", ns=ns,
                         seconds=0.5, drain=2.5)
        result = feed.finish(1)
        self.assertEqual(result["written"],
                         result["stats"]["pending"]["records"])
        self.check_told_once(feed, "cannot connect to nowhere.invalid")
        self.note(feed.messages()[0])

    def test_connections_that_are_renewed_are_not_an_error(self):
        self.collector.options = ("--max-age-ms", 300)
        self.collector.start()
        feed = self.feed(self.collector, "batch_delay=10ms", seconds=3)
        result = feed.finish()
        self.assertEqual(0, self.check_all_came(self.collector, result))
        self.assertGreater(result["stats"]["counters"]["connections"], 2)
        self.check_told_once(feed)

    def test_collector_that_never_answers(self):
        self.collector.set_mode("hang")
        self.collector.start()
        feed = self.feed(self.collector, "deadline=500ms", seconds=4)
        feed.wait_message("no answer within 0.5 s")
        time.sleep(2)
        self.check_recovers(self.collector,
                            lambda: self.collector.set_mode("ok"))
        result = feed.finish()
        # Who is kept waiting writes less.
        self.assertGreater(result["written"], 0.6 * 4 * 5000)
        self.check_all_came(self.collector, result)
        self.check_told_once(feed, "DEADLINE_EXCEEDED: no answer within 0.5 s",
                             "accepts records again")

    def test_collector_that_stands_still(self):
        self.collector.start()
        feed = self.feed(self.collector, "deadline=1s", seconds=6)
        lab.wait_for(self.collector.has_any, "records")
        self.collector.process.send_signal(signal.SIGSTOP)
        feed.wait_message("no answer in time")
        time.sleep(3)
        self.check_recovers(
            self.collector,
            lambda: self.collector.process.send_signal(signal.SIGCONT))
        result = feed.finish()
        self.assertGreater(result["written"], 0.6 * 6 * 5000)
        self.check_all_came(self.collector, result)

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

    def test_record_that_breaks_the_collector_is_the_only_one_missing(self):
        self.collector.set_mode("raise-size", 5001)
        self.collector.start()
        feed = self.feed(self.collector, seconds=2)
        self.assertEqual(0, self.check_all_came(self.collector, feed.finish(),
                                                but=[5000]))
        self.check_told_once(feed, "refuses a record permanently: UNKNOWN")

    def test_collector_that_fails_for_a_while_misses_nothing(self):
        self.collector.set_mode("INTERNAL", "no disk")
        self.collector.start()
        feed = self.feed(self.collector, seconds=4)
        feed.wait_message("INTERNAL: no disk")
        self.check_recovers(self.collector,
                            lambda: self.collector.set_mode("ok"))
        self.check_all_came(self.collector, feed.finish())
        self.check_told_once(feed, "INTERNAL: no disk; trying again",
                             "accepts records again")

    def test_collector_that_needs_longer_than_the_deadline(self):
        self.collector.set_mode("slow", 1.2)
        self.collector.start()
        feed = self.feed(self.collector, "deadline=1s", rate=20000, seconds=1, drain=90)
        again = self.check_all_came(self.collector, feed.finish())
        # Two calls, whose time was over.
        self.assertLess(again, 2 * 12000)
        self.assertLess(max(self.numbers(self.collector).values()), 4)

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
        feed.wait_message("no answer in time")
        time.sleep(2)
        self.check_recovers(self.collector,
                            lambda: b.run("nft", "delete table ip cut"))
        result = feed.finish()
        self.assertGreater(result["written"], 0.6 * 6 * 5000)
        self.check_all_came(self.collector, result)


if __name__ == "__main__":
    lab.main(at_once=5, first=("test_collector_that_needs",))
