# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
"""netobsctl bench: complete results, which say how far they can be believed, and nothing left behind."""

import json
import os
import subprocess

from lib import bpf
from lib import lab
from lib import observer

FAILED, NOISY = 1, 3
STORES = ["empty", "empty2", "percpu_hash", "netobs", "nat"]
SINKS = {"null", "json", "json-encoding", "protobuf-encoding", "ipfix", "kafka"}
# Few rounds, however noisy this host is.
LEAST = 7
FEW = ["--quick", "--rounds", str(LEAST), "--width", "100"]


def programs():
    """The ids of the BPF programs that only the benchmarks have; they hold the maps."""
    return [number for number, name in bpf.programs().items() if name == "run_empty"]


class Bench(lab.LabTest):
    def bench(self, *arguments):
        done = observer.run("bench", *arguments, "-o", "json")
        self.assertEqual("", done.stderr)
        found = json.loads(done.stdout)
        self.assertEqual(os.uname().release, found["kernel"])
        return found

    def check_turns(self, found):
        """What says how far a comparison can be believed."""
        self.assertEqual((LEAST, 100), (found["rounds"], found["width"]))
        self.assertGreaterEqual(min(found["others"], found["repeated"]), 0)
        for result in found["results"]:
            self.assertGreater(result["ratio_low"], 0)
            self.assertLessEqual(result["ratio_low"], result["ratio"])
            self.assertLessEqual(result["ratio"], result["ratio_high"])

    def test_datapath(self):
        """Every packet that was run or sent, the stores have counted."""
        for more in [[], ["--live"]] if bpf.has_tcx() else [[]]:
            found = self.bench("datapath", *more, *FEW, "--flows", "1,100", "--distribution", "zipf",
                               "--stores", ",".join(STORES))
            self.check_turns(found)
            self.assertEqual([(store, flows, "zipf") for flows in (1, 100) for store in STORES],
                             [(one["store"], one["flows"], one["distribution"]) for one in found["results"]])
            for result in found["results"]:
                self.assertGreater(result["ns_per_packet"], 0)
                if not result["store"].startswith("empty"):
                    self.assertEqual(result["sent"], result["counted"], result)

    def test_drain(self):
        path = self.lab.path("drained")
        result, = self.bench("drain", "--flows", "50000", "--rounds", "1", "--sink", f"json:{path}")["results"]
        self.assertEqual(50000, result["flows"])
        self.assertGreater(result["cpu_ns_per_flow"], 0)
        self.assertEqual(result["total_bytes"], result["rss_peak_bytes"] + result["kernel_bytes"])
        self.assertEqual(50000, len({record["SrcAddr"] for record in lab.json_lines(path)}))

    def test_export(self):
        found = self.bench("export", "--records", "3000", *FEW)
        self.check_turns(found)
        self.assertEqual(SINKS, {one["sink"] for one in found["results"]})
        self.assertGreater(min(one["records_per_s"] for one in found["results"]), 0)

    def test_trace(self):
        *results, verdict = self.bench("trace", "--rounds", "1")["results"]
        self.assertEqual(["none", "empty", "not watched", "watched", "byte by TCP", "byte, armed", "64 KiB by TCP",
                          "64 KiB, armed"], [one["programs"] for one in results])
        self.assertGreater(min(one["ns_per_message"] for one in results), 0)
        self.assertEqual("verdict", verdict["programs"])
        self.assertGreater(verdict["cpu_s"], 0)

    def test_too_noisy(self):
        """No host is so quiet that seven rounds differ by less than that."""
        done = observer.run("bench", "datapath", "--flows", "3", "--stores", "percpu_hash", "--rounds", LEAST,
                            "--width", "1e-9", code=NOISY)
        self.assertEqual("", done.stdout)
        self.assertIn("too noisy: after 7 rounds", done.stderr)

    def test_interrupted_it_leaves_nothing(self):
        lab.wait_for(lambda: not programs(), "the end of earlier programs")
        process = self.lab.spawn(observer.netobsctl(), "bench", stderr=subprocess.PIPE,
                                 stdout=subprocess.PIPE, text=True)
        lab.wait_for(programs, "programs")
        out, errors = observer.interrupt(process, FAILED)
        self.assertEqual("", out)
        self.assertIn("interrupted", errors)
        lab.wait_for(lambda: not programs(), "the end of the programs")


if __name__ == "__main__":
    lab.main()
