# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
# Needs: nftables
"""netobsctl diagnose, of two hosts, which are namespaces with a router between them, and of what they print."""

import json
import os
import pty
import re
import select
import signal
import subprocess
import sys
import threading
import time

from lib import bpf
from lib import lab
from lib import observer
from lib import tracer
from lib.tracer import Network, PORT

CLIENTS, PAUSE_S, REQUEST, ANSWER = 6, .03, 200, 500
FOR_S, FAULT_S = 6, 4 # the time that is judged has some that is normal at its beginning
ENOUGH = 150 # turns of each client in a time that is normal; of these, a part has records
# The server's process: it thinks for as long as a file says.
SERVER = f"""
import socket, sys, threading, time
listener = socket.socket(fileno=int(sys.argv[1]))
def serve(end):
    while end.recv(4096):
        with open(sys.argv[2]) as file:
            time.sleep(float(file.read() or 0))
        end.sendall(bytes({ANSWER}))
while True:
    threading.Thread(target=serve, args=(listener.accept()[0],), daemon=True).start()
"""
# It stands for ssh: notes its words, and runs those behind -- as a shell of that host does.
SSH = """#!{python}
import json, os, sys
with open({log!r}, "a") as file:
    file.write(json.dumps(sys.argv[1:]) + "\\n")
host, command = sys.argv[4], " ".join(sys.argv[6:])
command = command.replace("netobsctl diagnose", f"{netobsctl} diagnose --netns {{host}}", 1)
os.execvp("unshare", ["unshare", "--uts", "sh", "-c", f"hostname {{host}}; exec {{command}}"])
"""
LOSE = """
table ip lossy {
    chain drops {
        type filter hook forward priority 0
        tcp dport PORT meta length > 150 numgen inc mod 6 == 0 drop
    }
}
"""


class Talk:
    """Clients that ask and are answered, again and again, and how often."""

    def __init__(self, test, network):
        self.answers, self.is_over, self.ends = [0] * CLIENTS, False, []
        self.threads = [threading.Thread(target=self.ask, args=(network, number)) for number in range(CLIENTS)]
        test.addCleanup(self.stop)
        for thread in self.threads:
            thread.start()
        self.wait(1)

    def ask(self, network, number):
        with network.connect() as end:
            self.ends.append(end.getsockname())
            while not self.is_over:
                end.sendall(bytes(REQUEST))
                left = ANSWER
                while left:
                    left -= len(end.recv(left))
                self.answers[number] += 1
                time.sleep(PAUSE_S)

    def wait(self, count=ENOUGH):
        """Until each client has been answered so often."""
        before = list(self.answers)
        lab.wait_for(lambda: all(now >= then + count for now, then in zip(self.answers, before)), "answers")

    def stop(self):
        self.is_over = True
        for thread in self.threads:
            thread.join()


class Run:
    """A `netobsctl diagnose`, which has begun to trace."""

    number = 0

    def __init__(self, test, *arguments, host=None):
        Run.number += 1
        self.path = test.lab.path(f"diagnose-{Run.number}")
        master, slave = pty.openpty()
        test.addCleanup(os.close, master)
        command = observer.netobsctl(), "diagnose", *arguments
        if host:
            command = ("unshare", "--uts", "sh", "-c", 'hostname "$0"; exec "$@"', host.name, *command,
                       "--netns", host.name)
        with open(self.path, "wb") as out:
            self.process = test.lab.spawn(*command, stdout=out, stderr=slave)
        os.close(slave)
        self.master, self.said = master, ""
        if "-r" not in arguments:
            lab.wait_for(lambda: "^C ends" in self.read() or self.process.poll() is not None, "the tracer")

    def read(self):
        """What it has said on its terminal."""
        while select.select([self.master], [], [], 0)[0]:
            try:
                self.said += os.read(self.master, 4096).decode()
            except OSError:
                break
        return self.said

    def interrupt(self):
        self.process.send_signal(signal.SIGINT)

    def end(self, code=0):
        self.interrupt()
        return self.wait(code)

    def wait(self, code=0):
        lab.wait_for(lambda: self.read() and False or self.process.poll() is not None, "the end")
        observer.check_sanitizer(self.read())
        if self.process.returncode != code:
            raise AssertionError(f"exit {self.process.returncode}: {self.said}")
        return lab.read(self.path)


