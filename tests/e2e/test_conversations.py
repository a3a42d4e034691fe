#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
# Cost: 45
"""A packet is counted once and belongs to its conversation, through routers that translate.

Random chains of namespaces, random rules in each of them, and random sets of observed interfaces. The
sender knows what it has sent. NETOBS_TEST_CHAINS=N tries so many.
"""

import collections
import os
import random
import socket

from lib import lab
from lib import nat
from lib import observer

CHAINS = 16
CONVERSATIONS = 20
PORT, INSIDE = 8080, "10.9.9.9"
RULES = """
table ip nat {
	chain out { type nat hook output priority -100; }
	chain pre { type nat hook prerouting priority dstnat; }
	chain post { type nat hook postrouting priority srcnat; }
}
"""


class Chain:
    """A client, one to three routers and a server in a row; each but the server may translate."""

    def __init__(self, where, rng):
        self.random = rng
        self.spaces = [where.ns(tag) for tag in
                       ("client", *(f"router{i}" for i in range(rng.randint(1, 3))), "server")]
        self.points, self.translators = [], set()
        self.n_tunnels, self.below = 0, set()
        for number, (near, far) in enumerate(zip(self.spaces, self.spaces[1:])):
            # Two tunnels may be of two tenants: netobsctl-flows(8).
            if not self.n_tunnels and rng.random() < 0.3:
                self.tunnel(where, number, near, far)
            else:
                where.wire(near, "out", [f"10.1.{number}.1/24"], far, "in", [f"10.1.{number}.2/24"])
            self.points += [(near, "out"), (far, "in")]
        for at, space in enumerate(self.spaces):
            space.sysctl("ipv4/ip_forward", 1)
            if space is not self.spaces[-1]:
                space.ip("route", "add", "default", "via", f"10.1.{at}.2")
            for number in range(at - 1):
                space.ip("route", "add", f"10.1.{number}.0/24", "via", f"10.1.{at - 1}.1")
            if at:
                space.ip("route", "add", f"{INSIDE}/32", "via", f"10.1.{at - 1}.1")
        self.spaces[0].address("lo", f"{INSIDE}/32")
        self.target = (f"10.1.{len(self.spaces) - 2}.2", PORT)
        for at in reversed(range(len(self.spaces) - 1)):
            self.translate(at)

    def tunnel(self, where, number, near, far):
        """Instead of a pair; what is below it may be observed, too."""
        self.n_tunnels += 1
        where.wire(near, "under", [f"10.2.{number}.1/24"], far, "below", [f"10.2.{number}.2/24"])
        for space, name, own, peer, link in (near, "out", 1, 2, "under"), (far, "in", 2, 1, "below"):
            space.ip("link", "add", name, "type", "vxlan", "id", str(100 + number), "dstport",
                     "4789", "local", f"10.2.{number}.{own}", "remote", f"10.2.{number}.{peer}",
                     "dev", link)
            self.below.add((space, link))
            space.address(name, f"10.1.{number}.{own}/24")
            space.ip("link", "set", name, "up")

    def translate(self, at):
        space, rules = self.spaces[at], []
        if self.random.random() < 0.4:
            asked = (f"192.0.2.{at + 1}", self.random.randint(1000, 2000))
            rules.append(f"add rule ip nat {'pre' if at else 'out'} ip daddr {asked[0]} udp dport "
                         f"{asked[1]} dnat to {self.target[0]}:{self.target[1]}")
            self.target = asked
        if self.random.random() < 0.5:
            rules.append("add rule ip nat post oifname out masquerade" +
                         self.random.choice(("", " fully-random")))
        if rules:
            self.translators.add(at)
            nat.keep_connections(space)
            space.run("nft", "-f", "-", input=RULES + "\n".join(rules) + "\n")

    def observe(self):
        """Observe some interfaces, so that each translation between two of them is known."""
        while True:
            chosen = sorted(self.random.sample(range(len(self.points)),
                                               self.random.randint(1, len(self.points))))
            # Namespace n has the interfaces 2n - 1 and 2n.
            if all({2 * at - 1, 2 * at} & set(chosen) for at in self.translators
                   if chosen[0] <= 2 * at - 1 and 2 * at <= chosen[-1]):
                points = [self.points[number] for number in chosen]
                below = {"out": "under", "in": "below"}
                return points + [(space, below[name]) for space, name in points
                                 if (space, below[name]) in self.below and self.random.random() < 0.5]

    def talk(self):
        """@return {conversation's tuple: (packets there, packets back)}"""
        sent = {}
        with self.spaces[-1], socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as server:
            server.bind(("0.0.0.0", PORT))
            server.settimeout(lab.PATIENCE_S)
            for number in range(lab.sized(CONVERSATIONS)):
                with self.spaces[0], socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
                    sock.settimeout(lab.PATIENCE_S)
                    source = INSIDE if self.random.random() < 0.5 and 0 in self.translators \
                        else "10.1.0.1"
                    # NAT keeps ports if it can: then no other conversation has that one.
                    sock.bind((source, 20000 + number))
                    there, back = self.random.randint(1, 5), self.random.randint(1, 5)
                    for _ in range(there):
                        sock.sendto(b"question", self.target)
                        peer = server.recvfrom(100)[1]
                    for _ in range(back):
                        server.sendto(b"answer", peer)
                        sock.recv(100)
                    sent[nat.Tuple(17, *sock.getsockname()[:1], self.target[0],
                                   sock.getsockname()[1], self.target[1])] = there, back
        return sent

    def faces(self, conversation):
        """All tuples of a conversation in that direction, by the kernel's tables."""
        faces = [conversation]
        for table in self.tables:
            faces += [face for face in table.before.get(faces[-1], ()) if face != faces[-1]]
        return faces


