#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
# Label: broker
"""
netobsctl run with persist = yes is killed and restarted in a flood, with a sink to a real
broker: a consumer that drops messages that it has got each packet once. NETOBS_TEST_KILLS and
NETOBS_TEST_RESTARTS say how often, NETOBS_TEST_RATE how many packets a second.
"""

import os

from lib import kafka
from lib import lab
from lib.killed_service import KilledServiceTest

KILLS = int(os.environ.get("NETOBS_TEST_KILLS", "4"))
RESTARTS = int(os.environ.get("NETOBS_TEST_RESTARTS", "4"))


class Kafka(KilledServiceTest):
    def setUp(self):
        super().setUp()
        self.broker = kafka.Broker(self.lab, ns=self.a).start()

    def output(self):
        return f"kafka://{self.broker.address()}/flows?encoding=json&"

    def lines(self):
        return [message.value for message in self.broker.messages("flows")]

    def test_kills_and_restarts(self):
        ends = [self.kill] * KILLS + [self.stop] * RESTARTS
        self.random.shuffle(ends)
        sent = self.end_in_a_flood(3000, ends)
        self.stop()
        self.check_messages()
        # What the last process could not deliver in its last seconds.
        for _ in range(10):
            if "wait in the spool" not in self.messages():
                break
            self.begin()
            self.stop()
        self.note(f"{KILLS} kills, {RESTARTS} restarts")
        self.check_packets(sent)


if __name__ == "__main__":
    lab.main()
