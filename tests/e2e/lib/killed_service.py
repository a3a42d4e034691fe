# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
"""
A service with persist = yes and a spool on disk that is killed, or restarted, again and again, at
any moment of a drain or between two. NETOBS_TEST_SEED repeats the times.
"""

import json
import os
import random
import signal
import time

from lib import lab
from lib import traffic
from lib.persistent import PersistentTest

RATE = int(os.environ.get("NETOBS_TEST_RATE", lab.sized(20000)))
SANITIZED_MAX = 50000 # packets a second; a build without sanitizers takes more
LIFE = 0.7 # seconds, at most


class KilledServiceTest(PersistentTest):
    """Its sink is of the class's kind: output() and lines()."""

    def setUp(self):
        super().setUp()
        seed = os.environ.get("NETOBS_TEST_SEED") or str(random.SystemRandom().getrandbits(32))
        self.note(f"NETOBS_TEST_SEED={seed}")
        self.random = random.Random(seed)

    def begin(self):
        self.write(*self.persist(), '[sink "all"]',
                   f"output = {self.output()}spool=disk:{self.lab.path('spool')}", sinks=())
        self.start(release=RATE > SANITIZED_MAX)

    def check_messages(self):
        for words in ("are lost", "not accounted for"):
            self.assertNotIn(words, self.messages())

    def end_in_a_flood(self, flows, ends):
        """@ends: what ends each process. The packets that were sent."""
        self.begin()
        flood = traffic.begin_flood(self.lab, self.a, "eth0", "--flows", flows, "--rate", RATE,
                                    "--dest", self.B4, "--cpus", traffic.two_cpus(),
                                    enter=traffic.hurry)
        for end in ends:
            time.sleep(self.random.random() * LIFE)
            end()
            self.check_messages()
            self.begin()
        flood.send_signal(signal.SIGTERM)
        done = json.loads(flood.communicate(timeout=60)[0])
        sent, self.seconds = done["packets"], done["seconds"]
        self.assertEqual(sent, self.a.counters("eth0")["tx"]["packets"])
        return sent

    def check_packets(self, sent):
        """Each is in one record; records that were sent again are the same to the byte."""
        lines = self.lines()
        whole = set(lines)
        packets = sum(json.loads(line)["Packets"] for line in whole)
        self.note(f"{sent} packets, {sent / self.seconds:.0f} each second, in {len(whole)} records, "
                  f"{len(lines) - len(whole)} sent again")
        self.assertEqual(sent, packets)

    def end_and_compare(self, flows, ends):
        sent = self.end_in_a_flood(flows, ends)
        self.stop()
        self.check_messages()
        self.exported() # of what the last process has seen, nothing is lost
        self.check_packets(sent)
