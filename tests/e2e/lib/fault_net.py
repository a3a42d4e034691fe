# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
# Needs: nftables iproute2
"""
The network of the fault laboratory: hosts A (client), B (server) and C, which are namespaces, with a network R
between them, whose delays, rates and faults faultnet.c makes. A and B may have a container, behind NAT.
"""

import json
import os
import socket
import struct
import sys

from lib import lab

PORT = 8000
UPLINK_KBIT, UPLINK_QUEUE = 20_000, 100_000 # of the tbf of A and B
LINK_KBIT, LINK_QUEUE = 24_000, 150_000 # of the network, in front of each host
BURST = 8000
NUMBERS = {"a": 1, "b": 2, "c": 3}
RULES = """
table inet lab {{
    chain pre {{
        type nat hook prerouting priority -100
        iifname "up0" meta l4proto {{ tcp, udp }} th dport {port} dnat {family} to {container}
    }}
    chain post {{
        type nat hook postrouting priority 100
        oifname "up0" masquerade
    }}
}}
"""
ROUTES = "route add default dev net0 table 100", "rule add iif net0 lookup main pref 10", "rule add lookup 100 pref 20"
APPS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "fault_apps.py")


class App:
    """A process of fault_apps.py, which is ready."""

    def __init__(self, where, ns, role, options, enter=None):
        self.path = options["path"]
        with ns:
            self.process = where.spawn(sys.executable, "-S", APPS, role, json.dumps(options), enter=enter,
                                       stdin=-1, stdout=-1, text=True)
        self.pid = self.process.pid
        self.said = self.process.stdout.readline().strip()

    def set(self, **options):
        self.process.stdin.write(json.dumps(options) + "\n")
        self.process.stdin.flush()
        self.process.stdout.readline()

    def end(self):
        """@return its log"""
        self.process.stdin.close()
        self.process.wait(60)
        return json.loads(lab.read(self.path)) if os.path.exists(self.path) else []


def batch(ns, lines):
    """Of ip(8)."""
    is_ipv6 = any("fd91:" in line for line in lines)
    lab.run(lab.IP, "-6" if is_ipv6 else "-4", "-n", ns.name, "-batch", "-", input="\n".join(lines))


class Host:
    """A namespace with an uplink, and perhaps a container, in which its application runs."""

    def __init__(self, where, letter, is_ipv6, has_container):
        self.number, self.lab, self.is_ipv6 = NUMBERS[letter], where, is_ipv6
        self.ns = self.inside = where.ns(letter, ipv6=is_ipv6)
        self.address, self.gateway = (self.at(self.number, end) for end in (2, 1))
        self.has_container = has_container
        if has_container:
            self.contain(letter)

    def at(self, net, end):
        return f"fd91:{net}::{end}" if self.is_ipv6 else f"10.91.{net}.{end}"

    def net(self, address):
        return f"{address}/{64 if self.is_ipv6 else 24}"

    def wire(self, ns, name, address, other, other_name, gateway):
        """@return what ip(8) is to do in both namespaces, of which the first one is a host of the second one"""
        mac, other_mac = self.lab.veth(ns, name, other, other_name)
        nodad = "nodad" if self.is_ipv6 else ""
        return [f"addr add {self.net(address)} dev {name} {nodad}",
                f"neigh replace {gateway} lladdr {other_mac} dev {name} nud permanent",
                f"route add default via {gateway}"], \
            [f"addr add {self.net(gateway)} dev {other_name} {nodad}",
             f"neigh replace {address} lladdr {mac} dev {other_name} nud permanent"]

    def join(self, router):
        """@return what ip(8) is to do there"""
        lines, others = self.wire(self.ns, "up0", self.address, router, f"r{self.number}", self.gateway)
        batch(self.ns, lines)
        return others

    def shape(self, kbit=UPLINK_KBIT, queue=UPLINK_QUEUE):
        self.ns.tc("qdisc", "replace", "dev", "up0", "root", "handle", "1:", "tbf", "rate", f"{kbit}kbit",
                   "burst", BURST, "limit", queue)

    def contain(self, letter):
        """A: a veth; B: a bridge. Both masquerade, and B passes on what comes to the port."""
        self.inside = self.lab.ns(f"{letter}c", ipv6=self.is_ipv6)
        address, gateway = (self.at(100 + self.number, end) for end in (2, 1))
        inner, outer = self.wire(self.inside, "c0", address, self.ns, "hc", gateway)
        if letter == "b":
            inner = [line for line in inner if "neigh" not in line] # the bridge has another MAC address
            outer = ["link add br0 type bridge", "link set hc master br0", "link set br0 up"] + \
                [line.replace("dev hc", "dev br0") for line in outer]
        batch(self.ns, outer)
        batch(self.inside, inner)
        self.forward(self.ns)
        self.ns.run("nft", "-f", "-", input=RULES.format(
            port=PORT, family="ip6" if self.is_ipv6 else "ip", container=address))
        self.inner = address

    @staticmethod
    def forward(ns):
        ns.sysctl("ipv4/ip_forward", 1)
        ns.sysctl("ipv6/conf/all/forwarding", 1)

    def spaces(self):
        return [self.ns] + [self.inside] * self.has_container

    def listens_at(self):
        return self.inner if self.has_container else self.address


