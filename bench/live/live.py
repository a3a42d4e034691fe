#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
"""
Measure what observing costs the traffic of this machine, netobs and others,
in two network namespaces of its own.
"""

import argparse
import contextlib
import os
import shutil
import sys
import time

import command
from lib import lab
import load
import measure
import method
import summary
import table
import turns
import agents
import scenarios
from agents import AGENTS
from scenarios import QUICK, SCENARIOS

QUICK_ROUNDS, QUICK_WIDTH = 40, 0.1
SECONDS = 2.0 # of the run that counts packets; twice that from 100k flows on
EXIT_NOT_MET, EXIT_NOISY = 1, 3
NONE = "none"
# What turns are compared with. Its second wire, as an agent, shows what wires differ by.
REFERENCE = "reference"


def arguments():
    parser = argparse.ArgumentParser(
        prog="./dev bench", allow_abbrev=False, description=__doc__,
        epilog="In each scenario, agents take turns until the interval of each ratio is narrow "
               "enough. If this host is too noisy for one, it has no results, and the exit "
               f"status is {EXIT_NOISY}. The machine should have nothing else to do.")
    parser.add_argument("--quick", action="store_true",
                        help=f"{len(QUICK)} scenarios, less exactly")
    parser.add_argument("--rounds", type=int, metavar="N",
                        help=f"at most (default {method.MOST_ROUNDS}; with --quick {QUICK_ROUNDS})")
    parser.add_argument("--width", type=float, metavar="W",
                        help="that intervals shall be below (default "
                             f"{method.WIDTH:g}; with --quick {QUICK_WIDTH:g})")
    parser.add_argument("--rtt", action="store_true",
                        help="what round-trip times cost: agents " + ", ".join(agents.RTT) +
                        "; scenarios " + ", ".join(scenarios.RTT))
    parser.add_argument("--scenario", action="append", choices=SCENARIOS, metavar="S",
                        help="one of: " + ", ".join(SCENARIOS) +
                        "; repeatable (default all at full speed)")
    parser.add_argument("--agent", action="append", choices=AGENTS, metavar="A",
                        help="one of: " + ", ".join(AGENTS) + "; repeatable "
                        "(default all); none and empty always run")
    parser.add_argument("--json", metavar="FILE",
                        help="where the results go (default: into the build directory)")
    options = parser.parse_args()
    options.json = options.json or default_file(options)
    if options.width is None:
        options.width = QUICK_WIDTH if options.quick else method.WIDTH
    if options.rounds is None:
        options.rounds = QUICK_ROUNDS if options.quick else method.MOST_ROUNDS
    if options.width <= 0 or options.rounds < method.LEAST_ROUNDS:
        parser.error(f"--width is positive, and --rounds {method.LEAST_ROUNDS} at least")
    options.scenario = options.scenario or (
        scenarios.RTT if options.rtt else QUICK if options.quick else scenarios.DEFAULT)
    wanted = {NONE, "empty", *(options.agent or (agents.RTT if options.rtt else AGENTS))}
    options.agent = [name for name in AGENTS if name in wanted]
    return options


def default_file(options):
    """`./dev bench report` takes live.json and rtt.json: a part must not replace them."""
    is_whole = not (options.quick or options.scenario or options.agent or
                    (options.width or 0) > method.WIDTH)
    name = "part.json" if not is_whole else "rtt.json" if options.rtt else "live.json"
    return os.path.join(os.environ["NETOBS_RESULTS"], name)


def cpus():
    """(for all of the traffic, for the agent): the same in every run."""
    usable = sorted(os.sched_getaffinity(0))
    return usable[0], usable[min(1, len(usable) - 1)]


