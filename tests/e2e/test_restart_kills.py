#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
"""
netobsctl run with persist = yes and a spool on disk is killed in a flood: each packet is in
the records once. NETOBS_TEST_KILLS says how often.
"""

import json
import os
import time

from lib import lab
from lib.killed_service import KilledServiceTest
from lib.service import AGAIN

KILLS = int(os.environ.get("NETOBS_TEST_KILLS", "20"))


class Kills(KilledServiceTest):
    alternates, is_plain = False, True # between a spool on disk, and none

    def output(self):
        return f"json:{self.lab.path('out')}?"

    def begin(self):
        if not self.alternates:
            super().begin()
            return
        self.is_plain = not self.is_plain
        if not self.is_plain:
            super().begin()
            return
        self.write(*self.persist(), '[sink "plain"]', f"output = json:{self.lab.path('plain')}",
                   sinks=())
        self.start()

    def lines(self):
        """Except the drains in which a process was killed: these are sent again."""
        with open(self.lab.path("out"), encoding="utf-8") as file:
            lines = file.read().splitlines()
        whole = [line for line in lines if line.endswith("}")]
        self.assertLessEqual(len(lines) - len(whole), KILLS)
        return whole

    def reload_and_kill(self):
        """The sink of another configuration goes on with the spool."""
        self.write(*self.persist(), '[sink "all"]',
                   f"output = {self.output()}spool=disk:{self.lab.path('spool')}"
                   "&spool.max_bytes=900M", sinks=())
        self.reload(AGAIN)
        time.sleep(self.random.random())
        self.kill()

    def test_reloads(self):
        self.end_and_compare(3000, [self.reload_and_kill] * (KILLS // 2))

    def test_processes_without_a_spool_in_between(self):
        """They report the packets that a killed process had not committed."""
        self.alternates = True
        sent = self.end_in_a_flood(3000, [self.kill, self.stop] * (KILLS // 4))
        self.stop()
        with open(self.lab.path("plain"), encoding="utf-8") as file:
            plain = [json.loads(line)["Packets"] for line in file]
        spooled = [json.loads(line)["Packets"] for line in set(self.lines())]
        self.note(f"{sent} packets, {sum(spooled)} by a spool, {sum(plain)} without")
        self.assertEqual(sent, sum(spooled) + sum(plain))

    def test_known_flows(self):
        self.end_and_compare(3000, [self.kill] * KILLS)

    def test_logs_and_overflow_tables(self):
        """Most flows come once in an interval."""
        self.end_and_compare(200000, [self.kill] * KILLS)


if __name__ == "__main__":
    lab.main(at_once=2)
