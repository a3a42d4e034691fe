#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
"""
netobsctl run with persist = yes and a spool on disk is killed again and again, at any moment of
a drain or between two: each packet is in the records once. NETOBS_TEST_SEED repeats the times;
NETOBS_TEST_KILLS says how often.
"""

import json
import os
import random
import signal
import time

from lib import bpf
from lib import lab
from lib import traffic
from lib.service import ServiceTest

KILLS = int(os.environ.get("NETOBS_TEST_KILLS", "20"))
RATE = lab.sized(20000)
FLOWS = 3000
LIFE = 0.7 # seconds, at most


class Kills(ServiceTest):
    def setUp(self):
        super().setUp()
        self.bpffs = bpf.mount_bpffs(self.lab)
        seed = os.environ.get("NETOBS_TEST_SEED") or str(random.SystemRandom().getrandbits(32))
        self.note(f"NETOBS_TEST_SEED={seed}")
        self.random = random.Random(seed)
        self.out = self.lab.path("out")

    def begin(self, more=""):
        self.write("persist = yes", f"persist_dir = {self.bpffs}/set", '[sink "all"]',
                   f"output = json:{self.out}?spool=disk:{self.lab.path('spool')}", sinks=(),
                   more=more)
        self.start()

    def kill(self):
        os.kill(self.pid, signal.SIGKILL)
        self.process.wait(timeout=60)
        self.assertNotIn("are lost", self.messages())
        self.assertNotIn("do not balance", self.messages())

    def records(self):
        """What a record says differs from all others; those that are sent again do not."""
        with open(self.out, encoding="utf-8") as file:
            lines = file.read().splitlines()
        torn = [line for line in lines if not line.endswith("}")]
        whole = set(lines) - set(torn)
        self.note(f"{len(lines) - len(torn)} records, {len(whole)} different ones")
        self.assertLessEqual(len(torn), KILLS)
        return [json.loads(line) for line in whole]

    def start_flood(self, flows):
        return traffic.start_flood(self.lab, self.a, "eth0", "--flows", flows, "--rate", RATE,
                                   "--dest", self.B4)

    def kill_in_a_flood(self, flows, more=""):
        self.begin(more)
        flood = self.start_flood(flows)
        for _ in range(KILLS):
            time.sleep(self.random.random() * LIFE)
            self.kill()
            self.begin(more)
        flood.send_signal(signal.SIGTERM)
        sent = json.loads(flood.communicate(timeout=60)[0])["packets"]
        self.stop()
        self.assertNotIn("do not balance", self.messages())
        self.exported() # of what it has seen, nothing is lost
        packets = sum(record["Packets"] for record in self.records())
        self.note(f"{KILLS} kills, {sent} packets")
        self.assertEqual(sent, self.a.counters("eth0")["tx"]["packets"])
        self.assertEqual(sent, packets)

    def test_known_flows(self):
        self.kill_in_a_flood(FLOWS)

    def test_logs_and_overflow_tables(self):
        """Most flows come once in an interval."""
        self.kill_in_a_flood(200000)


if __name__ == "__main__":
    lab.main(at_once=2)
