#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
"""
What netobs takes of one CPU of a node: UDP packets arrive at an interface, 75 octets each, of flows that begin
and end, while `netobsctl flows` observes it and writes its records to a JSON file, as the service does.

Of the kernel, it is the run time of its BPF programs, less what the kernel takes to measure it, which an empty
program at the same interface shows. Of the process, it is its CPU time, user and system.

Exits with 1 if a packet is in no record and in no counter, or if one was lost.
"""

import argparse
import contextlib
import json
import os
import signal
import subprocess
import sys
import time

from agents import AGENTS
import command
from fleet import timed_programs
from lib import lab
from lib import observer
from lib import traffic
import load
import measure
import method

EXIT_INEXACT = 1
PAYLOAD = load.UDP_PAYLOAD
FLOW_SECONDS = 1
WARM_UP_SECONDS = 6 # more than an interval of records


class Traffic:
    """Each second, the packets of new flows, evenly over that second; counts what was sent."""

    def __init__(self, place, ns, options):
        self.place, self.ns, self.options = place, ns, options
        self.processes, self.start = [], time.monotonic()

    def begin_second(self):
        number = len(self.processes)
        self.processes.append(traffic.start_flood(
            self.place, self.ns, load.INTERFACE, "--flows", self.options.flows,
            "--packets", self.options.rate * FLOW_SECONDS, "--rate", self.options.rate, "--payload", PAYLOAD,
            "--source", f"10.{number % 250}.0.1", "--cpus", os.cpu_count() - 1))

    def go_on(self, seconds):
        """For so long from now on."""
        end = time.monotonic() + seconds
        while (now := time.monotonic()) < end:
            due = self.start + len(self.processes) * FLOW_SECONDS
            if due <= now:
                self.begin_second()
            else:
                time.sleep(min(due, end) - now)

    def finish(self):
        """@return packets"""
        found = [json.loads(process.communicate(timeout=60)[0]) for process in self.processes]
        return sum(one["packets"] for one in found)


class Spent:
    """Until now: seconds, of CPUs and by the clock, and packets."""

    def __init__(self, agent, empty, device):
        self.time, self.packets = time.monotonic(), sum(device.packets())
        self.cpu = measure.process_cpu_seconds(agent.pid)
        self.programs = sum(measure.program_times(agent.pid).values())
        self.runs = sum(measure.numbers_of_fds(agent.pid, "prog_id", "run_cnt").values())
        self.empty = sum(measure.program_times(empty.pid).values())
        self.empty_runs = sum(measure.numbers_of_fds(empty.pid, "prog_id", "run_cnt").values())

    def since(self, before):
        """Percent of a CPU."""
        def grown(name):
            return getattr(self, name) - getattr(before, name)

        each_empty = grown("empty") / max(1, grown("empty_runs"))
        kernel = grown("programs") - grown("runs") * each_empty
        part = 100 / grown("time")
        return {"kernel": kernel * part, "process": grown("cpu") * part,
                "both": (kernel + grown("cpu")) * part,
                "ns_per_packet": 1e9 * kernel / max(1, grown("packets")),
                "packets_per_second": grown("packets") / grown("time")}


def start_agent(place, ns, records, messages):
    with open(messages, "wb") as file:
        process = place.spawn(observer.netobsctl(), "flows", "-v", "-i", load.INTERFACE, "-o", f"json:{records}",
                              "--stats", ns=ns, stdout=subprocess.DEVNULL, stderr=file)
    lab.wait_for(lambda: observer.ATTACHED.search(lab.read(messages)), "netobsctl to attach")
    return process


def stop_agent(process, records, messages):
    process.send_signal(signal.SIGINT)
    process.wait(timeout=60)
    result = observer.Result(process.returncode, lambda: open(records, encoding="utf-8"), lab.read(messages))
    result.check_identity()
    return result


