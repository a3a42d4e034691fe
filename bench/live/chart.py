# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
"""
The chart of docs/performance.md: how much of its rate a flooding sender keeps, by the number
of flows, drawn by gnuplot from the results of `netobsctl bench datapath --live`.
"""

import os
import sys

sys.path.append(os.path.join(os.path.dirname(__file__), ".."))
# pylint: disable=wrong-import-position
from datapath_chart import run_gnuplot, spread_labels
from scenarios import short

# Of the palette of Okabe and Ito, which the colour-blind can tell apart, darkened to be read
# as words. (colour, line width, title)
STYLES = {
    "empty": ("#707070", 1.5, "empty BPF program"),
    "netobs": ("#0060a0", 4, "netobs"),
    "percpu_hash": ("#c04a00", 2, "per-CPU hash map"),
}
CASES = ("uniform", "zipf")
TITLES = {"uniform": "All flows equally busy", "zipf": "Few busy flows, many rare ones (Zipf)"}
# Left and right border of each panel; labels are beside the last one.
BORDERS = ((0.075, 0.40), (0.46, 0.785))
# Labels closer than this, in percent, would touch.
LABEL_HEIGHT = 5
LOW, TOP = 40, 104

HEAD = """\
set terminal svg size 1000,400 dynamic enhanced font 'sans-serif,13' background 'white'
set output '{path}'
set multiplot
set tmargin at screen 0.74
set bmargin at screen 0.17
set border 3 lc rgb '#404040'
set tics nomirror out scale 0.5 tc rgb '#303030'
set grid ytics lc rgb '#e4e4e4' lt 1 lw 1
set yrange [{low}:{top}]
set ytics 10
set format y '%g %%'
unset key
set errorbars 0.4
set label 1 '{{/=17:Bold What a sender keeps of its rate at full speed}}' at screen 0.012,0.95 left tc rgb '#101010'
set label 2 '{{/=12 {subtitle}}}' at screen 0.012,0.87 left tc rgb '#505050'
"""


def quote(text):
    return text.replace("'", "''")


def lines(results, case):
    """{store: [(flows, percent, low, high)]}; without an interval: low and high are the same."""
    found = {}
    for one in results["results"]:
        if one["distribution"] == case and one["store"] in STYLES:
            found.setdefault(one["store"], []).append((one["flows"], *(
                100 * one.get(key, one["ratio"]) for key in ("ratio", "ratio_low", "ratio_high"))))
    return {store: sorted(found[store]) for store in STYLES if store in found}


def labels(found):
    """Where each line ends."""
    heights = spread_labels([line[-1][1] for line in found.values()], LABEL_HEIGHT)
    return [f"set label {10 + number} '{{/:Bold {STYLES[store][2]}}}' at graph 1.05, first "
            f"{height:.2f} left tc rgb '{STYLES[store][0]}'"
            for number, (store, height) in enumerate(zip(found, heights))]


def panel(results, number):
    case, (left, right) = CASES[number], BORDERS[number]
    found = lines(results, case)
    flows = sorted({point[0] for line in found.values() for point in line})
    place = {count: x for x, count in enumerate(flows)}
    ticks = ", ".join(f"'{short(count)}' {x}" for count, x in place.items())
    commands = [
        f"set lmargin at screen {left}", f"set rmargin at screen {right}",
        f"set title '{{/:Bold {TITLES[case]}}}' offset 0,-0.5 tc rgb '#303030'",
        f"set xrange [-0.3:{len(flows) - 0.7}]", f"set xtics ({ticks})",
        "set xlabel 'flows' tc rgb '#303030'"]
    if number == len(BORDERS) - 1:
        commands += labels(found)
    plots, data = [], []
    for store, line in found.items():
        colour, width, _ = STYLES[store]
        dash = " dt 2" if store == "empty" else ""
        plots += [f"'-' with yerrorbars pt -1 lc rgb '{colour}' lw 1 notitle",
                  f"'-' with linespoints lc rgb '{colour}' lw {width}{dash} pt 7 ps 0.6 notitle"]
        data += ["\n".join(f"{place[count]} " + " ".join(f"{value:.3f}" for value in values)
                           for count, *values in line) + "\ne"] * 2
    return "\n".join([*commands, "plot " + ", ".join(plots), *data, ""])


def script(results, path):
    """The commands for gnuplot."""
    bars = ", bars: interval of 95 %" if "width" in results else ""
    subtitle = (f"100 %: an empty program in the same place. Medians of {results['rounds']} "
                f"rounds{bars}. Linux {results['kernel']}, {results['cpu']}.")
    head = HEAD.format(path=quote(path), low=LOW, top=TOP, subtitle=quote(subtitle))
    return "\n".join([head, *(panel(results, number) for number in range(len(CASES))),
                      "unset multiplot", "set output", ""])


def draw(results, path):
    run_gnuplot(script(results, path))
