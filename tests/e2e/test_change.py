#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
"""
Interfaces and intervals that change while a service runs, a hundred times at random, under a flood:
each packet of an interface that stays observed is reported, once.
"""

import json
import signal
import time

from lib import lab
from lib import traffic
from lib.service import AGAIN, ServiceTest

CHANGES = 100
INTERVALS_MS, PAUSE_S = (10, 400), 0.3
RATE = lab.sized(8000)
# Each has a packet now and then, so that the library forgets it in between.
FLOWS = RATE // 3
SOURCE, FORWARDED, LOCAL = "10.0.0.1", "203.0.113.1", "203.0.113.2"


class Change(ServiceTest):
    def setUp(self):
        super().setUp()
        self.c = self.lab.ns("c")
        for key in "ip_forward", "conf/all/rp_filter", "conf/default/rp_filter":
            self.a.sysctl(f"ipv4/{key}", int(key == "ip_forward"))
        _, self.router = self.lab.wire(self.c, "p1", ["198.51.100.1/30"], self.a, "q1", ["198.51.100.2/30"])
        self.lab.wire(self.a, "q3", ["198.51.100.5/30"], self.b, "p3", ["198.51.100.6/30"])
        for name in "q1", "eth0":
            self.a.sysctl(f"ipv4/conf/{name}/rp_filter", 0)
        # What b gets is not its own, and it does not answer.
        self.a.ip("route", "add", "203.0.113.0/24", "via", self.B4)

    def configure(self):
        others = ("q1", f"netns:{self.c.name}/p1", f"netns:{self.b.name}/eth0", "q3",
                  f"netns:{self.b.name}/p3")
        self.write("[flows]", f"interval = {self.random.randrange(*INTERVALS_MS)}ms",
                   interfaces=("eth0", *(one for one in others if self.random.randrange(2))))

    def flood(self, ns, interface, dest, *arguments):
        return traffic.start_flood(self.lab, ns, interface, "--flows", FLOWS,
                                   "--rate", RATE, "--source", SOURCE,
                                   "--dest", dest, *arguments)

    def end_flood(self, flood):
        flood.send_signal(signal.SIGTERM)
        sent = json.loads(flood.communicate(timeout=60)[0])
        return sent["packets"], sent["bytes"]

    def totals(self):
        totals = {}
        for record in lab.json_lines(self.lab.path("a")):
            packets, octets = totals.get(record["DstAddr"], (0, 0))
            totals[record["DstAddr"]] = packets + record["Packets"], octets + record["Bytes"]
        return totals

    def check_identity(self, stats):
        """seen = exported + unparsed + lost, and nothing is pending or lost."""
        for unit in "packets", "bytes":
            self.assertEqual(stats["seen"][unit], stats["exported"][unit] + sum(
                part[unit] for part in stats["unparsed"].values()))
        self.assertNotIn("pending", stats)
        self.assertEqual(0, sum(part["packets"] for part in stats["lost"].values()))

    def test_a_hundred_changes_under_a_flood(self):
        self.configure()
        self.start()
        before = self.a.counters("eth0")["tx"]["packets"]
        forwarded = self.flood(self.c, "p1", FORWARDED, "--mac", self.router)
        local = self.flood(self.a, "q3", LOCAL)
        for _ in range(CHANGES):
            self.configure()
            self.reload(AGAIN)
            time.sleep(self.random.random() * PAUSE_S)
        sent, other = self.end_flood(forwarded), self.end_flood(local)
        crossed = self.a.counters("eth0")["tx"]["packets"] - before
        self.stop()
        totals = self.totals()
        self.note(f"{sent[0]} packets sent and forwarded; {totals.get(LOCAL, (0, 0))[0]} of {other[0]} "
                  "seen at interfaces that came and went")
        self.check_identity(self.stats())
        self.assertEqual(sent[0], crossed)
        self.assertEqual(sent, totals[FORWARDED])
        self.assertLessEqual(totals.get(LOCAL, (0, 0)), other)


if __name__ == "__main__":
    lab.main()
