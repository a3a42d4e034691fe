#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
"""
What the agents of a cluster take, in all, while they report its flows: Table 2 of the paper on the flow agent, made
anew on this machine. Namespaces stand for nodes; each has an agent that sends its records to an embedded ClickHouse.

Exits with 1 if a packet of an interface is neither in ClickHouse nor counted elsewhere.
"""

import argparse
import collections
import contextlib
import json
import os
import struct
import sys
import time

import command
from cluster import table
from cluster.nodes import GROUPS, LEAVES, Cluster, account
from lib import lab
import measure
import method

EXIT_INEXACT = 1
SECONDS = 180.0
Workload = collections.namedtuple("Workload", "name nodes flows_per_minute")
# Those of the paper.
WORKLOADS = {one.name: one for one in (Workload("node-density-heavy", 25, 520_000),
                                       Workload("cluster-density", 120, 1_920_000))}
OWN = Workload("own", 12, 60_000)
UDP = 17
BPF = {"x86_64": 321, "aarch64": 280} # numbers of bpf(2)
BPF_ENABLE_STATS = 32


def arguments():
    parser = argparse.ArgumentParser(prog="./dev bench fleet", allow_abbrev=False, description=__doc__)
    parser.add_argument("--workload", action="append", choices=WORKLOADS, metavar="W",
                        help="one of: " + ", ".join(WORKLOADS) + "; repeatable (default all)")
    parser.add_argument("--nodes", type=int, metavar="N", help="one of your own, with so many nodes "
                        f"(default {OWN.nodes}; at least 2)")
    parser.add_argument("--flows", type=int, metavar="N",
                        help=f"and so many flows a minute (default {OWN.flows_per_minute})")
    parser.add_argument("--seconds", type=float, default=SECONDS, metavar="S",
                        help=f"of traffic (default {SECONDS:g})")
    parser.add_argument("--map", action="store_true",
                        help="also make the service map of all records, and compare it with the traffic")
    parser.add_argument("--json", metavar="FILE",
                        help="where the results go (default: into the build directory)")
    options = parser.parse_args()
    if options.nodes is not None and options.nodes < 2:
        parser.error("--nodes: there are at least 2")
    if options.flows is not None and options.flows < 1:
        parser.error("--flows: there is at least 1")
    is_own = options.nodes or options.flows
    options.json = options.json or os.path.join(
        os.environ["NETOBS_RESULTS"], "part.json" if is_own or options.workload else "fleet.json")
    options.workload = [Workload(OWN.name, options.nodes or OWN.nodes, options.flows or OWN.flows_per_minute)] \
        if is_own else [WORKLOADS[name] for name in options.workload or WORKLOADS]
    return options


@contextlib.contextmanager
def timed_programs():
    """The kernel measures how long BPF programs run, as long as this is open; others may ask for it, too."""
    run_time = struct.pack("I", 0)
    fd = lab.check_errno(lab.LIBC.syscall(BPF[os.uname().machine], BPF_ENABLE_STATS, run_time, len(run_time)),
                         "BPF_ENABLE_STATS")
    try:
        yield
    finally:
        os.close(fd)


def agents_usage(before, after):
    """Of all agents, and the most of one; CPU time before the traffic is that of their start."""
    spent = [{key: late[key] - early[key] for key in ("cpu_seconds", "bpf_seconds")}
             for early, late in zip(before, after)]
    return {"start_cpu_seconds": sum(one["cpu_seconds"] for one in before),
            "cpu_seconds": sum(one["cpu_seconds"] for one in spent),
            "bpf_seconds": sum(one["bpf_seconds"] for one in spent),
            "most_cpu_seconds": max(one["cpu_seconds"] for one in spent),
            "rss_peak_bytes": sum(one["rss_peak_bytes"] for one in after),
            "kernel_bytes": sum(one["kernel_bytes"] for one in after)}


def remainder(crossed, stored, found):
    """Where the packets of the interfaces are; "difference" is 0."""
    names = [name for name in found if name in LEAVES or name.partition(":")[0] in GROUPS]
    elsewhere = {name: found[name] for name in names if found[name]}
    return {"interfaces": crossed, "stored": stored, "elsewhere": elsewhere,
            "difference": crossed - stored - sum(elsewhere.values())}


def stored_rows(store):
    row, = store.ask("SELECT count() AS records, sum(Packets) AS packets, sum(Bytes) AS bytes, "
                     f"sumIf(Packets, Proto = {UDP}) AS datagrams, uniqExact(AgentIP) AS nodes "
                     "FROM netobs_records")
    return {key: int(value) for key, value in row.items()}


def map_of(store):
    start = time.monotonic()
    store.make_map()
    row, = store.ask("SELECT count() AS edges, sum(Packets) AS packets, sum(RepeatedPackets) AS repeated, "
                     f"sumIf(Packets, Proto = {UDP}) AS datagrams FROM netobs_services")
    return {key: int(value) for key, value in row.items()} | {"seconds": time.monotonic() - start}


def faults(workload, row):
    """What is not as it should be: a list of words, empty."""
    talk, records = row["traffic"], row["records"]
    expected = {"difference": (0, row["remainder"]["difference"]),
                "records": (row["delivered"], records["records"]),
                "nodes": (workload.nodes, records["nodes"])}
    if not talk["lost"]: # each is seen where it leaves and where it arrives
        expected["datagrams"] = 2 * talk["datagrams"], records["datagrams"]
    if "map" in row:
        edges = row["map"]
        expected["edges"] = talk["edges"], edges["edges"]
        expected["packets of the map"] = records["packets"], edges["packets"] + edges["repeated"]
        expected["datagrams of the map"] = talk["datagrams"], edges["datagrams"]
    found = [f"{name}: {have}, and not {want}" for name, (want, have) in expected.items() if want != have]
    return found if row["is_stopped"] else [*found, "an agent has failed"]


def show(text):
    print(f"fleet: {text}", file=sys.stderr, flush=True)


def run(workload, options):
    with contextlib.closing(lab.Lab()) as place:
        show(f"{workload.name}: {workload.nodes} namespaces")
        cluster = Cluster(place, workload.nodes)
        show("agents")
        cluster.start_agents()
        agents, store = cluster.usages(), cluster.store.usage()
        others = method.Others()
        show(f"traffic for {options.seconds:g} s")
        process = cluster.start_traffic(workload.flows_per_minute, options.seconds)
        talk = json.loads(process.stdout.read())
        crossed, statuses = cluster.settle()
        share = others.share()
        agents = agents_usage(agents, cluster.usages())
        after = cluster.store.usage()
        store = {**after, "cpu_seconds": after["cpu_seconds"] - store["cpu_seconds"]}
        found, records = account(statuses), stored_rows(cluster.store)
        row = {"workload": workload._asdict(), "seconds": talk["seconds"], "traffic": talk, "records": records,
               "delivered": found["delivered"], "remainder": remainder(crossed, records["packets"], found),
               "agents": agents, "store": store, "others": share}
        if options.map:
            row["map"] = map_of(cluster.store)
        row["is_stopped"] = cluster.stop_agents()
    return {**row, "faults": faults(workload, row)}


def main():
    options = arguments()
    started = time.strftime("%Y-%m-%d")
    with timed_programs():
        rows = [run(workload, options) for workload in options.workload]
    results = {**measure.host(), "date": started, "results": rows}
    command.write(options.json, results)
    print(table.text(results))
    print(f"\nResults: {options.json}")
    return EXIT_INEXACT if any(row["faults"] for row in rows) else 0


if __name__ == "__main__":
    command.run(main)
