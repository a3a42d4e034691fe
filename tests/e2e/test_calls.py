#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
"""
No call of the library takes long, however many flows an interval has had.

What is measured is the CPU time of the calling thread: how long others have the
CPU meanwhile is not the library's doing.
"""

import time

import lab
import library
import traffic

FLOWS = lab.sized(1_000_000)
LONGEST_S = 0.020  # what the library promises, of a release build
INTERVAL_MS = 4000


class Calls(lab.LabTest):
    def setUp(self):
        super().setUp()
        self.a, self.b = self.lab.ns("a"), self.lab.ns("b")
        self.lab.wire(self.a, "eth0", ["192.0.2.1/24"], self.b, "eth0",
                      ["192.0.2.2/24"])
        self.longest = self.elapsed = 0
        self.calls = 0

    def dispatch(self, context):
        wall, cpu = time.monotonic(), time.thread_time()
        context.poll(0)
        self.longest = max(self.longest, time.thread_time() - cpu)
        self.elapsed = max(self.elapsed, time.monotonic() - wall)
        self.calls += 1

    def observe(self, **options):
        context = library.Context(self.lab, self.a, "eth0",
                                  interval_ms=INTERVAL_MS, **options)
        flood = traffic.start_flood(
            self.lab, self.a, "eth0", "--flows", FLOWS, "--packets", FLOWS,
            "--rate", lab.sized(400000))
        while flood.poll() is None:
            self.dispatch(context)
        # All is reported, and what was made for it is given back.
        end = time.monotonic() + 4 * INTERVAL_MS / 1000
        while time.monotonic() < end:
            self.dispatch(context)
        stats = context.stats()
        self.note(f"{options}: {stats.flows} records, {stats.drains} drains; of "
                  f"{self.calls} calls the longest took {1000 * self.longest:.1f} ms "
                  f"of the CPU, {1000 * self.elapsed:.1f} ms of time")
        self.assertLess(self.longest, LONGEST_S)

    def test_flows_that_are_reported_every_interval(self):
        self.observe()

    def test_flows_that_are_kept(self):
        """All in the library's own table, which grows and shrinks with them."""
        self.observe(active_timeout_ms=3 * INTERVAL_MS, idle_timeout_ms=INTERVAL_MS)

    def test_flows_at_the_cap(self):
        self.observe(max_flows=FLOWS // 20)


if __name__ == "__main__":
    lab.main()
