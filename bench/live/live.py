#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
"""
Measure what observing costs the traffic of this machine, netobs and others,
in two network namespaces of its own.
"""

import argparse
import json
import os
import shutil
import sys
import time

import command
from lib import lab
import load
import measure
import summary
import table
import agents
import scenarios
from agents import AGENTS, DEFAULT
from agents.netobs import Before
from scenarios import QUICK, SCENARIOS

ROUNDS, QUICK_ROUNDS = 5, 2
SECONDS, QUICK_SECONDS = 2.0, 1.0
# More use by others, of the CPU that is idle without an agent, spoils results.
MAX_DISTURBANCE = 0.05
EXIT_NOT_MET = 3
NAMES = [name for name in AGENTS if name != Before.name]


def arguments():
    parser = argparse.ArgumentParser(
        prog="./dev bench", allow_abbrev=False, description=__doc__,
        epilog="Takes about half an hour; with --quick, about 3 minutes. "
               "The machine should have nothing else to do.")
    parser.add_argument("--quick", action="store_true",
                        help=f"{QUICK_ROUNDS} short rounds of "
                             f"{len(QUICK)} scenarios")
    parser.add_argument("--rounds", type=positive, metavar="N",
                        help=f"rounds (default {ROUNDS})")
    parser.add_argument("--rtt", action="store_true",
                        help="what round-trip times cost: agents " +
                             ", ".join(agents.RTT) + "; scenarios " +
                             ", ".join(scenarios.RTT))
    parser.add_argument("--scenario", action="append", choices=SCENARIOS,
                        metavar="S", help="one of: " + ", ".join(SCENARIOS) +
                        "; repeatable (default all at full speed)")
    parser.add_argument("--agent", action="append", choices=NAMES,
                        metavar="A", help="one of: " + ", ".join(NAMES) +
                        f"; repeatable (default {', '.join(DEFAULT)}); none "
                        "and empty, which others are compared with, always run")
    parser.add_argument("--seconds", type=float,
                        help="traffic in each run, twice that from 100k "
                             f"flows on (default {SECONDS:g})")
    parser.add_argument("--before", metavar="NETOBSCTL",
                        help="also this program of another build, as agent 'before'")
    parser.add_argument("--json", metavar="FILE",
                        help="where the results go (default: into the build "
                             "directory)")
    options = parser.parse_args()
    options.json = options.json or default_file(options)
    options.scenario = options.scenario or default_scenarios(options)
    options.rounds = options.rounds or (QUICK_ROUNDS if options.quick
                                        else ROUNDS)
    options.seconds = options.seconds or (QUICK_SECONDS if options.quick
                                          else SECONDS)
    wanted = {"none", "empty", *(options.agent or
                                 (agents.RTT if options.rtt else DEFAULT))}
    if options.before:
        Before.program = os.path.abspath(options.before)
        wanted.add(Before.name)
    options.agent = [name for name in AGENTS if name in wanted]
    return options


def default_scenarios(options):
    if options.rtt:
        return scenarios.RTT
    return QUICK if options.quick else scenarios.DEFAULT


def default_file(options):
    """`./dev bench report` takes live.json and rtt.json: a part must not replace them."""
    is_whole = not (options.quick or options.scenario or options.agent or
                    options.before)
    whole = "rtt.json" if options.rtt else "live.json"
    return os.path.join(os.environ["NETOBS_RESULTS"],
                        whole if is_whole else "part.json")


def positive(text):
    value = int(text)
    if value < 1:
        raise ValueError
    return value


def cpus():
    """(for all of the traffic, for the agent): the same in every run."""
    usable = sorted(os.sched_getaffinity(0))
    return usable[0], usable[min(1, len(usable) - 1)]


