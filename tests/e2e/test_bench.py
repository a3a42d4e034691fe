#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
"""netobsctl bench: complete results in each form, and nothing left behind."""

import fcntl
import glob
import json
import os
import pty
import struct
import subprocess
import termios

from lib import bpf
from lib import lab
from lib import observer

FINE, FAILED, USAGE, NOISY = 0, 1, 2, 3
STORES = ["empty", "empty2", "percpu_hash", "netobs"]
# Few rounds, however noisy this host is.
LEAST = 7
FEW = ["--quick", "--rounds", f"{LEAST}", "--width", "100"]
AS_NOBODY = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]


def programs():
    """The ids of the BPF programs that only the benchmarks have; they hold the maps."""
    return [program["id"] for program in
            json.loads(lab.run("bpftool", "-j", "prog", "show"))
            if program.get("name") == "run_empty"]


class Bench(lab.LabTest):
    def run_bench(self, *arguments, command=(observer.netobsctl(),), **options):
        done = subprocess.run(
            [*command, "bench", *map(str, arguments)],
            capture_output=True, text=True, timeout=300, check=False, **options)
        observer.check_sanitizer(done.stderr)
        return done

    def bench(self, *arguments):
        done = self.run_bench(*arguments)
        self.assertEqual((FINE, ""), (done.returncode, done.stderr))
        return done.stdout

    def datapath(self, *arguments):
        return json.loads(self.bench("datapath", "-o", "json", *arguments))

    def refuse(self, code, words, *arguments, **options):
        done = self.run_bench(*arguments, **options)
        self.assertEqual((code, ""), (done.returncode, done.stdout), done.stderr)
        for word in words:
            self.assertIn(word, done.stderr)
        self.note(done.stderr.split("\n")[0])

    def check_head(self, found, rounds):
        self.assertEqual(os.uname().release, found["kernel"])
        self.assertTrue(found["cpu"])
        self.assertEqual(rounds, found["rounds"])

    def check_turns(self, found, rounds):
        """What says how far a comparison can be believed."""
        self.check_head(found, rounds)
        self.assertEqual(100, found["width"])
        self.assertGreaterEqual(found["others"], 0)
        self.assertGreaterEqual(found["repeated"], 0)

    def check_ratio(self, result, is_reference):
        low, ratio, high = (result[key] for key in ("ratio_low", "ratio", "ratio_high"))
        self.assertGreater(low, 0)
        self.assertLessEqual(low, ratio)
        self.assertLessEqual(ratio, high)
        if is_reference:
            self.assertEqual((1, 1), (low, high))

    def check_datapath(self, found, stores, flows, distributions):
        """Every packet that was run or sent, the stores have counted."""
        self.assertEqual(
            [(r["store"], r["flows"], r["distribution"]) for r in found["results"]],
            [(store, count, distribution) for count in flows
             for distribution in distributions for store in stores])
        for result in found["results"]:
            is_empty = result["store"] == "empty"
            self.assertEqual(LEAST, result["rounds"])
            self.assertGreater(result["ns_per_packet"], 0)
            self.check_ratio(result, is_empty)
            if is_empty:
                self.assertEqual(0, result["ns_over_empty"])
            self.assertGreater(result["sent"], result["flows"])
            if result["store"].startswith("empty"):
                self.assertNotIn("counted", result)
            else:
                self.assertEqual(result["sent"], result["counted"], result)

    def test_datapath(self):
        found = self.datapath(*FEW, "--flows", "1,100", "--distribution", "uniform")
        self.check_turns(found, LEAST)
        self.check_datapath(found, STORES, (1, 100), ("uniform",))

    def test_datapath_is_the_default(self):
        text = self.bench(*FEW, "--flows", "5", "--stores", "netobs", "--distribution", "zipf")
        for word in ("empty", "netobs", "zipf", "ratio", "of a CPU", os.uname().release):
            self.assertIn(word, text)
        self.assertNotIn("percpu_hash", text)
        self.assertNotIn("\x1b", text)

    def test_live(self):
        """The interface's own counters are what the stores have to count."""
        if not bpf.has_tcx():
            self.skipTest("this kernel has no tcx links")
        found = self.datapath("--live", *FEW, "--flows", "1,3000", "--stores",
                              ",".join([*STORES, "nat"]))
        self.check_turns(found, LEAST)
        self.check_datapath(found, [*STORES, "nat"], (1, 3000), ("uniform", "zipf"))

    def test_too_noisy(self):
        """No host is so quiet that seven rounds differ by less than that."""
        for arguments, words in (
                (["datapath", "--flows", "3", "--stores", "percpu_hash"],
                 ["percpu_hash with 3 flows"]),
                (["export", "null", "json-encoding", "--records", "100"], ["json-encoding"])):
            self.refuse(NOISY, ["too noisy: after 7 rounds", *words, "below 1e-09 is needed"],
                        *arguments, "--rounds", LEAST, "--width", "1e-9")

    def test_drain(self):
        found = json.loads(self.bench("drain", "-o", "json", "--flows", "1000,30000",
                                      "--rounds", "2"))
        self.check_head(found, 2)
        self.assertEqual([1000, 30000], [r["flows"] for r in found["results"]])
        for result in found["results"]:
            self.assertAlmostEqual(result["cpu_ns_per_flow"], result["user_ns_per_flow"] +
                                   result["system_ns_per_flow"], delta=0.2)
            self.assertGreater(result["wall_ns_per_flow"], 0)
            self.assertGreater(result["rss_peak_bytes"], 0)
            # At the very least, a flow is its key and its counters.
            self.assertGreater(result["kernel_bytes"], 64 * result["flows"])
            self.assertEqual(result["total_bytes"],
                             result["rss_peak_bytes"] + result["kernel_bytes"])

    def test_drain_into_a_sink(self):
        path = self.lab.path("drained")
        text = self.bench("drain", "--flows", "50000", "--rounds", "1", "--sink", f"json:{path}")
        self.assertIn("total_bytes", text)
        records = lab.json_lines(path)
        self.assertEqual(50000, len(records))
        self.assertEqual(50000, len({record["SrcAddr"] for record in records}))
        self.refuse(FAILED, ["nosuch"], "drain", "--flows", "1", "--rounds", "1",
                    "--sink", "json:/nosuch/x")

    def export(self, *arguments):
        return json.loads(self.bench("export", "-o", "json", "--records", "3000", *FEW,
                                     *arguments))

    def check_export(self, found):
        self.check_turns(found, LEAST)
        for result in found["results"]:
            self.check_ratio(result, result["sink"] == "null")
            cpu = result["cpu_ns_per_record"]
            self.assertGreater(result["records_per_s"], 0)
            self.assertGreater(result["cpu_ns_min"], 0)
            self.assertLessEqual(result["cpu_ns_min"], cpu)
            self.assertLessEqual(cpu, result["cpu_ns_max"])

    def test_export(self):
        found = self.export()
        self.check_export(found)
        measured = {result["sink"]: result for result in found["results"]}
        self.assertEqual({"null", "json", "json-encoding", "protobuf-encoding", "ipfix", "kafka"},
                         measured.keys())
        self.assertEqual(0, measured["null"]["cpu_ns_over_null"])
        self.assertGreater(measured["json"]["cpu_ns_over_null"], 0)
        text = self.bench("export", "--records", "1000", *FEW, "null", "json")
        for word in ("records_per_s", "cpu_ns_over_null", "ratio_low", os.uname().release):
            self.assertIn(word, text)

    def test_export_until_all_is_delivered(self):
        path = self.lab.path("flows.json")
        spec = f"json:{path}?rotate.bytes=1G"
        found = self.export(spec, "null")
        self.check_export(found)
        self.assertEqual([spec, "null"], [r["sink"] for r in found["results"]])
        records = [json.loads(line) for file in glob.glob(self.lab.path("flows-*"))
                   for line in open(file, encoding="utf-8")]
        # Each turn sends one ahead, to open connections; a run that others disturb is repeated.
        self.assertEqual((LEAST * (1 + found["repeated"])) * 3001, len(records))
        self.assertEqual({2048, 34525}, {record["Etype"] for record in records})

    def test_export_to_nobody(self):
        self.refuse(FAILED, ["nosuch"], "export", "json:/nosuch/x")
        self.refuse(FAILED, ["socket"], "export", f"json:unix:{self.lab.path('socket')}")
        self.refuse(USAGE, ["netobsctl bench: fish: there is no"], "export", "fish")
        self.refuse(USAGE, ["x=1"], "export", "json?x=1")

    def test_wrong_options(self):
        for arguments, words in (
                (["fish"], ["fish", "datapath", "drain"]),
                (["datapath", "drain"], ["drain"]),
                (["--no-such"], ["--no-such"]),
                (["drain", "--stores", "netobs"], ["drain", "--stores"]),
                (["drain", "--live"], ["drain", "--live"]),
                (["drain", "--records", "1"], ["drain", "--records"]),
                (["drain", "--width", "1"], ["drain", "--width"]),
                (["drain", "null"], ["null", "export"]),
                (["export", "--sink", "null"], ["export", "--sink"]),
                (["export", "--flows", "1"], ["export", "--flows"]),
                (["export", "--distribution", "zipf"], ["export", "--distribution"]),
                (["export", "--records", "0"], ["--records"]),
                (["--stores", "netobs,fish"], ["--stores", "fish"]),
                (["--stores", "netobs,"], ["--stores"]),
                (["--flows", "1,0"], ["--flows"]),
                (["--flows", "1,,2"], ["--flows"]),
                (["--flows", "4194305"], ["--flows", "4194305"]),
                (["--flows", ",".join(["1"] * 17)], ["--flows", "16"]),
                (["--distribution", "normal"], ["--distribution"]),
                (["--rounds", "0"], ["--rounds"]),
                (["--rounds", "6"], ["--rounds", "7"]),
                (["export", "--rounds", "6"], ["--rounds", "7"]),
                (["--width", "0"], ["--width", "positive"]),
                (["--width", "1x"], ["--width", "1x"]),
                (["-o", "csv"], ["csv"])):
            with self.subTest(arguments):
                self.refuse(USAGE, words, *arguments)

    def test_without_privileges(self):
        program = observer.program_for_all(self.lab)
        for name in ("datapath", "drain"):
            self.refuse(FAILED, ["root"], name, "--flows", "1", command=[*AS_NOBODY, program])

    def interrupt(self, is_at_work, name):
        process = self.lab.spawn(observer.netobsctl(), "bench", name, stderr=subprocess.PIPE,
                                 stdout=subprocess.PIPE, text=True)
        lab.wait_for(lambda: is_at_work(process.pid), name)
        out, errors = observer.interrupt(process, FAILED)
        self.assertEqual("", out)
        self.assertIn("interrupted", errors)

    def test_interrupted_datapath_leaves_nothing(self):
        lab.wait_for(lambda: not programs(), "the end of earlier programs")
        self.interrupt(lambda _: programs(), "datapath")
        lab.wait_for(lambda: not programs(), "the end of the programs")

    def test_interrupted_drain(self):
        def has_child(pid):
            return lab.read(f"/proc/{pid}/task/{pid}/children")
        self.interrupt(has_child, "drain")

    def test_progress_on_a_terminal(self):
        leader, follower = pty.openpty()
        fcntl.ioctl(follower, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
        process = self.lab.spawn(observer.netobsctl(), "bench", *FEW, "--flows", "100",
                                 "--stores", "empty", "--distribution", "uniform",
                                 stdout=subprocess.DEVNULL, stderr=follower)
        os.close(follower)
        text = ""
        try:
            while chunk := os.read(leader, 4096):
                text += chunk.decode()
        except OSError:  # the other side is closed
            pass
        os.close(leader)
        self.assertEqual(FINE, process.wait())
        self.assertIn("100 flows, uniform", text)
        self.assertTrue(text.endswith("\x1b[K"), "it does not stay")


if __name__ == "__main__":
    lab.main()
