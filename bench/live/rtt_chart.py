# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
"""
The chart of what round-trip times cost, drawn by gnuplot: the throughput that agents
leave, and the CPU that they take at the same rate.
"""

import os
import sys

sys.path.append(os.path.join(os.path.dirname(__file__), ".."))
# pylint: disable=wrong-import-position
from chart import GREY, STYLES, TITLES, quote
from datapath_chart import run_gnuplot
from scenarios import RTT, PACED_RATE

COLOURS = {**{agent: style[0] for agent, style in STYLES.items()}, "host-int": "#c04a00"}
WORDS = {**TITLES, "host-int": "records, as host-INT"}
AGENTS = ("empty", "netobs", "netobs-rtt", "host-int", "tcpdump")

HEAD = """\
set terminal svg size 1000,330 dynamic enhanced font 'sans-serif,13' background 'white'
set output '{path}'
set encoding utf8
set multiplot
set tmargin at screen 0.70
set bmargin at screen 0.12
set border 1 lc rgb '#404040'
set tics nomirror out scale 0.5 tc rgb '#303030'
set grid xtics lc rgb '#e4e4e4' lt 1 lw 1
set yrange [-0.6:{last}.6]
set key off
set label 1 '{{/=17:Bold What round-trip times cost}}' at screen 0.012,0.93 left tc rgb '#101010'
set label 2 '{{/=12 {subtitle}}}' at screen 0.012,0.84 left tc rgb '{grey}'
"""

# (scenario, field, scale, title, format of a value, left and right border)
PANELS = (
    (RTT[0], "of_none", 100, "Throughput, of that with no agent", "%.0f %%", 0.195, 0.55),
    (RTT[1], "more_cpus", 100,
     f"CPU beyond no agent, at {PACED_RATE / 1e9:g} Gbit/s",
     "%+.1f %%", 0.61, 0.965),
)


def rows_of(results, scenario, field):
    """{agent: (median, least, most)} of what was measured."""
    return {row["agent"]: tuple(row[field][key] for key in ("median", "min", "max"))
            for row in results["results"]
            if row["scenario"] == scenario and row["agent"] in AGENTS and row[field]}


def panel(results, number):
    """A bar for each agent, the first on top."""
    scenario, field, scale, title, form, left, right = PANELS[number]
    found = rows_of(results, scenario, field)
    if not found:
        return ""
    places = {agent: len(AGENTS) - 1 - i for i, agent in enumerate(AGENTS)}
    ticks = ", ".join(f"'{quote(WORDS.get(agent, agent))}' {place}"
                      for agent, place in places.items())
    data = "\n".join(
        " ".join([str(places[agent]), *(f"{scale * value:.3f}" for value in values),
                  str(int(COLOURS[agent][1:], 16))])
        for agent, values in found.items()) + "\ne"
    low = min(0, *(scale * least for _, least, _ in found.values()))
    high = max(scale * most for *_, most in found.values())
    commands = [
        f"set lmargin at screen {left}", f"set rmargin at screen {right}",
        f"set label 3 '{{/:Bold {title}}}' at screen {left},0.745 left tc rgb '#303030'",
        f"set xrange [{1.08 * low:.3f}:{max(1, 1.15 * high):.3f}]",
        f"set ytics scale 0 ({ticks})" if number == 0 else "set ytics scale 0 ('' 0)",
        "set format x '%g %%'",
        "plot '-' using (0):1:(0):2:($1-0.32):($1+0.32):5 with boxxyerror "
        "fc rgb variable fs solid 0.75 noborder, "
        f"'-' using 2:1:3:4 with xerrorbars pt -1 lc rgb '{GREY}' lw 1, "
        f"'-' using 4:1:(sprintf('{form}', $2)) with labels left offset 0.6,0 "
        f"font ',11' tc rgb '#404040'"]
    return "\n".join(commands + [data] * 3 + ["unset label", ""])


def script(results, path):
    """The commands for gnuplot."""
    rounds = results["rounds"]
    plural = "s" if rounds > 1 else ""
    subtitle = (f"Medians of {rounds} round{plural}, lines from least to most; 100 % of CPU is "
                "one CPU. "
                f"Linux {results['kernel']}, {results['cpu']}, {results['cpus']} CPUs.")
    head = HEAD.format(path=quote(path), last=len(AGENTS) - 1, grey=GREY,
                       subtitle=quote(subtitle))
    return "\n".join([head, *(panel(results, number) for number in range(len(PANELS))),
                      "unset multiplot", "set output", ""])


def draw(results, path):
    run_gnuplot(script(results, path))
