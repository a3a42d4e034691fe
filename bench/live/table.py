# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
"""A summary as a table: for the terminal, or as Markdown."""

from scenarios import SCENARIOS

UNITS = {"packet/s": ("Mpacket/s", 1e6), "bit/s": ("Gbit/s", 1e9)}
HEAD = ("agent", "throughput", "of none", "monitored", "agent CPU", "process", "kernel")
NOTE = ("of none: ratio, or CPUs beyond none if the rate is given, with an interval of 95 %. "
        "CPU: seconds per\nmillion packets. Memory at its peak: of the process, and of its BPF "
        "maps. -: none, or not known.")


def throughput(row):
    scenario = SCENARIOS[row["scenario"]]
    if scenario.rate:
        return f"{row['median']:.3f} CPUs"
    unit, scale = UNITS[scenario.unit]
    return f"{row['median'] / scale:.2f} {unit}"


def ratio(found):
    """With its interval: a ratio never goes without."""
    return "-" if found is None else \
        f"{found['median']:.3f} ({found['low']:.3f} to {found['high']:.3f})"


def rate(value):
    """1 only if it is 1: what rounds to it is written out."""
    if value is None:
        return "-"
    if value == 1:
        return "1"
    return f"{value:.4f}" if abs(value - 1) >= 5e-5 else f"{value:.7f}"


def seconds(value):
    return "-" if value is None else f"{value:.2f}"


def share(row):
    """Of one CPU."""
    return f"{100 * row['median']:.1f} %"


def mebibytes(value):
    return "-" if value is None else f"{value / (1 << 20):.1f} MiB"


def row_cells(row):
    return (row["agent"], throughput(row), ratio(row["of_none"]),
            rate(row["monitoring_rate"]), seconds(row["agent_cpu_seconds_per_million"]),
            mebibytes(row["rss_peak_bytes"]), mebibytes(row["kernel_bytes"]))


def align(rows):
    widths = [max(map(len, column)) for column in zip(*rows)]
    for row in rows:
        first, *others = (text.ljust(width) if i == 0 else text.rjust(width)
                          for i, (text, width) in enumerate(zip(row, widths)))
        yield "  ".join((first, *others))


def groups(lines):
    """[(scenario's label, its rows)]"""
    found = {}
    for row in lines:
        found.setdefault(row["scenario"], []).append(row_cells(row))
    return [(SCENARIOS[name].label, rows) for name, rows in found.items()]


def text(lines):
    found = groups(lines)
    aligned = iter(list(align([HEAD] + [row for _, rows in found
                                        for row in rows])))
    parts = [next(aligned)]
    for label, rows in found:
        parts += ["", label, *(next(aligned) for _ in rows)]
    return "\n".join(parts + ["", NOTE])


def markdown(head, rows):
    """The first column is words, the others are numbers."""
    return "\n".join("| " + " | ".join(row) + " |" for row in (
        head, ["---"] + ["---:"] * (len(head) - 1), *rows))


def verdicts(found):
    return "\n".join(f"{'met' if one['met'] else 'NOT MET':7}  "
                     f"{one['scenario']}: {one['what']} {rate(one['is'])}, "
                     f"target {one['target']:g}" for one in found)


def conditions(results):
    """How far it can be believed."""
    return (f"intervals below {results['width']:g}; others took up to {100 * results['others']:.1f} % of a CPU, "
            f"{results['repeated']} runs repeated")
