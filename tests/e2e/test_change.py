#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
"""
Options that change while a context runs, a hundred times at random, under a flood:
each packet of an interface that stays observed is reported, once. A failure prints
its seed; NETOBS_TEST_SEED=SEED repeats it.
"""

import json
import signal
import subprocess

from lib import lab
from lib import traffic

CHANGES = 100
RATE = lab.sized(8000)
# Each has a packet now and then, so that the library forgets it in between.
FLOWS = RATE // 3
SOURCE, FORWARDED, LOCAL = "10.0.0.1", "203.0.113.1", "203.0.113.2"


class Change(lab.LabTest):
    def setUp(self):
        super().setUp()
        self.a, self.r, self.b = (self.lab.ns(tag) for tag in "arb")
        for key in "ip_forward", "conf/all/rp_filter", "conf/default/rp_filter":
            self.r.sysctl(f"ipv4/{key}", int(key == "ip_forward"))
        _, self.router = self.lab.wire(self.a, "p1", ["192.0.2.1/24"],
                                       self.r, "q1", ["192.0.2.2/24"])
        self.lab.wire(self.r, "q2", ["198.51.100.1/24"],
                      self.b, "p2", ["198.51.100.2/24"])
        self.lab.wire(self.r, "q3", ["198.51.100.5/30"],
                      self.b, "p3", ["198.51.100.6/30"])
        self.r.sysctl("ipv4/conf/q1/rp_filter", 0)
        # What b gets is not its own, and it does not answer.
        self.r.ip("route", "add", "203.0.113.0/24", "via", "198.51.100.2")

    def observe(self, *interfaces):
        """Changes the observed interfaces; returns the records and statistics of its end."""
        self.records = open(self.lab.path("records"), "w+", encoding="ascii")
        self.addCleanup(self.records.close)
        process = self.lab.spawn(lab.tool("changes"), self.seed % (1 << 30), CHANGES,
                                 *interfaces, ns=self.r, stdout=self.records,
                                 stderr=subprocess.PIPE, text=True)
        self.assertEqual("started\n", process.stderr.readline())
        return process

    def finish(self, process):
        process.send_signal(signal.SIGTERM)
        out = process.stderr.read()
        self.assertEqual(0, process.wait(), out)
        self.records.seek(0)
        totals = {}
        for line in self.records:
            record = json.loads(line)
            packets, octets = totals.get(record["DstAddr"], (0, 0))
            totals[record["DstAddr"]] = (packets + record["Packets"],
                                         octets + record["Bytes"])
        return totals, json.loads(out.splitlines()[-1])

    def flood(self, ns, interface, dest, *arguments):
        return traffic.start_flood(self.lab, ns, interface, "--flows", FLOWS,
                                   "--rate", RATE, "--source", SOURCE,
                                   "--dest", dest, *arguments)

    def end(self, flood):
        flood.send_signal(signal.SIGTERM)
        out, _ = flood.communicate(timeout=60)
        sent = json.loads(out)
        return sent["packets"], sent["bytes"]

    def check_identity(self, stats):
        """seen = exported + unparsed + lost, and nothing is pending or lost."""
        unparsed = stats["unparsed"].values()
        for unit in "packets", "bytes":
            self.assertEqual(stats["seen"][unit], stats["exported"][unit] + sum(
                part[unit] for part in unparsed))
        self.assertNotIn("pending", stats)
        self.assertEqual(0, sum(part["packets"] for part in
                                stats["lost"].values()))

    def test_a_hundred_changes_under_a_flood(self):
        with self.subTest(seed=self.seed):
            observer = self.observe("q2", "q1", f"netns:{self.a.name}/p1",
                                    f"netns:{self.b.name}/p2", "q3",
                                    f"netns:{self.b.name}/p3")
            before = self.r.counters("q2")["tx"]["packets"]
            forwarded = self.flood(self.a, "p1", FORWARDED, "--mac", self.router)
            local = self.flood(self.r, "q3", LOCAL)
            self.assertEqual("changed\n", observer.stderr.readline())
            sent, other = self.end(forwarded), self.end(local)
            crossed = self.r.counters("q2")["tx"]["packets"] - before
            totals, stats = self.finish(observer)
            self.note(f"seed {self.seed}: {sent[0]} packets sent and forwarded; "
                      f"{totals.get(LOCAL, (0, 0))[0]} of {other[0]} seen at "
                      "interfaces that came and went")
            self.check_identity(stats)
            self.assertEqual(sent[0], crossed)
            self.assertEqual(sent, totals[FORWARDED])
            self.assertLessEqual(totals.get(LOCAL, (0, 0)), other)


if __name__ == "__main__":
    lab.main()
