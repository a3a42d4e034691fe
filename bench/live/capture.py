#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
"""
What `netobsctl capture` of all packets costs the sender of a flood between two network
namespaces of its own, in turns with an empty program at the same point.

Exits with 3 if its sums are not exact: what was sent is matched, and what is matched is
captured or counted as lost.
"""

import argparse
import contextlib
import json
import os
import signal
import statistics
import subprocess
import time

import command
from lib import lab
from lib import traffic

CPUS = sorted(os.sched_getaffinity(0))
RATES = (1_000_000, 0) # packets per second; 0: as many as possible
EXIT_INEXACT = 3


def arguments():
    parser = argparse.ArgumentParser(prog="./dev bench capture", allow_abbrev=False,
                                     description=__doc__)
    parser.add_argument("--rounds", type=int, default=5, metavar="N",
                        help="turns of each (default 5)")
    parser.add_argument("--seconds", type=float, default=2, metavar="N",
                        help="how long each flood lasts (default 2)")
    parser.add_argument("--snap", type=int, default=96, metavar="BYTES",
                        help="of each packet (default 96)")
    parser.add_argument("--filter", default="ip", metavar="EXPR",
                        help="that matches all packets (default ip)")
    return parser.parse_args()


class Nothing:
    """An empty program on both directions."""

    def __init__(self, place, ns, _options):
        self.process = place.spawn(os.environ["NETOBS_BASELINE"], "empty", "eth0", ns=ns,
                                   stdout=subprocess.PIPE)
        self.process.stdout.readline() # "ready"

    def stop(self):
        self.process.send_signal(signal.SIGINT)
        self.process.communicate()


class Capture:
    def __init__(self, place, ns, options):
        self.messages = place.path("messages")
        with open(self.messages, "wb") as file:
            self.process = place.spawn(
                os.environ["NETOBSCTL"], "capture", "-v", "--stats", "-i", "eth0",
                "--direction", "egress", "-s", options.snap, "-w",
                place.path("flood.pcapng"), "--rotate", "64M", "--keep", 2,
                *options.filter.split(), ns=ns, stderr=file)
        lab.wait_for(lambda: "capturing at" in self.text(), "the capture")

    def text(self):
        with open(self.messages, encoding="utf-8") as file:
            return file.read()

    def stop(self):
        self.process.send_signal(signal.SIGINT)
        self.process.wait()
        return json.loads([line for line in self.text().splitlines()
                           if line.startswith('{"matched"')][-1])


def measure(kind, rate, options):
    """What the sender sent, and what the agent has counted."""
    with contextlib.closing(lab.Lab()) as place:
        a, b = place.ns("a"), place.ns("b")
        place.wire(a, "eth0", ["192.0.2.1/24"], b, "eth0", ["192.0.2.2/24"])
        agent = kind(place, a, options)
        flood = traffic.start_flood(place, a, "eth0", "--seconds", options.seconds,
                                    "--mac", "02:00:00:00:00:ff", "--cpus", CPUS[0],
                                    *(["--rate", rate] if rate else []))
        sent = json.loads(flood.communicate()[0])
        time.sleep(0.1)
        return sent, agent.stop()


def is_exact(sent, stats):
    return (sent["packets"] == stats["matched"] ==
            stats["captured"] + stats["unwritten"] + stats["limited"] + stats["lost"])


def main():
    options = arguments()
    inexact = 0
    print(f"{'rate':>9} {'empty/s':>10} {'capture/s':>10} {'ratio':>6} {'best':>6} "
          f"{'exact':>5} {'matched':>12} {'captured':>12} {'lost':>12}")
    for rate in RATES:
        turns = []
        for _ in range(options.rounds):
            empty, _ = measure(Nothing, rate, options)
            turns.append((empty, *measure(Capture, rate, options)))
        plain, captured = ([one["packets"] / one["seconds"] for one in column]
                           for column in list(zip(*turns))[:2])
        ratio = statistics.median(ours / theirs for ours, theirs in zip(captured, plain))
        exact = sum(is_exact(sent, stats) for _, sent, stats in turns)
        inexact += len(turns) - exact
        sums = [sum(stats[name] for *_, stats in turns)
                for name in ("matched", "captured", "lost")]
        print(f"{rate or 'any':>9} {statistics.median(plain):>10.0f} "
              f"{statistics.median(captured):>10.0f} {ratio:>6.3f} "
              f"{max(captured) / max(plain):>6.3f} {exact:>5} "
              f"{sums[0]:>12} {sums[1]:>12} {sums[2]:>12}", flush=True)
    return EXIT_INEXACT if inexact else 0


if __name__ == "__main__":
    command.run(main)
