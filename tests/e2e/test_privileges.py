#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
# Needs: iputils-ping
"""
The three documented capabilities are enough; where one is missing, check and flows
name it, and check says what flows then does.
"""

import json
import os
import re
import subprocess

from lib import bpf
from lib import capfile
from lib import lab
from lib import observer
from lib.privileges import NEEDED, with_only


class Privileges(lab.WiredTest):
    def setUp(self):
        super().setUp()
        bpf.unlock_memory()

    def check(self, capabilities, *arguments):
        done = subprocess.run(
            self.a.command(*with_only(capabilities), observer.netobsctl(),
                           "check", *arguments),
            capture_output=True, text=True, timeout=60, check=False)
        observer.check_sanitizer(done.stderr)
        self.assertEqual("", done.stderr)
        return done.returncode, done.stdout

    def flows(self, capabilities, *arguments):
        return observer.flows(self.lab, "-o", "json", "-i", "eth0", "-d", "1",
                              *arguments, ns=self.a,
                              command=with_only(capabilities))

    def test_three_are_enough(self):
        code, text = self.check(NEEDED, "-o", "json")
        answer = json.loads(text)
        self.assertEqual((0, True), (code, answer["can_run"]), text)
        found = {feature["name"]: feature for feature in answer["features"]}
        self.assertEqual(["CAP_SYS_ADMIN"], found["netns"]["missing_capabilities"])
        for way in "tcx", "clsact":
            if not found[way]["available"]:
                continue
            with self.subTest(way):
                ping = self.lab.spawn("ping", "-q", "-i", "0.1", "192.0.2.2",
                                      ns=self.a, stdout=-3)
                result = self.flows(NEEDED, "--attach", way)
                ping.terminate()
                ping.wait()
                self.assertEqual(0, result.code, result.errors)
                self.assertTrue(result.records)

    def test_others_are_dropped(self):
        """In all threads, with outputs that have some; records are complete all the same."""
        # DAC_OVERRIDE, NET_ADMIN, SYS_ADMIN, PERFMON, BPF
        kept = 1 << 1 | 1 << 12 | 1 << 21 | 1 << 38 | 1 << 39
        path = self.lab.path("flows.json")
        for more in (), ("-i", f"netns:{self.b.name}/eth0"):
            flows = observer.Observer(self.lab, self.a, "-i", "eth0", *more, "-o",
                                      f"json:{path}")
            flows.wait_attached((self.a, "eth0"))
            lab.wait_for(lambda: os.path.exists(path), "the output to be opened")
            tasks = f"/proc/{flows.process.pid}/task"
            for task in os.listdir(tasks):
                with open(f"{tasks}/{task}/status", encoding="ascii") as file:
                    status = dict(line.split(":", 1) for line in file)
                for name in "CapPrm", "CapEff", "CapBnd":
                    self.assertEqual(kept, int(status[name], 16), name)
                self.assertEqual("1", status["NoNewPrivs"].strip())
            subprocess.run(self.a.command("ping", "-q", "-c", "3", "-i", "0.1",
                                          "192.0.2.2"), check=True, stdout=-3)
            self.assertTrue(flows.stop().records)
            os.remove(path)

    def test_others_are_dropped_before_a_file_is_read(self):
        """A file comes from anywhere. This one does not end."""
        pipe, end = os.pipe()
        process = self.lab.spawn(observer.netobsctl(), "flows", "-r", "-", "-o", "json",
                                 stdin=pipe, stdout=-3)
        os.close(pipe)
        # DAC_OVERRIDE, NET_ADMIN, PERFMON, BPF
        kept = 1 << 1 | 1 << 12 | 1 << 38 | 1 << 39

        def waits_for_the_file():
            with open(f"/proc/{process.pid}/status", encoding="ascii") as file:
                status = dict(line.split(":", 1) for line in file)
            return {int(status[name], 16) for name in ("CapPrm", "CapEff", "CapBnd")} == {kept}
        lab.wait_for(waits_for_the_file, "fewer capabilities")
        os.write(end, capfile.pcap(capfile.ETHERNET, []))
        os.close(end)
        self.assertEqual(0, process.wait(60))

    def test_each_is_named_when_it_is_missing(self):
        for name in NEEDED:
            with self.subTest(name):
                wanted = f"CAP_{name.upper()}"
                rest = [other for other in NEEDED if other != name]
                code, text = self.check(rest, "-o", "json")
                answer = json.loads(text)
                self.assertEqual((1, False), (code, answer["can_run"]))
                for feature in answer["features"]:
                    if not feature["available"] and feature["name"] != "netns":
                        self.assertEqual([wanted], feature["missing_capabilities"])
                code, text = self.check(rest)
                self.assertEqual(1, code)
                self.assertIn(f"This process lacks {wanted}: run it as root.", text)
                self.assertNotIn("Linux 5", text.split("\n\n", 1)[1])

                for filtered in (), ("udp",):
                    result = self.flows(rest, *filtered)
                    self.assertEqual(1, result.code)
                    self.assertIn(f"missing: {wanted})", result.errors)
                self.note(result.errors.split("\n", 1)[0])

    def test_a_user_namespace_is_named(self):
        """All are held in it, and none counts."""
        inside = ["unshare", "--user", "--map-root-user", "--net", observer.netobsctl()]
        flows = subprocess.run([*inside, "flows", "-i", "lo", "-d", "1"], capture_output=True,
                               text=True, timeout=60, check=False)
        self.assertEqual(1, flows.returncode)
        self.assertIn(" (missing in the initial user namespace: CAP_BPF, CAP_PERFMON, "
                      "CAP_NET_ADMIN)\nSee 'netobsctl check' for what is missing.\n",
                      flows.stderr)
        flows = subprocess.run(["unshare", "--user", observer.netobsctl(), "flows", "-i", "lo"],
                               capture_output=True, text=True, timeout=60, check=False)
        self.assertIn("\nRun it as root, or see 'netobsctl check' ", flows.stderr)
        check = subprocess.run([*inside, "check"], capture_output=True, text=True, timeout=60,
                               check=False)
        self.assertEqual(1, check.returncode)
        self.assertIn("  user namespace      yes  capabilities in it do not count", check.stdout)
        self.assertIn("This process is in a user namespace, whose capabilities do not count for BPF: "
                      "run it as root of the host.", check.stdout)
        for inside, there in ((inside, True), ([observer.netobsctl()], False)):
            check = subprocess.run([*inside, "check", "-v", "-o", "json"], capture_output=True,
                                   text=True, timeout=60, check=False)
            self.assertEqual(there, json.loads(check.stdout)["user_namespace"])

    def test_v_logs_what_the_kernel_refuses(self):
        """Twice where it logs more as well. Without CAP_PERFMON, it refuses a program of each."""
        rest = with_only([name for name in NEEDED if name != "perfmon"])
        verbs = ["flows", "top", "tcp", "alerts --rule rtt>1s", "map", "map --services"]
        verbs += [verb for verb in ("drops", "sessions", "trace") if observer.features()[verb]]
        for verb in *verbs, "check":
            command = [observer.netobsctl(), *verb.split(), *["-d", "1"] * (verb != "check")]
            for verbose in (), ("-v",), ("-vv",):
                with self.subTest(verb, verbose=verbose):
                    done = subprocess.run(self.a.command(*rest, *command, *verbose), text=True,
                                          capture_output=True, timeout=60, check=False)
                    observer.check_sanitizer(done.stderr)
                    self.assertEqual(1, done.returncode)
                    logged = re.findall(r"(?m)^netobsctl (\w+): libbpf: prog 'netobs_\w+': "
                                        "BPF program load failed: ", done.stderr)
                    if verbose == ("-vv",) or (verbose and verb == "check"):
                        self.assertEqual({command[1]}, set(logged), done.stderr)
                    else:
                        self.assertEqual([], logged, done.stderr)

    def test_limit_of_locked_memory_takes_one_more(self):
        """Where maps are charged to it."""
        result = observer.flows(
            self.lab, "-o", "json", "-i", "eth0", "-d", "1", ns=self.a,
            command=["prlimit", "--memlock=65536:65536", *with_only(NEEDED)])
        if bpf.charges_groups():
            self.assertEqual(0, result.code, result.errors)
        else:
            self.assertEqual(1, result.code)
            self.assertIn("missing: CAP_SYS_RESOURCE)", result.errors)

    def test_other_namespaces_need_one_more(self):
        result = self.flows(NEEDED, "-i", f"netns:{self.b.name}/eth0")
        self.assertEqual(1, result.code)
        self.assertIn("CAP_SYS_ADMIN", result.errors)
        self.note(result.errors.split("\n", 1)[0])


if __name__ == "__main__":
    lab.main()
