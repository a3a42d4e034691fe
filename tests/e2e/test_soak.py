#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
"""
A service that runs for long, in small: at half of the rate that this machine can send, with
flows that come and go, its counts balance at each moment, and it keeps nothing.
"""

import json
import os
import statistics
import time

from lib import lab
from lib import traffic
from lib.watched import WatchedTest

ROUNDS = int(os.environ.get("NETOBS_TEST_SOAK", "6"))  # of about 2 s
WARM_UP = 12  # until then the most flows that an interval ends with are met
REST = 1  # s, of intervals of 0.2 s: memory of flows is given back after two quieter ones
DRIFT_MAX = 0.01
FEW = 10  # rounds, of which none may leave all chunks of the allocator free
FEW_DRIFT_KIB = 1024
FLOWS = lab.sized(20000)  # in a round; each round has others


class Soak(WatchedTest):
    def flood(self, number, *arguments):
        return traffic.start_flood(
            self.lab, self.a, "eth0", "--flows", FLOWS, "--source",
            f"10.{number // 100 % 100}.{number % 100}.0", *arguments)

    def round(self, number, packets, rate):
        flood = self.flood(number, "--packets", packets, "--rate", rate)
        while flood.poll() is None:
            self.scrape()
            time.sleep(0.05)
        out, _ = flood.communicate()
        self.assertEqual(0, flood.returncode)
        self.sent += json.loads(out)["packets"]

    def rest(self):
        """The size of memory that is kept, once the memory of flows has been freed."""
        self.await_exported(self.sent)
        end = time.monotonic() + REST
        sizes = []
        while not sizes or time.monotonic() < end:
            time.sleep(0.05)
            sizes.append(self.memory())
        return min(sizes)

    def test_memory_and_descriptors_stay(self):
        self.observe("rotate.bytes = 4M", "rotate.keep = 2")
        sent = json.loads(self.flood(0, "--packets", 10 * FLOWS).communicate()[0])
        self.sent = sent["packets"]
        rate = int(sent["packets"] / sent["seconds"] / 2)
        for number in range(1, 1 + WARM_UP):
            self.round(number, rate, rate)
        open_ones = lab.fewest(self.descriptors)
        sizes = []
        for number in range(1 + WARM_UP, 1 + WARM_UP + ROUNDS):
            self.round(number, rate, rate)
            sizes.append(self.rest())
            self.await_closed(open_ones)
        third = max(ROUNDS // 3, 1)
        # Of many, the usual size: what is kept once is not all there after the first minutes.
        size = min if third < FEW else statistics.median
        first, last = size(sizes[:third]), size(sizes[-third:])
        self.note(f"{rate} packets/s, {len(open_ones)} descriptors, memory of its own "
                  f"{first} KiB at first, {last} at the end")
        self.assertLess(last - first, FEW_DRIFT_KIB if third < FEW else first * DRIFT_MAX, sizes)
        self.stop()
        self.assertEqual(self.sent, self.exported())


if __name__ == "__main__":
    lab.main()
