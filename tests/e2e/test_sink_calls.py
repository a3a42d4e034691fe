#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
"""No call of a sink takes long, however much waits.

NETOBS_TEST_BACKLOG=N has N records wait, instead of 3 million.
"""

import json
import os
import subprocess
import tempfile

from lib import lab

LIMIT_US = 20000  # of the thread's own time: others may have the processor meanwhile


def backlog():
    return int(os.environ.get("NETOBS_TEST_BACKLOG", "3000000"))



class Calls(lab.LabTest):
    def feed(self, spec, *options):
        """The longest call, in us, and the sink's statistics."""
        tool = os.path.join(os.environ["NETOBS_RELEASE"], "tools", "sinkfeed")
        done = subprocess.run([tool, spec, "--times", *map(str, options)],
                              stdout=subprocess.PIPE, text=True, check=False)
        report = json.loads(done.stdout)
        self.note(f"{spec.split('?')[0]}: longest call "
                  f"{report['longest_cpu_us'] / 1000:.1f} ms of its thread, "
                  f"{report['longest_us'] / 1000:.1f} ms of the clock; opened in "
                  f"{report['open_seconds'] * 1000:.0f} ms")
        return report["longest_cpu_us"], report["stats"]

    def longest_call(self, target):
        """Of a backlog: while it is written to a disk, and while it is read from it."""
        with tempfile.TemporaryDirectory(dir=self.lab.dir) as directory:
            spool = f"spool=disk:{directory}&spool.max_bytes=4G"
            away = f"json:unix:{self.lab.path('nobody')}?{spool}"
            written, stats = self.feed(away, "--records", backlog(), "--rate", 1e9,
                                       "--drain", 0)
            self.assertEqual(backlog(), stats["pending"]["records"])
            read, stats = self.feed(f"{target}?{spool}", "--records", 0, "--drain",
                                    600)
            self.assertEqual(backlog(), stats["delivered"]["records"])
            self.assertEqual(backlog(), stats["recovered"]["records"])
        return max(written, read)

    def test_backlog(self):
        """It comes in, and goes out, from the disk to readers that take all."""
        for target in ("null", "json:/dev/null", f"json:{self.lab.path('out')}"):
            longest = lab.least(lambda: self.longest_call(target), LIMIT_US)
            self.assertLess(longest, LIMIT_US)


if __name__ == "__main__":
    lab.main()
