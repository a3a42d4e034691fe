#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
"""
report.py RESULTS DOCS: puts results into DOCS/performance.md, between its
markers. What has no results stays as it is. Nothing changes if one of the results is of a
noisy host.
"""

import json
import os
import re
import sys
import time

from cluster import table as fleet
import method
import node
import table
from scenarios import RTT

DOCUMENT = "performance.md"
NAMES = ("scenario", "agent", "store", "flows", "distribution", "sink")


# ---- Whether results may be published ------------------------------------------------


def intervals(results):
    """{what: its interval}, of each ratio."""
    found = {}
    for one in results["results"]:
        name = ", ".join(str(one[key]) for key in NAMES if key in one)
        if "ratio_low" in one:
            found[name] = method.Interval(one["ratio"], one["ratio_low"], one["ratio_high"])
        for reference in ("none", "netobs"):
            if one.get(f"of_{reference}"):
                found[f"{name} to {reference}"] = method.Interval(**one[f"of_{reference}"])
    return found


def objections(name, results):
    """Why they must not replace those of a quiet host; a list of lines."""
    if "width" not in results:
        return [f"{name}: ratios without intervals, by an earlier version: measure again"]
    wide = [f"{name}: the ratio of {what} is between {found.low:.3f} and {found.high:.3f}, "
            f"an interval of {found.high - found.low:.3f}; below {method.WIDTH:g} is needed"
            for what, found in intervals(results).items() if not method.is_narrow(found)]
    if results["others"] > method.MOST_OTHERS:
        wide.append(f"{name}: others took {100 * results['others']:.1f} % of a CPU; "
                    f"{100 * method.MOST_OTHERS:g} % is the most")
    return wide


def check(found):
    """Refuse all if there is a reason to refuse one."""
    reasons = [reason for name, results in found.items() if name not in ABSOLUTE
               for reason in objections(name, results)]
    if reasons:
        raise SystemExit("./dev bench report: nothing is published:\n" + "\n".join(reasons))


# ---- Tables ----------------------------------------------------------------------------


def where_and_when(results):
    parts = [f"Linux {results['kernel']}", results["cpu"]]
    if "cpus" in results:
        parts.append(f"{results['cpus']} CPUs")
    parts.append(results["date"])
    if "width" in results:
        parts.append(table.conditions(results))
    else:
        parts.append(f"{results['rounds']} rounds")
    return ", ".join(parts) + "."


def live_head(results):
    versions = ", ".join(f"{name} {version}" for name, version in sorted(results["versions"].items()))
    return where_and_when(results) + f" {versions}."


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
    if results.get("noisy"):
        parts.append(f"Too noisy on this host: {', '.join(results['noisy'])}.")
    return "\n\n".join(parts + targets(results))


def rtt(results):
    """Both scenarios in one table, if there are both."""
    if results.get("noisy"):
        return live(results)
    fast, paced = ({row["agent"]: row for row in results["results"]
                    if row["scenario"] == name} for name in RTT)
    head = ("agent", "throughput", "of none", "of netobs", "monitored", "CPU when paced",
            "CPUs beyond none", "agent CPU")
    return "\n\n".join([live_head(results), table.markdown(head, [
        (agent, table.throughput(row), table.ratio(row["of_none"]),
         table.ratio(row["of_netobs"]), table.rate(row["monitoring_rate"]),
         table.share(paced[agent]), table.ratio(paced[agent]["of_none"]),
         table.seconds(paced[agent]["agent_cpu_seconds_per_million"]))
        for agent, row in fast.items()]), *targets(results)])


def stores(results):
    """Ratios with intervals, and ns over an empty program; a number of flows per column."""
    if any(one.get("counted", one.get("sent")) != one.get("sent") for one in results["results"]):
        raise SystemExit("a store has not counted all packets")
    flows = sorted({one["flows"] for one in results["results"]})
    found = {}
    for one in results["results"]:
        rows = found.setdefault(f"{one['distribution']}, one CPU", {})
        ratio = {"median": one["ratio"], "low": one["ratio_low"], "high": one["ratio_high"]}
        rows.setdefault(one["store"], {})[one["flows"]] = \
            f"{table.ratio(ratio)}, {one['ns_over_empty']:.0f} ns"
    parts = [where_and_when(results)]
    for title, rows in found.items():
        parts += [f"**{title}**", table.markdown(
            ("flows", *(f"{count:,}" for count in flows)),
            [(store, *(cells.get(count, "-") for count in flows))
             for store, cells in rows.items()])]
    return "\n\n".join(parts)


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
    rows = [(one["sink"], f"{one['records_per_s']:,}",
             f"{one['cpu_ns_per_record']:.0f}",
             table.ratio({"median": one["ratio"], "low": one["ratio_low"],
                          "high": one["ratio_high"]}) if "ratio" in one else "-",
             f"{one['cpu_ns_over_null']:.0f}" if "cpu_ns_over_null" in one else "-")
            for one in results["results"]]
    return where_and_when(results) + "\n\n" + table.markdown(
        ("sink", "records/s", "CPU ns/record", "of null", "over null"), rows)


SECTIONS = {"live": live, "rtt": rtt, "alternating": stores,
            "drain": drain, "drain-json": drain, "export": export,
            "fleet": fleet.markdown, "node": node.markdown}
ABSOLUTE = ("drain", "drain-json", "fleet", "node") # they compare nothing


def load(directory, name):
    path = os.path.join(directory, f"{name}.json")
    try:
        with open(path, encoding="utf-8") as file:
            date = time.strftime("%Y-%m-%d", time.localtime(os.stat(path).st_mtime))
            return {"date": date, **json.load(file)}
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
    found = {name: results for name in SECTIONS if (results := load(directory, name))}
    if not found:
        sys.exit(f"no results in {directory}: run ./dev bench first")
    check(found)
    for name, results in found.items():
        document = fill(document, name, SECTIONS[name](results))
    with open(path, "w", encoding="utf-8") as file:
        file.write(document)
    print(f"{path}: new results of {', '.join(found)}")


if __name__ == "__main__":
    main()
