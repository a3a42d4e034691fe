# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
"""A run of the fault laboratory: traffic, a fault, and the records of both hosts beside what was true."""

import atexit
import contextlib
import json
import os
import random
import shutil
import signal
import socket
import sys
import time

from lib import fault_net
from lib import lab
from lib import observer
from lib.fault_kinds import KINDS, SINK_PORT, Group
from lib.fault_net import PORT, App

SECONDS = 4
START_S = .3 # of the client
SHIFT_NS, PPM = 80_000_000, 40 # of B's clock, at most
SIDES = {"a": "client", "b": "server"}
EXPRESSION = f"port {PORT}"
DEFAULTS = {"requests": (1, 1), "out": (100, 2000), "back": (100, 6000), "clients": 1, "slots": 6, "serve_ms": 2,
            "idle_ms": 10, "timeout_s": 3, "retry_s": .2, "backlog": 64}
SMALL, LARGE = (50, 200), (40_000, 100_000)
WORKLOADS = {
    "rpc": {}, "http": {"requests": (15, 40)}, "pool": {"requests": (10, 30), "clients": 3},
    "loop": {"requests": (5, 15), "clients": 3}, "h2": {},
    "upload": {"requests": (10, 20), "out": LARGE, "back": SMALL},
    "download": {"requests": (10, 20), "out": SMALL, "back": LARGE},
    "udp": {"requests": (1, 1), "out": (50, 1200), "back": (50, 1200), "clients": 2},
    "stream up": {}, "stream down": {}}
# Fields of records that are times since 1970; all others that end in Ns are durations.
TIMES = "TimeNs", "AlertNs"
NAMES = "NodeName", "HostName"


