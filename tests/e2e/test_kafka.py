#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
# Label: broker
"""Records to a Kafka broker of the last version with ZooKeeper's ways, 3.9."""

import subprocess
import unittest

from lib import kafka
from lib import kafka_tests
from lib import lab
from lib import observer


class Kafka3(kafka_tests.KafkaTests, kafka_tests.KafkaFailureTests,
             lab.LabTest):
    version = kafka.V3

    def test_scram(self):
        for mechanism in ("scram-sha-256", "scram-sha-512"):
            feed = self.check_secure(
                "SASL_SSL", f"-{mechanism}", tls="yes",
                ca=self.broker.path("ca.pem"), **self.login(mechanism))
            self.assertEqual(1, len(feed.matching("SCRAM of librdkafka")))

    def test_credentials_that_become_right(self):
        login = self.login("plain", "later")
        feed = self.feed(self.spec(self.topic(), "SASL_PLAINTEXT", **login),
                         "--rate", 1000, "--seconds", 5, "--drain", 60)
        feed.wait_line("trying again")
        self.broker.stop()
        self.broker.users[kafka_tests.USER] = "later"
        try:
            self.broker.start()
            result = feed.finish()
        finally:
            self.broker.stop()
            self.broker.users[kafka_tests.USER] = kafka_tests.PASSWORD
            self.broker.start()
        self.check_fed(result, self.topic())
        self.assertEqual(1, len(feed.matching("uthentication")), feed.lines)
        self.assertEqual(1, len(feed.matching("accepts records again")),
                         feed.lines)

    def test_batches_that_are_too_large(self):
        """The topic takes records, but not many in one message."""
        self.broker.make_topic(self.topic(), max_message_bytes=20000)
        feed = self.feed(self.spec(self.topic()), "--records", 50000)
        result = feed.finish()
        self.check_fed(result, self.topic())
        self.assertEqual(0, result["stats"]["dropped"]["refused"]["records"])


class Spec(unittest.TestCase):
    """What is wrong is refused at the start, with the reason."""

    REFUSED = {
        "kafka": "no broker",
        "kafka:": "nothing follows",
        "kafka://": "no broker",
        "kafka:///flows": "no broker",
        "kafka:broker/flows": "no broker",
        "kafka://broker": "no topic",
        "kafka://broker/": "no topic",
        "kafka://broker,/flows": "HOST",
        "kafka://broker:x/flows": "HOST",
        "kafka://broker:0/flows": "HOST",
        "kafka://[::1/flows": "HOST",
        "kafka://broker/a%20b": "cannot be a topic",
        "kafka://broker/a/b": "cannot be a topic",
        "kafka://broker/flows?encoding=xml": "protobuf|json",
        "kafka://broker/flows?records=flow,stats":
            "protobuf cannot represent stats",
        "kafka://broker/flows?records=flow,alert":
            "flow needs a topic and a sink of its own",
        "kafka://broker/flows?key=none&nokey=1": "unknown option 'nokey'",
        "kafka://broker/flows?key=5": "addresses|flow|host|none",
        "kafka://broker/flows?agent_ip=me": "not an IP address",
        "kafka://broker/flows?rdkafka.linger=1": "No such configuration",
        "kafka://broker/flows?rdkafka.linger.ms=x": "linger.ms",
        "kafka://broker/flows?rdkafka.bootstrap.servers=a": "the target",
        "kafka://broker/flows?rdkafka.acks=0": "acks",
        "kafka://broker/flows?tls=maybe": "no|yes|unverified",
        "kafka://broker/flows?ca=/dev/null": "needs tls=yes",
        "kafka://broker/flows?tls=yes&ca=/nonexistent": "No such file",
        "kafka://broker/flows?tls=yes&cert=/dev/null": "need each other",
        "kafka://broker/flows?sasl=plain": "needs user",
        "kafka://broker/flows?sasl=plain&user=a": "needs password_file",
        "kafka://broker/flows?sasl=plain&user=a&password_file=/nonexistent":
            "No such file",
        "kafka://broker/flows?sasl=plain&user=a&password_file=/dev/null":
            "No data",
        "kafka://broker/flows?user=a": "needs sasl",
    }

    def test_wrong_specs(self):
        for spec, reason in self.REFUSED.items():
            with self.subTest(spec):
                done = subprocess.run(
                    [observer.netobsctl(), "flows", "-r", "/dev/null", "-o",
                     spec], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                    text=True, timeout=60, check=False)
                observer.check_sanitizer(done.stderr)
                self.assertEqual(2, done.returncode, done.stderr)
                self.assertIn(reason, done.stderr)


if __name__ == "__main__":
    lab.main()
