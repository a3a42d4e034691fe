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


VERBS = {
    "alerts": (
        ((), "--rule: at least one is needed"),
        (("--rule", "rt > 5ms"), "column 1: there is no metric 'rt'; did you mean 'rtt'?"),
        (("--rule", "rtt > 5ms where prt 22"), "column 17: "),
        (("--rule", "drops > 1"), "--rule 'drops > 1': it needs --drops"),
        (("--drops", "--rule", "drops > 1.5"), "column 9: packets are whole numbers"),
        (("--drops", "--rule", "drops > 1 where inner udp"), "column 17: "),
        (("--drops", "--rule", "drops > 1", "-r", "no.pcap"), "--drops")),
    "capture --process": (
        (("-w", "x.pcap"), "--process: pcap has no place"),
        (("--format", "pcap", "--listen", "127.0.0.1:0"), "--process: pcap has no place")),
    "drops": (
        (("--interval", "0.05"), "--interval"), (("tcp prt 80",), "at 'prt 80'"), (("port", "x y"), "filter")),
    "map": (
        (("--interval", "2", "lookup", "icmp"), "--interval: it has no effect with lookup"),
        (("-o", "json", "annotate", "-"), "-o: it has no effect with annotate"),
        (("-d", "2", "--once"), "-d: it has no effect with --once"),
        (("--records", "x"), "--records: it has no effect with the live table"),
        (("-s", "x", "--netns", "x"), "--netns: it lists the kernel"),
        (("lookup", "nonsense"), "'nonsense' is no address"),
        (("lookup", "[::]:80"), "no mapping has the address '::'"),
        (("nothing",), "'nothing'"), (("lookup",), "lookup TUPLE"),
        (("--once", "--svg", "x"), "--svg: it has no effect with --once")),
    "map --services": (
        (("--once", "file"), "--once: it has no effect with --services of f"),
        (("-d", "1", "file"), "-d: it has no effect"),
        (("--netns", "x"), "--netns: it has no effect with --services")),
    "sessions": (
        (("--interval", "0.01"), "--interval: it is less than 100 ms"),
        (("-o", "tabel"), "did you mean 'table'"), (("-o", "json?records=flows"), "records"),
        (("-o", "table", "-o", "json"), "only one output"),
        (("-o", "grpc://127.0.0.1:4739?records=session,stats"), "cannot represent stats"),
        (("-B", "1K"), "-B: it is not from 64 KiB to 1 GiB"), (("tcp",), "takes no FILTER")),
    "top": (
        (("-o", "kafka://b/t"), "-o: it is either table or json"),
        (("-o", "json", "-o", "table"), "-o: it is either table or json"),
        (("--once", "-d", "5"), "--once: cannot be combined with -d"),
        (("--by", "servce"), "did you mean 'service'"), (("--sort", "duration"), "no such column"),
        (("-r", "f", "--process"), "cannot be combined with -r"), (("--interval", "1ms"), "at least 10 ms"),
        (("-n", "0"), "'0' is not a whole number"), (("-n", "0"), "Try 'netobsctl top -h'")),
    "trace -d .1": (
        (("arp",), "it chooses nothing"), (("ip proto 47",), "it chooses nothing"),
        (("tcp and udp",), "rejects all packets"),
        (("-o", "table", "-o", "json"), "only one output"), (("-o", "pcapng"), "no such kind"),
        (("--show", "summary", "-o", "json?host=no"), "only one output"),
        (("-o", "ipfix:udp://127.0.0.1:4739",), "cannot represent"),
        (("--comm", "a name that is too long"), "--comm: the kernel's names have 15 bytes"),
        (("--container", "abc"), "--container: 'abc' is no ID, or no beginning of one"),
        (("--for", "5"), "--for: needs --rule"), (("-i", "lo"), "-i: needs --rule"),
        (("--pid", "1", "--rule", "rtt > 1ms"), "cannot be combined with --rule")),
}
SPECS = (
    ("kafka", "no broker"), ("kafka:", "nothing follows"), ("kafka://", "no broker"),
    ("kafka:///flows", "no broker"), ("kafka:broker/flows", "no broker"),
    ("kafka://broker", "no topic"), ("kafka://broker/", "no topic"),
    ("kafka://broker,/flows", "HOST"), ("kafka://broker:x/flows", "HOST"),
    ("kafka://broker:0/flows", "HOST"), ("kafka://[::1/flows", "HOST"),
    ("kafka://broker/a%20b", "cannot be a topic"), ("kafka://broker/a/b", "cannot be a topic"),
    ("kafka://broker/flows?encoding=xml", "protobuf|json"),
    ("kafka://broker/flows?records=flow,stats", "protobuf cannot represent stats"),
    ("kafka://broker/flows?records=flow,alert", "flow needs a topic and a sink of its own"),
    ("kafka://broker/flows?key=none&nokey=1", "unknown option 'nokey'"),
    ("kafka://broker/flows?key=5", "addresses|flow|host|none"),
    ("kafka://broker/flows?agent_ip=me", "not an IP address"),
    ("kafka://broker/flows?rdkafka.linger=1", "No such configuration"),
    ("kafka://broker/flows?rdkafka.linger.ms=x", "linger.ms"),
    ("kafka://broker/flows?rdkafka.bootstrap.servers=a", "the target"),
    ("kafka://broker/flows?rdkafka.acks=0", "acks"),
    ("kafka://broker/flows?tls=maybe", "no|yes|unverified"),
    ("kafka://broker/flows?ca=/dev/null", "needs tls=yes"),
    ("kafka://broker/flows?tls=yes&ca=/nonexistent", "No such file"),
    ("kafka://broker/flows?tls=yes&cert=/dev/null", "need each other"),
    ("kafka://broker/flows?sasl=plain", "needs user"),
    ("kafka://broker/flows?sasl=plain&user=a", "needs password_file"),
    ("kafka://broker/flows?sasl=plain&user=a&password_file=/nonexistent", "No such file"),
    ("kafka://broker/flows?sasl=plain&user=a&password_file=/dev/null", "No data"),
    ("kafka://broker/flows?user=a", "needs sasl"), ("grpc", "//HOST:PORT is missing"),
    ("grpc://localhost", "has no port"), ("grpc://localhost:0", "not from 1 to 65535"),
    ("grpc://::1:9999", "must be in brackets"), ("grpc://h:1?deadline=0", "option deadline"),
    ("grpc://h:1?batch_bytes=5M", "option batch_bytes"),
    ("grpc://h:1?agent_ip=h", "option agent_ip"), ("grpc://h:1?tls=maybe", "option tls"),
    ("grpc://h:1?tls=no&ca=/x", "option ca is for TLS only"),
    ("grpc://h:1?ca=/nonexistent", "No such file"),
    ("grpc://h:1?cert=/dev/null", "need each other"),
    ("grpc://h:1?speed=1", "unknown option 'speed'"),
    ("ipfix:udp://h?mtu=200", "option mtu: '200' is not from 776"),
    ("ipfix:udp://h?color=red", "unknown option 'color'"),
    ("ipfix:udp://h:port", "the port is not"), ("ipfix:udp://h:", "the port"),
    ("ipfix:udp://:4739", "has no host"), ("ipfix:tcp://", "has no host"),
    ("ipfix:sctp://h", "must begin with udp://, tcp://"),
    ("ipfix:udp://h?record=s", "basic|extended"), ("ipfix:udp://h?source=here", "not an IP address"),
    ("ipfix:udp://h?ca=/x", "for TLS only"), ("ipfix:udp://h?pen=0", "option pen"),
    ("ipfix:udp://h?rotate.bytes=1M", "unknown option 'rotate.bytes'"),
    ("ipfix:file:/tmp/x?source=::1", "unknown option 'source'"),
    ("ipfix:tls://h?ca=/nosuchfile", "/nosuchfile"),
    ("json:udp://h:1", "tcp://HOST:PORT or tls://HOST:PORT"), ("json:tcp://h:1?mode=600", "mode"),
)


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
                (["-r", "x.pcap", "-d", "5"], ["-r", "-d"]),
                (["-v", "-i", "eth0", "-o", "null:"], ["null: nothing follows"]),
                (["--rules", self.save("rules", b"default accept"), "tcp"], ["cannot be combined"]),
                (["--rules", self.lab.path("none")], ["No such file"])):
            with self.subTest(arguments):
                result = self.refuse(USAGE, words, *arguments)
                self.assertNotIn("observing", result.errors)

    def test_wrong_views(self):
        for arguments, words in (
                (["--by", "servce"], "did you mean 'service'"),
                (["--by", "colour"], "there are flow, src"),
                (["--by", ""], "--by"),
                (["--by", "service,port"], "part of the other"),
                (["--by", "src", "--top", "0"], "'0' is not a whole number"),
                (["--by", "src", "--sort", "dst"], "no such column"),
                (["--by", "src", "--sort", "byts"], "did you mean 'bytes'"),
                (["-o", "table", "--sort", "flows"], "no such column"),
                (["-o", "json", "--sort", "bytes"], "use -o table or --by"),
                (["-o", "json", "--top", "3"], "use -o table or --by"),
                (["-o", "json", "--by", "src", "-N"], "only a table has names"),
                (["-o", "ipfix:udp://192.0.2.2", "--by", "src"], "takes flows only"),
                (["-o", "json:/tmp/x", "--by", "src"], "takes flows only"),
                (["-o", "json?spool.max_bytes=1M", "--by", "src"], "takes flows only")):
            with self.subTest(arguments):
                self.assertIn(words, observer.run("flows", "-i", "eth0", *arguments, ns=self.a, code=USAGE).stderr)
                self.assert_nothing_left()

    def test_cap_below_what_an_idle_host_needs(self):
        for cap in "1M", "1":
            self.refuse(FAILED, ["--max-memory: too little", "the least"],
                        "--max-memory", cap)

    def refuse_verbs(self, *arguments):
        done = observer.run(*arguments, code=USAGE)
        self.assertEqual("", done.stdout)
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

    def test_wrong_arguments_of_verbs(self):
        for verb, cases in VERBS.items():
            observer.check_refused(self, cases, *verb.split())

    def test_wrong_specs(self):
        observer.check_refused(self, [((spec,), words) for spec, words in SPECS], "flows", "-r", "/dev/null", "-o")

    def test_help_explains_one_verb(self):
        self.assertIn("'extra'", self.refuse_verbs("help", "flows", "extra"))

    def test_unknown_verbs(self):
        self.assertIn("unknown verb 'flwos'; did you mean 'flows'?\n",
                      self.refuse_verbs("flwos"))
        self.assertIn("unknown verb 'xyzzyx'\n", self.refuse_verbs("xyzzyx"))

    def test_output_files_that_cannot_be(self):
        self.refuse(FAILED, ["/nosuchdir/x"], "-o", "json:/nosuchdir/x")
        self.assertIn("cannot write", observer.run("trace", "-d", ".1", "--svg", "/nosuchdir/x",
                                                   code=FAILED).stderr)
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
                (self.save("netfilter.pcap", capfile.pcap(
                    capfile.NFLOG, [(0, packet)])), ["netfilter.pcap"])):
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