class Run:
    """
    @where: a lab; @name: of a kind. All that is random follows from the seed, but for what is fixed
    @seconds: of the window, and before it
    """

    def __init__(self, where, name, seed, seconds, **fixed):
        self.lab, self.name, self.seed, self.random = where, name, seed, random.Random(f"{name} {seed}")
        self.kind, self.seconds, rest = KINDS[name], seconds, self.random
        self.side = fixed.get("side", rest.choice(self.kind.sides))
        loads = self.kind.workloads
        loads = loads[self.side] if isinstance(loads, dict) else loads
        self.workload = rest.choice([one for one in loads if one in fixed.get("workloads", loads)])
        contained = {letter for letter in "ab" if rest.random() < .4} | \
            set(self.kind.options.get("contained", "").replace("x", self.side))
        contained = fixed.get("contained", contained)
        self.net = fault_net.Net(where, rest, fixed.get("is_ipv6", rest.random() < .4), contained,
                                 self.kind.options.get("least_us", 0))
        self.a, self.b, self.c = (self.net.hosts[letter] for letter in "abc")
        self.x, self.y = (self.a, self.b) if self.side == "a" else (self.b, self.a)
        self.groups = {letter: Group(where, f"{os.path.basename(where.dir)}-{letter}") for letter in "ab"}
        self.truth = {"type": "run", "kind": name, "seed": seed, "side": self.side, "workload": self.workload,
                      "ipv6": self.net.is_ipv6, "contained": sorted(contained), "culprits": [],
                      "seconds": seconds, "truths": [self.resolve(*one) for one in self.kind.truths]}
        self.undone, self.apps = [], 0

    def resolve(self, place, cause):
        return [f"{SIDES[self.side]} {place}" if place in ("process", "host") else place, cause]

    def spawn(self, ns, role, enter=None, **options):
        self.apps += 1
        options = {"path": self.lab.path(f"log-{self.apps}"), "seed": self.random.getrandbits(32), **options}
        return App(self.lab, ns, role, options, enter)

    def say(self, **truth):
        self.truth.update(truth)

    def undo(self, function, *arguments):
        self.undone.append((function, arguments))

    def is_on(self):
        return time.time() < self.until

    def wait(self, seconds):
        time.sleep(max(0, min(seconds, self.until - time.time())))

    def path(self, name, value):
        """Of the network, from the other side's host to the side's."""
        self.net.path(self.y, self.x, name, value)
        self.undo(self.net.path, self.y, self.x, name, self.net.delays[self.y.number, self.x.number]
                  if name == "delay" else 0)

    def start_apps(self):
        if "sink" in self.kind.options:
            self.sink = self.x if self.kind.options["sink"] == "x" else self.c
            self.spawn(self.sink.ns, "sink", address=self.sink.address, port=SINK_PORT)
        if "prepare" in self.kind.options:
            self.kind.options["prepare"](self)
        options = {**DEFAULTS, **WORKLOADS[self.workload], **{
            name: value for name, value in self.kind.options.items() if name in DEFAULTS},
            "workload": self.workload, "port": PORT}
        self.server = self.spawn(self.b.inside, "server", enter=self.groups["b"].join,
                                 address=self.b.listens_at(), **options)
        self.trace()
        self.client = self.spawn(self.a.inside, "client", enter=self.groups["a"].join, address=self.b.address,
                                 **options)
        self.app, self.other = (self.client, self.server) if self.side == "a" else (self.server, self.client)

    def trace(self):
        """A tracer for each host, which sees a connection or datagram before others begin."""
        self.tracers = {}
        for letter, host in (("a", self.a), ("b", self.b)):
            path = self.lab.path(f"{letter}.json")
            spaces = [word for ns in host.spaces() for word in ("--netns", ns.name)]
            with open(f"{path}.errors", "wb") as errors:
                self.tracers[letter] = self.lab.spawn(
                    observer.netobsctl(release=True), "trace", *spaces, "-o",
                    f"json:{path}?records=turn,queue,host", EXPRESSION, stderr=errors)
        lab.wait_for(self.is_traced, "the tracers", observer.LOAD_S)

    def is_traced(self):
        kind = socket.SOCK_DGRAM if self.workload == "udp" else socket.SOCK_STREAM
        family = socket.AF_INET6 if self.a.is_ipv6 else socket.AF_INET
        with contextlib.suppress(OSError), self.a.inside, socket.socket(family, kind) as end:
            end.settimeout(1)
            end.connect((self.b.address, PORT))
            if self.workload == "udp":
                end.send(bytes(12))
        time.sleep(.2)
        return all(os.path.exists(path) and '"turn"' in lab.read(path)
                   for path in (self.lab.path(f"{letter}.json") for letter in "ab"))

    def run(self):
        self.start_apps()
        self.since = time.time() + self.seconds + START_S
        self.until = self.since + self.seconds
        time.sleep(self.since - time.time())
        self.kind.function(self)
        self.wait(self.seconds)
        self.end()

    def end(self):
        for tracer in self.tracers.values():
            tracer.send_signal(signal.SIGINT)
        for function, arguments in reversed(self.undone):
            function(*arguments)
        codes = [tracer.wait(60) for tracer in self.tracers.values()]
        said = [lab.read(self.lab.path(f"{letter}.json.errors")) for letter in self.tracers]
        assert not any(codes), said
        self.say(ready_s=round(time.time() - self.until, 3), tracers=said)
        logs = self.client.end(), self.server.end()
        self.part()
        self.write_truth(*logs)

    def part(self):
        """Make the records those of two machines, whose clocks differ."""
        shift, ppm = self.random.randint(-SHIFT_NS, SHIFT_NS), self.random.uniform(-PPM, PPM)
        middle = (self.since + self.until) / 2 * 1e9
        for letter in "ab":
            path = self.lab.path(f"{letter}.json")
            records = lab.json_lines(path)
            with open(path, "w", encoding="utf-8") as file:
                for one in records:
                    for name in TIMES if letter == "b" else ():
                        if one.get(name):
                            one[name] += shift + round((one[name] - middle) * ppm / 1e6)
                    for name in NAMES:
                        if one.get(name):
                            one[name] = f"host{letter}"
                    file.write(json.dumps(one, separators=(",", ":")) + "\n")
        self.say(clock_ns=shift, ppm=ppm)

    def effect(self, client, server):
        """The share of the window that requests, or the bytes of a stream, came later than before: by their rates."""
        is_stream = "stream" in self.workload
        log = server if self.workload == "stream up" else client
        done = [(one[0], one[1]) if is_stream else (one[1], 1) for one in log]
        since, until = self.since * 1e9, self.until * 1e9

        def rate(begin, end):
            return sum(size for time_ns, size in done if begin <= time_ns < end) / (end - begin)
        before = rate(since - self.seconds * 1e9, since)
        return 1 - rate(since, until) / before if before else 0

    def write_truth(self, client, server):
        since, until = round(self.since * 1e9), round(self.until * 1e9)
        lost = self.net.end()
        self.say(since_ns=since, until_ns=until, effect=round(self.effect(client, server), 3),
                 client={"address": self.a.address, "pid": self.client.pid},
                 server={"address": self.b.address, "pid": self.server.pid, "port": PORT},
                 lost=sum(since <= one["time_ns"] < until for one in lost))
        names = "time_ns", "end_ns", "port", "out", "back", "is_answered"
        logs = ("bytes" if self.workload == "stream down" else "request", client), \
            ("bytes" if self.workload == "stream up" else "serve", server)
        with open(self.lab.path("truth.jsonl"), "w", encoding="utf-8") as file:
            said = [{"type": kind, **dict(zip(("time_ns", "bytes") if kind == "bytes" else names, one))}
                    for kind, log in logs for one in log]
            for one in [self.truth] + said + lost:
                file.write(json.dumps(one) + "\n")


FILES = "a.json", "b.json", "truth.jsonl"


def make(name, seed, directory, seconds, fixed):
    """One run in a laboratory of its own; its files go to the directory."""
    where = lab.Lab()
    try:
        run = Run(where, name, seed, float(seconds), **json.loads(fixed))
        run.run()
        os.makedirs(directory, exist_ok=True)
        for file in FILES:
            shutil.copy(where.path(file), directory)
    finally:
        where.close()


def main():
    """fault_run KIND SEED DIRECTORY SECONDS JSON: the last is what is fixed."""
    signal.signal(signal.SIGTERM, lab.interrupt)
    atexit.register(lab.close_all)
    make(*sys.argv[1:])


if __name__ == "__main__":
    main()
