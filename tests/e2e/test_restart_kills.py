#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
"""
netobsctl run with persist = yes and a spool on disk is killed in a flood: each packet is in
the records once. NETOBS_TEST_KILLS says how often.
"""

import os
import time

from lib import lab
from lib.killed_service import KilledServiceTest
from lib.service import AGAIN

KILLS = int(os.environ.get("NETOBS_TEST_KILLS", "20"))


class Kills(KilledServiceTest):
    def output(self):
        return f"json:{self.lab.path('out')}?"

    def lines(self):
        """But for those in which a process was killed: they are sent again."""
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

    def test_known_flows(self):
        self.end_and_compare(3000, [self.kill] * KILLS)

    def test_logs_and_overflow_tables(self):
        """Most flows come once in an interval."""
        self.end_and_compare(200000, [self.kill] * KILLS)


if __name__ == "__main__":
    lab.main(at_once=2)
