# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
# Label: guest
"""While the clock is stepped, each packet is counted, and no record ends before it starts."""

import time

from lib import lab
from lib.watched import WatchedTest

HOUR = 3600


def is_guest():
    return "netobs_guest=" in lab.read("/proc/cmdline")


class ClockStep(WatchedTest):
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
        for record in lab.json_lines(self.lab.path("a")):
            self.assertLessEqual(record["TimeFlowStartMs"], record["TimeFlowEndMs"])


if __name__ == "__main__":
    lab.main("clock of its own", is_guest)
