# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
"""Runs `netobsctl flows` and reads its output."""

import collections
import functools
import io
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess

from lib import bpf
from lib import lab

INGRESS, EGRESS, BOTH = 0, 1, 3
LOAD_S = 240 # of a wait for a busy machine to load all programs
FEATURES = "NETOBS_TEST_FEATURES" # as check prints them
ATTACHED = re.compile(r"observing \d+ interface")
SUMS = re.compile(r'"Bytes":(\d+),"Packets":(\d+)[,}]') # as all flow records have them
OBSERVING = re.compile(r": observing$", re.MULTILINE)
SANITIZER = re.compile(r"ERROR: \w*Sanitizer|runtime error:|"
                       r"SUMMARY: \w*Sanitizer")


def netobsctl(release=False):
    if release:
        return os.environ.get("NETOBSCTL_RELEASE", os.environ["NETOBSCTL"])
    return os.environ["NETOBSCTL"]


def run(*arguments, ns=None, code=0, program=None, under=(), **options):
    """netobsctl to its end, which must be with this status; None: with any. @under: what runs it."""
    command = [*under, program or netobsctl(), *map(str, arguments)]
    seconds = LOAD_S if "check" in arguments[:1] else lab.PATIENCE_S
    done = subprocess.run(ns.command(*command) if ns else command, text=True, capture_output=True,
                          timeout=seconds, check=False, **options)
    check_sanitizer(done.stderr)
    if code not in (None, done.returncode):
        raise AssertionError(f"exit {done.returncode}, expected {code}: {done.stderr}")
    return done


def interrupt(process, code=0):
    """End a netobsctl whose standard error is a pipe; what it has written, and said."""
    process.send_signal(signal.SIGINT)
    out, errors = process.communicate(timeout=lab.PATIENCE_S)
    check_sanitizer(errors)
    if process.returncode != code:
        raise AssertionError(f"exit {process.returncode}, expected {code}: {errors}")
    return out, errors


def check_refused(test, cases, *command):
    """@cases: (arguments behind those of @command, words of the message)"""
    for arguments, words in cases:
        with test.subTest(arguments):
            test.assertIn(words, run(*command, *arguments, code=2).stderr)


@functools.cache
def features():
    """
    Whether each feature is there, by name. To try them all takes seconds, and the kernel stays:
    processes that this one starts find the answer in their environment, as this one may.
    """
    if not os.environ.get(FEATURES):
        os.environ[FEATURES] = subprocess.run([netobsctl(), "check", "-o", "json"], check=False, text=True,
                                              stdout=subprocess.PIPE).stdout
    return {one["name"]: one["available"] for one in json.loads(os.environ[FEATURES])["features"]}


def program_for_all(where, release=False):
    """A copy that an ordinary user can reach, with the modules and programs it loads beside it."""
    build, copy = pathlib.Path(netobsctl(release)).parent, pathlib.Path(where.path("program"))
    for pattern in "netobsctl", "netobs-bench", "libnetobs.so.*", "netobs/*.so":
        for path in build.glob(pattern):
            target = copy / path.relative_to(build)
            target.parent.mkdir(exist_ok=True)
            target.parent.chmod(0o755)
            shutil.copyfile(path, target)
            target.chmod(0o755)
    return str(copy / "netobsctl")


def in_mib(memory):
    return ", ".join(f"{name} {value / (1 << 20):.1f} MiB"
                     for name, value in memory.items())


def check_sanitizer(text):
    if SANITIZER.search(text):
        raise AssertionError(f"a sanitizer report:\n{text}")


def points(record):
    """[(interface, direction)], with the two of a hairpin spelled out."""
    return [(name, way) for name, both in zip(record["Interfaces"],
                                              record["IfDirections"])
            for way in ((INGRESS, EGRESS) if both == BOTH else (both,))]


def sums_of(line):
    """Packets and bytes of a flow record, for which JSON takes twenty times as long."""
    found = SUMS.search(line)
    if not (found and line.startswith("{") and line.endswith("}\n")):
        raise AssertionError(f"no record: {line}")
    return int(found[2]), int(found[1])