def run_cell(scenario, agent_class, where_cpus, seconds):
    """One agent under one kind of traffic, once: what it reports and uses."""
    traffic_cpu, agent_cpu = where_cpus
    with contextlib.closing(lab.Lab()) as where:
        wire = load.Wire(where, traffic_cpu, scenario.qdisc)
        agent = agent_class(where, wire.host, load.INTERFACE, agent_cpu)
        agent.prepare(seconds)
        usage = agent.usage
        before = usage.look().cpu_seconds() if usage else 0
        cell = wire.run(scenario, seconds)
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


def show_progress(scenario):
    def show(number, intervals):
        widest = max(intervals, key=lambda name: intervals[name].high - intervals[name].low)
        found = intervals[widest]
        print(f"{scenario.name}: {number} rounds, {widest} {found.median:.3f} "
              f"({found.low:.3f} to {found.high:.3f})", file=sys.stderr, flush=True)
    return show


class Bench:
    """Scenarios, one after the other."""

    def __init__(self, options):
        self.options = options
        self.cpus = cpus()
        self.method = None # of a scenario
        self.noisy = {} # scenario: why it has no results

    def agents_of(self, scenario):
        return {name: AGENTS[name] for name in self.options.agent
                if scenario.protocol in AGENTS[name].protocols}

    def take_turns(self, scenario, names, turn):
        return self.method.rounds(
            lambda: turns.measure_round(turn, names, REFERENCE),
            lambda found: {f"{agent} to {reference} ({scenario.name})": values for (agent, reference), values
                           in summary.compare(scenario, found).items()}, show_progress(scenario))

    def flood(self, scenario):
        """(rounds, {agent: runs})"""
        chosen = self.agents_of(scenario)
        with contextlib.closing(turns.Floods(
                scenario, {REFERENCE: AGENTS[NONE], **chosen}, self.cpus)) as floods, \
                turns.timekeeper(self.cpus[1]):
            found = self.take_turns(scenario, chosen, floods.turn)
        return found, {name: [self.method.undisturbed(
            lambda name=name: self.run(scenario, name))] for name in chosen}

    def run(self, scenario, name):
        return run_cell(scenario, AGENTS[name], self.cpus, scenario.seconds(SECONDS))

    def runs(self, scenario):
        """The same where each turn is a run: its CPU time is compared."""
        cells = {REFERENCE: []}

        def turn(name):
            cell = self.run(scenario, NONE if name == REFERENCE else name)
            cells.setdefault(name, []).append(cell)
            return summary.used_cpus(cell)
        return self.take_turns(scenario, self.agents_of(scenario), turn), cells

    def measure(self):
        """(lines, conditions); a scenario that is too noisy leaves the others theirs."""
        lines, methods = [], []
        for name in self.options.scenario:
            scenario = SCENARIOS[name]
            self.method = method.Method(self.options.width, self.options.rounds)
            try:
                found, cells = self.runs(scenario) if scenario.rate else self.flood(scenario)
            except method.TooNoisy as error:
                self.noisy[name] = str(error)
                continue
            lines += summary.summarize(scenario, found, cells)
            methods.append(self.method)
        return lines, method.summary(methods)


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


def main():
    options = arguments()
    bench = Bench(options)
    started = time.strftime("%Y-%m-%d")
    lines, conditions = bench.measure()
    for name, why in bench.noisy.items():
        print(f"./dev bench: this host is too noisy for {name}, which has no results:\n{why}",
              file=sys.stderr)
    if not lines:
        return EXIT_NOISY
    results = {
        **measure.host(), "date": started, "versions": versions(), **conditions,
        "noisy": list(bench.noisy),
        "results": lines, "targets": summary.check(lines)}
    command.write(options.json, results)
    print(table.text(lines))
    print("\n" + table.verdicts(results["targets"]))
    print(f"\n{table.conditions(results)}\nResults: {options.json}")
    if not all(one["met"] for one in results["targets"] if one["what"] == "monitoring rate"):
        return EXIT_NOT_MET
    return EXIT_NOISY if bench.noisy else 0


if __name__ == "__main__":
    command.run(main)
