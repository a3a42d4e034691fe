# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
"""A service whose collectors have names that nobody knows: it goes on, and each packet is counted."""

from lib import lab
from lib.watched import WatchedTest


class Hostile(WatchedTest):
    def test_no_dns(self):
        self.observe('[sink "away"]', "output = ipfix:tcp://collector.invalid:4739",
                     '[sink "away2"]', "output = kafka://broker.invalid/flows")
        before, sent = self.descriptors(), 0
        for _ in range(5):
            sent += self.flood()
            self.await_exported(sent)
        self.assertLess(len(self.descriptors()) - len(before), 20)
        # What is delivered nowhere is reported.
        self.stop(1)
        self.assertEqual(sent, self.exported())
        self.assertEqual(sent, self.packets("a"))
        self.assertRegex(self.messages(), r"collector\.invalid")


if __name__ == "__main__":
    lab.main()