class Diagnose(tracer.Trace):
    FILTER = f"tcp port {PORT}"

    def setUp(self):
        super().setUp()
        if not tracer.has_all():
            self.skipTest("the kernel lacks tracepoints of sockets: tcp_sendmsg_locked, sk_data_ready")
        self.network = Network(self.lab, False, False)
        self.a, self.b = self.network.client, self.network.server
        self.think = self.lab.path("think")
        self.log = self.lab.path("ssh-log")
        self.set_think(0)
        listener = self.network.listener
        self.server = self.lab.spawn(sys.executable, "-c", SERVER, listener.fileno(), self.think,
                                     pass_fds=[listener.fileno()])
        self.ssh = self.program("ssh", SSH.format(python=sys.executable, log=self.log,
                                                  netobsctl=observer.netobsctl()))
        self.talk = Talk(self, self.network)

    def program(self, name, text):
        path = self.lab.path(name)
        lab.write(path, text)
        os.chmod(path, 0o755)
        return path

    def set_think(self, seconds):
        with open(f"{self.think}.new", "w", encoding="ascii") as file:
            file.write(str(seconds))
        os.rename(f"{self.think}.new", self.think)

    def lose(self):
        self.network.router.run("nft", "-f", "-", input=LOSE.replace("PORT", str(PORT)))

    def stop_and_go(self):
        """Stop the server for most of the time."""
        is_over = threading.Event()

        def run():
            while not is_over.is_set():
                self.server.send_signal(signal.SIGSTOP)
                time.sleep(.1)
                self.server.send_signal(signal.SIGCONT)
                time.sleep(.02)
        thread = threading.Thread(target=run)
        thread.start()
        self.addCleanup(thread.join)
        self.addCleanup(is_over.set)

    def start(self, *options, output="json", **where):
        return Run(self, "-o", output, "--before", 600, "--for", FOR_S, *options, self.FILTER, **where)

    def with_b(self, *options, ssh=None, **where):
        return self.start("--ssh", ssh or self.ssh, "--with", self.b.name, *options, host=self.a, **where)

    def collect(self, host):
        return Run(self, "--collect", "--before", 600, self.FILTER, host=host)

    def go_wrong(self, fault):
        """Time that is normal, and time of the fault."""
        self.talk.wait()
        fault()
        time.sleep(FAULT_S)

    @staticmethod
    def verdict(text):
        one, = (json.loads(line) for line in text.splitlines())
        return one

    def assert_clean(self, text):
        for line in text.splitlines():
            self.assertLessEqual(len(line), 80, line)
            self.assertRegex(line, r"\A[ -~]*\Z")


def links(pid):
    """To tracepoints."""
    return sum("raw_tracepoint" in text for text in bpf.fdinfos(pid))


