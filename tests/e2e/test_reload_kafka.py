#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
# Label: broker
"""
netobsctl run with persist = yes is replaced, or configured anew, again and again in a flood: a
consumer of its Kafka topic finds each packet in one record.
"""

import os
import time

from lib import lab
from lib.kafka_service import KafkaServiceTest

RESTARTS = int(os.environ.get("NETOBS_TEST_RESTARTS", "5"))
RELOADS = int(os.environ.get("NETOBS_TEST_RELOADS", "20"))
ACCEPT = ('[filter "all"]', "match = ip or not ip", "action = accept")


class ReloadKafka(KafkaServiceTest):
    def test_restarts_in_a_flood(self):
        self.begin()
        self.flood()
        reported = 0
        for _ in range(RESTARTS):
            time.sleep(self.random.random())
            self.stop()
            reported += self.exported()
            time.sleep(self.random.choice((0, 0.3)))
            self.begin()
        sent = self.end()
        self.assertEqual(sent, reported + self.exported())
        records = self.check_consumed(sent)
        self.note(f"{RESTARTS} restarts, {sent} packets, {records} records")

    def test_reloads_in_a_flood(self):
        """Rules, intervals, and the sink with its connection to the broker."""
        shapes = (
            lambda: self.configure(*ACCEPT, more="default_action = reject"),
            lambda: self.configure('[filter "udp"]', "match = udp", "action = accept", *ACCEPT,
                                   "[flows]", "interval = 50ms", options="&key=flow",
                                   more="default_action = accept"),
            lambda: self.configure(*ACCEPT, "[flows]", "active_timeout = 1s",
                                   more="default_action = accept"))
        self.begin(*ACCEPT, more="default_action = reject")
        self.flood()
        for _ in range(RELOADS):
            self.random.choice(shapes)()
            self.reload("the configuration has been read again")
            time.sleep(self.random.choice((0, 0.1)))
        sent = self.end()
        self.assertEqual(sent, self.exported())
        records = self.check_consumed(sent)
        self.note(f"{RELOADS} reloads, {sent} packets, {records} records")


if __name__ == "__main__":
    lab.main()
