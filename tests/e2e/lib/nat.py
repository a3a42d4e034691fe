# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
# Needs: conntrack nftables
"""A router with NAT, and what its kernel's table of connections says about flows."""

import re
import socket
from dataclasses import dataclass, field

from lib import lab

PROTOCOLS = {6: "tcp", 17: "udp", 1: "icmp", 58: "icmpv6"}
NUMBERS = {name: number for number, name in PROTOCOLS.items()}
REPLY_TYPES = {8: 0, 128: 129}


@dataclass(frozen=True)
class Tuple:
    """As a flow record has it; of ICMP, the ports are 0 and the type."""

    proto: int
    src: str
    dst: str
    sport: int
    dport: int

    def back(self):
        if self.proto in (1, 58):
            reverse = {there: back for back, there in REPLY_TYPES.items()} | REPLY_TYPES
            return Tuple(self.proto, self.dst, self.src, 0, reverse[self.dport])
        return Tuple(self.proto, self.dst, self.src, self.dport, self.sport)


def is_ipv6(address):
    return ":" in address


def plain(address):
    """As netobs writes it; conntrack(8) may not shorten IPv6."""
    family = socket.AF_INET6 if is_ipv6(address) else socket.AF_INET
    return socket.inet_ntop(family, socket.inet_pton(family, address))


@dataclass
class Entry:
    """Of conntrack(8)'s table: the tuples and the packets of both directions."""

    original: Tuple
    reply: Tuple
    packets: tuple

    def faces(self):
        return {self.original, self.reply.back(), self.reply, self.original.back()}


@dataclass
class Connections:
    """conntrack(8)'s table: the faces of all entries, {tuple: {other tuples}}, by side."""

    before: dict = field(default_factory=dict)
    after: dict = field(default_factory=dict)
    entries: list = field(default_factory=list)

    def add(self, original, reply, packets):
        self.entries.append(Entry(original, reply, packets))
        for tuple_before, tuple_after in ((original, reply.back()), (reply, original.back())):
            self.before.setdefault(tuple_before, set()).add(tuple_after)
            self.after.setdefault(tuple_after, set()).add(tuple_before)

    def translated(self):
        """The faces before translation of what is translated, each with its other one."""
        return {(face, other) for face, others in self.before.items() for other in others
                if face != other}


def read_entry(line):
    """Both tuples of an entry, and their packets."""
    proto = NUMBERS[line.split()[2]]
    parts = [line[at:] for at in (match.start() for match in re.finditer(r"src=", line))]
    tuples = []
    for text in parts:
        values = dict(re.findall(r"(\w+)=(\S+)", text)[:6][::-1])
        src, dst = plain(values["src"]), plain(values["dst"])
        if proto in (1, 58):
            tuples.append(Tuple(proto, src, dst, 0, int(values["type"])))
        else:
            tuples.append(Tuple(proto, src, dst, int(values["sport"]), int(values["dport"])))
    return *tuples, tuple(int(number) for number in re.findall(r"packets=(\d+)", line))


def connections(router):
    found = Connections()
    for family in "ipv4", "ipv6":
        for line in router.run("conntrack", "-L", "-o", "extended", "-f", family).splitlines():
            if line.split()[2] in NUMBERS:
                found.add(*read_entry(line))
    return found


def keep_connections(router):
    """So that the table still has them when a test has ended."""
    for name in ("udp_timeout", "udp_timeout_stream", "icmp_timeout", "icmpv6_timeout",
                 "tcp_timeout_close", "tcp_timeout_time_wait", "tcp_timeout_last_ack"):
        router.sysctl(f"netfilter/nf_conntrack_{name}", 600)
    router.sysctl("netfilter/nf_conntrack_acct", 1)


def tuple_of(record):
    return Tuple(record["Proto"], record["SrcAddr"], record["DstAddr"],
                 record.get("SrcPort", 0), record.get("DstPort", record.get("IcmpType", 0)))


def other_of(record, prefix):
    """The tuple that the record names under "Xlat" or "Orig"; None: none."""
    if f"{prefix}SrcAddr" not in record:
        return None
    return Tuple(record["Proto"], record[f"{prefix}SrcAddr"], record[f"{prefix}DstAddr"],
                 record.get(f"{prefix}SrcPort", 0),
                 record.get(f"{prefix}DstPort", record.get("IcmpType", 0)))


class NatTest(lab.LabTest):
    """A client, a router and a server, each in its namespace, over IPv4 and IPv6."""

    CLIENT, SERVER, PUBLIC = "10.0.1.2", "10.0.2.2", "192.0.2.1"
    CLIENT6, SERVER6, PUBLIC6 = "fd01::2", "fd02::2", "2001:db8::1"
    POOL, POOL6 = "10.0.2.50", "fd02::50"

    def setUp(self):
        super().setUp()
        self.client, self.router, self.server = (
            self.lab.ns(tag, ipv6=True) for tag in ("client", "router", "server"))
        self.lab.wire(self.client, "eth0", [f"{self.CLIENT}/24", f"{self.CLIENT6}/64"],
                      self.router, "rc", ["10.0.1.1/24", "fd01::1/64"])
        self.lab.wire(self.server, "eth0", [f"{self.SERVER}/24", f"{self.SERVER6}/64"],
                      self.router, "rs",
                      ["10.0.2.1/24", "fd02::1/64", f"{self.POOL}/24", f"{self.POOL6}/64"])
        for ns, gateways in ((self.client, ("10.0.1.1", "fd01::1")),
                             (self.server, ("10.0.2.1", "fd02::1"))):
            for gateway in gateways:
                ns.ip("route", "add", "default", "via", gateway)
        for key in "ipv4/ip_forward", "ipv6/conf/all/forwarding":
            self.router.sysctl(key, 1)
        keep_connections(self.router)

    def rules(self, text):
        self.router.run("nft", "-f", "-", input=text)
