#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
"""
What an agent loses that stands still in a flood, in two network namespaces of its
own; with --baseline, another netobsctl in turn with this one.

Exits with 3 if an identity does not hold: what was sent is seen, and what is seen is
exported or counted as lost.
"""

import argparse
import collections
import contextlib
import json
import os
import signal
import subprocess
import time

import command
from lib import lab
from lib import observer
from lib import traffic

FLOWS = (1_000, 100_000, 1_000_000)
STALLS = ((0.05, 10), (0.5, 2), (2, 1), (10, 1))  # seconds, times
PAUSE_S = 0.2
INTERVAL_S = 0.3
FLOOD_S = 120  # at most
CPUS = sorted(os.sched_getaffinity(0))
EXIT_INEXACT = 3

Case = collections.namedtuple("Case", "flows seconds times one_cpu")
Result = collections.namedtuple("Result", "sent lost exact reasons")


def arguments():
    parser = argparse.ArgumentParser(prog="./dev bench stall", allow_abbrev=False,
                                     description=__doc__)
    parser.add_argument("--baseline", metavar="NETOBSCTL",
                        help="compare with this program")
    parser.add_argument("--rounds", type=int, default=1, metavar="N",
                        help="runs of each case (default 1)")
    parser.add_argument("--longest", type=float, default=10, metavar="SECONDS",
                        help="leave out longer stalls (default 10)")
    parser.add_argument("--flows", type=int, action="append", metavar="N",
                        help="so many flows only; repeatable (default " +
                        ", ".join(map(str, FLOWS)) + ")")
    parser.add_argument("--shortest", type=float, default=0, metavar="SECONDS",
                        help="leave out shorter stalls (default 0)")
    return parser.parse_args()


class Agent:
    def __init__(self, place, ns, program, cpu):
        enter = (lambda: os.sched_setaffinity(0, {cpu})) if cpu is not None else None
        self.messages = place.path("messages")
        with open(self.messages, "wb") as file:
            self.process = place.spawn(
                program, "flows", "-v", "-i", "eth0", "--interval", str(INTERVAL_S),
                "-o", "json:/dev/null", "--stats", ns=ns, enter=enter,
                stdout=subprocess.DEVNULL, stderr=file)
        lab.wait_for(lambda: observer.ATTACHED.search(self.text()), program)

    def text(self):
        with open(self.messages, encoding="utf-8") as file:
            return file.read()

    def stand_still(self, seconds):
        self.process.send_signal(signal.SIGSTOP)
        time.sleep(seconds)
        self.process.send_signal(signal.SIGCONT)

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        self.process.wait()
        line = [line for line in self.text().splitlines()
                if line.startswith('{"seen"')][-1]
        return json.loads(line)


def total(counts):
    leaves = [counts] if "packets" in counts else counts.values()
    return tuple(sum(leaf[what] for leaf in leaves) for what in ("packets", "bytes"))


def measure(case, program):
    with contextlib.closing(lab.Lab()) as place:
        a, b = place.ns("a"), place.ns("b")
        place.wire(a, "eth0", ["192.0.2.1/24"], b, "eth0", ["192.0.2.2/24"])
        agent = Agent(place, a, program, CPUS[-1] if case.one_cpu else None)
        flood = traffic.start_flood(
            place, a, "eth0", "--flows", case.flows, "--seconds", FLOOD_S,
            "--cpus", CPUS[-1] if case.one_cpu else CPUS[0])
        for _ in range(case.times):
            time.sleep(PAUSE_S)
            agent.stand_still(case.seconds)
        time.sleep(PAUSE_S)
        flood.terminate()
        sent = json.loads(flood.communicate()[0])
        stats = agent.stop()
    sent = sent["packets"], sent["bytes"]
    seen, lost = total(stats["seen"]), total(stats["lost"])
    rest = [total(stats[name]) for name in ("exported", "filtered", "unparsed")]
    whole = tuple(map(sum, zip(lost, *rest)))
    reasons = {reason: count["packets"] for reason, count in stats["lost"].items()}
    return Result(sent[0], lost[0], sent == seen == whole, reasons)


def cases(options):
    for one_cpu in (False, True):
        for flows in options.flows or FLOWS:
            for seconds, times in STALLS:
                if options.shortest <= seconds <= options.longest:
                    yield Case(flows, seconds, times, one_cpu)


def main():
    options = arguments()
    programs = {"netobs": os.environ["NETOBSCTL"]}
    if options.baseline:
        programs["baseline"] = options.baseline
    inexact = 0
    print(f"{'flows':>9} {'stalls':>10} {'CPUs':>4} {'program':>9} {'runs':>4} "
          f"{'exact':>5} {'sent':>12} {'lost':>12} {'%':>7}")
    for case in cases(options):
        results = {name: [] for name in programs}
        for _ in range(options.rounds):
            for name, program in programs.items():
                results[name].append(measure(case, program))
        for name, found in results.items():
            sent, lost = (sum(column) for column in list(zip(*found))[:2])
            reasons = sum((collections.Counter(run.reasons) for run in found),
                          collections.Counter())
            exact = sum(result.exact for result in found)
            inexact += name == "netobs" and len(found) - exact
            print(f"{case.flows:>9} {case.times:>2} x {case.seconds:<3g} s "
                  f"{1 if case.one_cpu else len(CPUS):>4} {name:>9} {len(found):>4} "
                  f"{exact:>5} {sent:>12} {lost:>12} {100 * lost / sent:>7.3f}  "
                  + ", ".join(f"{reason} {n}" for reason, n in reasons.items() if n),
                  flush=True)
    return EXIT_INEXACT if inexact else 0


if __name__ == "__main__":
    command.run(main)
