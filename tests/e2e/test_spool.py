#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
"""A spool on disk, under netobsctl that is killed, and a disk that is full."""

import collections
import json
import os
import random
import resource
import signal
import subprocess
import time

from lib import bpf
from lib import lab
from lib import observer
from lib import reader
from lib import spoolfile
from lib import traffic

KILLS = 10
FLOWS = 150


class Spool(lab.WiredTest):
    def setUp(self):
        super().setUp()
        self.socket = self.lab.path("socket")
        self.spool = self.lab.path("spool")
        self.messages = self.lab.path("messages")
        self.lines = []
        self.reader = reader.Reader(self.socket, self.lines.append)

    def start(self, *more, **options):
        with open(self.messages, "wb") as messages:
            process = self.lab.spawn(
                observer.netobsctl(), "flows", "-v", "-i", "eth0", "--interval",
                "0.2", "-o", f"json:unix:{self.socket}?spool=disk:{self.spool}",
                *more, ns=self.a, stdout=subprocess.DEVNULL, stderr=messages,
                **options)
        lab.wait_for(lambda: bpf.attached(self.a, "eth0") == 2, "netobsctl")
        return process

    def finish(self, process):
        process.send_signal(signal.SIGINT)
        process.wait(60)
        errors = self.said()
        observer.check_sanitizer(errors)
        return observer.Result(process.returncode, None, errors)

    def said(self):
        return lab.read(self.messages)

    def wait_for_words(self, words):
        lab.wait_for(lambda: words in self.said(), f"'{words}'", 30)

    def keys(self):
        return [spoolfile.key_of_json(json.loads(line)) for line in self.lines]

    def kill_once(self, turn, chance):
        """The reader is there all the time, later, or not at all."""
        if turn % 3 == 0:
            self.reader.open()
        process = self.start()
        time.sleep(chance.uniform(0.5, 1.5))
        if turn % 3 == 1:
            self.reader.open()
            time.sleep(chance.uniform(0.0, 1.0))
        process.kill()
        process.wait()
        if turn % 3 < 2:
            self.reader.close()
        return spoolfile.pending(self.spool)

    def test_kills_lose_nothing_that_is_on_disk(self):
        """What the files hold when it is killed arrives, at least once."""
        chance = random.Random(1)
        flood = traffic.start_flood(self.lab, self.a, "eth0", "--flows", FLOWS,
                                    "--seconds", 90, "--rate", 3000)
        on_disk = set()
        for turn in range(KILLS):
            on_disk.update(self.kill_once(turn, chance))
        flood.terminate()
        flood.wait()
        self.assertGreater(len(on_disk), 10 * FLOWS)

        self.reader.open()
        result = self.finish(self.start())
        self.assertEqual(0, result.code, result.errors)
        self.reader.close()
        counts = collections.Counter(self.keys())
        self.assertEqual(set(), on_disk - set(counts))
        # Nothing was made up: there was no more than that on the wire.
        sent = self.a.counters("eth0")
        self.assertLessEqual(sum(key[6] for key in counts),
                             sent["tx"]["packets"] + sent["rx"]["packets"])
        self.assertEqual([], [name for name in os.listdir(self.spool)
                              if name.endswith(".bad")])
        self.note(f"{KILLS} kills: {len(on_disk)} records were on disk, "
                  f"{len(counts)} arrived, "
                  f"{sum(counts.values()) - len(counts)} of them twice")

    def test_files_of_a_long_backlog_may_all_be_open(self):
        limit = resource.RLIMIT_NOFILE
        process = self.start(enter=lambda: resource.setrlimit(limit, (64, 4096)))
        self.assertEqual((4096, 4096), resource.prlimit(process.pid, limit))
        self.assertEqual(0, self.finish(process).code)

    def small_disk(self, size):
        """One of its own, at the spool's place."""
        self.lab.small_disk(self.spool, size)

    def test_full_disk_is_over_when_it_has_room(self):
        self.small_disk("4m")
        filler = os.path.join(self.spool, "filler")
        with open(filler, "wb") as file:
            file.write(bytes(3500 << 10))
        process = self.start("--stats")
        flood = traffic.start_flood(self.lab, self.a, "eth0", "--flows", 2000,
                                    "--seconds", 60, "--rate", 20000)
        self.wait_for_words("No space left on device")
        time.sleep(1)
        flood.terminate()
        flood.wait()
        os.unlink(filler)
        self.wait_for_words("can be written to again")
        self.reader.open()
        result = self.finish(process)
        self.reader.close()
        result.check_identity()
        dropped = result.stats["sinks"][0]["dropped"]
        self.assertEqual(1, result.errors.count("cannot write: No space"))
        self.assertEqual(sum(json.loads(line)["Packets"]
                             for line in self.lines),
                         result.stats["sinks"][0]["delivered"]["packets"])
        self.note(f"dropped: {dropped}")

    def test_own_backlog_that_fills_the_disk_goes_when_it_is_read(self):
        """Only acknowledged records make room there."""
        self.small_disk("512k")
        process = self.start("--stats")
        flood = traffic.start_flood(self.lab, self.a, "eth0", "--flows", 2000,
                                    "--seconds", 60, "--rate", 20000)
        self.wait_for_words("No space left on device")
        flood.terminate()
        flood.wait()
        self.reader.open()
        self.wait_for_words("can be written to again")
        result = self.finish(process)
        self.reader.close()
        result.check_identity()
        self.assertEqual(0, result.stats["sinks"][0]["pending"]["records"])


if __name__ == "__main__":
    lab.main()
