# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
# Needs: nftables
"""IPFIX while the collector is away, slow, or replaced by another program."""

import collections
import socket
import time

from lib import collectors
from lib import ipfix
from lib import ipfix_lab
from lib import lab
from lib.ipfix_lab import numbers


class Faults(ipfix_lab.IpfixTest):
    # ---- UDP ------------------------------------------------------------------

    def check_refused(self, stats, receiver):
        """Each message was received, or is counted as refused."""
        counters = stats["counters"]
        refused = counters["refused_messages"]
        self.assertGreater(refused, 0)
        lab.wait_for(lambda: len(receiver.datagrams) + refused >= counters["messages"],
                     "the other messages")
        self.assertEqual(counters["messages"], len(receiver.datagrams) + refused)
        self.assert_once("Connection refused", "again")
        self.note(f"{counters}")

    def test_udp_collector_that_comes_late(self):
        self.feed(f"ipfix:udp://[::1]:{self.port}", "--rate", 1000, "--records",
                  8000)
        lab.wait_for(self.log, "a word about it")
        receiver = self.receiver(socket.AF_INET6)
        stats = self.end()
        self.assertEqual(8000, stats["delivered"]["records"])
        self.check_refused(stats, receiver)

    def test_udp_collector_that_is_refused_for_a_while(self):
        receiver = self.receiver()
        self.feed(f"ipfix:udp://127.0.0.1:{self.port}", "--rate", 2000,
                  "--records", 12000)
        lab.wait_for(lambda: len(numbers(receiver.records())) > 1000, "records")
        self.cut("udp", "reject")
        lab.wait_for(self.log, "a word about it")
        lab.wait_for(lambda: self.ns.snmp("Icmp", "OutDestUnreachs") > 2, "refusals")
        self.heal()
        stats = self.end()
        self.assertEqual(12000, stats["delivered"]["records"])
        self.check_refused(stats, receiver)
        # The sequence goes on behind the lost records.
        session = ipfix.Session()
        got = [session.read(data) for data in receiver.datagrams]
        sequence = [message.sequence for message in got]
        self.assertEqual(sorted(sequence), sequence)
        counts = numbers(record for message in got for record in message.sets
                         if isinstance(record, ipfix.Record))
        self.assertEqual({1}, set(counts.values()))
        self.assertLess(len(counts), 12000)
        self.assertIn(11999, counts)

    def test_nfcapd_that_is_killed_and_started_again(self):
        def await_more():
            before = self.ns.snmp("Udp", "InDatagrams")
            lab.wait_for(lambda: self.ns.snmp("Udp", "InDatagrams") > before + 20, "datagrams that are read")

        first = collectors.NfCapd(self.lab, self.ns, self.port)
        self.feed(f"ipfix:udp://127.0.0.1:{self.port}", "--rate", 500)
        await_more()
        before = first.rows()
        lab.wait_for(self.log, "a word about it")
        second = collectors.NfCapd(self.lab, self.ns, self.port)
        lab.wait_for(lambda: len(self.log()) > 1, "the sink to be connected again")
        await_more()
        self.process.terminate()
        stats = self.end()
        after = second.rows()
        taken = stats["taken"]["records"]
        self.assertEqual(taken, stats["delivered"]["records"])
        self.assertTrue(before and after)
        # What the first one had not read yet went away with it.
        self.assertLessEqual(len(before) + len(after), taken)
        self.assertEqual(taken, max(row["octets"] for row in after))
        self.assert_once("Connection refused", "again")
        self.note(f"{len(before)} + {len(after)} of {taken}")

    def test_nfcapd_behind_a_name_of_both_families(self):
        """It listens at 0.0.0.0 alone, and the name's first address is another."""
        self.ns = self.lab.ns("d", ipv6=True)
        self.ns.hosts("::1 collector.test", "127.0.0.1 collector.test")
        nfcapd = collectors.NfCapd(self.lab, self.ns, self.port)
        self.feed(f"ipfix:udp://collector.test:{self.port}", "--rate", 1000,
                  "--records", 2000)
        stats = self.end()
        self.assertEqual(2000, stats["delivered"]["records"])
        self.assertEqual(2000, len(nfcapd.rows()))
        self.assertGreater(stats["counters"]["refused_messages"], 0)
        self.assertEqual([], self.log())

    def test_udp_path_that_is_narrower_than_the_message(self):
        with self.ns:
            self.ns.ip("link", "set", "lo", "mtu", 1280)
        receiver = self.receiver()
        self.feed(f"ipfix:udp://127.0.0.1:{self.port}?mtu=9000", "--records", 500)
        self.end()
        lab.wait_for(lambda: len(numbers(receiver.records())) == 500, "records")
        self.assertLessEqual(max(map(len, receiver.datagrams)), 1252)

    def test_name_that_does_not_resolve_is_told_once(self):
        for transport in ("udp", "tcp"):
            self.feed(f"ipfix:{transport}://no.such.name.invalid:4739",
                      "--rate", 100, "--seconds", 3, "--drain", 0.1)
            stats = self.end(code=1)
            self.assertEqual(0, stats["delivered"]["records"])
            self.assertGreater(stats["pending"]["records"], 100)
            self.assertEqual(1, len(self.log()), self.log())
            self.assertIn("no.such.name.invalid", self.log()[0])

    # ---- TCP ------------------------------------------------------------------

    def test_tcp_collector_that_comes_late_gets_all(self):
        self.feed(f"ipfix:tcp://127.0.0.1:{self.port}", "--rate", 1000,
                  "--records", 9000)
        lab.wait_for(self.log, "a word about it")
        time.sleep(1.5)
        server = self.server(port=self.port)
        stats = self.end()
        self.assertEqual(9000, stats["delivered"]["records"])
        lab.wait_for(lambda: len(server.numbers()) == 9000, "the records")
        self.assertEqual({1}, set(server.numbers().values()))
        self.assert_once("Connection refused", "again")

    def test_tcp_collector_that_does_not_read_stops_nobody(self):
        server = self.server(port=self.port, reads=False)
        spec = f"ipfix:tcp://127.0.0.1:{self.port}"
        # If netobsctl waited for it, this would never end.
        self.feed(spec, "--rate", 1_000_000, "--records", 200_000, "--drain", 0.1)
        stats = self.end(code=1)
        self.assertGreater(stats["pending"]["records"], 0)
        connections = len(server.streams)
        self.feed(spec, "--records", 150_000)
        lab.wait_for(lambda: len(server.streams) > connections, "a connection")
        server.reads.set()
        stats = self.end()
        lost = sum(reason["records"] for reason in stats["dropped"].values())
        self.assertEqual(150_000, stats["delivered"]["records"] + lost)

    # ---- TLS ------------------------------------------------------------------

    def tls_spec(self, certificates):
        path = certificates.path
        return (f"ipfix:tls://127.0.0.1:{self.port}?ca={path('ca.pem')}&cert="
                f"{path('client.pem')}&key_file={path('client.key')}")

    def test_tls_server_with_a_wrong_certificate_gets_nothing(self):
        certificates = ipfix_lab.Certificates(self.lab.path("certs"))
        for name, words in (("other", "127.0.0.1"), ("expired", "expired")):
            bad = self.server(port=self.port, context=certificates.server(name))
            self.feed(self.tls_spec(certificates), "--rate", 500, "--records",
                      3000)
            lab.wait_for(self.log, "a word about it")
            time.sleep(1.5)
            self.assertEqual(1, len(self.log()), self.log())
            self.assertIn(words, self.log()[0])
            bad.stop()
            good = self.server(port=self.port,
                               context=certificates.server("server"))
            stats = self.end()
            self.assertEqual(3000, stats["delivered"]["records"])
            lab.wait_for(lambda s=good: len(s.numbers()) == 3000, "records")
            self.assertEqual(collections.Counter(), bad.numbers())
            self.note(self.log()[0])
            good.stop()


if __name__ == "__main__":
    lab.main(at_once=5)
