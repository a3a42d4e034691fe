# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
# Needs: conntrack nftables
# Lock: drops, its drops need room among those of the whole host.
"""Drops in front of NAT, between its hooks and behind it: each is in a record of its flow.

Kinds of NAT, one or two routers that translate, hooks, protocols and counts are random, and the rules that
drop count the packets.
"""

import contextlib
import os
import socket
import struct

from lib import drops
from lib import lab
from lib import nat
from lib import observer
from lib.drops import nft_packets
from lib.observer import features

CASES = int(os.environ.get("NETOBS_TEST_DROP_CASES", "40"))
LOCAL = ("local", "output") # the router itself asks
BEFORE = (("prerouting", -300), ("prerouting", -150), ("prerouting", -50), ("ingress", 0))
BEHIND = (("postrouting", 50), ("postrouting", 300), ("egress", 0))
OUTPUT = (("output", -300), ("output", -150), ("output", 0))
FORWARD, INPUT = ("forward", 0), ("input", 0)
# The first router, behind which a second client is.
FIRST_KINDS = ("plain", "masquerade", "dnat", "both")


class First(nat.Service):
    """What the first of two routers makes of a connection."""

    def __init__(self, test, case):
        super().__init__(test, case.number, test.random.choice(FIRST_KINDS), case.proto,
                         case.is_ipv6)
        self.inner, self.server = case.port, case.asked
        if self.asks_public:
            self.port = 1000 + case.number
        else:
            self.port, self.asked = case.port, case.asked
        case.adapt(self, 19)


