# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
"""The table of docs/rtt.md: how accurate round-trip times are."""

import collections
import platform
import statistics

BEGIN, END = "<!-- accuracy: made by e2e.rtt -->", "<!-- end -->"
HEADING = ("| delay | loss | traffic | kernel | median | least | too high | samples |",
           "|" + " ---: |" * 2 + " --- |" + " ---: |" * 5)
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
    """@found: [Found], of the cases that are in it."""
    delay, loss, kind = name
    cells = [f"{delay} ms", f"{loss:.1%}", kind,
             time(statistics.median(one.kernels_median for one in found)),
             farthest(one.median - one.kernels_median for one in found),
             farthest(one.least - one.kernels_least for one in found),
             too_high(found), f"{sum(len(one.samples) for one in found):,}"]
    return f"| {' | '.join(cells)} |"


def table(results):
    """@results: [Found]"""
    rows = collections.defaultdict(list)
    for found in results:
        rows[found.case[:3]].append(found)
    return "\n".join([f"Linux {platform.release()}, {len(results)} connections.", "", *HEADING,
                      *(row(name, rows[name]) for name in sorted(rows))])


def write(path, results):
    """Put the table between the marks of a file."""
    with open(path, encoding="utf-8") as file:
        before, rest = file.read().split(BEGIN + "\n", 1)
    after = rest.split(END, 1)[1]
    with open(path, "w", encoding="utf-8") as file:
        file.write(f"{before}{BEGIN}\n\n{table(results)}\n\n{END}{after}")
