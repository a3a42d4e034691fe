# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
"""The results of ./dev bench fleet, for the terminal or as Markdown, beside those of the paper."""

import table

# Table 2: nodes, flows a minute, CPUs, bytes.
PAPER = {"node-density-heavy": (25, 0.52e6, 3.32, 2.71e9), "cluster-density": (120, 1.92e6, 10.14, 11.13e9)}
TABLE_2 = ("workload", "agents", "nodes", "flows/min, millions", "CPU, cores", "memory, GB")
PER_NODE = ("of a node's agent", "CPU, % of one", "of the busiest", "BPF programs, % of one",
            "CPU to start, s", "process, MB", "BPF maps, MB")
BESIDE = ("beside the agents", "records", "ClickHouse: CPU, cores", "its memory, GB", "traffic: CPU, cores",
          "others, CPU")


def paper_row(name):
    nodes, flows, cpus, memory = PAPER[name]
    return (name, "the paper", str(nodes), f"{flows / 1e6:.2f}", f"{cpus:.2f}", f"{memory / 1e9:.2f}")


def per_minute(row):
    return row["records"]["records"] / row["seconds"] * 60


def own_row(row):
    agents, workload = row["agents"], row["workload"]
    cpus = (agents["cpu_seconds"] + agents["bpf_seconds"]) / row["seconds"]
    memory = agents["rss_peak_bytes"] + agents["kernel_bytes"]
    return (workload["name"], "netobs", str(workload["nodes"]), f"{per_minute(row) / 1e6:.2f}", f"{cpus:.3f}",
            f"{memory / 1e9:.2f}")


def table_2(rows):
    for row in rows:
        if row["workload"]["name"] in PAPER:
            yield paper_row(row["workload"]["name"])
        yield own_row(row)


def node_row(row):
    agents, nodes, seconds = row["agents"], row["workload"]["nodes"], row["seconds"]
    return (row["workload"]["name"], f"{100 * agents['cpu_seconds'] / nodes / seconds:.3f}",
            f"{100 * agents['most_cpu_seconds'] / seconds:.3f}",
            f"{100 * agents['bpf_seconds'] / nodes / seconds:.3f}",
            f"{agents['start_cpu_seconds'] / nodes:.2f}",
            f"{agents['rss_peak_bytes'] / nodes / 1e6:.1f}", f"{agents['kernel_bytes'] / nodes / 1e6:.1f}")


def beside_row(row):
    store, seconds = row["store"], row["seconds"]
    return (row["workload"]["name"], f"{row['records']['records']:,}", f"{store['cpu_seconds'] / seconds:.2f}",
            f"{store['rss_peak_bytes'] / 1e9:.2f}", f"{row['traffic']['cpu_seconds'] / seconds:.2f}",
            f"{row['others']:.2f}")


def remainder_line(row):
    """The sum, and what is wrong."""
    rest = row["remainder"]
    elsewhere = "".join(f" + {packets:,} ({name})" for name, packets in rest["elsewhere"].items())
    line = (f"{row['workload']['name']}: {rest['interfaces']:,} packets at the interfaces of the nodes = "
            f"{rest['stored']:,} in ClickHouse{elsewhere}; difference {rest['difference']}.")
    if "map" in row:
        edges = row["map"]
        line += (f" The service map has {edges['edges']:,} edges and each of {edges['packets']:,} packets once, made "
                 f"in {edges['seconds']:.1f} s.")
    return line + "".join(f" WRONG: {fault}." for fault in row["faults"])


def tables(results):
    rows = results["results"]
    return ((TABLE_2, table_2(rows)), (PER_NODE, map(node_row, rows)), (BESIDE, map(beside_row, rows)))


def text(results):
    parts = ["\n".join(table.align([head, *rows])) for head, rows in tables(results)]
    return "\n\n".join([*parts, *map(remainder_line, results["results"])])


def markdown(results):
    """Exits if something is wrong: it is not to be published."""
    wrong = [fault for row in results["results"] for fault in row["faults"]]
    if wrong:
        raise SystemExit("./dev bench report: fleet: " + "; ".join(wrong))
    parts = [table.markdown(head, list(rows)) for head, rows in tables(results)]
    lines = "\n".join(f"- {remainder_line(row)}" for row in results["results"])
    return "\n\n".join([f"Linux {results['kernel']}, {results['cpu']}, {results['cpus']} CPUs, {results['date']}, "
                        f"{results['results'][0]['seconds']:.0f} s of traffic each.", *parts, lines])