def run(options):
    with contextlib.closing(lab.Lab()) as place, timed_programs():
        host, peer = place.ns("host"), place.ns("peer")
        place.wire(host, load.INTERFACE, [f"{load.HOST}/16"], peer, load.INTERFACE, [f"{load.PEER}/16"],
                   offload=False)
        device = load.Counters(place, host, load.INTERFACE)
        others, files = method.Others(), (place.path("flows.json"), place.path("messages"))
        empty = AGENTS["empty"](place, host, load.INTERFACE, 0).process
        before = device.packets()
        agent = start_agent(place, host, *files)
        sender = Traffic(place, peer, options)
        sender.go_on(WARM_UP_SECONDS)
        spent, rounds = Spent(agent, empty, device), []
        for _ in range(options.rounds):
            sender.go_on(options.seconds)
            now = Spent(agent, empty, device)
            rounds.append(now.since(spent))
            spent = now
        sent = sender.finish()
        result = stop_agent(agent, *files)
        crossed = sum(device.packets()) - sum(before)
        return {"rate": options.rate, "flows": options.flows, "rounds": rounds, "seconds": options.seconds,
                "sent": sent, "crossed": crossed, "records": len(result.records), "others": others.share(),
                "recorded": result.exported()[0],
                "lost": result.total("lost")[0], "unparsed": result.total("unparsed")[0],
                "seen": result.total("seen")[0]}


def faults(row):
    """What is not as it should be: a list of words, empty."""
    rest = row["recorded"] + row["unparsed"] + row["lost"]
    checks = {"lost": (row["lost"], 0), "packets that netobs has seen": (row["seen"], row["crossed"]),
              "packets in records and counters": (rest, row["seen"])}
    found = [f"{name}: {have}, and not {want}" for name, (have, want) in checks.items() if have != want]
    return found + ["the interface has fewer packets than were sent"] * (row["crossed"] < row["sent"])


def column(row, name):
    return method.interval([one[name] for one in row["rounds"]])


def markdown(results):
    """For docs/performance.md."""
    row = results["results"][0]
    cells = [f"{found.median:.2f} [{found.low:.2f}, {found.high:.2f}]"
             for found in (column(row, name) for name in ("kernel", "process", "both"))]
    packets, each = column(row, "packets_per_second").median, column(row, "ns_per_packet").median
    return (f"Linux {results['kernel']}, {results['cpu']}, {results['cpus']} CPUs, {results['date']}, "
            f"{len(row['rounds'])} rounds of {row['seconds']:g} s; others took {row['others']:.2f} CPUs.\n\n"
            "| packets/s | flows/s | kernel, % of a CPU | process, % of a CPU | both | ns a packet in the kernel "
            "| packets accounted for |\n| ---: | ---: | ---: | ---: | ---: | ---: | ---: |\n"
            f"| {packets:,.0f} | {row['flows']:,} | {' | '.join(cells)} | {each:.0f} | "
            f"{row['recorded'] + row['unparsed'] + row['lost']:,} of {row['crossed']:,} |")


def arguments():
    parser = argparse.ArgumentParser(prog="./dev bench node", allow_abbrev=False, description=__doc__)
    parser.add_argument("--rate", type=int, default=100_000, metavar="N", help="packets a second (default 100,000)")
    parser.add_argument("--flows", type=int, default=3_000, metavar="N",
                        help="new flows a second (default 3,000)")
    parser.add_argument("--rounds", type=int, default=9, metavar="N", help=f"(default 9; at least {method.LEAST_ROUNDS})")
    parser.add_argument("--seconds", type=float, default=10, metavar="S", help="of a round (default 10)")
    parser.add_argument("--json", metavar="FILE", help="where the results go (default: into the build directory)")
    options = parser.parse_args()
    if min(options.rate, options.flows, options.seconds) < 1:
        parser.error("numbers are at least 1")
    if options.rounds < method.LEAST_ROUNDS:
        parser.error(f"--rounds: at least {method.LEAST_ROUNDS}")
    options.json = options.json or os.path.join(os.environ["NETOBS_RESULTS"], "node.json")
    return options


def main():
    options = arguments()
    results = {**measure.host(), "date": time.strftime("%Y-%m-%d")}
    row = run(options)
    results["results"] = [{**row, "faults": faults(row)}]
    command.write(options.json, results)
    print(markdown(results))
    for fault in results["results"][0]["faults"]:
        print(f"node: {fault}", file=sys.stderr)
    return EXIT_INEXACT if results["results"][0]["faults"] else 0


if __name__ == "__main__":
    command.run(main)
