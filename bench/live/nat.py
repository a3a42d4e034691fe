#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
"""
What --nat costs for a packet of a flow that is known, at a router in network namespaces of its own.

Two netobsctl are at the same interface, so that each packet that leaves by it is in both programs,
one of which has --nat. The kernel's own time of each program is compared: of the first and of the
second one in turn, because the second one finds the packet in the caches.
"""

import argparse
import contextlib
import json
import os
import signal
import socket
import subprocess

import command
import method
from lib import lab
from lib import nat
from lib import observer

FLOWS = (1, 1_000, 100_000)
PACKETS = 300_000 # of a round
WIDTH_NS = 2 # of the interval that is published
EXIT_NOISY = 3
FIRST_PORT, PORTS = 10_000, 50_000


class Router(lab.Lab):
    """Between a client and a server that receives without answers."""

    def __init__(self, is_translated):
        super().__init__()
        self.client, self.router, self.server = map(self.ns, ("client", "router", "server"))
        self.wire(self.client, "eth0", ["10.0.1.2/24"], self.router, "rc", ["10.0.1.1/24"])
        self.wire(self.router, "rs", ["10.0.2.1/24"], self.server, "eth0", ["10.0.2.2/16"])
        self.client.ip("route", "add", "default", "via", "10.0.1.1")
        self.router.sysctl("ipv4/ip_forward", 1)
        nat.keep_connections(self.router)
        rules = ["flush ruleset", *nat.BASE.splitlines()]
        if is_translated:
            rules.append("add rule inet nat post oifname rs masquerade")
        self.router.run("nft", "-f", "-", input="\n".join(rules))
        self.server.run("nft", "-f", "-", input="table ip quiet { chain pre { "
                        "type filter hook prerouting priority raw; policy drop; }; }")
        for number in range(3, 6):
            self.router.ip("neigh", "replace", f"10.0.2.{number}", "lladdr", "02:00:00:00:09:09",
                           "dev", "rs", "nud", "permanent")

    def send(self, flows, packets):
        with self.client, socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
            sock.bind(("10.0.1.2", 5000))
            to = [(f"10.0.2.{2 + number // PORTS}", FIRST_PORT + number % PORTS)
                  for number in range(flows)]
            for number in range(packets):
                sock.sendto(b"x", to[number % flows])


class Agent:
    def __init__(self, place, *options):
        self.process = place.spawn(
            observer.netobsctl(), "flows", "-v", "-i", "rs", "--interval", "60", "-o", "json:/dev/null",
            *options, ns=place.router, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        while not observer.ATTACHED.search(line := self.process.stderr.readline()):
            if not line:
                raise RuntimeError("netobsctl flows has ended")
        self.program = self.find_program()

    def find_program(self):
        """The id of that for packets that leave."""
        directory = f"/proc/{self.process.pid}/fdinfo"
        ids = set()
        for name in os.listdir(directory):
            with contextlib.suppress(FileNotFoundError), \
                    open(f"{directory}/{name}", encoding="ascii") as file:
                ids |= {line.split()[1] for line in file if line.startswith("prog_id:")}
        return next(one for one in ids if self.show(one)["name"] == "netobs_egress")

    @staticmethod
    def show(number):
        return json.loads(lab.run("bpftool", "-j", "prog", "show", "id", number))

    def times(self):
        shown = self.show(self.program)
        return shown.get("run_time_ns", 0), shown.get("run_cnt", 0)

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        self.process.stderr.read()
        self.process.wait()


def measure_pair(place, order, flows):
    """ns per packet of each of the two, in the order in which they were attached."""
    agents = [Agent(place, *options) for options in order]
    place.send(flows, 2 * flows)
    before = [agent.times() for agent in agents]
    place.send(flows, PACKETS)
    after = [agent.times() for agent in agents]
    for agent in agents:
        agent.stop()
    costs = []
    for (time_before, count_before), (time_after, count_after) in zip(before, after):
        if count_after - count_before < PACKETS:
            raise RuntimeError(f"{count_after - count_before} of {PACKETS} packets were seen")
        costs.append((time_after - time_before) / (count_after - count_before))
    return costs


def measure_round(place, flows):
    """(without, more with --nat): each of the mean of both orders."""
    first_plain, second_nat = measure_pair(place, ((), ("--nat",)), flows)
    first_nat, second_plain = measure_pair(place, (("--nat",), ()), flows)
    plain = (first_plain + second_plain) / 2
    return plain, (first_nat + second_nat) / 2 - plain


def measure_case(flows, is_translated, most):
    place = Router(is_translated)
    plain, more = [], []
    others = method.Others()
    try:
        while not method.decides(len(more), most) or \
                (len(more) < most and not method.is_narrow(method.interval(more), WIDTH_NS)):
            cost, difference = measure_round(place, flows)
            plain.append(cost)
            more.append(difference)
    finally:
        place.close()
    found = method.interval(more)
    is_exact = method.is_narrow(found, WIDTH_NS)
    print(f"{flows:>8} {'yes' if is_translated else 'no':>10} {method.interval(plain).median:12.1f} "
          f"{found.median:+8.1f}  [{found.low:+.1f}, {found.high:+.1f}]"
          f"{'' if is_exact else '  too noisy'}  ({len(more)} rounds, others {others.share():.2f} CPU)",
          flush=True)
    return is_exact


def main():
    parser = argparse.ArgumentParser(prog="./dev bench nat", allow_abbrev=False, description=__doc__)
    parser.add_argument("--rounds", type=int, default=40, metavar="N",
                        help="at most so many of a case (default 40)")
    parser.add_argument("--flows", type=int, action="append", metavar="N",
                        help="so many flows only; repeatable (default " +
                        ", ".join(map(str, FLOWS)) + ")")
    options = parser.parse_args()
    before = lab.run("sysctl", "-n", "kernel.bpf_stats_enabled").strip()
    lab.run("sysctl", "-q", "kernel.bpf_stats_enabled=1")
    print(f"{'flows':>8} {'translated':>10} {'ns a packet':>12} {'--nat':>8}")
    try:
        exact = [measure_case(flows, is_translated, options.rounds)
                 for flows in options.flows or FLOWS for is_translated in (False, True)]
    finally:
        lab.run("sysctl", "-q", f"kernel.bpf_stats_enabled={before}")
    return 0 if all(exact) else EXIT_NOISY


if __name__ == "__main__":
    command.run(main)
