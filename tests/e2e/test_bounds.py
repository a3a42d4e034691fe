# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
# Lock: drops, its flows fill the table of drops of the whole host.
"""At the cap of flows: drains ahead of time, whatever the interval, and the books."""

import os
import time

from lib import lab
from lib import traffic
from lib.observer import Observer

RATE = lab.sized(20000)  # new flows a second
SECONDS = 6
SHARE = 0.7  # of a CPU, that the observer may take


class Bounds(lab.WiredTest):
    def observe(self, *arguments):
        return Observer(self.lab, self.a, "-i", "eth0", *arguments,
                        release=True).wait_attached((self.a, "eth0"))

    def flood(self, rate, seconds):
        """A new flow with each packet."""
        return traffic.flood(self.lab, self.a, "eth0", "--flows", rate * seconds,
                             "--packets", rate * seconds, "--rate", rate)

    def test_caps_lose_nothing_whatever_the_interval(self):
        for interval in "5", "3600":
            with self.subTest(interval=interval):
                self.assert_share(lambda: self.check_interval(interval))

    def assert_share(self, measure):
        """Drains take no more than half of a CPU; all else is little."""
        self.assertLess(lab.least(measure, SHARE), SHARE)

    def check_interval(self, interval):
        result, share = self.check_flood(RATE, "--interval", interval, "--max-flows", RATE)
        self.assertEqual((0, 0), result.total("lost"))
        return share

    def check_flood(self, rate, *arguments):
        """The result of an observer during a flood, and its share of a CPU."""
        observer = self.observe(*arguments)
        began = time.monotonic()
        sent = self.flood(rate, SECONDS)
        share = cpu_seconds(observer.process.pid) / (time.monotonic() - began)
        result = observer.stop()
        result.check_conservation()
        self.assertEqual((sent["packets"], sent["bytes"]), result.total("seen"))
        self.note(f"{arguments}: lost {result.total('lost')[0]} of {sent['packets']}, a share of "
                  f"{share:.2f} of a CPU")
        return result, share

    def test_tiny_caps_do_not_take_a_cpu(self):
        """Hopeless: the drains that help a little rest as long as they work."""
        self.assert_share(lambda: self.check_flood(10 * RATE, "--interval", "60", "--max-flows", "100")[1])

    def test_books_balance_at_the_cap(self):
        """Of two generations at a time, while the logs stay full."""
        result, _ = self.check_flood(6 * RATE, "--interval", "0.1", "--max-flows", "2000")
        self.assertNotIn("not accounted for", result.errors)


def cpu_seconds(pid):
    fields = lab.read(f"/proc/{pid}/stat").rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


if __name__ == "__main__":
    lab.main()
