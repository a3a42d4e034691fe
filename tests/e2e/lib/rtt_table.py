# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
"""The table of docs/rtt.md: how accurate round-trip times are."""

import collections
import platform
import statistics

BEGIN, END = "<!-- accuracy: made by e2e.rtt -->", "<!-- end -->"
HEADING = ("| delay | loss | traffic | kernel | timers | lru | timers, least | lru, least | "
           "timers, too high | lru, too high | timers, samples | lru, samples |",
           "|" + " ---: |" * 2 + " --- |" + " ---: |" * 9)
TOLERANCE_US = 50


def time(us):
    return f"{us / 1000:.2f}"


def signed(us):
    return f"{us / 1000:+.2f}"


def farthest(deviations):
    return signed(max(deviations, key=abs))


def too_high(found):
    """The share of samples that are above the largest true one."""
    if not found[0].largest:
        return "-"
    high = sum(sample > one.largest + TOLERANCE_US for one in found for sample in one.samples)
    return f"{high / sum(len(one.samples) for one in found):.1%}"


def row(name, found):
    """@found: {mode: [Found]} of the cases that are in it."""
    delay, loss, kind = name
    modes = found["timers"], found["lru"]
    cells = [f"{delay} ms", f"{loss:.1%}", kind,
             time(statistics.median(one.kernels_median for one in found["timers"]))]
    cells += [farthest(one.median - one.kernels_median for one in mode) for mode in modes]
    cells += [farthest(one.least - one.kernels_least for one in mode) for mode in modes]
    cells += [too_high(mode) for mode in modes]
    cells += [f"{sum(len(one.samples) for one in mode):,}" for mode in modes]
    return f"| {' | '.join(cells)} |"


def table(results):
    """@results: [Found]"""
    rows = collections.defaultdict(lambda: collections.defaultdict(list))
    for found in results:
        rows[found.case[:3]][found.mode].append(found)
    return "\n".join([f"Linux {platform.release()}, {len(results)} connections.", "", *HEADING,
                      *(row(name, rows[name]) for name in sorted(rows))])


def write(path, results):
    """Put the table between the marks of a file."""
    with open(path, encoding="utf-8") as file:
        before, rest = file.read().split(BEGIN + "\n", 1)
    after = rest.split(END, 1)[1]
    with open(path, "w", encoding="utf-8") as file:
        file.write(f"{before}{BEGIN}\n\n{table(results)}\n\n{END}{after}")
