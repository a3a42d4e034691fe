# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
"""JSON lines over TCP and TLS to peers that stop reading, and end, at any time."""

import collections
import json
import time

from lib import ipfix_lab
from lib import kills
from lib import lab

LIMIT_MS = 20  # that a call may take of its thread


class Lines(bytearray):
    """What a connection brought: whole lines, and at most one half, at its end."""

    def __init__(self):
        super().__init__()
        self.at = 0
        self.found = collections.Counter()

    def numbers(self):
        end = self.rfind(b"\n") + 1
        for line in bytes(self[self.at:end]).splitlines():
            self.found[json.loads(line)["Bytes"] - 1] += 1
        self.at = max(self.at, end)
        return self.found


class Server(ipfix_lab.Server):
    stream = Lines


class Erratic(kills.Erratic):
    stream = Lines


class JsonNet(kills.KillsTest):
    kind = "json"
    erratic = Erratic

    def test_tcp_peer_that_is_killed_at_any_time_misses_nothing(self):
        self.assertEqual([], self.check_kills())

    def test_slow_peer_gets_each_record_once(self):
        server = Server(self.ns, port=self.port, buffer=8 << 10)
        self.addCleanup(server.stop)

        def handle(peer, stream):
            while data := peer.recv(20_000):
                stream += data
                time.sleep(0.02)

        server.handle = handle
        self.feed(self.spec(), "--rate", 20_000, "--records", 20_000,
                  "--drain", 100)
        stats = self.end()
        server.read_all()
        self.assertEqual(20_000, stats["delivered"]["records"])
        self.assertEqual({n: 1 for n in range(20_000)}, server.numbers())

    def test_peer_that_never_reads_costs_no_call_and_no_count(self):
        """What is neither read nor dropped is pending, whatever its kernel took."""
        server = Server(self.ns, port=self.port, reads=False)
        self.addCleanup(server.stop)

        def longest_call():
            self.feed(self.spec(more="spool.max_bytes=1M"), "--rate", 50_000,
                      "--seconds", 3, "--drain", 1, "--times")
            stats = self.end(code=1)
            dropped = sum(count["records"] for count in stats["dropped"].values())
            self.assertGreater(dropped, 0)
            self.assertEqual(stats["taken"]["records"],
                             stats["delivered"]["records"] + dropped +
                             stats["pending"]["records"])
            self.note(f"longest call {self.longest_ms} ms of CPU time")
            return self.longest_ms

        self.assertLess(lab.least(longest_call, LIMIT_MS), LIMIT_MS)


if __name__ == "__main__":
    lab.main(at_once=5)
