# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
# Needs: conntrack nftables
"""A router with NAT, and what its kernel's table of connections says about flows."""

import itertools
import re
import socket
from dataclasses import dataclass, field

from lib import lab
from lib import talkers
from lib import traffic
from lib.observer import INGRESS

PROTOCOLS = {6: "tcp", 17: "udp", 1: "icmp", 58: "icmpv6"}
NUMBERS = {name: number for number, name in PROTOCOLS.items()}
REPLY_TYPES = {8: 0, 128: 129}
KINDS = ("dnat", "snat", "masquerade", "both", "redirect", "hairpin", "plain", "notrack",
         "local")
BASE = """
table inet nat {
	chain raw { type filter hook prerouting priority raw; }
	chain out { type nat hook output priority -100; }
	chain pre { type nat hook prerouting priority dstnat; }
	chain post { type nat hook postrouting priority srcnat; }
}
"""


ZONES = """
add rule inet nat raw iifname rc ct original zone set 1
add rule inet nat raw iifname rd ct original zone set 2
add chain inet nat marks { type filter hook prerouting priority mangle; }
add rule inet nat marks iifname rc ct mark set 1
add rule inet nat marks iifname rd ct mark set 2
add rule inet nat marks iifname rs meta mark set ct mark
"""


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


def end_of(address, port):
    return f"[{address}]:{port}" if is_ipv6(address) else f"{address}:{port}"


def query_of(face):
    """As netobsctl map looks it up."""
    return f"{end_of(face.src, face.sport)}>{end_of(face.dst, face.dport)}/{PROTOCOLS[face.proto]}"


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


class Service:
    """A port that the client asks, and the rules for it."""

    def __init__(self, test, number, kind, proto, is_ipv6):
        self.kind, self.proto, self.is_ipv6 = kind, proto, is_ipv6
        self.port, self.inner = 2000 + number, 3000 + number
        self.ports = test.ports
        pick = (lambda four, six: six) if is_ipv6 else (lambda four, six: four)
        self.family = socket.AF_INET6 if is_ipv6 else socket.AF_INET
        self.client = pick(test.CLIENT, test.CLIENT6)
        self.server = pick(test.SERVER, test.SERVER6)
        self.public = pick(test.PUBLIC, test.PUBLIC6)
        self.pool = pick(test.POOL, test.POOL6)
        self.ip = pick("ip", "ip6")
        self.any_port, self.to_port = " to :20000-50000 random", f" to :{self.inner}"
        self.asks_public = kind in ("dnat", "both", "redirect", "hairpin", "output")
        self.asked = self.public if self.asks_public else self.server
        self.where = {"redirect": test.router, "hairpin": test.client}.get(kind, test.server)
        self.asker = test.router if kind in ("local", "output") else test.client

    def inside(self, address):
        """Where a rule of DNAT leads."""
        return f"[{address}]:{self.inner}" if self.is_ipv6 else f"{address}:{self.inner}"

    def matches(self):
        """What packets match before DNAT and behind it, and what those back match."""
        family = f"meta nfproto {'ipv6' if self.is_ipv6 else 'ipv4'} {self.proto}"
        return f"{family} dport {self.port}", f"{family} dport {self.inner}", \
            f"{family} sport {self.port}"

    def rules(self):
        before, after, back = self.matches()
        target = self.client if self.kind == "hairpin" else self.server
        dnat = f"{before} dnat {self.ip} to {self.inside(target)}"
        snat = f"add rule inet nat post {before} snat {self.ip} to {self.pool}"
        masquerade = f"add rule inet nat post {after} masquerade"
        return {
            "dnat": [f"add rule inet nat pre {dnat}"],
            "snat": [snat],
            "masquerade": [f"add rule inet nat post {before} masquerade{self.any_port}"],
            "both": [f"add rule inet nat pre {dnat}", masquerade],
            "redirect": [f"add rule inet nat pre {before} redirect{self.to_port}"],
            "hairpin": [f"add rule inet nat pre {dnat}", masquerade],
            "plain": [],
            "notrack": [f"add rule inet nat raw {before} notrack",
                        f"add rule inet nat raw {back} notrack"],
            "local": [snat],
            "output": [f"add rule inet nat out {dnat}"],
        }[self.kind]

    def make(self, ns):
        kind = socket.SOCK_STREAM if self.proto == "tcp" else socket.SOCK_DGRAM
        with ns:
            sock = socket.socket(self.family, kind)
        sock.settimeout(lab.PATIENCE_S)
        return sock

    def listen(self):
        self.listener = self.make(self.where)
        self.listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        port = self.inner if self.asks_public else self.port
        self.listener.bind(("::" if self.is_ipv6 else "0.0.0.0", port))
        if self.proto == "tcp":
            self.listener.listen(1000)

    def ask(self, answers):
        """One connection, or one exchange of datagrams. @answers: of UDP"""
        with self.make(self.asker) as sock:
            # A tuple that is used again may have another entry, and the table has the last one only.
            sock.bind(("::" if self.is_ipv6 else "0.0.0.0", next(self.ports)))
            sock.connect((self.asked, self.port))
            sock.send(b"question")
            if self.proto == "tcp":
                end, _ = self.listener.accept()
                with end:
                    end.settimeout(lab.PATIENCE_S)
                    end.recv(100)
                    end.send(b"answer")
                    sock.recv(100)
                return
            _, peer = self.listener.recvfrom(100)
            if answers:
                # From the address that was asked, which is not always the first one.
                self.listener.sendto(b"answer", peer)
                sock.recv(100)