class Case(nat.Service):
    """Packets of one connection that a rule of a router drops, from the first on or later."""

    def __init__(self, test, number):
        self.number, self.test = number, test
        proto = test.random.choice(("tcp", "udp", "icmp"))
        is_ipv6 = test.random.random() < 0.5
        if proto == "icmp" and not features()["drop_reasons"]:
            # Such old kernels free each ICMPv6 packet that they have received as if they dropped it.
            is_ipv6 = False
        self.first = None
        is_far = test.random.random() < 0.4
        kinds = [kind for kind in (*nat.KINDS, "output") if not (
            kind in ("hairpin", *LOCAL) and is_far or kind == "hairpin" and proto == "icmp")]
        super().__init__(test, number, test.random.choice(kinds), proto, is_ipv6)
        if proto == "icmp":
            self.server = self.asked = self.numbered(8)
        self.adapt(self, 18)
        self.at, self.ends = test.router, ["rc", "rc" if self.kind == "hairpin" else "rs"]
        if is_far:
            self.ends[0] = "re"
            self.first, self.asker = First(test, self), test.far
            if test.random.random() < 0.3:
                self.at, self.ends = test.edge, ["ef", "er"]
        # A TCP connection that was opened sends its data again for as long as it likes.
        self.is_later = proto != "tcp" and test.random.random() < 0.5
        self.is_back = self.is_later and self.kind != "redirect" and test.random.random() < 0.5
        self.is_local = self.kind in LOCAL
        self.hook, self.priority = test.random.choice(
            [way for way in self.ways() if way[0] not in test.lacking])
        self.count = test.random.randrange(1, 30)
        self.name = f"case{number}"
        self.ports_of_all = {one.port for one in self.stages()} | {self.inner}
        self.addresses = {one.asked for one in self.stages()} | {self.server}

    def stages(self):
        return [self, self.first] if self.first else [self]

    def numbered(self, net):
        """An address that no other case has."""
        return f"fd{net:02}::{self.number + 1:x}" if self.is_ipv6 else \
            f"10.{net}.{self.number >> 8}.{self.number & 255}"

    def adapt(self, one, net):
        """Echo requests have no ports, so each case has addresses of its own."""
        if self.proto != "icmp":
            return
        if one.asks_public:
            one.asked = self.numbered(net)
        one.any_port = one.to_port = ""
        one.inside = lambda address: address
        before, after = (f"{self.ip} daddr {address} {self.echo('request')}"
                         for address in (one.asked, one.server))
        one.matches = lambda: (before, after,
                               f"{self.ip} saddr {one.asked} {self.echo('reply')}")

    def echo(self, way):
        return f"icmp{'v6' * self.is_ipv6} type echo-{way} @th,64,32 {self.number}"

    def ways(self):
        if self.kind in LOCAL:
            return BEFORE + (INPUT,) if self.is_back else OUTPUT + BEHIND
        if self.kind == "redirect" and self.at is self.test.router:
            return BEFORE + (INPUT,)
        return BEFORE + (FORWARD,) + BEHIND

    def drop_rule(self):
        chain = f"{self.hook}{self.priority}".replace("-", "_")
        table, device = "inet firewall", ""
        if self.hook in ("ingress", "egress"):
            end = self.ends[(self.hook == "egress") != self.is_back]
            chain, table, device = chain + end, "netdev firewall", f"device {end}"
        match = self.echo("reply" if self.is_back else "request") if self.proto == "icmp" else \
            f"{self.proto} {'sport' if self.is_back else 'dport'} " \
            f"{{ {', '.join(map(str, self.ports_of_all))} }}"
        return (f"add chain {table} {chain} "
                f"{{ type filter hook {self.hook} {device} priority {self.priority}; }}\n"
                f"add rule {table} {chain} {match} counter drop comment \"{self.name}\"\n")

    def open(self):
        if self.proto == "icmp":
            with self.asker:
                sock = socket.socket(self.family, socket.SOCK_DGRAM, socket.IPPROTO_ICMPV6
                                     if self.is_ipv6 else socket.IPPROTO_ICMP)
            sock.settimeout(lab.PATIENCE_S)
        else:
            sock = self.make(self.asker)
        address = "::" if self.is_ipv6 else "0.0.0.0"
        if self.is_local: # not from the pool
            address = "fd02::1" if self.is_ipv6 else "10.0.2.1"
        sock.bind((address, 0 if self.proto == "icmp" else next(self.ports)))
        return sock

    def ask(self, sock):
        first = self.stages()[-1]
        payload = struct.pack("!BBHHHI", 128 if self.is_ipv6 else 8, 0, 0, 0, 0, self.number) \
            if self.proto == "icmp" else b"question"
        # A local sender hears that its packet was dropped.
        with contextlib.suppress(OSError) if self.is_local else contextlib.nullcontext():
            sock.sendto(payload, (first.asked, 0 if self.proto == "icmp" else first.port))

    def exchange(self):
        self.asking = self.open()
        if self.proto == "icmp":
            self.ask(self.asking)
        else:
            self.listen()
            self.ask(self.asking)
            _, self.peer = self.listener.recvfrom(100)
            self.listener.sendto(b"answer", self.peer)
        self.asking.recv(100)

    def send(self):
        if self.proto == "tcp":
            for _ in range(self.count):
                with self.open() as sock:
                    sock.setblocking(False)
                    first = self.stages()[-1]
                    sock.connect_ex((first.asked, first.port))
            return
        if not self.is_later:
            self.asking = self.open()
        for _ in range(self.count):
            if self.is_back and self.proto == "udp":
                self.listener.sendto(b"dropped", self.peer)
            else:
                self.ask(self.asking)

    def close(self):
        for name in "asking", "listener":
            if hasattr(self, name):
                getattr(self, name).close()

    def is_known(self, has_nat):
        """Whether a record has one of the tuples of what was dropped: that of local senders has left."""
        if not self.is_local or self.is_back:
            return True
        was_translated = self.hook == "egress" or \
            self.priority == (300 if self.kind == "local" else 0) or \
            self.kind == "output" and self.hook == "postrouting"
        return self.is_later and (has_nat or was_translated)

    def is_own(self, record):
        ends = [record.get(f"{prefix}{end}") for prefix in ("", "Xlat", "Orig")
                for end in ("SrcPort", "DstPort", "SrcAddr", "DstAddr")]
        if self.proto == "icmp":
            return record["Proto"] in (1, 58) and self.addresses & set(ends)
        return self.ports_of_all & set(ends)

    def __str__(self):
        first = f"{self.first.kind} at the first router, then " if self.first else ""
        return (f"{self.name}: {first}{self.kind} {self.proto} {'IPv6' if self.is_ipv6 else 'IPv4'} "
                f"{self.at.name} {self.hook} {self.priority}{' later' * self.is_later}"
                f"{' back' * self.is_back}")


