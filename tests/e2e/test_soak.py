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

ROUNDS = int(os.environ.get("NETOBS_TEST_SOAK", "6"))  # of about a second
WARM_UP = 12  # until then the most flows that an interval ends with are met
DRIFT_MAX = 0.01
DRIFT_MIN_KIB = 3072  # 50 octets for each flow of three rounds
MEDIAN_MIN = 10  # sizes, for which the median is steady: chunks of flows come and go
FLOWS = lab.sized(20000)  # in a round; each round has others


class Soak(WatchedTest):
    def flood(self, number, *arguments):
        return traffic.start_flood(
            self.lab, self.a, "eth0", "--flows", FLOWS, "--source",
            f"10.{number // 100 % 100}.{number % 100}.0", *arguments)

    def round(self, number, packets, rate):
        """The sizes of memory while it lasts."""
        flood = self.flood(number, "--packets", packets, "--rate", rate)
        sizes = []
        while flood.poll() is None:
            sizes.append(self.memory())
            self.scrape()
            time.sleep(0.05)
        out, _ = flood.communicate()
        self.assertEqual(0, flood.returncode)
        self.sent += json.loads(out)["packets"]
        return sizes

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
            sizes.append(statistics.median(self.round(number, rate, rate)))
            lab.wait_for(lambda: self.descriptors() == open_ones,
                         "the descriptors of before")
        self.await_exported(self.sent)
        third = max(ROUNDS // 3, 1)
        first, last = sizes[:third], sizes[-third:]
        if third < MEDIAN_MIN:
            first, last = max(first), min(last)
        else:
            first, last = statistics.median(first), statistics.median(last)
        self.note(f"{rate} packets/s, {len(open_ones)} descriptors, memory of its own "
                  f"{first} KiB at first, {last} at the end")
        self.assertLess(last - first, max(DRIFT_MIN_KIB, first * DRIFT_MAX), sizes)
        self.stop()
        self.assertEqual(self.sent, self.exported())


if __name__ == "__main__":
    lab.main()