class NatTest(lab.LabTest):
    """A client, a router and a server, each in its namespace, over IPv4 and IPv6."""

    CLIENT, SERVER, PUBLIC = "10.0.1.2", "10.0.2.2", "192.0.2.1"
    CLIENT6, SERVER6, PUBLIC6 = "fd01::2", "fd02::2", "2001:db8::1"
    POOL, POOL6 = "10.0.2.50", "fd02::50"

    def setUp(self):
        super().setUp()
        self.ports = itertools.count(4000) # of those that ask, each once
        self.client, self.router, self.server = (
            self.lab.ns(tag, ipv6=True) for tag in ("client", "router", "server"))
        self.client_macs = self.lab.wire(
            self.client, "eth0", [f"{self.CLIENT}/24", f"{self.CLIENT6}/64"],
            self.router, "rc", ["10.0.1.1/24", "fd01::1/64"])
        self.server_macs = self.lab.wire(
            self.server, "eth0", [f"{self.SERVER}/24", f"{self.SERVER6}/64"], self.router, "rs",
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


class RandomNatTest(NatTest):
    """Services of random kinds; a failure prints its seed."""

    def make_services(self, count):
        kinds = [*KINDS, *self.random.choices(KINDS, k=count - len(KINDS))]
        services = [Service(self, number, kind, self.random.choice(("tcp", "udp")),
                            self.random.random() < 0.5) for number, kind in enumerate(kinds)]
        self.open_services(services)
        return services

    def open_services(self, services):
        self.rules(BASE + "\n".join(rule for one in services for rule in one.rules()) + "\n")
        for service in services:
            service.listen()
            self.addCleanup(service.listener.close)

    def talk(self, services, count):
        for _ in range(count):
            self.random.choice(services).ask(True)
        for service in services:
            service.ask(True)
        for address, kind in itertools.product(("127.0.0.1", "::1", "10.0.1.1", "fd01::1"), talkers.PROTOCOLS):
            with self.router, talkers.connect_to_itself(address, kind, next(self.ports)) as sock:
                sock.send(b"question")
                sock.recv(100)

    def check_faces(self, records, known):
        """Each record has what the table says; @return the faces that records named."""
        named, missed = set(), []
        for record in records:
            face = tuple_of(record)
            if face.proto not in PROTOCOLS:
                continue
            came_in = record["IfDirections"][0] == INGRESS
            table = known.before if came_in else known.after
            prefix = "Xlat" if came_in else "Orig"
            others = table.get(face, set()) - {face}
            found = other_of(record, prefix)
            self.assertIsNone(other_of(record, "Orig" if came_in else "Xlat"), record)
            if found is not None:
                self.assertIn(found, others, record)
                named.add((face, found) if came_in else (found, face))
            elif others:
                missed.append((face, others))
            self.assertEqual("ZoneId" in record, found is not None, record)
        return named, missed

    def make_zones(self, rules):
        """Another client with the address of the first, in a zone of its own."""
        other = self.lab.ns("other")
        self.lab.wire(other, "eth0", ["10.0.1.2/24"], self.router, "rd", ["10.0.3.1/24"])
        other.ip("route", "add", "10.0.3.1", "dev", "eth0")
        other.ip("route", "add", "default", "via", "10.0.3.1")
        self.router.address("rs", "10.0.2.51/24")
        for mark, name in ((1, "rc"), (2, "rd")):
            self.router.ip("route", "add", "10.0.1.2", "dev", name, "table", 100 + mark)
            self.router.ip("rule", "add", "fwmark", mark, "lookup", 100 + mark)
        self.router.sysctl("ipv4/conf/rd/rp_filter", 0)
        self.router.sysctl("ipv4/conf/all/rp_filter", 0)
        self.rules(BASE + ZONES + rules)
        server = traffic.make_socket(self.server, socket.SOCK_DGRAM, "0.0.0.0", 8080)
        self.addCleanup(server.close)
        return other, server

    def make_tenants(self):
        """
        Another client and another server with the addresses of the first ones, in a zone of both directions,
        as Open vSwitch has them. What they ask for is translated to another port in each zone.

        @return {zone: (the client, its interface, the server's, a socket there)}
        """
        others = self.lab.ns("client2"), self.lab.ns("server2")
        for ns, name, number in (others[0], "rd", 1), (others[1], "re", 2):
            self.lab.wire(ns, "eth0", [f"10.0.{number}.2/24"], self.router, name,
                          [f"10.0.{number}.1/24"])
            ns.ip("route", "add", "default", "via", f"10.0.{number}.1")
            self.router.ip("route", "add", f"10.0.{number}.0/24", "dev", name, "table", 102)
            self.router.ip("rule", "add", "iif", name, "lookup", 102)
        for name in "all", "rc", "rs", "rd", "re":
            self.router.sysctl(f"ipv4/conf/{name}/rp_filter", 0)
        self.rules(BASE + "".join(
            f"add rule inet nat raw iifname {{ {before}, {behind} }} ct zone set {zone}\n"
            f"add rule inet nat pre iifname {before} udp dport 80 dnat ip to {self.SERVER}:{port}\n"
            for zone, before, behind, port in ((1, "rc", "rs", 8081), (2, "rd", "re", 8082))))
        tenants = {}
        for zone, client, server, before, behind in ((1, self.client, self.server, "rc", "rs"),
                                                     (2, *others, "rd", "re")):
            sock = traffic.make_socket(server, socket.SOCK_DGRAM, "0.0.0.0", 8080 + zone)
            self.addCleanup(sock.close)
            tenants[zone] = client, before, behind, sock
        return tenants

    def ask_of_tenants(self, tenants, count):
        """All at the same time, from the same ports."""
        for number in range(count):
            asking = []
            for client, _, _, server in self.random.sample(list(tenants.values()), len(tenants)):
                sock = traffic.make_socket(client, socket.SOCK_DGRAM, self.CLIENT, 5000 + number)
                sock.sendto(b"x", (self.PUBLIC, 80))
                asking.append((sock, server))
            for sock, server in asking:
                server.sendto(b"y", server.recvfrom(10)[1])
                sock.recv(10)
                sock.close()

    def ask_in_zones(self, other, server, asked):
        for number in range(lab.sized(50)):
            for ns in (self.client, other):
                with traffic.make_socket(ns, socket.SOCK_DGRAM, self.CLIENT, 5000 + number) as sock:
                    sock.sendto(b"x", asked)
                    server.sendto(b"y", server.recvfrom(10)[1])
                    sock.recv(10)
