# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
# Needs: nftables
"""IPFIX over TCP and TLS to a collector that stops reading, and ends, at any time."""

import os
import tempfile
import threading
import time

from lib import ipfix_lab
from lib import kills
from lib import lab

BACKLOG = int(os.environ.get("NETOBS_IPFIX_BACKLOG", "300000"))
LIMIT_MS = 20  # that a call may take of its thread


class Kills(kills.KillsTest):
    def test_tcp_collector_that_is_killed_at_any_time_misses_nothing(self):
        self.assertEqual([], self.check_kills())

    def test_tls_collector_that_is_killed_at_any_time_misses_nothing(self):
        certificates = ipfix_lab.Certificates(self.lab.path("certs"))
        self.assertEqual([], self.check_kills(certificates))

    # ---- Calls that return soon ---------------------------------------------------

    def flood(self, peer, _stream):
        """As much as the other side reads; a thread reads what the other side sends."""
        threading.Thread(target=self.swallow, args=(peer,), daemon=True).start()
        while True:
            peer.sendall(bytes(1 << 20))

    @staticmethod
    def swallow(peer):
        try:
            while peer.recv(1 << 20):
                pass
        except OSError:
            pass

    def test_collector_that_sends_without_end_takes_no_call_for_itself(self):
        server = ipfix_lab.Server(self.ns, port=self.port)
        server.handle = self.flood
        self.addCleanup(server.stop)

        def longest_call():
            self.feed(self.spec(), "--rate", 2000, "--seconds", 4, "--times")
            self.end()
            self.note(f"longest call {self.longest_ms} ms of CPU time")
            return self.longest_ms

        self.assertLess(lab.least(longest_call, LIMIT_MS), LIMIT_MS)

    def test_backlog_is_sent_a_part_at_a_time(self):
        self.assertLess(lab.least(self.longest_call_with_backlog, LIMIT_MS), LIMIT_MS)

    def longest_call_with_backlog(self):
        directory = tempfile.mkdtemp(dir=self.lab.dir)
        spool = f"spool=disk:{directory}&spool.max_bytes=4G"
        self.feed(self.spec(more=spool), "--rate", 10**7, "--records", BACKLOG,
                  "--drain", 0.1)
        self.end(code=1)
        server = ipfix_lab.Server(self.ns, port=self.port)
        self.feed(self.spec(more=spool), "--rate", 100, "--seconds",
                  3 + BACKLOG / 100_000, "--times")
        stats = self.end()
        server.stop()
        self.note(f"{BACKLOG} records, longest call {self.longest_ms} ms of CPU "
                  "time")
        self.assertEqual(stats["taken"]["records"] + BACKLOG,
                         stats["delivered"]["records"])
        self.assertGreater(sum(map(len, server.streams)), BACKLOG * 80)
        return self.longest_ms

    # ---- Connections that are kept ------------------------------------------------

    def test_tls_collector_that_pauses_for_12_s_keeps_its_connection(self):
        certificates = ipfix_lab.Certificates(self.lab.path("certs"))
        server = self.server(port=self.port, context=certificates.server("server"))
        self.feed(self.spec(certificates), "--rate", 8000)
        lab.wait_for(server.numbers, "records")
        server.reads.clear()
        time.sleep(12)
        server.reads.set()
        before = len(server.numbers())
        lab.wait_for(lambda: len(server.numbers()) > before, "more records")
        self.process.terminate()
        stats = self.end()
        taken = stats["taken"]["records"]
        self.assertEqual(taken, stats["delivered"]["records"])
        self.assertEqual(1, stats["counters"]["sessions"])
        lab.wait_for(lambda: len(server.numbers()) == taken, "all records")
        self.assertEqual({1}, set(server.numbers().values()))
        self.assertEqual([], self.log())

    def test_host_that_answers_no_more_is_noticed(self):
        server = self.server(port=self.port)
        self.feed(self.spec(), "--rate", 2000)
        lab.wait_for(server.numbers, "records")
        self.cut("tcp", "drop")
        lab.wait_for(self.log, "a word about it")
        self.assertIn("timed out", self.log()[0])
        self.heal()
        self.process.terminate()
        stats = self.end()
        taken = stats["taken"]["records"]
        self.assertEqual(taken, stats["delivered"]["records"])
        lab.wait_for(lambda: len(server.numbers()) == taken, "all records")


if __name__ == "__main__":
    lab.main(at_once=5, first=("test_host", "test_t"))