class Conversations(lab.LabTest):
    def attempt(self, seed):
        chain = Chain(self.lab, random.Random(seed))
        points = chain.observe()
        watch = observer.Observer(
            self.lab, points[0][0], "--nat", "--interval", "60",
            *(word for space, name in points for word in ("-i", f"netns:{space.name}/{name}"))
        ).wait_attached(*points)
        sent = chain.talk()
        chain.tables = [nat.connections(space) for at, space in enumerate(chain.spaces)
                        if at in chain.translators]
        result = watch.stop()
        result.check_conservation()
        owners = {}
        for conversation in sent:
            for face in chain.faces(conversation):
                owners[face] = conversation, 0
                owners[face.back()] = conversation, 1
        counted, ids = collections.Counter(), collections.defaultdict(set)
        for record in result.records:
            if record["Proto"] != 17 or record["DstPort"] == 4789: # ARP in a tunnel
                continue
            conversation, way = owners[nat.tuple_of(record)]
            counted[conversation, way] += record["Packets"]
            ids[conversation].add(record["ConversationId"])
        text = f"NETOBS_TEST_SEED={seed}: {[(space.name, name) for space, name in points]}, " \
            f"translators {sorted(chain.translators)}"
        for conversation, packets in sent.items():
            if packets != (counted[conversation, 0], counted[conversation, 1]):
                print(f"{text}\n{conversation}, faces {chain.faces(conversation)}")
                for record in result.records:
                    if record["Proto"] == 17:
                        print(record)
            self.assertEqual(packets, (counted[conversation, 0], counted[conversation, 1]))
            self.assertEqual(1, len(ids[conversation]), f"{text}, {conversation}")
        self.assertEqual(len(sent), len(set.union(*ids.values())), text)
        return len(chain.translators), chain.n_tunnels

    def test_each_packet_is_counted_once(self):
        first = int(os.environ.get("NETOBS_TEST_SEED", random.randrange(1 << 30)))
        count = int(os.environ.get("NETOBS_TEST_CHAINS",
                                   1 if "NETOBS_TEST_SEED" in os.environ else lab.sized(CHAINS)))
        print(f"    NETOBS_TEST_SEED={first}", flush=True)
        translators, tunnels = map(sum, zip(*(self.attempt(seed)
                                              for seed in range(first, first + count))))
        self.note(f"{count} chains with {translators} translators and {tunnels} tunnels")


if __name__ == "__main__":
    lab.main()
