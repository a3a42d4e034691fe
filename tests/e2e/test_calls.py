# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
"""
No call of the library takes long, however many flows an interval has had, or a stop
has to deliver.

What is measured is the CPU time of the calling thread: how long others have the
CPU meanwhile is not the library's doing.
"""

import json
import resource
import subprocess
import sys
import time

from lib import lab
from lib import library
from lib import traffic

FLOWS = lab.sized(1_000_000)
LONGEST_S = 0.020  # what the library promises, of a release build
INTERVAL_MS = 4000
WAIT_MS = 20
REPLACEMENTS = 2 # of rules
PENDING = lab.sized(300_000) # flows that a stop has to deliver
SOCKETS = lab.sized(160_000)
DRAINS = 3


# Binds UDP sockets, one to each port of an address, and keeps them until its input ends.
HOLDER = """
import resource, socket, sys
first, end = map(int, sys.argv[1:])
resource.setrlimit(resource.RLIMIT_NOFILE, 2 * resource.getrlimit(resource.RLIMIT_NOFILE)[1:])
kept = [socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(first, end)]
for i, one in zip(range(first, end), kept):
    one.bind((f"127.1.0.{i // 50000}", 1024 + i % 50000))
print("ready", flush=True)
sys.stdin.read()
"""


class Calls(lab.WiredTest):
    def setUp(self):
        super().setUp()
        self.longest = self.calls = 0

    def measure(self, call, *arguments, **options):
        cpu = time.thread_time()
        result = call(*arguments, **options)
        self.longest = max(self.longest, time.thread_time() - cpu)
        self.calls += 1
        return result

    def dispatch(self, context):
        """False once the context has stopped. While there is nothing to do, the call waits."""
        return self.measure(context.go_on, WAIT_MS)

    def start(self, **options):
        self.longest = self.calls = 0
        return library.Context(self.lab, self.a, "eth0", **options)

    def flood(self, context, flows, *arguments):
        flood = traffic.start_flood(self.lab, self.a, "eth0", "--flows", flows,
                                    "--rate", lab.sized(400000), *arguments)
        while flood.poll() is None:
            self.dispatch(context)
        out, _ = flood.communicate()
        return json.loads(out)

    def check(self, stats, what):
        self.note(f"{what}: {stats.flows} records, {stats.drains} drains; of "
                  f"{self.calls} calls the longest took {1000 * self.longest:.1f} ms of the CPU")
        return self.longest

    def assert_short(self, measure, *arguments, **options):
        """@measure observes with a context of its own, and returns its longest call."""
        longest = lab.least(lambda: measure(*arguments, **options), LONGEST_S)
        self.assertLess(longest, LONGEST_S)

    def observe(self, **options):
        context = self.start(interval_ms=INTERVAL_MS, **options)
        self.flood(context, FLOWS, "--packets", FLOWS)
        # All is reported, and the memory for it is freed.
        end = time.monotonic() + 4 * INTERVAL_MS / 1000
        while time.monotonic() < end:
            self.dispatch(context)
        stats = context.stats()
        context.free()
        return self.check(stats, options)

    def stop(self, context, what):
        """The statistics, and the longest call until the end."""
        self.longest = self.calls = 0
        begin = time.monotonic()
        context.lib.netobs_stop(context.context)
        while self.dispatch(context):
            pass
        took = time.monotonic() - begin
        stats = context.stats()
        self.measure(context.free)
        longest = self.check(stats, f"{what}, stopped within {took:.2f} s")
        for what in "packets", "bytes":
            lost = sum(getattr(count, what) for count in stats.lost)
            self.assertEqual(getattr(stats.seen, what),
                             getattr(stats.exported, what) + lost)
        self.assertEqual([], context.errors)
        return stats, longest

    def test_flows_that_are_reported_every_interval(self):
        self.assert_short(self.observe)

    def test_flows_that_are_kept(self):
        """All in the library's own table, which grows and shrinks with them."""
        self.assert_short(self.observe, active_timeout_ms=3 * INTERVAL_MS,
                          idle_timeout_ms=INTERVAL_MS)

    def test_flows_at_the_cap(self):
        self.assert_short(self.observe, max_flows=FLOWS // 20)

    def replace_rules(self, lists):
        """In a flood, as often as it takes to load programs meanwhile."""
        context = self.start(interval_ms=INTERVAL_MS, **library.rules(lists[0]))
        flood = traffic.start_flood(self.lab, self.a, "eth0", "--flows", PENDING,
                                    "--rate", lab.sized(100000))
        for i in range(1, REPLACEMENTS + 1):
            self.measure(context.begin_change, interval_ms=INTERVAL_MS,
                         **library.rules(lists[i % len(lists)]))
            while self.measure(context.is_changing):
                self.dispatch(context)
        self.assertIsNone(flood.poll(), "the flood must outlast the changes")
        flood.terminate()
        flood.communicate()
        stats = context.stats()
        self.measure(context.free)
        self.assertEqual([], context.errors)
        return self.check(stats, f"{REPLACEMENTS} lists of {len(lists[0])} rules")

    def test_rules_that_are_replaced(self):
        """libpcap takes some 100 ms for a long expression."""
        few, many = ([[f"udp port {at}" for at in range(first, first + n)]
                      for first in (1000, 2000)] for n in (16, 64))
        long = [[" or ".join(f"tcp port {at}" for at in range(first, first + 200))] for first in (1000, 2000)]
        for lists in few, many, long:
            self.assert_short(self.replace_rules, lists)

    def open_sockets(self, count):
        """As many processes as it takes."""
        each = min(count, resource.getrlimit(resource.RLIMIT_NOFILE)[1] - 100, 50000)
        holders = [self.lab.spawn(sys.executable, "-c", HOLDER, first, min(first + each, count),
                                  ns=self.a, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
                   for first in range(0, count, each)]
        for one in holders:
            self.assertEqual(b"ready\n", one.stdout.readline())
        return holders

    def list_sockets(self, count):
        """The longest call, and CPU time per drain, each of which lists them."""
        holders = self.open_sockets(count)
        context = self.start(interval_ms=500, flags=library.PROCESSES)
        while context.engine_stats().drains < DRAINS:
            self.dispatch(context)
        stats = context.engine_stats()
        self.check(context.stats(), f"{count} sockets, "
                   f"{stats.drain_cpu_ns / stats.drains / 1e6:.1f} ms of the CPU per drain")
        self.assertNotIn("cannot list", str(context.messages))
        self.measure(context.free)
        for one in holders:
            one.communicate()
        return self.longest, stats.drain_cpu_ns / stats.drains

    def test_sockets_that_are_listed(self):
        """Of all namespaces, with each drain. Four times as many take four times as long."""
        took = {SOCKETS // 4: [], SOCKETS: []}

        def measure(count):
            longest, per_drain = self.list_sockets(count)
            took[count].append(per_drain)
            return longest

        def ratio():
            for count in took:
                self.assert_short(measure, count)
            return min(took[SOCKETS]) / min(took[SOCKETS // 4])
        # No cache holds the larger number. Time that grows with its square is 16 times as long.
        self.assertLess(lab.least(ratio, 8), 8)

    def stop_after_flood(self, **options):
        context = self.start(**options)
        sent = self.flood(context, PENDING, "--packets", PENDING)
        stats, longest = self.stop(context, options)
        self.assertEqual((sent["packets"], sent["bytes"]), stats.seen.pair())
        self.assertGreater(stats.flows, 0.9 * PENDING)
        return longest

    def test_stop_with_flows_that_are_kept(self):
        self.assert_short(self.stop_after_flood, interval_ms=500,
                          active_timeout_ms=600_000, idle_timeout_ms=600_000)

    def test_stop_in_a_flood(self):
        self.assert_short(self.stop_in_flood)

    def stop_in_flood(self):
        context = self.start(interval_ms=600_000)
        self.flood(context, PENDING, "--packets", PENDING)
        flood = traffic.start_flood(self.lab, self.a, "eth0", "--flows", PENDING)
        time.sleep(0.2)
        stats, longest = self.stop(context, "in a flood")
        self.assertIsNone(flood.poll(), "the flood must outlast the stop")
        flood.kill()
        flood.communicate()
        self.assertGreater(stats.seen.packets, PENDING)
        return longest


if __name__ == "__main__":
    lab.main()
