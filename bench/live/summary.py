# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
"""From what was measured, cell by cell, to what it says."""

import statistics
from collections import defaultdict

# (up to how many flows, throughput of netobs over that of an empty program)
TARGETS = ((1000, 0.97), (1_000_000, 0.90))
# Throughput with round-trip times over that without.
RTT_TARGET = 0.98
PER_MILLION = ("agent_cpu_seconds", "softirq_seconds", "busy_seconds")
PEAKS = ("rss_peak_bytes", "kernel_bytes")


def spread(values):
    return {"median": statistics.median(values), "min": min(values),
            "max": max(values)}


def spread_known(values):
    """The same of those that are not None; None where all are."""
    known = [value for value in values if value is not None]
    return spread(known) if known else None


def by_round(cells, scenario, agent):
    return {cell["round"]: cell for cell in cells
            if (cell["scenario"], cell["agent"]) == (scenario, agent)}


def ratios(cells, reference):
    """
    Throughput over that of @reference, pair by pair: the two of a round ran
    next to each other, so the machine's moods cancel out. None without pairs.
    """
    pairs = [cell["throughput"] / reference[number]["throughput"]
             for number, cell in cells.items() if number in reference]
    return spread(pairs) if pairs else None


def used_cpus(cell):
    """
    How many CPUs the sender, the receiver, with what programs at their packets take, and
    the agent used; not others, which may run at the same time. None: not known of the ends.
    """
    if cell.get("ends_cpu_seconds") is None:
        return None
    return (cell["ends_cpu_seconds"] + (cell["agent_cpu_seconds"] or 0)) / cell["seconds"]


def more_cpus(cells, reference):
    """CPUs that were used beyond those of @reference, pair by pair as above."""
    return spread_known(
        None if used_cpus(cell) is None or number not in reference else
        used_cpus(cell) - used_cpus(reference[number]) for number, cell in cells.items())


def per_million(cells, field):
    """Median of seconds per million packets; None where it is not known."""
    values = [cell[field] / cell["packets"] * 1e6 for cell in cells.values()
              if cell[field] is not None]
    return statistics.median(values) if values else None


def highest(cells, field):
    return max((cell[field] for cell in cells.values()
                if cell[field] is not None), default=None)


def worst_rate(cells):
    """Packets reported per packet sent: the round that is farthest from 1."""
    rates = [cell["reported"] / cell["packets"] for cell in cells.values()
             if cell["reported"] is not None]
    return max(rates, key=lambda rate: abs(rate - 1), default=None)


def line(cells, scenario, agent):
    """All rounds of one agent in one scenario."""
    ours = by_round(cells, scenario, agent)
    of = {f"of_{name}": ratios(ours, by_round(cells, scenario, name))
          for name in ("none", "empty", "netobs")}
    return {
        "scenario": scenario, "agent": agent, "rounds": len(ours),
        "throughput": spread([c["throughput"] for c in ours.values()]),
        "unit": next(iter(ours.values()))["unit"], **of,
        "used_cpus": spread_known(used_cpus(c) for c in ours.values()),
        "more_cpus": more_cpus(ours, by_round(cells, scenario, "none")),
        "monitoring_rate": worst_rate(ours),
        **{f"{field}_per_million": per_million(ours, field)
           for field in PER_MILLION},
        **{field: highest(ours, field) for field in PEAKS},
    }


def summarize(cells):
    """A line for each scenario and agent, in the order they first came."""
    order = defaultdict(dict)
    for cell in cells:
        order[cell["scenario"]][cell["agent"]] = None
    agents = list(dict.fromkeys(cell["agent"] for cell in cells))
    return [line(cells, scenario, agent) for scenario, present in order.items()
            for agent in agents if agent in present]


def disturbance(cells):
    """How much of the agent's CPU others used while there was no agent."""
    shares = [cell["busy_beside"] for cell in cells if cell["agent"] == "none"]
    return statistics.mean(shares) if shares else None


def check(lines, scenarios):
    """What netobs has to reach, and whether it does."""
    found = []
    for row in lines:
        scenario = scenarios[row["scenario"]]
        if row["agent"] == "netobs":
            found.append(verdict(row, "monitoring rate", row["monitoring_rate"],
                                 1, row["monitoring_rate"] == 1))
            if scenario.protocol == "udp":
                least = next(least for flows, least in TARGETS
                             if scenario.flows <= flows)
                found += ratio_verdict(row, "empty", "throughput of empty", least)
        if row["agent"] == "netobs-rtt" and not scenario.rate:
            found += ratio_verdict(row, "netobs", "throughput of netobs, with --rtt",
                                   RTT_TARGET)
    return found


def ratio_verdict(row, reference, what, least):
    """A list of one, or empty: @reference may not have run."""
    spread_of = row[f"of_{reference}"]
    if not spread_of:
        return []
    ratio = spread_of["median"]
    return [verdict(row, what, ratio, least, ratio >= least)]


def verdict(row, what, value, target, is_met):
    return {"scenario": row["scenario"], "what": what, "is": value,
            "target": target, "met": is_met}