class NatDrops(nat.RandomNatTest):
    def setUp(self):
        super().setUp()
        self.far, self.edge = (self.lab.ns(tag, ipv6=True) for tag in ("far", "edge"))
        self.lab.wire(self.far, "eth0", ["10.0.3.2/24", "fd03::2/64"], self.edge, "ef",
                      ["10.0.3.1/24", "fd03::1/64"])
        self.lab.wire(self.edge, "er", ["10.0.4.2/24", "fd04::2/64"], self.router, "re",
                      ["10.0.4.1/24", "fd04::1/64"])
        for ns, net, gateway in (
                (self.far, "default", "10.0.3.1"), (self.far, "default", "fd03::1"),
                (self.edge, "default", "10.0.4.1"), (self.edge, "default", "fd04::1"),
                (self.router, "default", self.SERVER), (self.router, "default", self.SERVER6),
                (self.router, "10.0.3.0/24", "10.0.4.2"), (self.router, "fd03::/64", "fd04::2")):
            ns.ip("route", "add", net, "via", gateway)
        # All addresses of these networks are the server's.
        for net in "10.8.0.0/16", "fd08::/64":
            self.server.ip("route", "add", "local", net, "dev", "lo")
        for key in "ipv4/ip_forward", "ipv6/conf/all/forwarding":
            self.edge.sysctl(key, 1)
        for ns in self.client, self.far, self.router:
            ns.sysctl("ipv4/ping_group_range", "0 0")
        nat.keep_connections(self.edge)
        self.lacking = [hook for hook in ("ingress", "egress") if not self.has_hook(hook)]
        if self.lacking:
            self.note(f"nft or the kernel lacks {' and '.join(self.lacking)} of netdev")

    def has_hook(self, hook):
        """For egress, Linux 5.16."""
        try:
            self.client.run("nft", "-f", "-", input=f"add table netdev trial\nadd chain netdev trial "
                            f"{hook} {{ type filter hook {hook} device eth0 priority 0; }}\n")
        except RuntimeError:
            return False
        return True

    def run_cases(self, *options):
        cases = [Case(self, number) for number in range(CASES)]
        points = [(self.router, name) for name in ("rc", "rs", "re", "lo")] + \
            [(self.edge, name) for name in ("ef", "er", "lo")]
        rules = {self.router: [], self.edge: []}
        for case in cases:
            self.addCleanup(case.close)
            rules[self.router] += case.rules()
            rules[self.edge] += case.first.rules() if case.first else ()
        for ns, lines in rules.items():
            ns.run("nft", "-f", "-", input=nat.BASE + "\n".join(lines) + "\n".join(
                f"\nadd table {family} firewall\n" for family in ("inet", "netdev")))
        watch = observer.Observer(self.lab, self.router, "--drops", "--interval", "600", *options, *(
            word for ns, name in points for word in ("-i", f"netns:{ns.name}/{name}")))
        watch.wait_attached(*points)
        for case in cases:
            if case.is_later:
                case.exchange()
        for ns in rules:
            ns.run("nft", "-f", "-", input="".join(case.drop_rule() for case in cases
                                                   if case.at is ns))
        for case in cases:
            case.send()
            lab.wait_for(lambda case=case: nft_packets(case.at, case.name) >= case.count,
                         f"{case}: {case.count}")
        result = watch.stop()
        found = drops.check_identity(self, result)
        for case in cases:
            own = [one for one in result.records if case.is_own(one)]
            known = nft_packets(case.at, case.name) if case.is_known("--nat" in options) else 0
            self.assertEqual(known, sum(one.get("PktDropPackets", 0) for one in own),
                             f"{case}: {own} {found}")
        self.note(f"{found['in_flows_packets']} packets in flows")

    def test_without_translations(self):
        self.run_cases()

    def test_with_translations(self):
        self.run_cases("--nat")


if __name__ == "__main__":
    lab.main("tracepoint of dropped packets", lambda: features()["drops"])
