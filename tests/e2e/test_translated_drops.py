# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
# Needs: conntrack nftables
# Lock: drops, its drops need room among those of the whole host.
"""Drops in front of NAT, between its hooks and behind it: each is in a record of its flow.

Kinds of NAT, hooks, protocols and counts are random, and the rules that drop count the packets.
"""

import os

from lib import drops
from lib import lab
from lib import nat
from lib import observer
from lib.drops import nft_packets
from lib.observer import features

CASES = int(os.environ.get("NETOBS_TEST_DROP_CASES", "40"))
ROUTED = tuple(kind for kind in nat.KINDS if kind not in ("redirect", "local"))
BEFORE = (("prerouting", -300), ("prerouting", -150), ("prerouting", -50))
BEHIND = (("forward", 0), ("postrouting", 50), ("postrouting", 300))


class Case(nat.Service):
    """Packets of one connection that a rule of the router drops, from the first on or later."""

    def __init__(self, test, number):
        kind = test.random.choice((*ROUTED, "redirect"))
        super().__init__(test, number, kind, test.random.choice(("tcp", "udp")),
                         test.random.random() < 0.5)
        ways = BEFORE + ((("input", 0),) if kind == "redirect" else BEHIND)
        self.hook, self.priority = test.random.choice(ways)
        # A TCP connection that was opened sends its data again for as long as it likes.
        self.is_later = self.proto == "udp" and test.random.random() < 0.5
        self.is_back = self.is_later and kind != "redirect" and test.random.random() < 0.5
        self.count = test.random.randrange(1, 30)
        self.name = f"case{number}"

    def drop_rule(self):
        chain = f"{self.hook}{self.priority}".replace("-", "_")
        port = "sport" if self.is_back else "dport"
        return (f"add chain inet firewall {chain} "
                f"{{ type filter hook {self.hook} priority {self.priority}; }}\n"
                f"add rule inet firewall {chain} {self.proto} {port} {{ {self.port}, {self.inner} }} "
                f"counter drop comment \"{self.name}\"\n")

    def open(self):
        sock = self.make(self.asker)
        sock.bind(("::" if self.is_ipv6 else "0.0.0.0", next(self.ports)))
        return sock

    def exchange(self):
        self.listen()
        self.asking = self.open()
        self.asking.sendto(b"question", (self.asked, self.port))
        _, self.peer = self.listener.recvfrom(100)
        self.listener.sendto(b"answer", self.peer)
        self.asking.recv(100)

    def send(self):
        if self.proto == "tcp":
            for _ in range(self.count):
                with self.open() as sock:
                    sock.setblocking(False)
                    sock.connect_ex((self.asked, self.port))
            return
        if not self.is_later:
            self.asking = self.open()
        for _ in range(self.count):
            if self.is_back:
                self.listener.sendto(b"dropped", self.peer)
            else:
                self.asking.sendto(b"dropped", (self.asked, self.port))

    def close(self):
        for name in "asking", "listener":
            if hasattr(self, name):
                getattr(self, name).close()

    def is_own(self, record):
        return {self.port, self.inner} & {record.get(f"{prefix}{end}Port") for prefix in
                                          ("", "Xlat", "Orig") for end in ("Src", "Dst")}

    def __str__(self):
        return (f"{self.name}: {self.kind} {self.proto} {'IPv6' if self.is_ipv6 else 'IPv4'} "
                f"{self.hook} {self.priority}{' later' * self.is_later}{' back' * self.is_back}")


class NatDrops(nat.RandomNatTest):
    def run_cases(self, *options):
        cases = [Case(self, number) for number in range(CASES)]
        for case in cases:
            self.addCleanup(case.close)
        self.rules(nat.BASE + "\n".join(rule for one in cases for rule in one.rules()) +
                   "\nadd table inet firewall\n")
        watch = observer.Observer(self.lab, self.router, "--drops", "--interval", "600", *options)
        watch.wait_attached((self.router, "rc"), (self.router, "rs"), (self.router, "lo"))
        for case in cases:
            if case.is_later:
                case.exchange()
        self.rules("".join(case.drop_rule() for case in cases))
        for case in cases:
            case.send()
            lab.wait_for(lambda case=case: nft_packets(self.router, case.name) >= case.count,
                         f"{case}: {case.count}")
        result = watch.stop()
        found = drops.check_identity(self, result)
        for case in cases:
            own = [one for one in result.records if case.is_own(one)]
            self.assertEqual(nft_packets(self.router, case.name),
                             sum(one.get("PktDropPackets", 0) for one in own),
                             f"{case}: {own} {found}")
        self.note(f"{found['in_flows_packets']} packets in flows")

    def test_without_translations(self):
        self.run_cases()

    def test_with_translations(self):
        self.run_cases("--nat")


if __name__ == "__main__":
    lab.main("tracepoint of dropped packets", lambda: features()["drops"])
