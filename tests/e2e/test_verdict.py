# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
# Label: guest
# Alone: what other tests do to CPUs and queues is a fault, too.
"""netobsctl diagnose names what was done to a connection, or is not sure, and what the kernel lacks, under any kernel
that has the tracer: in guests, as e2e.blame and e2e.faults have more faults, and need all of its tracepoints.
"""

from lib import fault_judge
from lib import lab
from lib import observer

TRIES = 3
SECONDS = 8 # of a window, and before it: a guest is slow
LEAST_EFFECT = .3
# By the number in enum netobs_trace_point: tracepoints that some kernels lack.
POINTS = {0: "tcp_sendmsg_locked", 1: "sock_send_length", 4: "qdisc_enqueue", 11: "sk_data_ready"}


def missing_points():
    """A bit for each."""
    with open("/sys/kernel/btf/vmlinux", "rb") as file:
        types = file.read()
    return sum(1 << number for number, name in POINTS.items() if f"btf_trace_{name}\0".encode() not in types)


class Verdict(lab.LabTest):
    def judge(self, kind, **fixed):
        """Of a window in which the applications felt the fault."""
        for _ in range(TRIES):
            job = kind, self.random.getrandbits(32)
            path, = fault_judge.make([job], fault_judge.kept(self.lab), 1, SECONDS, is_ipv6=False, contained=[],
                                     **fixed)
            one = fault_judge.Judged(path, self.lab.dir)
            self.note(f"{one}; missing {one.verdict.get('Missing')}")
            if one.effect >= LEAST_EFFECT:
                return one
        self.fail(f"seed {self.seed}: {kind} without effect")

    def check(self, kind, **fixed):
        """Now and then a busy machine makes a fault of its own; no place that is certain is wrong."""
        for _ in range(TRIES):
            one = self.judge(kind, **fixed)
            self.assertFalse(one.is_wrong_for_sure(), f"seed {self.seed}: {one}")
            missing = one.verdict.get("MissingPoints", 0)
            self.assertEqual((missing, missing != 0), (missing_points(), "points" in one.verdict.get("Missing", [])))
            if one.is_place_right() or one.certainty == "not sure":
                return
        self.fail(f"seed {self.seed}: {one}")

    def test_a_server_that_thinks(self):
        self.check("thinks", side="b", workloads=["http"])

    def test_a_queue_of_the_clients_host(self):
        self.check("tbf", side="a", workloads=["upload"])


if __name__ == "__main__":
    lab.main("tracepoints of TCP", lambda: observer.features()["trace"])
