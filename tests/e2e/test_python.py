#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
# Needs: python3-cffi python3-pycparser python3-setuptools
"""The Python binding: real traffic between two namespaces, counted; headers that parse."""

import json
import os
import re
import shutil
import subprocess
from pathlib import Path

from lib import lab
from lib import traffic

SOURCE = Path(os.environ["NETOBS_SOURCE"])
RELEASE = Path(os.environ["NETOBS_RELEASE"])
A, B = "192.0.2.1", "192.0.2.2"
SIZES = [100] * 40 + [1000] * 10

# Prints a line when it counts, and when a line came, what it has seen.
OBSERVE = """
import json, netobs, sys
with netobs.Context(interfaces=["eth0"], interval_ms=60000, direction=netobs.lib.NETOBS_EGRESS,
                    filter="udp", flags=netobs.lib.NETOBS_PER_INTERFACE) as context:
    with netobs.Sink(f"json:{sys.argv[1]}", context=context) as sink:
        print("counting", flush=True)
        sys.stdin.readline()
        context.stop()
        flows = list(context)
        for flow in flows:
            sink.write(flow)
        assert sink.wait(60)
        print(json.dumps({
            "flows": [[str(flow.src), str(flow.dst), flow.dst_port, flow.packets, flow.bytes,
                       flow.points[0].name, flow.points[0].direction, flow.kind]
                      for flow in flows],
            "records": [flow.dict() for flow in flows],
            "stats": context.stats(), "sink": sink.stats()}))
"""

# Runs the example, which is its argument, twenty times at once. ^C comes at a random moment, while it starts, waits or
# ends, or when a random one of its first functions is called. Prints how many were ended by it.
INTERRUPT = """
import os, random, runpy, signal, sys, time
import heapq, pkgutil, netobs # here: Python ignores ^C in a callback that ends each import
example, children = sys.argv[1], {}
random.seed(int(sys.argv[2]))
reading, writing = os.pipe()

def interrupt_at_call(n):
    def count(frame, event, _):
        nonlocal n
        n -= event == "call"
        if not n:
            sys.setprofile(None)
            signal.raise_signal(signal.SIGINT)
    sys.setprofile(count)

for i in range(20):
    at, call = random.uniform(0, 4), random.randint(1, 350)
    pid = os.fork()
    if not pid:
        sys.argv = [example, "lo"]
        try:
            os.write(writing, b".") # fork() in Python drops signals that come before it returns
            if i % 2:
                interrupt_at_call(call)
            runpy.run_path(example, run_name="__main__")
        except KeyboardInterrupt: # before its try
            pass
        finally:
            os._exit(0)
    children[pid] = at if i % 2 == 0 else None
    os.read(reading, 1)
began = time.monotonic()
for at, pid in sorted((at, pid) for pid, at in children.items() if at is not None):
    time.sleep(max(0, began + at - time.monotonic()))
    os.kill(pid, signal.SIGINT)
for pid in children:
    os.waitpid(pid, 0)
print(len(children))
"""

# What each callback raises, with traffic to itself; what records and options are.
CALLBACKS = """
import netobs, socket
def fail(*arguments):
    raise LookupError(f"{name} got {arguments}")
def talk():
    with socket.create_server(("127.0.0.1", 0)) as server:
        with socket.create_connection(server.getsockname()) as client:
            served = server.accept()[0]
            for i in range(5):
                client.send(b"question")
                served.recv(100)
                served.send(b"answer")
                client.recv(100)
            served.close()
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as udp:
        udp.sendto(b"question", ("127.0.0.1", 9))
for name in ("on_log", "on_interval", "on_record"):
    try:
        with netobs.Context(interfaces="lo", interval_ms=100, **{name: fail}) as context:
            talk()
            for flow in context:
                raise AssertionError("nothing failed")
    except LookupError as error:
        print(error)
with netobs.Context(interfaces=["lo"], interval_ms=60000, rtt=1,
                    filter="udp or tcp") as context:
    talk()
    context.stop()
    flows = list(context)
tcp = max((flow for flow in flows if flow.proto == 6), key=lambda flow: flow.app_responses or 0)
udp = next(flow for flow in flows if flow.proto == 17)
print(tcp.rtt_ns > 0, tcp.vlan_id, tcp.src_process, udp.rtt_ns, udp.retransmits, udp.dst_port)
print(repr(udp))
"""


