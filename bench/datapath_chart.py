#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
"""
netobs-chart: the results of `netobsctl bench datapath -o json`, on standard input, as a
chart, SVG on standard output, drawn by gnuplot.

On the left the cost of a packet on one CPU by number of flows, a line per design; on the
right, if it was measured, contention: one flow on one CPU and the same flow on all CPUs.
"""

import json
import math
import shutil
import subprocess
import sys

WIDTH, NARROW, HEIGHT = 1180, 820, 600
# Of the panels, in shares of the width; and between labels, of the height.
LEFT_EDGE, LABEL_SHARE, PANELS_GAP = 0.062, 0.10, 0.64
LABEL_STEP = 0.036

# (colour, line width, dash), in the order in which they are drawn
STYLES = {
    "empty": ("#9a9a9a", 2, "(6,5)"),
    "ringbuf": ("#7b5ea7", 2, "solid"),
    "hash": ("#d08c1f", 2, "solid"),
    "hash_spinlock": ("#a8501e", 2, "solid"),
    "percpu_hash": ("#c0304a", 3, "solid"),
    "netobs": ("#1f5fbf", 5, "solid"),
}

HEAD = """\
set terminal svg size {width},{height} font "Helvetica,13" background rgb "white"
set encoding utf8
set key off
set border 3 linecolor rgb "#606060"
set tics nomirror
set grid linetype 1 linecolor rgb "#e4e4e4"
set tmargin at screen 0.83
set bmargin at screen 0.115
set multiplot
set label 10 "{{/:Bold=19 What a packet costs, by how its flow is stored}}" at screen 0.012, screen 0.955 left
set label 11 "Linux {kernel}, {cpu}; medians of {rounds} rounds, bands from minimum to maximum" noenhanced at screen 0.012, screen 0.905 left textcolor rgb "#606060"
"""

LEFT = """\
set lmargin at screen {left}
set rmargin at screen {right}
set label 1 "{who}, {what}" at graph 0, graph 1.045 left
set logscale xy
set yrange [{low}:{high}]
set xrange [{first}:{last}]
set ytics scale 0.5 (10, 20, 30, 50, 70, 100, 150, 200, 300, 500, 700, 1000, 1500, 2000, 3000, 5000)
set xtics scale 0.5 ({ticks})
set xlabel "flows"
set ylabel "ns per packet" offset 1.5,0
"""

RIGHT = """\
$bars << EOD
{bars}
EOD
unset logscale
unset label
unset xlabel
unset ylabel
set lmargin at screen {left}
set rmargin at screen 0.955
set label 1 "One flow: on one CPU (pale), on {cpus} CPUs at once (full)" at graph -0.42, graph 1.045 left
set xlabel "ns per packet"
set xrange [0:*]
set xtics scale 0.5 autofreq
set yrange [-0.6:*] noextend
set offsets 0, 0, 0.6, 0
set ytics scale 0 noenhanced
plot $bars using (0):($1+0.20):(0):3:($1+0.03):($1+0.37):5:ytic(2) with boxxyerror fillcolor rgb variable fillstyle transparent solid 0.35 noborder, \
$bars using (0):($1-0.20):(0):4:($1-0.37):($1-0.03):5 with boxxyerror fillcolor rgb variable fillstyle solid 1 noborder, \
$bars using 4:($1-0.20):(sprintf("%.0f", $4)) with labels left offset 0.6,0 font ",11" textcolor rgb "#404040", \
$bars using 3:($1+0.20):(sprintf("%.0f", $3)) with labels left offset 0.6,0 font ",11" textcolor rgb "#808080"
"""


def spread_labels(wanted, least):
    """
    Positions as near to @wanted as can be with @least between any two, in the
    same order: neighbours that would touch form a group around their mean.
    """
    order = sorted(range(len(wanted)), key=lambda i: wanted[i])
    groups = []
    for i in order:
        groups.append([i])
        while len(groups) > 1 and \
                group_start(groups[-1], wanted, least) - \
                group_start(groups[-2], wanted, least) < least * len(groups[-2]):
            groups[-2:] = [groups[-2] + groups[-1]]
    placed = [0.0] * len(wanted)
    for group in groups:
        for number, i in enumerate(group):
            placed[i] = group_start(group, wanted, least) + number * least
    return placed


def group_start(group, wanted, least):
    """The lowest position of a group."""
    mean = sum(wanted[i] for i in group) / len(group)
    return mean - least * (len(group) - 1) / 2


def check_gnuplot():
    if not shutil.which("gnuplot"):
        raise SystemExit("gnuplot is missing: apt-get install gnuplot-nox")


def run_gnuplot(script, **options):
    check_gnuplot()
    subprocess.run(["gnuplot"], input=script, text=True, check=True, **options)


