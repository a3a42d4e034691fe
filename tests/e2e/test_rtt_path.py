#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
# Label: measure
# Cost: 60
# Lock: measure, it measures times.
"""Path RTT: the way from an interface to either end and back, however long both ends think.

A client, a router and a server, with a link that delays on each side of the router: lib/relay.py.
Each of them is observed. The test prints the rows of the table in docs/rtt.md.
"""

import collections
import concurrent.futures
import json
import signal
import subprocess
import sys

from lib import bpf
from lib import lab
from lib import observer
from lib import relay

THINKS_MS = (0, 1, 10, 30, 50, 200)
SECONDS = 2
TRIES = 5  # what disturbs a measurement on a busy machine is not there each time
NEAR_US, FAR_US = 10_000, 20_000  # there and back, on either side of the router
SHARE, LEAST_NS = 0.05, 100_000
CLIENT, SERVER = "192.0.2.1", "192.0.3.2"
GATEWAYS = "192.0.2.254", "192.0.3.254"
# Nanoseconds from the interface to the server, and to the client.
TRUTH = {
    "client": ((NEAR_US + FAR_US) * 1000, 0),
    "router": (FAR_US * 1000, NEAR_US * 1000),
    "server": (0, (NEAR_US + FAR_US) * 1000),
}
WAYS = "ToServer", "ToClient"


class Chain:
    """Namespaces: of a client, a router and a server."""

    def __init__(self, where):
        self.lab = where
        self.client, self.router, self.server = (where.ns(tag) for tag in "crs")
        self.points = {"client": (self.client, "eth0"), "router": (self.router, "eth0"),
                       "server": (self.server, "eth1")}
        self.link(self.client, "eth0", CLIENT, GATEWAYS[0], NEAR_US)
        self.link(self.server, "eth1", SERVER, GATEWAYS[1], FAR_US)
        self.router.sysctl("ipv4/ip_forward", 1)

    def link(self, end, interface, address, gateway, delay_us):
        """@delay_us: there and back."""
        process = self.lab.spawn(lab.tool("relay"), "-d", delay_us // 2, end.name,
                                 self.router.name, interface, stdout=subprocess.PIPE, text=True,
                                 enter=lab.run_first)
        if process.stdout.readline() != "ready\n":
            raise RuntimeError("the relay did not start")
        macs = self.lab.mac(), self.lab.mac()
        for ns, own, mac in ((end, address, macs[0]), (self.router, gateway, macs[1])):
            ns.ip("link", "set", interface, "address", mac)
            ns.address(interface, f"{own}/24")
        end.neighbour(interface, macs[1], gateway)
        self.router.neighbour(interface, macs[0], address)
        end.ip("route", "add", "default", "via", gateway)

    def serve(self, think_ms, port):
        server = self.lab.spawn(sys.executable, relay.CHAT, "serve", SERVER, port, think_ms,
                                ns=self.server, stdout=subprocess.PIPE, text=True,
                                enter=lab.run_first)
        if server.stdout.readline() != "ready\n":
            raise RuntimeError("the server did not start")

    def talk(self, pause_ms, port):
        """The port of a client that pauses between its requests."""
        client = self.lab.spawn(sys.executable, relay.CHAT, pause_ms, SERVER, port, SECONDS,
                                ns=self.client, stdout=subprocess.PIPE, text=True,
                                enter=lab.run_first)
        out, _ = client.communicate(timeout=120)
        if client.returncode:
            raise RuntimeError(f"the client ended with {client.returncode}")
        return json.loads(out)["port"]

    def watch(self, point):
        ns, interface = self.points[point]
        process = self.lab.spawn(observer.netobsctl(), "tcp", "--interval", "0.2", "-i", interface,
                                 "-o", "json", ns=ns, stdout=subprocess.PIPE,
                                 stderr=subprocess.PIPE, text=True)
        lab.wait_for(lambda: bpf.attached(ns, interface) == 2, "netobsctl")
        return process


class PathRtt(lab.LabTest):
    def finish(self, process):
        """The last line of each connection, by the port of its client."""
        process.send_signal(signal.SIGINT)
        out, errors = process.communicate(timeout=60)
        observer.check_sanitizer(errors)
        self.assertEqual(0, process.returncode, errors)
        lines = [json.loads(line) for line in out.splitlines()]
        return {line["SrcPort"]: line for line in lines if line["type"] == "connection"}

    def converse(self, chain, pause_ms):
        """What each point said of the connections to all servers."""
        watchers = {point: chain.watch(point) for point in TRUTH}
        with concurrent.futures.ThreadPoolExecutor(len(THINKS_MS)) as pool:
            ports = list(pool.map(lambda i: chain.talk(pause_ms, relay.PORT + i),
                                  range(len(THINKS_MS))))
        lines = {point: self.finish(process) for point, process in watchers.items()}
        return {point: [lines[point][port] for port in ports] for point in lines}

    def test_it_has_nothing_of_what_the_ends_wait(self):
        chain = Chain(self.lab)
        far = collections.defaultdict(list)
        for i, think_ms in enumerate(THINKS_MS):
            chain.serve(think_ms, relay.PORT + i)
        for pause_ms in THINKS_MS:
            for _ in range(TRIES):
                found = self.converse(chain, pause_ms)
                why = [text for point in found for text in self.wrong(point, found[point])]
                if not why:
                    break
            self.assertEqual([], why, f"the client pauses for {pause_ms} ms")
            for point, lines in found.items():
                for truth, way in zip(TRUTH[point], WAYS):
                    far[point, way] += [(line[way]["PathRttNs"] - truth,
                                         line[way]["TimeFlowRttNs"] - truth) for line in lines]
        for (point, way), both in far.items():
            paths, rtts = zip(*both)
            self.note(f"| {point} | {way} | {TRUTH[point][WAYS.index(way)] / 1e6:.0f} ms | "
                      f"{len(both)} of {len(THINKS_MS) ** 2} | {max(paths, key=abs) / 1e6:+.3f} | "
                      f"{max(rtts, key=abs) / 1e6:+.3f} |")

    def wrong(self, point, lines):
        """What is not as the links are."""
        for think_ms, line in zip(THINKS_MS, lines):
            for truth, way in zip(TRUTH[point], WAYS):
                ours = line[way].get("PathRttNs")
                if ours is None or abs(ours - truth) > max(SHARE * truth, LEAST_NS):
                    yield f"{point}, {way}: {ours} ns, the server takes {think_ms} ms"


if __name__ == "__main__":
    lab.main()