class TwoHosts(Diagnose):
    def begin(self, *options):
        """A run with both hosts, whose other one traces what this one does, too: it may have begun late."""
        run = self.with_b(*options)
        there = int(lab.read(f"/proc/{run.process.pid}/task/{run.process.pid}/children"))
        lab.wait_for(lambda: links(there) >= links(run.process.pid) > 0, "the other host's tracer")
        return run

    def check(self, fault, place, cause):
        live, files = self.begin(), [self.collect(host) for host in (self.a, self.b)]
        self.go_wrong(fault)
        for run in (live, *files):
            run.interrupt()
        one = self.verdict(live.wait())
        for run in files:
            run.wait()
        records = [word for run in files for word in ("-r", run.path)]
        other = self.verdict(Run(self, "-o", "json", "--for", FOR_S, *records).wait())
        for verdict in one, other:
            self.assertEqual((verdict["Place"], verdict["Cause"]), (place, cause), verdict)
            self.assertEqual((verdict["SrcNodeName"], verdict["DstNodeName"]), (self.a.name, self.b.name))
            self.assertNotEqual(verdict["Certainty"], "not sure", verdict)
        self.assertEqual(other, self.of_service(*files))
        text = Run(self, "--for", FOR_S, *records).wait()
        self.assert_clean(text)
        self.check_output(records)
        return one, text

    def of_service(self, first, second):
        """The verdict, if records have the host as sinks name it, and one host has two files."""
        lines = lab.read(first.path).splitlines(True)
        parts = []
        for host, some in ("a", lines[::2]), ("a", lines[1::2]), ("b", lab.read(second.path).splitlines(True)):
            parts += "-r", self.lab.path(f"part-{len(parts)}")
            named = f'{{"HostId":"1","HostName":"{host}","AgentIP":"192.0.2.9",'
            lab.write(parts[-1], "".join(line.replace("{", named, 1) for line in some))
        return self.verdict(Run(self, "-o", "json", "--for", FOR_S, *parts).wait())

    def check_output(self, records):
        """A full disk is an error, and a reader that has gone is none."""
        command = observer.netobsctl(), "diagnose", *map(str, records)
        with open("/dev/full", "wb") as full:
            done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
        self.assertEqual((done.returncode, done.stderr),
                         (1, "netobsctl: cannot write to standard output: No space left on device\n"))
        read, write = os.pipe()
        os.close(read)
        done = subprocess.run(command, stdout=write, stderr=subprocess.PIPE, text=True, check=False)
        os.close(write)
        self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_a_server_that_thinks(self):
        verdict, text = self.check(lambda: self.set_think(.08), "server process", "thinks")
        self.assertEqual(verdict["DstPid"], self.server.pid)
        self.assertIn(f"{self.b.name}'s process is to blame", " ".join(text.split()))
        self.check_norms(verdict)

    def check_norms(self, verdict):
        """A run that begins in the trouble names the same place by the verdict of one that has seen a time before."""
        path = self.lab.path("norms")
        lab.write(path, json.dumps(verdict) + "\n")
        run = self.begin("--norms", path)
        self.talk.wait(ENOUGH // 3) # each takes longer
        one = self.verdict(run.end())
        self.assertEqual((one["Place"], one["Cause"]), (verdict["Place"], verdict["Cause"]), one)
        self.assertEqual(one["TurnBeforeNs"], verdict["TurnBeforeNs"])

    def test_a_server_that_is_stopped(self):
        _, text = self.check(self.stop_and_go, "server process", "stopped")
        self.assertIn(f"[{self.server.pid}] is stopped", " ".join(text.split()))

    def test_bytes_that_the_network_loses(self):
        _, text = self.check(self.lose, "network", "loss")
        self.assertIn("The network is to blame: bytes are lost", " ".join(text.split()))


class OneHost(Diagnose):
    def check(self, fault):
        run = self.start(output="table", host=self.a)
        self.go_wrong(fault)
        text = run.end()
        self.assertIn(f"Something beyond {self.a.name} is to blame", " ".join(text.split()))
        self.assertNotIn("network", text.lower())
        self.assertIn("netobsctl diagnose --with 198.51.100.1 ", " ".join(text.split()))
        self.assert_clean(text)

    def test_what_thinks_is_beyond_it(self):
        self.check(lambda: self.set_think(.08))

    def test_what_loses_is_beyond_it(self):
        self.check(self.lose)


    def test_a_full_disk_ends_a_collection(self):
        with open("/dev/full", "wb") as full:
            process = self.lab.spawn(observer.netobsctl(), "diagnose", "--collect", "--before", 600, self.FILTER,
                                     stdout=full, stderr=subprocess.PIPE, text=True)
        lab.wait_for(lambda: process.poll() is not None, "the end")
        self.assertEqual(1, process.returncode)
        self.assertIn("cannot write to standard output: No space left on device", process.stderr.read())


class OtherHosts(Diagnose):
    """Hosts that do not do what they should."""

    def run_with(self, ssh, *options):
        run = self.with_b(*options, ssh=ssh, output="table")
        self.go_wrong(lambda: self.set_think(.08))
        text = run.end()
        self.assert_clean(text)
        self.assertIn("is to blame", " ".join(text.split()))
        self.assert_clean(run.said.replace("\r", "").replace(f"{self.b.name}: ", ""))
        return text, run.said

    def test_one_that_fails_is_named(self):
        text, said = self.run_with(self.program(
            "failing", "#!/bin/sh\necho 'no \33[31mroute' >&2\necho more >&2\nexit 255\n"))
        self.assertIn(f"{self.b.name}: it has failed: no ?[31mroute\r\n", said)
        self.assertIn("Something beyond", text)

    def test_one_that_is_silent_is_named(self):
        _, said = self.run_with(self.program("silent", "#!/bin/sh\nexec sleep 1000\n"))
        self.assertIn(f"{self.b.name}: it has sent no records", said)

    def test_rubbish_is_bounded(self):
        text, said = self.run_with(self.program("rubbish", f"""#!{sys.executable}
import os, sys
sys.stderr = None # it may be ended while it writes, and would print why
for i in range(160):
    sys.stdout.buffer.write(os.urandom(1 << 15) + b"\\33]0;x\\7" * 4096 + b"\\n")
sys.stdout.buffer.write(b"y" * (5 << 20))
sys.stdout.flush()
__import__("time").sleep(1000)
"""))
        self.assertRegex(said, rf"{re.escape(self.b.name)}: \d+ lines are no records")
        self.assertIn("Something beyond", text)

    def test_names_of_a_hostile_host_are_harmless(self):
        hostile = self.program("hostile", f"""#!{sys.executable}
import json, os, subprocess, sys
evil = "\\33[2J\\33]0;x\\7\\n$(touch {self.lab.path('touched')})'`id`\\u009b31m" + "long" * 20
run = subprocess.Popen([{self.ssh!r}, *sys.argv[1:]], stdout=subprocess.PIPE)
for line in run.stdout:
    record = json.loads(line)
    for key, value in record.items():
        if key in ("Command", "ReaderCommand", "Host", "Uplink", "DropCause", "DropFunction", "ContainerId", "CGroup"):
            record[key] = evil[:15] if len(value) < 16 and key != "Host" else evil[:60]
    print(json.dumps(record), flush=True)
""")
        text, _ = self.run_with(hostile)
        self.assertIn("?[2J", text)
        self.assertFalse(os.path.exists(self.lab.path("touched")))


class Words(Diagnose):
    def logged(self):
        return lab.json_lines(self.log)

    def test_an_expression_is_one_word_for_the_other_shell(self):
        expression = f"tcp port {PORT}\nand (not port 1 && !(port 2)) or  port 3"
        self.FILTER = expression
        run = self.with_b()
        lab.wait_for(lambda: os.path.exists(self.log) and self.logged(), "ssh")
        words, = self.logged()
        self.assertEqual(words[:5], ["-T", "-o", "BatchMode=yes", self.b.name, "--"])
        got = subprocess.run(["sh", "-c", f"set -- {' '.join(words[5:])}; for word; do printf '%s\\0' \"$word\"; done"],
                             check=True, capture_output=True, text=True).stdout.split("\0")[:-1]
        self.assertEqual(got[:3], ["netobsctl", "diagnose", "--collect"])
        self.assertEqual(got[-2:], ["--", expression])
        self.talk.wait()
        run.end()

    def test_what_is_no_expression_reaches_no_shell(self):
        touched = self.lab.path("touched")
        self.FILTER = f"port 1'; touch {touched}; $(touch {touched}) '"
        run = self.with_b()
        run.wait(2)
        self.assertFalse(os.path.exists(touched))
        self.assertFalse(os.path.exists(self.log))

    def test_a_host_is_no_option(self):
        for name in "-oProxyCommand=id", "":
            result = observer.run("diagnose", "--with", name, "tcp", code=2)
            self.assertIn("--with", result.stderr)


class Alerts(Diagnose):
    def write_alert(self, file, name, end):
        address, port = end
        file.write(json.dumps({
            "type": "alert", "TimeMs": time.time_ns() // 1_000_000, "TimeNs": time.time_ns(), "Alert": name,
            "Rule": "rtt > 1ms", "Proto": 6, "SrcAddr": address, "SrcPort": port,
            "DstAddr": self.network.address[0], "DstPort": PORT}) + "\n")
        file.flush()

    def new_verdicts(self, run):
        return [one for one in lab.json_lines(run.path, False) if one["Alert"].startswith("new-")]

    def has_verdict_of_two(self, file, run):
        """The other host may have begun late."""
        before = len(lab.json_lines(run.path, False))
        self.write_alert(file, "first", self.talk.ends[0])
        lab.wait_for(lambda: len(lab.json_lines(run.path, False)) > before or "no verdict" in run.read(), "a verdict")
        return any("DstNodeName" in one for one in lab.json_lines(run.path, False))

    def test_each_alert_has_a_verdict_and_those_beyond_four_are_counted(self):
        path = self.lab.path("alerts")
        with open(path, "w", encoding="ascii") as file:
            self.write_alert(file, "old", self.talk.ends[0])
            run = Run(self, "-o", "json", "--ssh", self.ssh, "--with", self.b.name, "--follow-alerts", path,
                      host=self.a)
            lab.wait_for(lambda: self.has_verdict_of_two(file, run), "the other host's tracer")
            for number, end in enumerate(self.talk.ends[:5]):
                self.write_alert(file, f"new-{number}", end)
            lab.wait_for(lambda: len(self.new_verdicts(run)) >= 4, "verdicts")
        self.assertNotIn("waiting for it", run.said)
        run.end()
        verdicts = self.new_verdicts(run)
        self.assertEqual(sorted(one["Alert"] for one in verdicts), [f"new-{number}" for number in range(4)])
        self.assertIn("alerts that are not followed, as 4 are: 1", run.said)
        for one in verdicts:
            self.assertEqual((one["SrcNodeName"], one["DstNodeName"]), (self.a.name, self.b.name), one)
            self.assertGreaterEqual(one["Turns"], 1)


class NoTracing(lab.LabTest):
    def test_options_that_do_not_go_together(self):
        for words in (("-r", "x", "--with", "y"), ("-r", "x", "tcp"), ("--collect", "--with", "y"),
                      ("--collect", "--norms", "x"), ("--follow-alerts", "x", "tcp"), ("-r", "x", "--pid", "1"),
                      ("-r", "x", "-r", "y", "-r", "x"), ("--with", "x", "--with", "x", "tcp"), ("--ssh", "x", "tcp"),
                      ("--follow-alerts", "x", "--for", "9")):
            self.assertIn("netobsctl diagnose -h", observer.run("diagnose", *words, code=2).stderr)

    def test_times_that_are_none(self):
        for name in "--before", "--for":
            for value in "0", "0s", "-1", "nan", "25d", "9" * 40, "1e3", "soon":
                self.assertIn(f"{name}: '{value}' is not a duration from 1ms to 24d",
                              observer.run("diagnose", name, value, "tcp", code=2).stderr)

    def test_files_without_records(self):
        nothing = "no verdict: there are no records of turns, which --collect prints"
        for path, said in (("/nonexistent/x", "/nonexistent/x: No such file"), ("/", "/: Is a directory"),
                           ("/dev/null", nothing)):
            self.assertIn(f"netobsctl diagnose: {said}", observer.run("diagnose", "-r", path, code=1).stderr)
        turn = '{"type":"turn","TimeNs":%s,"TotalNs":%s}\n'
        for text, said in (
                ('{"type":"turn","TimeNs":"x"}\n{}\n', "standard input:1: it is no record"),
                ('{"type":"alert","TimeNs":1}\n{"type":"flow"}\n', nothing), ("hello\n", "1: it is no JSON object"),
                (turn % (1, 1) + '{"type":"turn"', "input:2: it is no JSON object"),
                (turn % (1, 1), "no verdict: no turn was seen in the time that is judged"),
                (turn % (9 * 10**30, 1), "input:1: it is no record"), (turn % (-2**63, 2**63 - 1), nothing),
                (turn % (2**63 - 1, 0) + turn % (1, 2**63 - 2), "no verdict: no turn was seen")):
            for options in (), ("--before", "24d", "--for", "24d"):
                done = observer.run("diagnose", "-r", "-", *options, code=1, input=text)
                self.assertIn(said, done.stderr)
                self.assertEqual("", done.stdout)

    def test_norms_that_are_none(self):
        path = self.lab.path("norms")
        good = '{"type":"verdict","Place":"none"}\n'
        alarm = '{"type":"verdict","Place":"network","TurnsBefore":%d}\n'
        for text, said in (("", ": no verdict"), ('{"type":"turn"}\n', ":1: it is no verdict as JSON"),
                           (good + '{"type":"verdict","Pla', ":2: it is no verdict as JSON"),
                           (good + alarm % 10 + alarm % 9, ":3: it blames a place, and had less than ten turns before"),
                           (good * 4097, ":4097: there are more than 4096 verdicts")):
            lab.write(path, text)
            done = observer.run("diagnose", "-r", "/dev/null", "--norms", path, code=1)
            self.assertIn(f"netobsctl diagnose: --norms: {path}{said}", done.stderr)
            self.assertNotIn("no verdict: there", done.stderr)
        for name, said in ("/nonexistent/x", "No such file"), ("/", "Is a directory"), ("/dev/zero", "no verdict"):
            self.assertIn(said, observer.run("diagnose", "--norms", name, "tcp", code=1).stderr)

    def interrupt(self, *arguments):
        """At once: as soon as the command catches it, and waits for something."""
        process = self.lab.spawn(observer.netobsctl(), "diagnose", *arguments, stdin=subprocess.PIPE,
                                 stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        caught = re.compile(r"^State:\tS.*^SigCgt:\t[0-9a-f]*[2367abef]$", re.DOTALL | re.MULTILINE)
        lab.wait_for(lambda: caught.search(lab.read(f"/proc/{process.pid}/status")), "a handler")
        process.send_signal(signal.SIGINT)
        lab.wait_for(lambda: process.poll() is not None, "the end")
        return process.returncode, process.stdout.read(), process.stderr.read()

    def test_a_file_of_alerts_may_come_later(self):
        path = self.lab.path("alerts")
        run = Run(self, "--follow-alerts", path)
        self.assertIn(f"netobsctl diagnose: {path}: No such file or directory: waiting for it", run.said)
        run.end()

    def test_a_signal_at_once_ends_it(self):
        code, out, said = self.interrupt("-r", "-")
        self.assertEqual((1, ""), (code, out), said)
        self.assertIn("no verdict: there are no records of turns", said)
        code, out, said = self.interrupt("tcp", "port", "1")
        self.assertEqual((1, ""), (code, out), said)
        self.assertIn("no verdict: no message of such a connection was seen", said)


if __name__ == "__main__":
    lab.main("tracepoints of TCP", lambda: observer.features()["trace"], at_once=3)
