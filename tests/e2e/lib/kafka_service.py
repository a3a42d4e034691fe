# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
"""A service that is replaced while packets come, and a real broker that has its records."""

import collections
import json
import re
import signal

from lib import kafka
from lib import lab
from lib import traffic
from lib.persistent import PersistentTest

FLOWS = 500
RATE = lab.sized(200_000)
TOPIC = "flows"
TUPLE = ("SrcAddr", "DstAddr", "SrcPort", "DstPort", "Proto")


class KafkaServiceTest(PersistentTest):
    """Begin with begin(), then flood(), replace the service as you like, and end with end()."""

    def setUp(self):
        super().setUp()
        self.broker = kafka.Broker(self.lab, ns=self.a).start()
        self.broker.make_topic(TOPIC)
        self.waited = 0

    def configure(self, *parts, options="", more=""):
        """@options: further ones of the sink; @more: in [capture]."""
        self.write(*self.persist(), *parts, '[sink "kafka"]',
                   f"output = kafka://{self.broker.address()}/{TOPIC}?encoding=json{options}",
                   f"spool = disk:{self.lab.path('spool')}", sinks=(), more=more)

    def begin(self, *parts, **options):
        self.configure(*parts, **options)
        self.start(release=True)

    def stop(self, code=0):
        super().stop(code)
        self.waited += sum(map(int, re.findall(r"(\d+) records wait in the spool",
                                               self.messages())))

    def flood(self):
        self.flow_generator = traffic.begin_flood(
            self.lab, self.a, "eth0", "--flows", FLOWS, "--rate", RATE, "--dest", self.B4,
            enter=traffic.hurry)

    def end(self):
        """How many packets were sent, in all."""
        self.flow_generator.send_signal(signal.SIGTERM)
        done = json.loads(self.flow_generator.communicate(timeout=60)[0])
        sent = done["packets"]
        self.note(f"{sent / done['seconds']:.0f} packets each second")
        self.stop()
        self.assertEqual(sent, self.a.counters("eth0")["tx"]["packets"])
        return sent

    def deliver_rest(self):
        """What a broker without CPU had not confirmed when the service ended."""
        for _ in range(10):
            if "wait in the spool" not in self.messages():
                break
            self.start(release=True)
            self.stop()

    def check_consumed(self, sent):
        """
        The sums of a consumer for each flow equal the packets sent, flow by flow. Only records that
        were on their way when their sink was closed come twice.
        """
        self.deliver_rest()
        consumed = collections.Counter()
        messages = [message.value for message in self.broker.messages(TOPIC)]
        self.assertLessEqual(len(messages) - len(set(messages)), self.waited)
        for message in set(messages):
            record = json.loads(message)
            consumed[tuple(record[name] for name in TUPLE)] += record["Packets"]
        self.assertEqual(sent, sum(consumed.values()))
        self.assertEqual([sent // FLOWS + (at < sent % FLOWS) for at in range(FLOWS)],
                         sorted(consumed.values(), reverse=True))
        return len(messages)
