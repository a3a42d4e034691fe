#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
"""
What is wrong gets a clear message and the right exit code, leaves nothing
attached, and makes no sanitizer report.
"""

import os
import subprocess

from lib import bpf
from lib import capfile
from lib import frames as f
from lib import lab
from lib import observer
from lib import traffic

FAILED, USAGE = 1, 2
AS_NOBODY = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]


class BadInput(lab.WiredTest):
    def refuse(self, code, words, *arguments, **options):
        """netobsctl flows must end with @code and say all of @words."""
        result = observer.flows(self.lab, "-o", "json", *arguments, ns=self.a,
                                **options)
        self.assertEqual(code, result.code, result.errors)
        for word in words:
            self.assertIn(word.lower(), result.errors.lower())
        self.assert_nothing_left()
        last = result.errors.strip().split("\n")
        self.note(f"exit {result.code}: {last[0]}")
        return result

    def assert_nothing_left(self):
        for name in ("lo", "eth0"):
            self.assertEqual(0, bpf.attached(self.a, name))
        self.assertNotIn("clsact", self.a.tc("qdisc", "show"))

    def save(self, name, data):
        path = self.lab.path(name)
        with open(path, "wb") as file:
            file.write(data)
        return path

    def test_interfaces_that_are_not_there(self):
        self.refuse(FAILED, ["-i: ", "nosuch0"], "-i", "nosuch0")
        self.refuse(FAILED, ["nosuch0"], "-i", "eth0", "-i", "nosuch0")
        self.refuse(FAILED, ["nosuch0"], "-i", "eth0", "-i", "nosuch0",
                    "--attach", "clsact")
        self.refuse(FAILED, ["nosuchns"], "-i", "netns:nosuchns/eth0")
        self.refuse(FAILED, ["nosuch0"], "-i", "eth0", "-i",
                    f"netns:{self.b.name}/nosuch0")
        self.assertEqual(0, bpf.attached(self.b, "eth0"))

    def test_patterns_that_are_none(self):
        for option in ("-i", "-x"):
            self.refuse(USAGE, [f"{option}: ", "/[/"], option, "/[/")
            self.refuse(USAGE, [f"{option}: "], option, "/(a|b/")
        self.refuse(USAGE, ["netns:"], "-i", "netns:only-a-name")

    def test_wrong_options(self):
        for arguments, words in (
                (["--no-such-option"], ["--no-such-option"]),
                (["--intreval", "1"], ["did you mean '--interval'"]),
                (["-Z"], ["-Z"]),
                (["--interval", "0"], ["interval"]),
                (["--interval", "0.009"], ["--interval", "10 ms"]),
                (["--interval", "soon"], ["interval", "soon"]),
                (["--interval", "-1"], ["interval"]),
                (["--interval"], ["interval"]),
                (["--direction", "sideways"], ["direction", "sideways"]),
                (["--attach", "nail"], ["attach", "nail"]),
                (["--attach-order", "middle"], ["attach-order", "middle"]),
                (["--max-flows", "0"], ["max-flows"]),
                (["--max-flows", "99999999999999999999"], ["max-flows"]),
                (["-n", "many"], ["count", "many"]),
                (["-d", "0"], ["duration"]),
                (["-o", "smoke"], ["-o", "smoke"]),
                (["tcp prt 80"], ["syntax error", "'prt 80'"]),
                (["tcp and inbound"], ["'inbound'", "options"]),
                (["not ifindex 1"], ["'ifindex'", "options"]),
                (["tcp and udp"], ["rejects all packets"]),
                (["udp or " * 600 + "udp"], ["4096 are the most"]),
                (["host nosuchhost.invalid"], ["nosuchhost.invalid"]),
                (["lo"], ["-i lo"]),
                (["--sampling", "flow:0"], ["--sampling", "flow:0"]),
                (["--min-bytes", "1.5"], ["--min-bytes", "1.5"]),
                (["-r", "x.pcap", "--direction", "ingress"], ["-r", "--direction"]),
                (["-r", "-", "-r", "-"], ["-r", "only once"]),
                (["-r", "x.pcap", "--by", "process"], ["--by", "'process'", "file"]),
                (["--max-connections", "9"], ["--max-connections: needs --rtt"]),
                (["--container-root", "/"], ["--container-root: needs --container-names"]),
                (["-r", "x.pcap", "-d", "5"], ["-r", "-d"])):
            with self.subTest(arguments):
                self.refuse(USAGE, words, *arguments)

    def test_cap_below_what_an_idle_host_needs(self):
        for cap in "1M", "1":
            self.refuse(FAILED, ["--max-memory: too little", "the least"],
                        "--max-memory", cap)

    def refuse_verbs(self, *arguments):
        done = subprocess.run([os.environ["NETOBSCTL"], *arguments],
                              capture_output=True, text=True, timeout=60)
        self.assertEqual((USAGE, ""), (done.returncode, done.stdout))
        return done.stderr

    def test_verbs_that_pass_options_on_to_a_context(self):
        rule = "trace", "--rule", "rtt > 1ms"
        for arguments, words in (
                ((*rule, "-i", "netns:only-a-name"), "trace: -i: .*netns:NAME/INTERFACE"),
                ((*rule, "-i", "eth*"), "trace: -i 'eth.': .*patterns are regular expressions"),
                ((*rule, "-i", "/[/"), "trace: -i: .*/[[]/"),
                (("map", "--interval", "0.005"), "map: --interval: .*10"),
                (("map", "--services", "--interval", "0.005"), "map: --interval: .*10")):
            with self.subTest(arguments):
                self.assertRegex(self.refuse_verbs(*arguments), words)

    def test_help_explains_one_verb(self):
        self.assertIn("'extra'", self.refuse_verbs("help", "flows", "extra"))

    def test_unknown_verbs(self):
        self.assertIn("unknown verb 'flwos'; did you mean 'flows'?\n",
                      self.refuse_verbs("flwos"))
        self.assertIn("unknown verb 'xyzzyx'\n", self.refuse_verbs("xyzzyx"))

    def test_output_files_that_cannot_be(self):
        self.refuse(FAILED, ["/nosuchdir/x"], "-o", "json:/nosuchdir/x")
        self.refuse(FAILED, [self.lab.dir], "-o", f"json:{self.lab.dir}")

    def test_files_that_are_no_captures(self):
        packet = f.ether("02:00:00:00:00:01", "02:00:00:00:00:02", f.IPV4,
                         f.ipv4("192.0.2.1", "192.0.2.2", f.UDP, f.udp(1, 2)))
        for path, words in (
                (self.lab.path("missing.pcap"), ["missing.pcap", "no such"]),
                (self.lab.dir, [self.lab.dir]),
                (self.save("empty.pcap", b""), ["empty.pcap"]),
                (self.save("text.pcap", b"no capture at all\n" * 9),
                 ["text.pcap"]),
                (self.save("header.pcap", capfile.pcap(1, [])[:10]),
                 ["header.pcap"]),
                (self.save("wifi.pcap", capfile.pcap(
                    capfile.IEEE802_11, [(0, packet)])), ["wifi.pcap"])):
            with self.subTest(path):
                self.refuse(FAILED, words, "-r", path)

    def test_file_without_permission(self):
        # Root may read everything: give that up, and only that.
        path = self.save("secret.pcap", capfile.pcap(capfile.ETHERNET, []))
        os.chown(path, 12345, 12345)
        os.chmod(path, 0o600)
        self.refuse(FAILED, ["secret.pcap", "permission"], "-r", path,
                    command=["setpriv", "--bounding-set",
                             "-dac_override,-dac_read_search", "--inh-caps",
                             "-dac_override,-dac_read_search"])

    def test_namespace_without_permission(self):
        self.refuse(FAILED, ["-i: ", self.b.name, "CAP_SYS_ADMIN"], "-i",
                    f"netns:{self.b.name}/eth0",
                    command=["setpriv", "--bounding-set", "-sys_admin",
                             "--inh-caps", "-sys_admin"])

    def test_without_privileges(self):
        program = observer.program_for_all(self.lab)
        pcap = self.save("good.pcap", capfile.pcap(capfile.ETHERNET, []))
        for arguments in (["-i", "eth0"], [], ["-r", pcap]):
            done = subprocess.run(
                self.a.command(*AS_NOBODY, program, "flows", "-o", "json", *arguments),
                capture_output=True, text=True, timeout=lab.PATIENCE_S, check=False)
            observer.check_sanitizer(done.stderr)
            self.assertEqual(FAILED, done.returncode, done.stderr)
            self.assertRegex(done.stderr, "(?i)privilege|CAP_BPF|root")
            self.assertEqual("", done.stdout)
            self.assert_nothing_left()
            self.note(done.stderr.strip().split("\n")[0])

    def test_closed_and_full_outputs(self):
        """Where nothing can be written, it says so; and stops."""
        for target, words in ((">&-", "standard output"),
                              (">/dev/full", "no space")):
            process = self.lab.spawn(
                "sh", "-c", f'exec "$0" flows -i eth0 -o json --interval 0.1 '
                f'{target}', observer.netobsctl(), ns=self.a,
                stderr=subprocess.PIPE, text=True)
            while process.poll() is None:
                traffic.ping(self.a, "192.0.2.2", 2)
            errors = process.stderr.read()
            observer.check_sanitizer(errors)
            self.assertEqual(FAILED, process.returncode, errors)
            self.assertIn(words, errors.lower())
            self.assert_nothing_left()
            self.note(f"{target}: {errors.strip()}")

    def test_reader_that_goes_away(self):
        """| head -1: no message, no failure."""
        process = self.lab.spawn(
            "sh", "-c", '("$0" flows -i eth0 -o json --interval 0.1; '
            'echo exit $? >&2) | head -1', observer.netobsctl(), ns=self.a,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        while process.poll() is None:
            traffic.ping(self.a, "192.0.2.2", 2)
        out, errors = process.communicate()
        self.assertEqual(1, out.count("\n"))
        self.assertEqual("exit 0\n", errors)
        self.assert_nothing_left()

    def observe_without(self, path):
        """An empty directory covers @path."""
        program = self.save("without", f'''#!/bin/sh
exec unshare -m sh -c 'mount -t tmpfs none {path} && exec {observer.netobsctl()} "$@"' sh "$@"
'''.encode())
        os.chmod(program, 0o755)
        return observer.Observer(self.lab, self.a, "-i", "eth0", program=program)

    def assert_pings_are_seen(self, run):
        traffic.ping(self.a, "192.0.2.2", 10)
        result = run.stop()
        result.check_conservation()
        self.assertEqual(20, result.exported()[0])

    def test_without_bpf_file_system(self):
        run = self.observe_without("/sys/fs/bpf").wait_attached((self.a, "eth0"))
        self.assert_pings_are_seen(run)
        self.assert_nothing_left()

    def test_without_btf(self):
        run = self.observe_without("/sys/kernel/btf")
        try:
            run.wait_attached((self.a, "eth0"))
        except RuntimeError: # it ended
            self.assertIn("BTF", run.finish(FAILED).errors)
        else:
            # Nothing in the programs depended on it: then all must be right.
            self.assert_pings_are_seen(run)
        self.assert_nothing_left()


if __name__ == "__main__":
    lab.main()
