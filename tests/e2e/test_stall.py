#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
"""
A reader that stalls in a flood loses nothing silently: what is seen is exported or
counted as lost, to the packet and the byte.

Intervals are short, so that stalls fall into drains as well. The packets seen are
compared with those of the sender.
"""

import ctypes
import json
import os
import signal
import time

from lib import lab
from lib import library
from lib import traffic
from lib.observer import Observer

LONGEST = float(os.environ.get("NETOBS_TEST_STALL", "1"))
IS_LONG = LONGEST >= 10
FEW, MANY, MILLION = lab.sized(1000), lab.sized(100_000), lab.sized(1_000_000)
INTERVAL_S = 0.3
PAUSE_S = 0.2        # between two stalls
CALLBACK_S = 0.2     # what a callback takes
CALLBACK_TIMES = 6
FLOOD_S = 90         # at most; a test ends it before
CPUS = sorted(os.sched_getaffinity(0))
ON_FLOW = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)


class Stall(lab.WiredTest):
    def start_flood(self, flows, cpu=CPUS[0]):
        return traffic.start_flood(self.lab, self.a, "eth0", "--flows", flows,
                                   "--cpus", cpu, "--seconds", FLOOD_S)

    def end_flood(self, flood):
        self.assertIsNone(flood.poll(), "the flood must outlast the stalls")
        flood.terminate()
        out, _ = flood.communicate(timeout=60)
        self.assertEqual(0, flood.returncode)
        sent = json.loads(out)
        return sent["packets"], sent["bytes"]

    def stall(self, flows, seconds, *arguments, times=1, cpu=None):
        """Stop the agent @times in a flood; returns the packets it lost."""
        enter = (lambda: os.sched_setaffinity(0, {cpu})) if cpu is not None else None
        observer = Observer(self.lab, self.a, "-i", "eth0", "--interval", INTERVAL_S,
                            *arguments, release=flows > FEW, enter=enter)
        observer.wait_attached((self.a, "eth0"))
        flood = self.start_flood(flows, CPUS[0] if cpu is None else cpu)
        for _ in range(times):
            time.sleep(PAUSE_S)
            observer.process.send_signal(signal.SIGSTOP)
            time.sleep(seconds)
            observer.process.send_signal(signal.SIGCONT)
        time.sleep(PAUSE_S)
        sent = self.end_flood(flood)
        result = observer.stop()
        result.check_identity()
        self.assertEqual(sent, result.total("seen"))
        if flows < MILLION:
            result.check_conservation()
        lost = result.total("lost")
        self.note(f"{flows} flows, {times} times {seconds} s: {sent[0]} packets sent, "
                  f"{lost[0]} lost: {result.stats['lost']}")
        return lost

    def test_short_stalls_few_flows(self):
        self.assertEqual((0, 0), self.stall(FEW, 0.05, times=10))

    def test_long_stall_few_flows(self):
        """The tables have room for all of them, however long it takes."""
        self.assertEqual((0, 0), self.stall(FEW, LONGEST))

    def test_short_stalls_many_flows(self):
        self.stall(MANY, 0.05, times=10)

    def test_long_stall_many_flows(self):
        self.stall(MANY, LONGEST)

    def test_more_flows_than_the_cap(self):
        self.stall(MANY, LONGEST, "--max-flows", MANY // 10)

    def test_one_cpu_few_flows(self):
        """The agent has the CPU only when the sender does not."""
        self.assertEqual((0, 0), self.stall(FEW, 0.5, times=2, cpu=CPUS[-1]))

    def test_one_cpu_many_flows(self):
        self.stall(MANY, 0.5, times=2, cpu=CPUS[-1])

    def test_million_flows(self):
        if not IS_LONG:
            self.skipTest("NETOBS_TEST_STALL is less than 10 seconds")
        self.stall(MILLION, 0.05, times=10)
        self.stall(MILLION, LONGEST)

    def embed(self, flows, every):
        """A program with a callback that sleeps at every so many records."""
        seen = {"records": 0, "sleeps": 0}

        def on_flow(_flow, _user):
            seen["records"] += 1
            if seen["records"] % every == 0 and seen["sleeps"] < CALLBACK_TIMES:
                seen["sleeps"] += 1
                time.sleep(CALLBACK_S)
        callback = ON_FLOW(on_flow)
        context = library.Context(self.lab, self.a, "eth0",
                                  interval_ms=int(1000 * INTERVAL_S),
                                  on_record=ctypes.cast(callback, ctypes.c_void_p))
        flood = self.start_flood(flows)
        end = time.monotonic() + FLOOD_S / 2
        while seen["sleeps"] < CALLBACK_TIMES and time.monotonic() < end:
            context.poll(20)
        sent = self.end_flood(flood)
        stats = context.stop()
        self.assertEqual(CALLBACK_TIMES, seen["sleeps"])
        self.assertEqual([], context.errors)
        self.assertEqual(sent, stats.seen.pair())
        self.assertEqual(seen["records"], stats.flows)
        lost = tuple(sum(column) for column in
                     zip(*(count.pair() for count in stats.lost)))
        self.assertEqual(sent, tuple(map(sum, zip(stats.exported.pair(), lost))))
        self.note(f"{flows} flows: {sent[0]} packets sent, {lost[0]} lost, "
                  f"{stats.flows} records")
        return lost

    def test_slow_callback_few_flows(self):
        self.assertEqual((0, 0), self.embed(FEW, FEW // 2))

    def test_slow_callback_many_flows(self):
        self.embed(MANY, MANY // 4)


if __name__ == "__main__":
    lab.main()
