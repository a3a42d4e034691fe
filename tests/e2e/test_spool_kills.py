#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
"""A process that is killed over and over while its spool fills the disk.

NETOBS_TEST_KILLS=200 kills it that often, instead of 40.
"""

import json
import os
import random
import subprocess
import time

from lib import lab
from lib import spoolfile

SIZE = "1m"  # of the disk: full within a moment
RATE = 50000
APART = 1 << 20  # records of a run have numbers of their own


def kills():
    return int(os.environ.get("NETOBS_TEST_KILLS", "40"))


class Kills(lab.LabTest):
    def setUp(self):
        super().setUp()
        self.disk = self.lab.path("disk")
        self.spool = os.path.join(self.disk, "spool")
        self.out = self.lab.path("out")
        self.lab.small_disk(self.disk, SIZE)

    def feed(self, target, *options):
        return self.lab.spawn(
            lab.tool("sinkfeed"),
            f"json:{target}?spool=disk:{self.spool}", *options,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def kill_once(self, turn, chance):
        """What is on the disk behind it."""
        process = self.feed("unix:" + self.lab.path("nobody"), "--rate", RATE,
                            "--first", turn * APART)
        time.sleep(chance.uniform(0.02, 0.25))
        process.kill()
        _, errors = process.communicate()
        self.assertNotIn("cannot use", errors, f"start {turn}")
        self.assertEqual(-9, process.returncode, errors)
        if not os.path.exists(self.spool):
            return set()  # that was early
        return {key[7] for key in spoolfile.pending(self.spool)}

    def read_all(self):
        """All that waits goes; the counters of that."""
        process = self.feed(self.out, "--records", 0, "--drain", 60)
        text, errors = process.communicate()
        self.assertEqual(0, process.returncode, errors)
        return json.loads(text)["stats"]

    def lines(self):
        """What there is in the file now, which is made anew."""
        with open(self.out, encoding="utf-8") as file:
            numbers = [json.loads(line)["Bytes"] for line in file]
        os.unlink(self.out)
        return numbers

    def test_full_disk(self):
        """Each start succeeds, and the records on the disk are there."""
        seed = int(os.environ.get("NETOBS_TEST_SEED", "1"))
        chance = random.Random(seed)
        full = 0
        on_disk, got = set(), []
        for turn in range(kills()):
            on_disk |= self.kill_once(turn, chance)
            space = os.statvfs(self.disk)
            full += space.f_bavail * space.f_frsize < 16 << 10
            if turn % 8 == 7:
                stats = self.read_all()
                self.assertEqual(0, stats["dropped"]["damaged"]["records"])
                got += self.lines()
        self.read_all()
        got += self.lines()
        self.assertEqual(set(), on_disk - set(got))
        self.assertEqual(len(got), len(set(got)))
        self.assertGreater(full, kills() // 4)
        self.assertFalse([name for name in os.listdir(self.spool)
                          if name.endswith(".bad")])
        self.note(f"seed {seed}: {kills()} kills, {full} on a full disk: "
                  f"{len(on_disk)} records were on it, {len(got)} came out")


if __name__ == "__main__":
    lab.main()
