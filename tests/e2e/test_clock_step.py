# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
# Label: guest
"""While the clock is stepped, each packet is counted, and no record ends before it starts."""

import json
import time

from lib import lab
from lib import traffic
from lib.watched import WatchedTest

HOUR = 3600
FLOWS = 1000


def is_guest():
    return "netobs_guest=" in lab.read("/proc/cmdline")


class ClockStep(WatchedTest):
    def flood(self):
        return traffic.flood(self.lab, self.a, "eth0", "--flows", FLOWS, "--packets",
                             FLOWS)["packets"]

    def test_a_clock_that_is_stepped(self):
        self.observe()
        sent = 0
        for step in (HOUR, -2 * HOUR, HOUR):
            sent += self.flood()
            time.clock_settime(time.CLOCK_REALTIME, time.time() + step)
            sent += self.flood()
            self.await_exported(sent)
        self.stop()
        self.assertEqual(sent, self.exported())
        self.assertEqual(sent, self.packets("a"))
        with open(self.lab.path("a"), encoding="utf-8") as file:
            for record in map(json.loads, file):
                self.assertLessEqual(record["TimeFlowStartMs"], record["TimeFlowEndMs"])


if __name__ == "__main__":
    lab.main("clock of its own", is_guest)
