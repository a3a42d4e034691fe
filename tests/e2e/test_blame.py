# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
# Alone: what other tests do to CPUs and queues is a fault, too.
"""netobsctl diagnose names what was done to a connection: some faults that chance chooses, and none.

e2e.faults has them all.
"""

from lib import fault_judge
from lib import lab
from lib import tracer
from lib.fault_kinds import KINDS

FAULTS = 4
SECONDS = 3 # of a window, and before it
# Those that other processes of a busy machine do not make or hide, and that need no large table.
CLEAR = "stopped", "reads", "thinks", "accept", "cpu", "tbf", "rival", "nft", "delay", "loss"
WORKLOADS = "rpc", "http", "pool", "loop", "upload", "download" # those that take turns
LEAST_EFFECT = .3


class Blame(lab.LabTest):
    def make(self, names):
        jobs = [(name, self.random.getrandbits(32)) for name in names]
        paths = fault_judge.make(jobs, fault_judge.kept(self.lab), len(jobs), SECONDS, workloads=WORKLOADS)
        return [fault_judge.Judged(path, self.lab.dir) for path in paths]

    def test_faults_have_their_names(self):
        """
        A fault that the applications did not feel, as a busy machine hides some, has another one in its place. A window
        whose verdict names another place is repeated once: one of ten does. No place that is certain is wrong.
        """
        kinds, names, judged = self.random.sample(CLEAR, len(CLEAR)), ["none"], []
        while (missing := FAULTS + 1 - len(judged)) and (names or kinds):
            names += [kinds.pop() for _ in range(min(missing - len(names), len(kinds)))]
            judged += [one for one in self.make(names) if one.is_control() or one.effect >= LEAST_EFFECT]
            names = []
        self.assertEqual(missing, 0, f"seed {self.seed}: faults without effect")
        wrong = [one.kind for one in judged if not one.is_control() and not one.is_place_right()]
        judged += self.make(wrong) if wrong else []
        for one in judged:
            self.note(one)
            self.assertFalse(one.is_wrong_for_sure(), f"seed {self.seed}: {one}")
            self.assertIn(one.is_clock_right(), (True, None), f"seed {self.seed}: {one}")
        right = {one.kind for one in judged if not one.is_control() and one.is_place_right()}
        self.assertGreaterEqual(len(right), FAULTS - 1, f"seed {self.seed}")


if __name__ == "__main__":
    assert set(CLEAR) < set(KINDS)
    lab.main("tracepoints of the tracer", tracer.has_all)
