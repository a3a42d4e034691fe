#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
"""netobsctl bench: complete results in each form, and nothing left behind."""

import fcntl
import glob
import json
import os
import pty
import signal
import struct
import subprocess
import termios
import time

from lib import bpf
from lib import lab
from lib import observer

FINE, FAILED, USAGE, NOISY = 0, 1, 2, 3
STORES = ["empty", "ringbuf", "hash", "hash_spinlock", "percpu_hash", "netobs"]
CPUS = len(os.sched_getaffinity(0))
CASES = [(1, "disjoint")] + ([(CPUS, "same"), (CPUS, "disjoint")] if CPUS > 1 else [])
# Few rounds, however noisy this host is.
LEAST = 7
FEW = ["--rounds", f"{LEAST}", "--width", "100"]
SMALL = ["--flows", "1,100", *FEW]
LIVE = ["--live", "--quick", *FEW]
AS_NOBODY = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]


def programs():
    """The ids of the BPF programs that only the benchmarks have.

    They hold the maps, so when they are gone, the maps are. Maps are not listed:
    whoever opens a program array by its id while its owner closes it can make
    the kernel keep it for ever (its clearing is queued once, but counted twice).
    """
    return [program["id"] for program in
            json.loads(lab.run("bpftool", "-j", "prog", "show"))
            if program.get("name") == "spread"]


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

    def check_datapath(self, found, expected):
        cases = [(r["store"], r["flows"], r["distribution"], r["cpus"], r["sharing"])
                 for r in found["results"]]
        self.assertEqual(len(set(cases)), len(cases))
        self.assertEqual(set(expected), set(cases))
        empty = {case[1:]: r["ns_per_packet"]
                 for case, r in zip(cases, found["results"]) if case[0] == "empty"}
        for case, result in zip(cases, found["results"]):
            median = result["ns_per_packet"]
            self.assertLessEqual(result["ns_min"], median)
            self.assertLessEqual(median, result["ns_max"])
            self.assertGreater(result["ns_min"], 0)
            self.check_ratio(result, result["store"] == "empty")
            self.assertEqual(LEAST, result["rounds"])
            self.assertNotIn("sent", result)
            self.assertAlmostEqual(median - empty[case[1:]], result["ns_over_empty"],
                                   delta=0.011)

    def test_all_stores_in_all_cases(self):
        found = self.datapath(*SMALL)
        self.check_turns(found, LEAST)
        self.check_datapath(found, [
            (store, flows, distribution, cpus, sharing)
            for store in STORES for flows in (1, 100)
            for distribution in ("uniform", "zipf") for cpus, sharing in CASES])

    def test_datapath_is_the_default(self):
        text = self.bench(*SMALL, "--stores", "hash", "--cpus", "1")
        for word in ("One CPU", "hash", "Zipf", "interval", "of a CPU", os.uname().release):
            self.assertIn(word, text)
        self.assertNotIn("\x1b", text)

    def test_choices(self):
        found = self.datapath("--flows", "5", *FEW, "--stores",
                              "hash,ringbuf", "--distribution", "zipf", "--cpus", "1")
        self.check_datapath(found, [(store, 5, "zipf", 1, "disjoint")
                                    for store in ("empty", "ringbuf", "hash")])

    def test_traffic_in_each_direction(self):
        found = self.datapath("--flows", "70", *FEW, "--stores",
                              "hash,ringbuf,netobs", "--distribution", "uniform",
                              "--cpus", "1", "--traffic", "udp6,tcp4,tcp6",
                              "--direction", "ingress,egress")
        cases = [(r["store"], r["traffic"], r["direction"]) for r in found["results"]]
        self.assertEqual(sorted(cases), sorted(
            (store, traffic, way) for store in ("empty", "ringbuf", "hash", "netobs")
            for traffic in ("udp6", "tcp4", "tcp6") for way in ("ingress", "egress")))

    def need_tcx(self):
        if not bpf.has_tcx():
            self.skipTest("this kernel has no tcx links")

    def test_filter(self):
        """What it rejects is counted as well."""
        for expression in "tcp port 443", "udp dst port 9":
            for mode in (FEW, LIVE) if bpf.has_tcx() else (FEW,):
                found = self.datapath(
                    *mode, "--flows", "60", "--stores", "netobs",
                    "--distribution", "uniform", "--cpus", "1", "--traffic",
                    "udp4,tcp6", "--filter", expression)
                self.assertEqual(2 * ["empty", "netobs", "filtered"],
                                 [r["store"] for r in found["results"]])
                for result in found["results"]:
                    self.assertEqual(result.get("sent"),
                                     result.get("counted", result.get("sent")))

    def write_rules(self, *lines):
        path = self.lab.path("rules")
        with open(path, "w", encoding="ascii") as file:
            file.writelines(f"{line}\n" for line in (*lines, "default accept"))
        return path

    def test_rules_that_sample(self):
        """What they sample out is counted as well."""
        self.need_tcx()
        path = self.write_rules("accept sample 1:10 ip", "accept sample flow:4 tcp",
                                "reject udp")
        found = self.datapath(
            *LIVE, "--flows", "60", "--stores", "netobs",
            "--distribution", "uniform", "--traffic", "udp4,tcp4,udp6,tcp6",
            "--rules", path)
        self.assertEqual(4 * ["empty", "netobs", "filtered"],
                         [r["store"] for r in found["results"]])
        for result in found["results"]:
            if result["store"] != "empty":
                self.assertEqual(result["sent"], result["counted"], result)

    def test_rules_with_too_many_rates(self):
        rates = [f"accept sample 1:{n} udp port {n}" for n in range(2, 10)]
        self.refuse(USAGE, ["--rules", "8 different rates", "7"],
                    "--rules", self.write_rules(*rates))

    def check_live(self, found, stores):
        """Every packet that the interface counted, the stores have counted."""
        for result in found["results"]:
            self.assertGreater(result["sent"], result["flows"])
            if result["store"] in ("empty", "empty2", "floor"):
                self.assertNotIn("counted", result)
            else:
                self.assertEqual(result["sent"], result["counted"], result)
                self.assertGreater(result["kernel_bytes"], 0)
            self.check_ratio(result, result["store"] == "empty")
            if result["store"] == "empty":
                self.assertEqual(0, result["ns_over_empty"])
        self.assertEqual(stores, [r["store"] for r in found["results"]][:len(stores)])

    def test_live(self):
        self.need_tcx()
        stores = ["empty", "empty2", "floor", "percpu_hash", "netobs"]
        found = self.datapath(*LIVE, "--flows", "1,3000")
        self.check_turns(found, LEAST)
        self.check_live(found, stores)
        self.assertEqual(
            [(r["store"], r["flows"], r["distribution"]) for r in found["results"]],
            [(store, flows, distribution) for flows in (1, 3000)
             for distribution in ("uniform", "zipf") for store in stores])
        self.assertEqual({("udp4", "egress", 1)}, {
            (r["traffic"], r["direction"], r["cpus"]) for r in found["results"]})

    def test_live_traffic_in_each_direction(self):
        self.need_tcx()
        stores = ["empty", "hash", "hash_spinlock", "overflow", "netobs", "rtt", "rtt_lru"]
        found = self.datapath(
            *LIVE, "--flows", "100", "--distribution", "uniform",
            "--stores", ",".join(stores), "--traffic", "tcp6,talk4",
            "--direction", "ingress,egress")
        self.check_live(found, stores)
        self.assertEqual(4 * len(stores), len(found["results"]))

    def test_live_on_all_cpus(self):
        self.need_tcx()
        if CPUS == 1:
            self.skipTest("there is one CPU")
        found = self.datapath(*LIVE, "--flows", "50", "--cpus", "all",
                              "--distribution", "zipf")
        self.check_live(found, ["empty", "empty2", "floor", "percpu_hash", "netobs"])
        self.assertEqual([CPUS] * 10, [r["cpus"] for r in found["results"]])
        text = self.bench("datapath", *LIVE, "--flows", "50", "--stores",
                          "netobs", "--distribution", "zipf")
        for word in ("ratio", "interval", "egress", os.uname().release):
            self.assertIn(word, text)

    def test_too_noisy(self):
        """No host is so quiet that seven rounds differ by less than that."""
        for arguments, words in (
                (["datapath"], ["percpu_hash with 3 flows"]),
                (["export", "null", "json-encoding", "--records", "100"], ["json-encoding"])):
            shape = ["--flows", "3", "--cpus", "1", "--stores", "percpu_hash"]
            self.refuse(NOISY, ["too noisy: after 7 rounds", *words, "below 1e-09 is needed"],
                        *arguments, *(shape if arguments[0] == "datapath" else []),
                        "--rounds", LEAST, "--width", "1e-9")

    def test_quick(self):
        start = time.monotonic()
        found = self.datapath("--quick", "--flows", "1,1024", *FEW)
        self.check_turns(found, LEAST)
        expected = [(store, flows, "uniform", 1, "disjoint")
                    for store in STORES for flows in (1, 1024)]
        expected += [(store, flows, "zipf", 1, "disjoint")
                     for store in ("empty", "percpu_hash", "netobs")
                     for flows in (1, 1024)]
        if CPUS > 1:
            expected += [(store, 1, "uniform", CPUS, "same") for store in STORES]
        self.check_datapath(found, expected)
        self.note(f"{time.monotonic() - start:.1f} s")

    def test_drain(self):
        found = json.loads(self.bench("drain", "-o", "json", "--flows", "1000,30000",
                                      "--rounds", "2"))
        self.check_head(found, 2)
        self.assertEqual([1000, 30000], [r["flows"] for r in found["results"]])
        for result in found["results"]:
            cpu = result["cpu_ns_per_flow"]
            self.assertAlmostEqual(cpu, result["user_ns_per_flow"] +
                                   result["system_ns_per_flow"], delta=0.2)
            self.assertLessEqual(result["cpu_ns_min"], cpu)
            self.assertLessEqual(cpu, result["cpu_ns_max"])
            self.assertGreater(result["wall_ns_per_flow"], 0)
            self.assertGreater(result["rss_peak_bytes"], 0)
            # At the very least, a flow is its key and its counters.
            self.assertGreater(result["kernel_bytes"], 64 * result["flows"])
            self.assertEqual(result["total_bytes"],
                             result["rss_peak_bytes"] + result["kernel_bytes"])
        self.assertIn("total MiB", self.bench("drain", "--flows", "100", "--rounds", "1"))

    def test_drain_into_a_sink(self):
        path = self.lab.path("drained")
        self.bench("drain", "--flows", "3000", "--rounds", "2", "--sink", f"json:{path}")
        with open(path, encoding="utf-8") as file:
            records = [json.loads(line) for line in file]
        drains = 2 * -(-50000 // 3000)
        self.assertEqual(3000 * drains, len(records))
        self.assertEqual(3000, len({record["SrcAddr"] for record in records}))
        self.assertEqual({"eth0"}, {name for record in records
                                    for name in record["Interfaces"]})
        self.refuse(FAILED, ["nosuch"], "drain", "--flows", "1", "--rounds", "1",
                    "--sink", "json:/nosuch/x")

    def export(self, *arguments):
        return json.loads(self.bench("export", "-o", "json", "--records", "3000", *FEW,
                                     *arguments))

    def check_export(self, found):
        self.check_turns(found, LEAST)
        self.assertEqual(3000, found["records"])
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
        absent = {result["sink"] for result in found["absent"]}
        self.assertLessEqual({"null", "json", "json-encoding"}, measured.keys())
        self.assertIn("ipfix", measured.keys() | absent)
        self.assertIn("kafka", measured.keys() | absent)
        self.assertFalse(measured.keys() & absent)
        self.assertEqual(0, measured["null"]["cpu_ns_over_null"])
        self.assertGreater(measured["json"]["cpu_ns_over_null"], 0)
        text = self.bench("export", "--records", "1000", *FEW, "null", "json")
        for word in ("records/s", "over null", "interval", os.uname().release):
            self.assertIn(word, text)

    def test_export_until_all_is_delivered(self):
        path = self.lab.path("flows.json")
        spec = f"json:{path}?rotate.bytes=1G"
        found = self.export(spec, "null")
        self.check_export(found)
        self.assertEqual([spec, "null"], [r["sink"] for r in found["results"]])
        self.assertEqual([], found["absent"])
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
                (["drain", "--stores", "hash"], ["drain", "--stores"]),
                (["drain", "--cpus", "1"], ["drain", "--cpus"]),
                (["drain", "--records", "1"], ["drain", "--records"]),
                (["export", "--sink", "null"], ["export", "--sink"]),
                (["drain", "null"], ["null", "export"]),
                (["export", "--flows", "1"], ["export", "--flows"]),
                (["export", "--records", "0"], ["--records"]),
                (["--stores", "hash,fish"], ["--stores", "fish"]),
                (["--stores", "hash,"], ["--stores"]),
                (["--flows", "1,0"], ["--flows"]),
                (["--flows", "1,,2"], ["--flows"]),
                (["--flows", "4194305"], ["--flows", "4194305"]),
                (["--flows", ",".join(["1"] * 17)], ["--flows", "16"]),
                (["--traffic", "udp4,fish"], ["--traffic", "fish"]),
                (["--direction", "both"], ["--direction", "both"]),
                (["export", "--live"], ["export", "--live"]),
                (["--filter", "tcp port"], ["--filter"]),
                (["--stores", "filtered"], ["--stores", "--filter"]),
                (["drain", "--filter", "tcp"], ["drain", "--filter"]),
                (["--cpus", "2"], ["--cpus"]),
                (["--distribution", "normal"], ["--distribution"]),
                (["--rounds", "0"], ["--rounds"]),
                (["--rounds", "6"], ["--rounds", "7"]),
                (["export", "--rounds", "6"], ["--rounds", "7"]),
                (["--width", "0"], ["--width", "positive"]),
                (["--width", "1x"], ["--width", "1x"]),
                (["drain", "--width", "1"], ["drain", "--width"]),
                (["-o", "csv"], ["csv"])):
            with self.subTest(arguments):
                self.refuse(USAGE, words, *arguments)

    def test_without_privileges(self):
        program = observer.program_for_all(self.lab)
        for name in ("datapath", "drain"):
            self.refuse(FAILED, ["root"], name, "--flows", "1", command=[*AS_NOBODY, program])

    def start(self, *arguments, **options):
        return self.lab.spawn(observer.netobsctl(), "bench", *arguments,
                              stderr=subprocess.PIPE, text=True, **options)

    def test_interrupted(self):
        for name in "datapath", "drain":
            lab.wait_for(lambda: not programs(), "the end of earlier programs")
            process = self.start(name, stdout=subprocess.PIPE)
            lab.wait_for(programs, "BPF programs")
            process.send_signal(signal.SIGINT)
            out, errors = process.communicate(timeout=lab.PATIENCE_S)
            observer.check_sanitizer(errors)
            self.assertEqual((FAILED, ""), (process.returncode, out))
            self.assertIn("interrupted", errors)
            lab.wait_for(lambda: not programs(), "the end of the programs")

    def test_progress_on_a_terminal(self):
        leader, follower = pty.openpty()
        fcntl.ioctl(follower, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
        process = self.lab.spawn(observer.netobsctl(), "bench", *SMALL, "--cpus", "1",
                                 "--stores", "hash", "--distribution", "uniform",
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
        self.assertIn("udp4, 100 flows", text)
        self.assertTrue(text.endswith("\x1b[K"), "it does not stay")

    def test_nothing_stays_behind(self):
        self.bench("--flows", "100", *FEW, "--distribution", "uniform")
        self.bench("drain", "--flows", "1000", "--rounds", "1")
        lab.wait_for(lambda: not programs(), "the end of the programs")


if __name__ == "__main__":
    lab.main()