def run_cell(where, wire, scenario, agent_class, cpu, seconds):
    """One agent under one kind of traffic, once."""
    agent = agent_class(where, wire.host, load.INTERFACE, cpu)
    agent.prepare(seconds)
    usage = agent.usage
    before = usage.look().cpu_seconds() if usage else 0
    machine = measure.Machine()
    cell = wire.run(scenario, seconds)
    cell["softirq_seconds"] = machine.softirq()
    cell["busy_seconds"] = machine.busy()
    cell["busy_beside"] = machine.busy_share(cpu)
    if usage:
        usage.look_at_maps()
        agent.catch_up()
    agent.stop()
    cell["reported"] = agent.count()
    cell["accounts"] = agent.accounts
    cell["agent_cpu_seconds"] = usage and usage.cpu_seconds() - before
    cell["rss_peak_bytes"] = usage and usage.peak_rss_bytes()
    cell["kernel_bytes"] = usage and usage.kernel_bytes
    return cell


def rotated(names, by):
    by %= len(names)
    return names[by:] + names[:by]


def run_all(options, traffic_cpu, agent_cpu):
    """Every cell in every round; agents take turns, in another order each."""
    cells = []
    for number in range(options.rounds):
        for name in options.scenario:
            scenario = SCENARIOS[name]
            names = [agent for agent in options.agent
                     if scenario.protocol in AGENTS[agent].protocols]
            for agent in rotated(names, number):
                where = lab.Lab()
                try:
                    wire = load.Wire(where, traffic_cpu)
                    cell = run_cell(where, wire, scenario, AGENTS[agent],
                                    agent_cpu, scenario.seconds(options.seconds))
                finally:
                    where.close()
                cells.append({"scenario": name, "agent": agent,
                              "round": number + 1, **cell})
                report_progress(options, cells[-1])
    return cells


def report_progress(options, cell):
    unit, scale = table.UNITS[cell["unit"]]
    seen = "" if cell["reported"] is None else \
        f", {cell['reported']} of {cell['packets']} packets reported"
    print(f"round {cell['round']}/{options.rounds}  {cell['scenario']}  "
          f"{cell['agent']}: {cell['throughput'] / scale:.3f} {unit}{seen}",
          file=sys.stderr, flush=True)


def versions():
    """Of the agents that are not from here."""
    packages = sorted({package for agent in AGENTS.values()
                       for package in agent.packages} | {"iperf3"})
    if not shutil.which("dpkg-query"):
        return {}
    lines = lab.run("dpkg-query", "-W", "-f", "${Package} ${Version}\n",
                    *packages, check=False)
    return dict(line.split() for line in lines.splitlines()
                if len(line.split()) == 2)


def write(path, results):
    os.makedirs(os.path.dirname(os.path.abspath(path)), exist_ok=True)
    with open(path, "w", encoding="utf-8") as file:
        json.dump(results, file, indent=1)
        file.write("\n")


def main():
    options = arguments()
    traffic_cpu, agent_cpu = cpus()
    started = time.strftime("%Y-%m-%d")
    cells = run_all(options, traffic_cpu, agent_cpu)
    lines = summary.summarize(cells)
    targets = summary.check(lines, SCENARIOS)
    disturbance = summary.disturbance(cells)
    if traffic_cpu == agent_cpu:
        disturbance = None # it cannot be told from the traffic
    write(options.json, {
        **measure.host(), "date": started, "versions": versions(),
        "rounds": options.rounds, "seconds": options.seconds,
        "traffic_cpu": traffic_cpu, "agent_cpu": agent_cpu,
        "disturbance": disturbance,
        "results": lines, "targets": targets, "cells": cells})
    print(table.text(lines))
    if targets:
        print("\n" + table.verdicts(targets))
    if disturbance and disturbance > MAX_DISTURBANCE:
        print(f"\nOthers used {disturbance:.0%} of CPU {agent_cpu}: measure "
              "again when the machine has nothing else to do.")
    print(f"\nResults: {options.json}")
    return 0 if all(one["met"] for one in targets
                    if one["what"] == "monitoring rate") else EXIT_NOT_MET


if __name__ == "__main__":
    command.run(main)
