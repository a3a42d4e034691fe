# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
# Label: broker
"""Records to a Kafka broker of the last version with ZooKeeper's ways, 3.9."""

from lib import kafka
from lib import kafka_tests
from lib import lab


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
        feed = self.feed(self.spec(self.topic()), "--records", 5000)
        result = feed.finish()
        self.check_fed(result, self.topic())
        self.assertEqual(0, result["stats"]["dropped"]["refused"]["records"])


if __name__ == "__main__":
    lab.main()
