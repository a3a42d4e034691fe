# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
"""A collector that is away while records come fast: none is lost, none waits.

NETOBS_TEST_OUTAGE=60 keeps it away for that many seconds, instead of 5.
"""

import json
import os
import re
import subprocess
import time

from lib import lab
from lib import reader

RATE = 20000
UP = 4  # seconds with the collector, before
RECORD = 700  # bytes in the spool, at most
MARGIN = 12 << 20  # of memory: the process itself, a segment, buffers
LIMIT_US = 20000  # that a call may take of its thread
LEAST = 0.3  # of the rate before it went; a call that waited for it would leave next to nothing


def seconds():
    return int(os.environ.get("NETOBS_TEST_OUTAGE", "5"))


class Outage(lab.LabTest):
    def setUp(self):
        super().setUp()
        self.socket = self.lab.path("socket")
        self.reader = reader.Reader(self.socket, self.take)

    def take(self, line):
        self.numbers.add(json.loads(line)["Bytes"])

    def outage(self, spool):
        """What sinkfeed reports, how many records came before, and the most memory that it had."""
        self.numbers = set()
        self.reader.open()
        tool = os.path.join(os.environ["NETOBS_RELEASE"], "tools", "sinkfeed")
        process = self.lab.spawn(tool, f"json:unix:{self.socket}?spool={spool}", "--rate", RATE,
                                 "--drain", 120, "--times", stdout=subprocess.PIPE, text=True)
        lab.wait_for(lambda: self.numbers, "the first record")
        time.sleep(UP)
        self.reader.drop() # at once: data that it has not read yet comes again
        before = len(self.numbers)
        time.sleep(seconds())
        self.assertEqual(before, len(self.numbers))
        memory = re.search(r"VmHWM:\s+(\d+)", lab.read(f"/proc/{process.pid}/status"))[1]
        # A call that waited for the collector would have kept the feed until now.
        process.terminate()
        self.reader.open()
        out, _ = process.communicate(timeout=150)
        self.assertEqual(0, process.returncode)
        self.reader.close()
        return json.loads(out), before, int(memory) << 10

    def check(self, spool, cap):
        def longest_call():
            report, before, memory = self.outage(spool)
            taken = report["stats"]["taken"]["records"]
            self.assertEqual(report["written"], taken)
            self.assertGreater((taken - before) / seconds(), LEAST * before / UP)
            self.assertEqual(taken, report["stats"]["delivered"]["records"])
            self.assertEqual(set(range(1, taken + 1)), self.numbers)
            self.assertLess(memory, cap + MARGIN)
            self.note(f"{taken} records, {before} of them before; memory {memory >> 20} MiB; longest call "
                      f"{report['longest_cpu_us'] / 1000:.1f} ms of its thread")
            return report["longest_cpu_us"]

        self.assertLess(lab.least(longest_call, LIMIT_US), LIMIT_US)

    def test_in_memory(self):
        size = RATE * (seconds() + 5) * RECORD
        self.check(f"memory&spool.max_bytes={max(64 << 20, size)}", size)

    def test_on_disk(self):
        self.check(f"disk:{self.lab.path('spool')}", 0)


if __name__ == "__main__":
    lab.main(at_once=2)
