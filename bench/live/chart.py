# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
"""
The chart of docs/performance.md: how much of its throughput each agent leaves
to the sender, drawn by gnuplot.
"""

import os
import sys

sys.path.append(os.path.join(os.path.dirname(__file__), ".."))
# pylint: disable=wrong-import-position
from datapath_chart import run_gnuplot, spread_labels
from scenarios import FLOWS, SCENARIOS, TCP_STREAMS, short

# Of the palette of Okabe and Ito, which the colour-blind can tell apart; some
# are darkened, to be read as words. (colour, point type, line width)
STYLES = {
    "empty": ("#707070", 4, 1.5),
    "netobs": ("#0060a0", 7, 4),
    "netobs-rtt": ("#3080b8", 6, 2),
    "v0": ("#c04a00", 9, 2),
    "tcpdump": ("#007a58", 5, 2),
    "pmacctd": ("#a8487e", 11, 2),
    "softflowd": ("#96690a", 13, 2),
}
TITLES = {"empty": "empty BPF program", "netobs-rtt": "netobs --rtt",
          "v0": "ring buffer (v0)"}
# Labels closer than this, in percent of the full scale, would touch.
LABEL_HEIGHT = 5.5
TOP = 108
BESIDE = 0.06
GREY = "#505050"

# (direction or None for TCP, title, left and right border)
PANELS = (
    ("egress", "UDP egress", 0.09, 0.345),
    ("ingress", "UDP ingress", 0.38, 0.635),
    (None, "TCP ingress", 0.67, 0.755),
)

HEAD = """\
set terminal svg size 1000,460 dynamic enhanced font 'sans-serif,13' background 'white'
set output '{path}'
set multiplot
set tmargin at screen 0.79
set bmargin at screen 0.155
set border 3 lc rgb '#404040'
set tics nomirror out scale 0.5 tc rgb '#303030'
set grid ytics lc rgb '#e4e4e4' lt 1 lw 1
set yrange [0:{top}]
set ytics 20
set format y '%g %%'
unset key
set errorbars 0.4
set label 1 '{{/=17:Bold How much throughput an agent leaves to the traffic it watches}}' at screen 0.012,0.95 left tc rgb '#101010'
set label 2 '{{/=12 {subtitle}}}' at screen 0.012,0.885 left tc rgb '{grey}'
"""


def panel_scenarios(direction):
    """[(x, scenario name, tick)]"""
    if direction is None:
        return [(0, "tcp", f"{TCP_STREAMS}")]
    return [(x, f"udp-{direction}-{short(flows)}", short(flows))
            for x, flows in enumerate(FLOWS)]


def points(rows, agent, direction):
    """x, percent of no agent, least, most; of what was measured."""
    found = []
    # Side by side, so that bars are seen that would cover each other.
    beside = list(STYLES).index(agent) - (len(STYLES) - 1) / 2
    for x, name, _ in panel_scenarios(direction):
        row = rows.get((name, agent))
        if row and row["of_none"]:
            found.append((x + beside * BESIDE, *(100 * row["of_none"][key]
                               for key in ("median", "min", "max"))))
    return found


def percent(value):
    """100 only if it is exactly that."""
    if value == 1:
        return "100 %"
    return f"{min(100 * value, 99.99):.{1 if value < 0.995 else 2}f} %"


def counted(lines, agent):
    """How much of the traffic it counted in its worst run, as words."""
    rates = [row["monitoring_rate"] for row in lines
             if row["agent"] == agent and row["monitoring_rate"] is not None]
    return percent(min(rates)) if rates else "–"


def quote(text):
    return text.replace("'", "''")


def label(number, text, side, where, colour):
    return (f"set label {number} '{quote(text)}' at {where} {side} "
            f"tc rgb '{colour}'")


def labels(lines, rows, agents):
    """Beside the last panel, at the height where each line ends."""
    ends = {agent: points(rows, agent, None) or points(rows, agent, "ingress")
            or points(rows, agent, "egress") for agent in agents}
    agents = [agent for agent in agents if ends[agent]]
    heights = spread_labels([ends[agent][-1][1] for agent in agents],
                            LABEL_HEIGHT)
    commands = [
        label(8, "agent", "left", "screen 0.768,0.81", GREY),
        label(9, "counted, at worst", "right", "screen 0.99,0.81", GREY)]
    for agent, height in zip(agents, heights):
        number = 10 + 2 * len(commands)
        colour = STYLES[agent][0]
        commands += [
            label(number, f"{{/:Bold {TITLES.get(agent, agent)}}}", "left",
                  f"screen 0.768, first {height:.2f}", colour),
            label(number + 1, counted(lines, agent), "right",
                  f"screen 0.99, first {height:.2f}", colour)]
    return commands


def panel(rows, agents, number):
    direction, title, left, right = PANELS[number]
    ticks = ", ".join(f"'{tick}' {x}"
                      for x, _, tick in panel_scenarios(direction))
    last = len(panel_scenarios(direction)) - 1
    unit = "connections" if direction is None else "flows"
    commands = [
        f"set lmargin at screen {left}", f"set rmargin at screen {right}",
        f"set title '{{/:Bold {title}}}' offset 0,-0.5 tc rgb '#303030'",
        f"set xrange [-0.4:{last + 0.4}]", f"set xtics ({ticks})",
        f"set xlabel '{unit}' tc rgb '#303030'"]
    if number:
        commands.append("set format y ''")
    else:
        commands.append("set ylabel 'throughput, of that with no agent' "
                        "offset -0.5,0 tc rgb '#303030'")
    plots, data = [], []
    for agent in agents:
        found = points(rows, agent, direction)
        if not found:
            continue
        colour, point, width = STYLES[agent]
        dash = " dt 2" if agent == "empty" else ""
        style = f"lc rgb '{colour}' lw {width}"
        plots.append(f"'-' with yerrorbars pt -1 lc rgb '{colour}' lw 1 "
                     "notitle")
        plots.append(f"'-' with linespoints {style}{dash} pt {point} ps 0.8 "
                     "notitle")
        data += ["\n".join(" ".join(f"{value:.4f}" for value in row)
                           for row in found) + "\ne"] * 2
    if not plots:
        return ""
    return "\n".join(commands + ["plot " + ", ".join(plots)] + data +
                     ["unset label", "unset ylabel", ""])


def script(results, path):
    """The commands for gnuplot."""
    lines = results["results"]
    rows = {(row["scenario"], row["agent"]): row for row in lines
            if row["scenario"] in SCENARIOS}
    agents = [agent for agent in STYLES
              if any(row["agent"] == agent for row in lines)]
    rounds = results["rounds"]
    plural = "s" if rounds > 1 else ""
    subtitle = (f"100 % is the same traffic at full speed with no agent. "
                f"Median of {rounds} round{plural}, bars from least to most. "
                f"Linux {results['kernel']}, {results['cpu']}, "
                f"{results['cpus']} CPUs.")
    parts = [HEAD.format(path=quote(path), top=TOP, grey=GREY,
                         subtitle=quote(subtitle))]
    for number in range(len(PANELS)):
        if number == len(PANELS) - 1:
            parts += labels(lines, rows, agents)
        parts.append(panel(rows, agents, number))
    return "\n".join(parts + ["unset multiplot", "set output", ""])


def draw(results, path):
    run_gnuplot(script(results, path))
