#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
"""A collector that is away while records come fast: none is lost, none waits.

NETOBS_TEST_OUTAGE=60 keeps it away for that many seconds, instead of 5.
"""

import json
import os
import signal
import statistics
import subprocess
import threading
import time

from lib import lab
from lib import reader

RATE = 20000
UP = 4  # seconds with the collector, before
RECORD = 400  # bytes in the spool, at most
MARGIN = 12 << 20  # of memory: the process itself, a segment, buffers
TRIES = 3  # a busy machine delays calls as well


def seconds():
    return int(os.environ.get("NETOBS_TEST_OUTAGE", "5"))


class Drive:
    """spooldrive, and its reports, ten per second."""

    def __init__(self, where, spec):
        tool = os.path.join(os.environ["NETOBS_RELEASE"], "tools", "spooldrive")
        self.process = where.spawn(tool, spec, RATE, stdout=subprocess.PIPE,
                                   text=True)
        self.lines = []
        self.thread = threading.Thread(target=self.read, daemon=True)
        self.thread.start()

    def read(self):
        for line in self.process.stdout:
            self.lines.append(json.loads(line))

    def during(self, length):
        """What it tells for so long."""
        first = len(self.lines)
        time.sleep(length)
        return self.lines[first:]

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        self.thread.join(150)
        code = self.process.wait(lab.PATIENCE_S)
        if code:
            raise AssertionError(f"spooldrive: exit {code}")
        return self.lines.pop()


class Outage(lab.LabTest):
    def setUp(self):
        super().setUp()
        self.socket = self.lab.path("socket")
        self.numbers = set()
        self.reader = reader.Reader(self.socket, self.take)

    def take(self, line):
        self.numbers.add(json.loads(line)["Bytes"])

    def outage(self, spool):
        self.reader.open()
        drive = Drive(self.lab, f"json:unix:{self.socket}?spool={spool}")
        lab.wait_for(lambda: self.numbers, "the first record")
        up = drive.during(UP)
        self.hang_up()
        away = drive.during(seconds())
        self.reader.open()
        stats = drive.stop()
        self.reader.close()
        return up, away, drive.lines, stats

    def hang_up(self):
        """At once: data that it has not read yet comes again."""
        self.reader.drop()

    def check_records(self, away, lines, stats, cap):
        taken = stats["taken"]["records"]
        self.assertGreaterEqual(taken, lines[-1]["written"])
        self.assertGreater(max(line["pending"] for line in away),
                           (away[-1]["written"] - away[0]["written"]) * 0.7)
        self.assertEqual(taken, stats["delivered"]["records"])
        self.assertEqual(set(range(1, taken + 1)), self.numbers)
        memory = max(line["memory"] for line in lines)
        self.assertLess(memory, cap + MARGIN)
        self.note(f"{taken} records, {max(l['pending'] for l in away)} waited; "
                  f"memory {memory >> 20} MiB")

    def delay(self, up, away):
        """Of calls: below 1 if they take no longer than with a collector, but for the machine."""
        delays = []
        for what in ("longest_us", "sum_us"):
            before, since = ([line[what] for line in phase]
                             for phase in (up, away))
            usual = statistics.quantiles(before, n=10)
            now = statistics.quantiles(since, n=10)
            self.note(f"{what}: median {usual[4]:.0f}, then {now[4]:.0f}; "
                      f"9 of 10 below {usual[8]:.0f}, then {now[8]:.0f}")
            delays += [now[4] / (2 * usual[4] + 1000), now[8] / (3 * usual[8] + 5000)]
        return max(delays)

    def check(self, spool, cap):
        def measure():
            self.numbers = set()
            up, away, lines, stats = self.outage(spool)
            self.check_records(away, lines, stats, cap)
            return self.delay(up, away)

        self.assertLess(lab.least(measure, 1, TRIES), 1)

    def test_in_memory(self):
        cap = max(64 << 20, RATE * (seconds() + 5) * RECORD)
        self.check(f"memory&spool.max_bytes={cap}", RATE * (seconds() + 5) *
                   RECORD)

    def test_on_disk(self):
        self.check(f"disk:{self.lab.path('spool')}", 0)


if __name__ == "__main__":
    lab.main(at_once=2)
