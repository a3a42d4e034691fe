#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
"""
How many messages a second netobs sends to a real Kafka broker that shares this
machine's CPUs. The broker is started for that, and ends with it.
"""

import atexit
import os
import signal
import subprocess
import sys

sys.path.append(os.path.join(os.path.dirname(__file__), "..", "..", "tests", "e2e"))
# pylint: disable=wrong-import-position
from lib import kafka
from lib import lab

TOPIC = "netobs"
RECORDS = 300_000 # of a round: what comes to rest on a disk is bounded
EXIT_INTERRUPTED = 130


def measure(arguments):
    broker = kafka.Broker(lab.Lab()).start()
    broker.make_topic(TOPIC)
    return subprocess.run(
        [os.environ["NETOBSCTL"], "bench", "export",
         f"kafka://{broker.address()}/{TOPIC}", "null", "--records",
         str(RECORDS), *arguments], check=False).returncode


def main():
    signal.signal(signal.SIGTERM, lab.interrupt)
    atexit.register(lab.close_all)
    lab.remove_stale()
    return measure(sys.argv[1:])


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(EXIT_INTERRUPTED)
