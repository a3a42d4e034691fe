#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
"""
report.py RESULTS DOCS: puts results into DOCS/performance.md, between its
markers, and draws its charts. What has no results stays as it is.
"""

import json
import os
import re
import sys

import chart
import rtt_chart
import table
from scenarios import RTT

DOCUMENT = "performance.md"
CHARTS = {"live": (chart, "performance.svg"), "rtt": (rtt_chart, "rtt.svg")}


def where_and_when(results):
    parts = [f"Linux {results['kernel']}", results["cpu"]]
    if "cpus" in results:
        parts.append(f"{results['cpus']} CPUs")
    if "date" in results:
        parts.append(results["date"])
    parts.append(f"{results['rounds']} rounds")
    return ", ".join(parts) + "."


def versions(results):
    return ", ".join(f"{name} {version}" for name, version in
                     sorted(results["versions"].items()))


def live_head(results):
    text = where_and_when(results) + f" {versions(results)}."
    if results["disturbance"] is not None:
        text += (f" Others used {results['disturbance']:.1%} of the "
                 "agents' CPU meanwhile.")
    return text


def targets(results):
    """A list of one table, or empty."""
    return [table.markdown(
        ("target of netobs", "least", "is", ""),
        [(f"{one['scenario']}: {one['what']}", f"{one['target']:g}",
          table.rate(one["is"]), "met" if one["met"] else "not met")
         for one in results["targets"]])] if results["targets"] else []


def live(results):
    parts = [live_head(results)]
    for label, rows in table.groups(results["results"]):
        parts += [f"**{label}**", table.markdown(table.HEAD, rows)]
    return "\n\n".join(parts + targets(results))


def rtt(results):
    """Both scenarios in one table."""
    rows = {name: {row["agent"]: row for row in results["results"]
                   if row["scenario"] == name} for name in RTT}
    fast, paced = (rows[name] for name in RTT)
    head = ("agent", "throughput", "of none", "of netobs", "monitored", "CPU when paced",
            "beyond none", "agent CPU")
    picture = "![What round-trip times cost, of throughput and of CPU](rtt.svg)"
    return "\n\n".join([picture, live_head(results), table.markdown(head, [
        (agent, table.throughput(row), table.ratio(row["of_none"]),
         table.ratio(row["of_netobs"]), table.rate(row["monitoring_rate"]),
         table.share(paced[agent]["used_cpus"]), table.share(paced[agent]["more_cpus"]),
         table.seconds(paced[agent]["agent_cpu_seconds_per_million"]))
        for agent, row in fast.items()]), *targets(results)])


def pivot(results, column, value, rows_by):
    """Rows of one field, columns of another, of results as a flat list."""
    columns = sorted({one[column] for one in results})
    found = {}
    for one in results:
        found.setdefault(rows_by(one), {})[one[column]] = value(one)
    return columns, found


def datapath(results):
    columns, found = pivot(
        results["results"], "flows",
        lambda one: f"{one['ns_over_empty']:.0f}",
        lambda one: (one["distribution"], one["cpus"], one["sharing"],
                     one["store"]))
    settings = dict.fromkeys(key[:3] for key in found)
    parts = [where_and_when(results)]
    for setting in settings:
        distribution, cpus, sharing = setting
        who = "one CPU" if cpus == 1 else \
            f"{cpus} CPUs at once, {sharing} flows"
        rows = [(key[3], *(cells.get(column, "-") for column in columns))
                for key, cells in found.items() if key[:3] == setting]
        parts += [f"**{distribution}, {who}**", table.markdown(
            ("flows", *(f"{column:,}" for column in columns)), rows)]
    return "\n\n".join(parts)


def alternating(results):
    columns, found = pivot(
        results["results"], "flows", lambda one: f"{one['ratio']:.3f}",
        lambda one: (one["store"], one["distribution"]))
    if any(one.get("counted", one["sent"]) != one["sent"] for one in results["results"]):
        raise SystemExit("a store has not counted all packets")
    rows = [(", ".join(key), *(cells.get(column, "-") for column in columns))
            for key, cells in found.items()]
    return where_and_when(results) + "\n\n" + table.markdown(
        ("flows", *(f"{column:,}" for column in columns)), rows)


def drain(results):
    rows = [(f"{one['flows']:,}", f"{one['user_ns_per_flow']:.0f}",
             f"{one['system_ns_per_flow']:.0f}",
             f"{one['wall_ns_per_flow']:.0f}",
             table.mebibytes(one["rss_peak_bytes"]),
             table.mebibytes(one["kernel_bytes"]), table.mebibytes(one["total_bytes"]))
            for one in results["results"]]
    return where_and_when(results) + "\n\n" + table.markdown(
        ("flows", "user ns/flow", "system ns/flow", "wall ns/flow", "process",
         "kernel", "both"), rows)


def export(results):
    rows = [("a broker" if "//" in one["sink"] else one["sink"],
             f"{one['records_per_s']:,}",
             f"{one['cpu_ns_per_record']:.0f}",
             f"{one['cpu_ns_over_null']:.0f}" if "cpu_ns_over_null" in one else "-")
            for one in results["results"]]
    return where_and_when(results) + "\n\n" + table.markdown(
        ("sink", "records/s", "CPU ns/record", "over null"), rows)


SECTIONS = {"live": live, "rtt": rtt, "datapath": datapath, "alternating": alternating,
            "drain": drain, "drain-json": drain, "export": export, "broker": export}


def load(directory, name):
    try:
        with open(os.path.join(directory, f"{name}.json"),
                  encoding="utf-8") as file:
            return json.load(file)
    except FileNotFoundError:
        return None


def fill(document, name, text):
    """Put @text between the markers of @name."""
    begin, end = f"<!-- {name}: made by ./dev bench report -->", "<!-- end -->"
    pattern = re.escape(begin) + r"\n.*?" + re.escape(end)
    filled, count = re.subn(pattern,
                            lambda _: f"{begin}\n\n{text}\n\n{end}", document,
                            count=1, flags=re.S)
    if not count:
        raise SystemExit(f"{DOCUMENT} has no markers of {name}")
    return filled


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__.strip())
    directory, docs = sys.argv[1:]
    path = os.path.join(docs, DOCUMENT)
    with open(path, encoding="utf-8") as file:
        document = file.read()
    made = []
    for name, section in SECTIONS.items():
        results = load(directory, name)
        if results:
            document = fill(document, name, section(results))
            made.append(name)
            if name in CHARTS:
                drawn, file = CHARTS[name]
                drawn.draw(results, os.path.join(docs, file))
    if not made:
        sys.exit(f"no results in {directory}: run ./dev bench first")
    with open(path, "w", encoding="utf-8") as file:
        file.write(document)
    print(f"{path}: new results of {', '.join(made)}")


if __name__ == "__main__":
    main()
