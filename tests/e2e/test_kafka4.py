# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
# Label: broker
"""Records to a Kafka broker of version 4."""

from lib import kafka
from lib import kafka_tests
from lib import lab


class Kafka4(kafka_tests.KafkaTests, kafka_tests.KafkaFailureTests,
             lab.LabTest):
    version = kafka.V4

    def test_scram_that_cannot_work(self):
        """librdkafka before 2.6.1 sends a nonce that this broker refuses."""
        feed = self.feed(
            self.spec(self.topic(), "SASL_PLAINTEXT",
                      **self.login("scram-sha-256")),
            "--records", 10, "--drain", 5)
        feed.finish(code=1)
        self.assertEqual(1, len(feed.matching("Kafka 4.0 and newer")))
        self.assertEqual(1, len(feed.matching("trying again")), feed.lines)


if __name__ == "__main__":
    lab.main()