def short(flows):
    """1, 64, 1k, 16k, 131k, 1M"""
    if flows < 1000:
        return f"{flows}"
    if flows < 1_000_000:
        return f"{flows // 1000}k"
    return f"{flows / 1e6:.{0 if flows % 1_000_000 < 100_000 else 1}f}M"


def select(cells, **fields):
    return [cell for cell in cells if all(cell[name] == value
                                          for name, value in fields.items())]


def main_case(cells):
    """The left panel's: uniform on one CPU, if that was measured."""
    case = {"distribution": "uniform", "cpus": 1, "sharing": "disjoint"}
    if select(cells, **case):
        return case
    return {name: cells[0][name] for name in case}


def contention(cells):
    """[(store, ns on one CPU, ns on all CPUs)], of one flow; and the number of CPUs."""
    alone = {cell["store"]: cell for cell in
             select(cells, flows=1, distribution="uniform", cpus=1, sharing="disjoint")}
    shared = {cell["store"]: cell for cell in
              select(cells, flows=1, distribution="uniform", sharing="same")}
    if "empty" not in alone or "empty" not in shared:
        return [], 0
    return [(store, alone[store]["ns_per_packet"], shared[store]["ns_per_packet"])
            for store in reversed(STYLES) if store in alone and store in shared], \
        shared["empty"]["cpus"]


def left_labels(lines, low, high):
    """At the ends of the lines; netobs in bold."""
    stores = list(lines)
    wanted = [math.log(lines[store][-1]["ns_per_packet"] / low) / math.log(high / low)
              for store in stores]
    for store, y in zip(stores, spread_labels(wanted, LABEL_STEP)):
        text, mode = (f"{{/:Bold {store}}}", "") if store == "netobs" else (store, "noenhanced")
        yield (f'set label "{text}" at graph 1.02, graph {y:.4f} left front {mode} '
               f'textcolor rgb "{STYLES[store][0]}"')


def left_panel(cells, right_edge):
    """A line over a band from minimum to maximum for each design; netobs above all."""
    case = main_case(cells)
    cells = select(cells, **case)
    lines = {store: sorted(select(cells, store=store), key=lambda cell: cell["flows"])
             for store in STYLES if select(cells, store=store)}
    low = 0.85 * min(cell["ns_min"] for cell in cells)
    high = 1.18 * max(cell["ns_max"] for cell in cells)
    flows = sorted({cell["flows"] for cell in cells})
    parts, plots = [], []
    for store, line in lines.items():
        colour, width, dash = STYLES[store]
        parts += [f"${store} << EOD", *(
            f"{cell['flows']} {cell['ns_per_packet']} {cell['ns_min']} {cell['ns_max']}"
            for cell in line), "EOD"]
        plots.append(f'${store} using 1:3:4 with filledcurves fillcolor rgb "{colour}" '
                     "fillstyle transparent solid 0.12 noborder, "
                     f'${store} using 1:2 with linespoints linecolor rgb "{colour}" '
                     f"linewidth {width} dashtype {dash} pointtype 7 "
                     f"pointsize {width * 0.12 + 0.15:.1f}")
    parts.append(LEFT.format(
        left=LEFT_EDGE, right=right_edge, low=low, high=high,
        first=flows[0] * 0.95, last=flows[-1] * 1.05,
        who="One CPU" if case["cpus"] == 1 else "All CPUs at once",
        what="all flows equally busy" if case["distribution"] == "uniform"
        else "flows by Zipf's law",
        ticks=", ".join(f'"{short(number)}" {number}' for number in flows)))
    return "\n".join([*parts, *left_labels(lines, low, high), "plot " + ", ".join(plots)])


def right_panel(bars, cpus):
    rows = [f"{row} {store} {alone:.1f} {shared:.1f} {int(STYLES[store][0][1:], 16)}"
            for row, (store, alone, shared) in enumerate(bars)]
    return RIGHT.format(bars="\n".join(rows), left=PANELS_GAP + 0.10, cpus=cpus)


def script(results):
    """The commands for gnuplot; of several kinds of traffic the first one is drawn."""
    cells = select(results["results"], **{
        name: results["results"][0][name] for name in ("traffic", "direction")})
    bars, cpus = contention(cells)
    right_edge = PANELS_GAP - LABEL_SHARE if bars else 1 - LABEL_SHARE * WIDTH / NARROW
    parts = [HEAD.format(width=WIDTH if bars else NARROW, height=HEIGHT, **{
        name: results[name] for name in ("kernel", "cpu", "rounds")}),
        left_panel(cells, right_edge)]
    if bars:
        parts.append(right_panel(bars, cpus))
    return "\n".join([*parts, "unset multiplot", ""])


if __name__ == "__main__":
    if sys.argv[1:] == ["--check"]:
        check_gnuplot()
    else:
        run_gnuplot(script(json.load(sys.stdin)))
