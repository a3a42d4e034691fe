#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
# Label: measure
# Alone: it measures how long starts and calls take.
"""
Hosts with very many interfaces: start, stop and change are instant, and exact. The
time bounds are what the product promises: of a release build, and not of a kernel
that is emulated.
"""

import math
import os
import select
import signal
import time

from lib import bpf
from lib import lab
from lib import library
from lib import observer
from lib import traffic
from lib.observer import Observer

PAIRS = lab.sized(500)


class ManyInterfaces(lab.LabTest):
    def setUp(self):
        super().setUp()
        self.a = self.lab.ns("a")
        for tid in self.threads_of_rcu():
            lab.run_first(tid)
            self.addCleanup(lab.run_as_others, tid)

    @staticmethod
    def threads_of_rcu():
        """Of the kernel, which end the grace periods that each attachment waits for, and have no priority yet."""
        return [tid for tid in map(int, filter(str.isdigit, os.listdir("/proc")))
                if lab.command_of(tid).startswith("rcu_") and os.sched_getscheduler(tid) == os.SCHED_OTHER]

    def assert_below(self, bound, measure):
        bound = math.inf if lab.is_shrunk() else bound
        self.assertLess(lab.least(measure, bound), bound)

    def start_batch(self, lines):
        path = self.lab.path("batch")
        lab.write(path, "\n".join(lines) + "\n")
        return self.lab.spawn(lab.IP, "-n", self.a.name, "-batch", path)

    def batch(self, lines):
        self.assertEqual(0, self.start_batch(lines).wait())

    def start_pairs(self, first, count):
        return self.start_batch(f"link add v{i} up type veth peer name w{i}"
                                for i in range(first, first + count))

    def pairs(self, first, count):
        self.assertEqual(0, self.start_pairs(first, count).wait())

    def observe(self, *arguments):
        """An observer, and the seconds until it observes. What else this host does is not the product's time."""
        start = time.monotonic()
        made = Observer(self.lab, self.a, *arguments, release=True, enter=lab.run_first)
        lab.wait_for(lambda: observer.ATTACHED.search(made.messages()),
                     "netobsctl to start")
        return made, time.monotonic() - start

    def end(self, observing, number=signal.SIGTERM):
        """(result, seconds until the process has gone)"""
        start = time.monotonic()
        result = observing.stop(number)
        return result, time.monotonic() - start

    def test_thousand_interfaces_start_and_stop_at_once(self):
        self.pairs(1, PAIRS)
        self.a.ip("link", "set", "w1", "up")
        self.assert_below(2, self.start_and_stop)

    def start_and_stop(self):
        """The longer of the two, in seconds; infinite, if the start left interfaces to be attached to later."""
        observing, started = self.observe("-x", "lo")
        if f"observing {2 * PAIRS} interfaces" not in observing.messages():
            self.end(observing)
            bpf.await_unexpedited()
            return math.inf
        for name in "v1", f"w{PAIRS}":
            self.assertEqual(2, bpf.attached(self.a, name))
        # A flood between the moments: to the packet.
        sent = traffic.flood(self.lab, self.a, "v1", "--packets", lab.sized(200000),
                             "--flows", 1000)
        result, gone = self.end(observing)
        result.check_conservation()
        self.assertEqual((sent["packets"], sent["bytes"]), result.exported())
        for name in "v1", f"w{PAIRS}":
            self.assertEqual(0, bpf.attached(self.a, name))
        bpf.await_unexpedited()
        self.note(f"{2 * PAIRS} interfaces: observing after {started:.2f} s, "
                  f"gone after {gone:.2f} s")
        return max(started, gone)

    def test_flood_across_start_and_stop(self):
        """Counting ends within 50 ms of the signal, and nothing is lost."""
        self.pairs(1, PAIRS)
        self.assert_below(0.05, self.flood_across_start_and_stop)

    def flood_across_start_and_stop(self):
        """From the signal to the last packet that is counted, in seconds."""
        flood = traffic.start_flood(self.lab, self.a, "v1", "--rate",
                                    lab.sized(50000), "--flows", 1000)
        observing, _ = self.observe("-x", "lo", "--interval", "0.5")
        time.sleep(1)
        signalled = time.time()
        result, _ = self.end(observing)
        self.assertIsNone(flood.poll(), "the flood must outlast the observer")
        flood.terminate()
        flood.communicate()
        result.check_conservation()
        self.assertEqual((0, 0), result.total("lost"))
        self.assertGreater(result.exported()[0], 0)
        last = max(r["TimeFlowEndMs"] for r in result.records) / 1000
        self.note(f"the last packet counted came {1000 * (last - signalled):.0f}"
                  " ms after SIGTERM")
        return last - signalled

    def test_burst_of_interfaces_during_the_start(self):
        """Messages about links that are lost then must not make it fail."""
        self.pairs(1, 150)
        observing = Observer(self.lab, self.a, "-x", "lo", release=True)
        self.pairs(1001, 60)
        lab.wait_for(lambda: observer.ATTACHED.search(observing.messages()),
                     "netobsctl to start")
        for number in 1, 150, 1001, 1060:
            lab.wait_for(lambda n=number: bpf.attached(self.a, f"w{n}") == 2,
                         f"w{number}")
        observing.stop().check_conservation()

    def test_no_call_takes_long_while_a_thousand_interfaces_come_and_go(self):
        self.assert_below(1, self.come_and_go)

    @staticmethod
    def queued_s():
        """How long this thread has waited for a CPU so far, which is not the library's doing."""
        return int(lab.read("/proc/thread-self/schedstat").split()[1]) / 1e9

    def measure(self, call):
        queued, begin = self.queued_s(), time.monotonic()
        result = call()
        took = time.monotonic() - begin
        self.longest_s = max(self.longest_s, took - (self.queued_s() - queued))
        return result

    def dispatch(self, context):
        select.select([context.fd()], [], [], 0.05)
        return self.measure(context.dispatch)

    def come_and_go(self):
        """The longest call, and the stop, as fractions of their limits."""
        self.longest_s = 0
        with self.a:
            context = library.Context(self.lab, None, "/./")
            made, end = self.start_pairs(1, PAIRS), time.monotonic() + 8
            while time.monotonic() < end or context.stats().interfaces < 2 * PAIRS + 1:
                self.assertLess(time.monotonic(), end + lab.PATIENCE_S, "not all are observed")
                self.dispatch(context)
            self.assertEqual(2 * PAIRS + 1, context.stats().interfaces)
            begin = time.monotonic()
            context.lib.netobs_stop(context.context)
            while self.dispatch(context):
                pass
            self.measure(context.free)
            stop_s = time.monotonic() - begin
        self.assertEqual(0, made.wait(60))
        self.note(f"longest call {1000 * self.longest_s:.1f} ms, stopped within {stop_s:.3f} s")
        self.batch(f"link del v{i}" for i in range(1, 1 + PAIRS))
        return max(self.longest_s / 0.02, stop_s / 2)


if __name__ == "__main__":
    lab.main()
