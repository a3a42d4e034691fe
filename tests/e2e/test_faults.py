#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
# Label: faults
# Alone: faults are to be felt, and nothing else.
"""netobsctl diagnose names the place and the cause of faults that are known, between two hosts, which are namespaces.

NETOBS_FAULT_RUNS: of each kind, default 1. NETOBS_FAULTS=KIND,KIND: these only. NETOBS_FAULT_OUT=DIRECTORY keeps
records and truth; NETOBS_FAULT_JUDGE=DIRECTORY judges these again. NETOBS_FAULT_WITHOUT=threads|limits|queues|hosts|a|b
leaves out evidence: then no other place may be certain. NETOBS_FAULT_TABLE=FILE rewrites the table in it.
"""

import os
import statistics

from lib import fault_judge
from lib import lab
from lib import tracer
from lib.fault_kinds import KINDS

AT_ONCE = 2
READY_S = 10 # from the end of the window to the verdict
LEAST = {"place": .85, "cause": .80, "no other place at certain": 1, "controls without an alarm": .99,
         "flow of the culprit": .98, "process of the culprit": .95, "clock within its bound": 1}
SURE = "no other place at certain"


class Faults(lab.LabTest):
    def jobs(self):
        names = os.environ.get("NETOBS_FAULTS")
        number = int(os.environ.get("NETOBS_FAULT_RUNS", "1"))
        return [(name, self.random.getrandbits(32)) for _ in range(number) for name in
                (names.split(",") if names else KINDS)]

    def judge(self, paths, evidence=None):
        judged = [fault_judge.Judged(path, self.lab.dir, evidence) for path in paths]
        if evidence in ("a", "b"):
            self.assertNotIn("network", [one.said[0] for one in judged], "one host alone does not know it")
        for one in judged:
            if one.counts() and not one.is_cause_right() or one.is_wrong_for_sure():
                self.note(one)
        return judged

    def check(self, sums, names):
        for name in names:
            right, number = sums[name]
            self.note(f"{name}: {right} of {number}")
        for name in names:
            with self.subTest(name):
                right, number = sums[name]
                self.assertGreaterEqual(right, LEAST[name] * number, f"seed {self.seed}")

    def test_faults(self):
        """Of all runs: what is promised. Without evidence: no other place is certain."""
        directory, evidence = os.environ.get("NETOBS_FAULT_JUDGE"), os.environ.get("NETOBS_FAULT_WITHOUT")
        paths = fault_judge.runs(directory) if directory else \
            fault_judge.make(self.jobs(), fault_judge.kept(self.lab), AT_ONCE)
        judged = self.judge(paths, evidence)
        sums = fault_judge.sums(judged)
        self.check(sums, [SURE] if evidence else LEAST)
        self.assertLessEqual(statistics.median(one.took_s for one in judged), READY_S)
        if "NETOBS_FAULT_TABLE" in os.environ:
            fault_judge.write_table(os.environ["NETOBS_FAULT_TABLE"], judged)
        for evidence in () if evidence or directory else (*fault_judge.WITHOUT, "a", "b"):
            with self.subTest(without=evidence):
                self.check(fault_judge.sums(self.judge(paths, evidence)), [SURE])


if __name__ == "__main__":
    lab.main("tracepoints of the tracer", tracer.has_all)
