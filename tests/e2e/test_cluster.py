#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
# Label: ecosystem
# Needs: python3-pip
"""
`./dev bench fleet` with a few nodes: each packet of their interfaces is in ClickHouse or counted elsewhere, and the
service map of all nodes has each packet once.
"""

import copy
import json
import os
import subprocess
import sys
import unittest

BENCH = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "bench", "live")
sys.path.append(BENCH)

from cluster import table
import fleet
from lib import lab

NODES, FLOWS, SECONDS = 12, 40_000, 10
ROW = {
    "workload": {"name": "cluster-density", "nodes": 120, "flows_per_minute": 1_920_000}, "seconds": 60.0,
    "traffic": {"datagrams": 100, "lost": 0, "edges": 7, "cpu_seconds": 30.0},
    "records": {"records": 1_900_000, "packets": 300, "bytes": 9000, "datagrams": 200, "nodes": 120},
    "delivered": 1_900_000,
    "remainder": {"interfaces": 310, "stored": 300, "elsewhere": {"unparsed: arp": 10}, "difference": 0},
    "agents": {"start_cpu_seconds": 60.0, "cpu_seconds": 6.0, "bpf_seconds": 1.2, "most_cpu_seconds": 0.12,
               "rss_peak_bytes": 1_200_000_000, "kernel_bytes": 1_300_000_000},
    "store": {"cpu_seconds": 12.0, "rss_peak_bytes": 700_000_000}, "others": 0.01,
    "map": {"edges": 7, "packets": 150, "repeated": 150, "datagrams": 100, "seconds": 1.0}, "is_stopped": True,
    "faults": []}
HOST = {"kernel": "6.1", "cpu": "a CPU", "cpus": 2, "date": "2026-01-01"}


class Words(unittest.TestCase):
    def test_the_paper_is_beside_ours(self):
        text = table.markdown({**HOST, "results": [ROW]})
        self.assertIn("| cluster-density | the paper | 120 | 1.92 | 10.14 | 11.13 |\n"
                      "| cluster-density | netobs | 120 | 1.90 | 0.120 | 2.50 |", text)
        self.assertIn("| cluster-density | 0.083 | 0.200 | 0.017 | 0.50 | 10.0 | 10.8 |", text)
        self.assertIn("310 packets at the interfaces of the nodes = 300 in ClickHouse + 10 (unparsed: arp); "
                      "difference 0.", text)
        self.assertIn("7 edges and each of 150 packets once", text)

    def test_what_is_missing_is_named_and_not_published(self):
        workload = fleet.Workload(**ROW["workload"])
        self.assertEqual([], fleet.faults(workload, ROW))
        for where, name, words in (("remainder", "difference", "difference: 1, and not 0"),
                                   ("records", "records", "records: 1, and not 1900000"),
                                   ("records", "nodes", "nodes: 1, and not 120"),
                                   ("records", "datagrams", "datagrams: 1, and not 200"),
                                   ("map", "edges", "edges: 1, and not 7")):
            row = copy.deepcopy(ROW)
            row[where][name] = 1
            row["faults"] = fleet.faults(workload, row)
            self.assertEqual([words], row["faults"])
            with self.assertRaisesRegex(SystemExit, words):
                table.markdown({**HOST, "results": [ROW, row]})


class Fleet(lab.LabTest):
    def test_each_packet_is_accounted_for(self):
        path = self.lab.path("results.json")
        done = subprocess.run(
            [os.path.join(BENCH, "fleet.py"), "--nodes", str(NODES), "--flows", str(FLOWS),
             "--seconds", str(SECONDS), "--map", "--json", path],
            text=True, capture_output=True, check=False, timeout=280,
            env={**os.environ, "PYTHONPATH": os.path.dirname(os.path.dirname(lab.__file__))})
        self.assertEqual(0, done.returncode, done.stdout + done.stderr)
        with open(path, encoding="utf-8") as file:
            row, = json.load(file)["results"]
        rest, records, edges = row["remainder"], row["records"], row["map"]
        self.assertEqual(rest["interfaces"], rest["stored"] + sum(rest["elsewhere"].values()))
        self.assertEqual(NODES, records["nodes"])
        self.assertEqual(2 * edges["packets"], records["packets"])
        self.assertEqual(row["traffic"]["edges"], edges["edges"])
        self.assertGreater(row["traffic"]["datagrams"], 100)
        self.assertGreater(row["traffic"]["connections"], 10)
        self.assertGreater(row["agents"]["cpu_seconds"], 0)
        self.assertGreater(row["agents"]["bpf_seconds"], 0)
        self.assertGreater(row["agents"]["kernel_bytes"], NODES << 20)
        self.note(f"{rest}, {records}, {edges}")


if __name__ == "__main__":
    lab.main()
