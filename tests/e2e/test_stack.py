#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
# Label: broker
# Needs: iputils-ping socat
"""./dev stack: flows of traffic come out of a broker, and ^C ends it without loss."""

import os
import re
import signal

from lib import kafka
from lib import lab

STACK = os.path.join(os.environ["NETOBS_SOURCE"], "examples/stack.py")


class Stack(lab.LabTest):
    def test_a_consumer_shows_flows_until_an_interrupt(self):
        kafka.jars(kafka.V3)
        process = self.lab.spawn(STACK, stdout=-1, stderr=-1, text=True)
        shown = [process.stdout.readline() for _ in range(10)]
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=120)
        self.assertEqual(0, process.returncode, err)
        for protocol in "TCP", "ICMP":
            self.assertTrue(any(protocol in line for line in shown), shown)
        end = re.search(r"^(\d+) records of \d+ packets are in the topic$", out, re.M)
        self.assertGreaterEqual(int(end[1]), len(shown))
        self.assertNotIn("Traceback", err)


if __name__ == "__main__":
    lab.main()