def environment():
    return {**os.environ, "PYTHONPATH": str(RELEASE / "python"),
            "NETOBS_LIBRARY": str(RELEASE / "libnetobs.so")}


class Python(lab.LabTest):
    def test_flows_are_those_that_were_sent(self):
        a, b = self.lab.ns("a"), self.lab.ns("b")
        self.lab.wire(a, "eth0", [f"{A}/24"], b, "eth0", [f"{B}/24"])
        lines = self.lab.path("lines")
        process = self.lab.spawn(
            "/usr/bin/python3", "-c", OBSERVE, lines, ns=a, env=environment(),
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.assertEqual("counting\n", process.stdout.readline())
        traffic.udp(a, A, b, B, SIZES)
        out, _ = process.communicate("\n", timeout=60)
        self.assertEqual(0, process.returncode)
        seen = json.loads(out)
        packets, octets = len(SIZES), sum(SIZES) + 28 * len(SIZES)
        self.assertEqual([[A, B, 5002, packets, octets, "eth0", 2, "flow"]], seen["flows"])
        record = seen["records"][0]
        self.assertEqual((A, B, packets, octets, [1]), tuple(
            record[key] for key in ("SrcAddr", "DstAddr", "Packets", "Bytes",
                                    "IfDirections")))
        sent = json.loads(Path(lines).read_text())
        self.assertEqual(A, sent.pop("AgentIP"))
        self.assertTrue(sent.pop("HostName"))
        sent.pop("HostId", None)
        self.assertEqual(record, sent)
        self.assertEqual(packets, seen["stats"]["exported"]["packets"])
        self.assertEqual(1, seen["sink"]["delivered"]["records"])

    def test_an_interrupt_always_ends_the_example(self):
        a = self.lab.ns("a")
        a.run("ip", "link", "set", "lo", "up")
        done = a.run("/usr/bin/python3", "-c", INTERRUPT, SOURCE / "examples/python/top_talkers.py",
                     self.seed, env=environment(), timeout=120)
        self.assertEqual("20\n", done)

    def test_callbacks_raise_and_records_show_what_is_known(self):
        a = self.lab.ns("a")
        a.run("ip", "link", "set", "lo", "up")
        lines = a.run("/usr/bin/python3", "-c", CALLBACKS, env=environment()).splitlines()
        self.assertRegex(lines[0], r"^on_log got \(\d, '")
        self.assertEqual("on_interval got ()", lines[1])
        self.assertIn("on_record got (<netobs_flow start_ns=", lines[2])
        self.assertEqual("True None None None None 9", lines[3])
        self.assertRegex(lines[4], r" src=127.0.0.1 dst=127.0.0.1 src_port=\d+ dst_port=9 ")
        self.assertIn("points=[<netobs_point ifindex=1 ", lines[4])
        self.assertNotRegex(lines[4], r"rtt|reserved|None|\bhas=")

    def test_wrong_options_are_refused_with_their_names(self):
        for options, words in (("interval_ms=1", "interval_ms: 1 is less than 10"),
                               ("interval_ms='1'", "interval_ms: an integer is required"),
                               ("interfaces=1", "interfaces: a text or a list of texts"),
                               ("direction='up'", "direction: 'up' is none of"),
                               ("rtt=2", "rtt: 2 is neither 0 nor 1"),
                               ("bogus=1", "'bogus' is not an option")):
            done = subprocess.run(
                ["/usr/bin/python3", "-c", f"import netobs; netobs.Context({options})"],
                env=environment(), check=False, capture_output=True, text=True)
            self.assertEqual(1, done.returncode)
            self.assertIn(words, done.stderr)

    def test_absent_members_are_those_of_the_headers(self):
        program = ("import json, netobs; "
                   "print(json.dumps([[prefix, fields] for prefix, fields in "
                   "netobs._ABSENT.values()]))")
        done = subprocess.run(["/usr/bin/python3", "-c", program], env=environment(), check=True,
                              capture_output=True, text=True)
        headers = "".join((SOURCE / f"include/netobs/{name}.h").read_text()
                          for name in ("alert", "flow", "mapping"))
        documented = {}
        for before, name, after in re.findall(
                r"(/\*\*[^/]*\*/\s*)?\b(NETOBS_\w*HAS_\w+) = [^,/\n]*,?(?:\s*/\*\*<([^/]*)\*/)?",
                headers):
            documented[name] = re.split("[;:]", (after or before).strip("/* \t\n"))[0].split(", ")
        documented["NETOBS_MAPPING_HAS_PORTS"] = [
            "src_port", "dst_port", "post_src_port", "post_dst_port"] # "the four ports"
        self.assertEqual(
            {name: [word.strip() for word in words] for name, words in documented.items()},
            {prefix + field: members.split() for prefix, fields in json.loads(done.stdout)
             for field, members in fields.items()})

    def test_headers_are_c_that_parsers_read(self):
        program = ("import pycparser, sys; "
                   "ast = pycparser.CParser().parse(sys.stdin.read()); "
                   "print(*(node.name for node in ast.ext if node.name))")
        declared = (RELEASE / "python/netobs/netobs.cdef").read_text()
        types = "".join(f"typedef int {name};\n" for name in (
            "size_t", *(f"{sign}int{bits}_t" for sign in ("", "u") for bits in (8, 16, 32, 64))))
        text = re.sub(r"^#define.*\n", "", declared, flags=re.M)
        names = subprocess.run(["/usr/bin/python3", "-c", program], input=types + text,
                               check=True, capture_output=True, text=True).stdout.split()
        self.assertTrue({"netobs_new", "netobs_sink_open", "netobs_sessions_new"} <= set(names))

    def test_declarations_are_those_of_a_preprocessor(self):
        declared = (RELEASE / "python/netobs/netobs.cdef").read_text()
        headers = sorted((SOURCE / "include/netobs").glob("*.h"))
        done = subprocess.run(
            [os.environ.get("CC", "cc"), "-E", "-P", f"-I{SOURCE / 'include'}", "-DNETOBS_API=",
             "-x", "c", "-"], check=True, capture_output=True, text=True,
            input="".join(f'#include "{header}"\n' for header in headers))
        numbers = dict(re.findall(r"^#define (\w+) (\d+)$", declared, re.M))
        text = re.sub(r"^#define.*\n", "", declared, flags=re.M)
        text = re.sub(r"\w+", lambda word: numbers.get(word[0], word[0]), text)
        self.assertTrue("".join(done.stdout.split()).endswith("".join(text.split())))

    def test_the_package_is_built_and_imported_without_a_compiler(self):
        where = self.lab.path("python")
        shutil.copytree(SOURCE, self.lab.path("tree"), ignore=shutil.ignore_patterns(
            "build*", ".git", "vmlinux", "docs", "tests"))
        subprocess.run(
            ["/usr/bin/python3", "setup.py", "-q", "build", "--build-lib", where],
            cwd=Path(self.lab.path("tree"), "python"), env={"PATH": "/nonexistent"}, check=True)
        made = environment() | {"PYTHONPATH": where, "PATH": "/nonexistent"}
        self.assertEqual((RELEASE / "python/netobs/netobs.cdef").read_text(),
                         Path(where, "netobs/netobs.cdef").read_text())
        for change, words in (
                ({}, ""),
                ({"NETOBS_LIBRARY": "libnone.so"}, "libnone.so cannot be loaded"),
                ({"NETOBS_LIBRARY": "libc.so.6"}, "libc.so.6 cannot be loaded"),
                ({"PYTHONPATH": str(SOURCE / "python")}, "this is the source of the package")):
            done = subprocess.run(["/usr/bin/python3", "-c", "import netobs"],
                                  env=made | change, check=False, capture_output=True, text=True)
            self.assertEqual(bool(words), bool(done.returncode), done.stderr)
            self.assertIn(words, done.stderr)
        other = Path(where, "netobs/netobs.cdef")
        other.write_text(other.read_text().replace("VERSION_MINOR 2", "VERSION_MINOR 9"))
        done = subprocess.run(["/usr/bin/python3", "-c", "import netobs"], env=made,
                              check=False, capture_output=True, text=True)
        self.assertIn("has version 0.2.0, this package is for 0.9", done.stderr)


if __name__ == "__main__":
    lab.main()