class Net:
    """All of it."""

    def __init__(self, where, rest, is_ipv6, contained, least_us):
        """@rest: random numbers; @contained: letters of hosts with a container; @least_us: of delays"""
        self.lab, self.is_ipv6 = where, is_ipv6
        self.router = where.ns("r", ipv6=is_ipv6)
        self.router.sysctl("ipv6/conf/all/keep_addr_on_down", 1)
        Host.forward(self.router)
        self.hosts = {letter: Host(where, letter, is_ipv6, letter in contained) for letter in NUMBERS}
        self.lost = where.path("lost")
        self.process = where.spawn(lab.tool("faultnet"), "-s", rest.getrandbits(32), "-w", self.lost, self.router.name,
                                   "net0", stdin=-1, stdout=-1, text=True)
        self.process.stdout.readline()
        lines = [line for host in self.hosts.values() for line in host.join(self.router)]
        batch(self.router, [*lines, *ROUTES])
        for letter in "ab":
            self.hosts[letter].shape()
        self.delays = {}
        for one in NUMBERS.values():
            self.command(f"host {one} rate {LINK_KBIT}", f"host {one} queue {LINK_QUEUE}")
            for other in NUMBERS.values():
                self.delays[one, other] = max(least_us, round(500 * 16 ** rest.random()))
                self.command(f"path {one} {other} delay {self.delays[one, other]}")

    def command(self, *lines):
        for line in lines:
            self.process.stdin.write(line + "\n")
            self.process.stdin.flush()
            self.process.stdout.readline()

    def end(self):
        """@return the packets that were lost"""
        self.process.stdin.close()
        self.process.wait(60)
        names = "time_ns", "from", "to", "bytes", "why", "protocol"
        return [{"type": "lost", **{name: word if name == "why" else int(word) for name, word in
                                    zip(names, line.split())}} for line in lab.read(self.lost).splitlines()]

    def path(self, one, other, name, value):
        self.command(f"path {one.number} {other.number} {name} {value}")

    def link(self, host, is_up):
        """At the network's end of the uplink: the host loses its carrier."""
        name = f"r{host.number}"
        self.router.ip("link", "set", name, "up" if is_up else "down")
        if is_up:
            self.router.ip("route", "replace", host.net(host.at(host.number, 0)), "dev", name)


IPCTNL_NEW, NFNL_CTNETLINK = 0, 1
NLM_F_REQUEST, NLM_F_CREATE, NLM_F_EXCL = 1, 0x400, 0x200
STATUS_ASSURED = 1 << 1 | 1 << 2 | 1 << 3 # a reply was seen, assured, confirmed
BATCH = 200


def attribute(kind, data, is_nested=False):
    return struct.pack("HH", 4 + len(data), kind | (0x8000 if is_nested else 0)) + data + bytes(-len(data) % 4)


def tuple_of(kind, source, target, sport, dport):
    ip = attribute(1, attribute(1, source) + attribute(2, target), True)
    proto = attribute(2, attribute(1, b"\x11") + attribute(2, struct.pack("!H", sport)) +
                      attribute(3, struct.pack("!H", dport)), True)
    return attribute(kind, ip + proto, True)


def entry(source, sport):
    """The message for an entry of UDP that is assured, to 10.98.0.1."""
    target = bytes((10, 98, 0, 1))
    body = struct.pack("BBH", socket.AF_INET, 0, 0) + tuple_of(1, source, target, sport, 9) + \
        tuple_of(2, target, source, 9, sport) + attribute(3, struct.pack("!I", STATUS_ASSURED)) + \
        attribute(7, struct.pack("!I", 600))
    return struct.pack("IHHII", 16 + len(body), NFNL_CTNETLINK << 8 | IPCTNL_NEW,
                       NLM_F_REQUEST | NLM_F_CREATE | NLM_F_EXCL, 0, 0) + body


SOURCE = bytes((10, 97, 171, 205)) # each batch has its own instead, in 10.99/16


class Table:
    """Fills the table of a namespace, whose limit is that of the machine."""

    def __init__(self, ns):
        self.ns, self.made = ns, 0
        self.batch = b"".join(entry(SOURCE, 1000 + number) for number in range(BATCH))
        with ns:
            self.end = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 12)
        self.limit = int(lab.read("/proc/sys/net/netfilter/nf_conntrack_max"))

    def count(self):
        with self.ns:
            return int(lab.read("/proc/sys/net/netfilter/nf_conntrack_count"))

    def fill(self, left):
        """Until room for so many is left, or for a few if others take it."""
        for _ in range(max(0, (self.limit - left - self.count() + BATCH - 1) // BATCH)):
            self.made += 1
            self.end.send(self.batch.replace(SOURCE, struct.pack("!BBH", 10, 99, self.made)))