class Result:
    """The outcome of a run that has ended."""

    def __init__(self, code, lines, errors):
        self.code = code
        self.lines = lines  # a function that opens them
        self.errors = errors

    @functools.cached_property
    def records(self):
        return list(self.each())

    def each(self):
        """The records one by one, for when they are many."""
        with self.lines() as lines:
            for line in lines:
                yield json.loads(line)

    @property
    def stats(self):
        """The --stats line: the last one on stderr that is JSON."""
        return self.last_line("seen")

    @property
    def alerts(self):
        """What each rule has counted, of a run of `netobsctl alerts`."""
        return self.last_line("alerts")["alerts"]

    def last_line(self, member):
        """The last one on stderr that is JSON and begins with this member."""
        lines = [line for line in self.errors.split("\n") if line.startswith(f'{{"{member}"')]
        return json.loads(lines[-1])

    def total(self, *names):
        """Sum of one top-level category, over its reasons if it has any."""
        packets = octets = 0
        for name in names:
            leaf = self.stats[name]
            for part in [leaf] if "packets" in leaf else leaf.values():
                packets += part["packets"]
                octets += part["bytes"]
        return packets, octets

    def exported(self):
        """Packets and bytes of all records, of which those not read yet may be very many."""
        if "records" in vars(self):
            found = [(record["Packets"], record["Bytes"]) for record in self.records]
        else:
            with self.lines() as lines:
                found = [sums_of(line) for line in lines]
        return sum(packets for packets, _ in found), sum(octets for _, octets in found)

    def check_conservation(self):
        """Seen = exported + all else, and the records have the exported packets."""
        self.check_identity()
        if self.total("exported") != self.exported():
            raise AssertionError(f"records hold {self.exported()}, stats say "
                                 f"{self.total('exported')}")

    def check_identity(self):
        seen = self.total("seen")
        rest = self.total("exported", "filtered", "sampled_out", "unparsed",
                          "lost")
        if seen != rest:
            raise AssertionError(f"seen {seen}, accounted for {rest}: "
                                 f"{self.stats}")
        for sink in self.stats["sinks"]:
            self.check_sink(sink)

    def check_sink(self, sink):
        """The sink took all exported records, and each has an outcome."""
        taken, recovered, delivered, pending = (
            collections.Counter(sink[name]) for name in
            ("taken", "recovered", "delivered", "pending"))
        dropped = sum(map(collections.Counter, sink["dropped"].values()),
                      collections.Counter())
        if taken + recovered != delivered + pending + dropped:
            raise AssertionError(f"{sink}")
        if (taken["packets"], taken["bytes"]) != self.total("exported"):
            raise AssertionError(f"exported {self.total('exported')}: {sink}")


class Observer:
    """`netobsctl flows`, or another verb, in a namespace, from construction until stop()."""

    started = 0

    def __init__(self, where, ns, *arguments, release=False, enter=None, program=None, verb="flows"):
        Observer.started += 1
        self.out = where.path(f"records-{Observer.started}")
        self.err = where.path(f"messages-{Observer.started}")
        with open(self.out, "wb") as out, open(self.err, "wb") as err:
            self.process = where.spawn(
                program or netobsctl(release), verb, "-v", "-o", "json", "--stats",
                *arguments, ns=ns, enter=enter, stdout=out, stderr=err)

    def messages(self):
        return lab.read(self.err)

    def lines(self):
        """Complete records so far."""
        return lab.json_lines(self.out, is_whole=False)

    def memory(self):
        """
        Resident memory in bytes, now and at most, and what of it is the process's own:
        flow tables that it maps are the kernel's.
        """
        status = lab.status_of(self.process.pid)
        return {name: int(status[field]) << 10
                for name, field in (("now", "VmRSS"), ("peak", "VmHWM"),
                                    ("own", "RssAnon"))}

    def is_running(self):
        return self.process.poll() is None

    def wait_attached(self, *points):
        """Until our programs are on each (namespace, interface)."""
        def ready():
            if not self.is_running():
                raise RuntimeError(f"netobsctl ended: {self.messages()}")
            return ATTACHED.search(self.messages()) and all(
                bpf.attached(ns, name) for ns, name in points)
        lab.wait_for(ready, "netobsctl to attach", 120)
        return self

    def wait_observing(self, count):
        """Until so many interfaces are; patterns are not waited for at start."""
        self.wait_attached()
        lab.wait_for(lambda: len(OBSERVING.findall(self.messages())) >= count,
                     f"netobsctl to observe {count} interfaces", 120)

    def wait_records(self, condition, what):
        lab.wait_for(lambda: condition(self.lines()), what)

    def stop(self, number=signal.SIGINT, code=0, seconds=lab.PATIENCE_S):
        """End it, and read all."""
        if self.is_running():
            self.process.send_signal(number)
        self.process.wait(timeout=seconds)
        return self.finish(code)

    def finish(self, code=0):
        errors = self.messages()
        check_sanitizer(errors)
        if self.process.returncode != code:
            raise AssertionError(f"exit {self.process.returncode}, expected "
                                 f"{code}: {errors}")
        return Result(self.process.returncode,
                      lambda: open(self.out, encoding="utf-8"), errors)


def flows(where, *arguments, ns=None, command=(), **options):
    """`netobsctl flows` to its end, for runs that end by themselves."""
    done = where.spawn(*command, netobsctl(), "flows", *arguments, ns=ns,
                       stdout=options.pop("stdout", -1), stderr=-1,
                       text=True, **options)
    out, errors = done.communicate(timeout=lab.PATIENCE_S)
    check_sanitizer(errors)
    return Result(done.returncode, lambda: io.StringIO(out or ""), errors)
