# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
# Label: ecosystem
# Needs: python3-pip
"""
`./dev bench fleet` with a few nodes: each packet of their interfaces is in ClickHouse or counted elsewhere, and the
service map of all nodes has each packet once.
"""

import json
import os
import subprocess

from lib import lab

BENCH = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "bench", "live")
NODES, FLOWS, SECONDS = 12, 40_000, 10


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
