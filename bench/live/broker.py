#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
"""
How many messages a second netobs sends to a real Kafka broker that shares this
machine's CPUs. The broker is started for that, and ends with it.
"""

import argparse
import os
import subprocess

import command
from lib import kafka
from lib import lab

TOPIC = "netobs"
RECORDS = 300_000 # of a round: what comes to rest on a disk is bounded


def measure():
    parser = argparse.ArgumentParser(prog="./dev bench broker", allow_abbrev=False,
                                     description=__doc__,
                                     epilog="Options are those of netobsctl bench export.")
    _, options = parser.parse_known_args()
    broker = kafka.Broker(lab.Lab()).start()
    broker.make_topic(TOPIC)
    return subprocess.run(
        [os.environ["NETOBSCTL"], "bench", "export",
         f"kafka://{broker.address()}/{TOPIC}", "null", "--records",
         str(RECORDS), *options], check=False).returncode


if __name__ == "__main__":
    command.run(measure)
