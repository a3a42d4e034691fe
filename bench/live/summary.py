# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
"""From what was measured, round by round and run by run, to what it says."""

import operator
import statistics

import method

# Throughput with round-trip times over that without.
RTT_TARGET = 0.98
PEAKS = ("rss_peak_bytes", "kernel_bytes")


def compare(scenario, rounds):
    """
    {(agent, what it is compared with): a value per round}, its throughput over that with no agent before
    and after, or the CPUs that were used beyond those with none.
    """
    by = operator.sub if scenario.rate else operator.truediv
    found = {(agent, "none"): [by(*one[agent]) for one in rounds] for agent in rounds[0]}
    if not scenario.rate and {"netobs", "netobs-rtt"} <= set(rounds[0]):
        found["netobs-rtt", "netobs"] = [
            ours / theirs for ours, theirs in
            zip(found["netobs-rtt", "none"], found["netobs", "none"])]
    return found


def used_cpus(cell):
    """
    How many CPUs the sender, the receiver, with what programs at their packets take, and
    the agent used; not others, which may run at the same time.
    """
    return (cell["ends_cpu_seconds"] + (cell["agent_cpu_seconds"] or 0)) / cell["seconds"]


def per_million(cells, field):
    """Median of seconds per million packets; None where it is not known."""
    values = [cell[field] / cell["packets"] * 1e6 for cell in cells
              if cell[field] is not None]
    return statistics.median(values) if values else None


def highest(cells, field):
    return max((cell[field] for cell in cells if cell[field] is not None), default=None)


def worst_rate(cells):
    """Packets reported per packet sent: the run that is farthest from 1."""
    rates = [cell["reported"] / cell["packets"] for cell in cells
             if cell["reported"] is not None]
    return max(rates, key=lambda rate: abs(rate - 1), default=None)


def summarize(scenario, rounds, cells):
    """A line for each agent of a scenario. @cells: {agent: its runs}."""
    intervals = {names: method.interval(values)._asdict()
                 for names, values in compare(scenario, rounds).items()}
    return [{
        "scenario": scenario.name, "agent": agent, "rounds": len(rounds),
        # Of a scenario with a rate, in CPUs.
        "median": statistics.median(own for own, _ in (one[agent] for one in rounds)),
        "of_none": intervals[agent, "none"],
        "of_netobs": intervals.get((agent, "netobs")),
        "monitoring_rate": worst_rate(cells[agent]),
        "agent_cpu_seconds_per_million": per_million(cells[agent], "agent_cpu_seconds"),
        **{field: highest(cells[agent], field) for field in PEAKS},
    } for agent in rounds[0]]


def check(lines):
    """What netobs has to reach here, and whether it does."""
    found = []
    for row in lines:
        if row["agent"] == "netobs":
            found.append(verdict(row, "monitoring rate", row["monitoring_rate"], 1))
        if row["of_netobs"]:
            found.append(verdict(row, "throughput of netobs, with --rtt",
                                 row["of_netobs"]["median"], RTT_TARGET))
    return found


def verdict(row, what, value, target):
    """A monitoring rate beyond 1 is as wrong as one below."""
    is_met = value == 1 if what == "monitoring rate" else value >= target
    return {"scenario": row["scenario"], "what": what, "is": value,
            "target": target, "met": is_met}
