#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
"""
What a full table costs a sender: a flood of half a million flows while netobsctl
watches with its default table, and with one of 1000 entries, in turn. Prints
the times and the median of their ratios, pair by pair.
"""
import os
import statistics
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "e2e"))
import lab
import traffic
from observer import Observer

PAIRS = 5
FLOWS = 500000
# "Not slowed by more than a few percent", and what a noisy machine adds.
LIMIT = 1.10


def seconds(where, ns, *options):
    flows = Observer(where, ns, "-i", "eth0", *options, release=True)
    flows.wait_attached((ns, "eth0"))
    sent = traffic.flood(where, ns, "eth0", "--flows", FLOWS,
                         "--packets", FLOWS)
    flows.stop().check_conservation()
    return sent["seconds"]


def main():
    where = lab.Lab()
    ratios = []
    try:
        a, b = where.ns("a"), where.ns("b")
        where.wire(a, "eth0", ["192.0.2.1/24"], b, "eth0", ["192.0.2.2/24"])
        for pair in range(PAIRS):
            default = seconds(where, a)
            capped = seconds(where, a, "--max-flows", 1000)
            ratios.append(capped / default)
            print(f"pair {pair + 1}: default {default:.2f} s, capped "
                  f"{capped:.2f} s, ratio {ratios[-1]:.2f}", flush=True)
    finally:
        where.close()
    ratio = statistics.median(ratios)
    print(f"a sender takes {ratio:.2f} times as long when the table is full")
    return 0 if ratio <= LIMIT else 1


if __name__ == "__main__":
    sys.exit(main())
