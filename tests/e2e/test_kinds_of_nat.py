# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
# Cost: 30
"""Many conversations through each kind of NAT, of TCP and UDP, over IPv4 and IPv6.

Each of them is found from both sides, from its first packet on, and in netobsctl map as in the kernel's
table. NETOBS_TEST_NAT_KINDS is the number of conversations of each kind.
"""

import collections
import itertools
import os

from lib import lab
from lib import maps
from lib import nat

CONVERSATIONS = int(os.environ.get("NETOBS_TEST_NAT_KINDS", "300"))


# Interfaces that packets pass before translation, and behind it: with redirect, there is a socket of the router.
SIDES = {"dnat": (["rc"], ["rs"]), "snat": (["rc"], ["rs"]), "masquerade": (["rc"], ["rs"]),
         "redirect": (["rc"], []), "hairpin": (["rc"], ["rc"])}


class KindsOfNat(maps.MapTest):
    def make_all(self, *kinds):
        """A service of each kind for each protocol and family."""
        services = [nat.Service(self, number, *one) for number, one in enumerate(
            itertools.product(kinds, ("tcp", "udp"), (False, True)))]
        self.open_services(services)
        return services

    def check_faces_of(self, flows, tables):
        """Each record of each translator's interfaces names what its table has, and nothing else."""
        for router, known in tables:
            own = [one for one in flows if one["NetnsInode"] == router.inode and
                   "TunnelType" not in one]
            named, missed = self.check_faces(own, known)
            self.assertEqual([], missed)
            self.assertEqual(known.translated(), named)

    def check_sides(self, flows, known, sides, mappings):
        """
        At each interface of either side, each conversation has all packets that the kernel has counted, and
        one id, which no other one has.

        @sides: as SIDES, by port
        """
        counted, ids = collections.Counter(), collections.defaultdict(set)
        for record in flows:
            face = nat.tuple_of(record)
            counted[face, record["Interfaces"][0]] += record["Packets"]
            ids[face].add(record["ConversationId"])
        used = set()
        entries = [one for one in known.entries if one.original != one.reply.back()]
        self.assertEqual(self.number, len(entries))
        for entry in entries:
            before, after = entry.original, entry.reply.back()
            own = {mappings[before, after]}
            for face, interfaces in zip((before, after), sides[before.dport]):
                for name in interfaces:
                    self.assertEqual(entry.packets, (counted[face, name], counted[face.back(), name]),
                                     (entry, name))
                    self.assertEqual((own, own), (ids[face], ids[face.back()]), (entry, name))
            used |= own
        self.assertEqual(self.number, len(used))

    def attempt(self, services, sides, points=("rc", "rs")):
        self.number = lab.sized(CONVERSATIONS) * len(sides)
        self.start_service(capture=[f"interface = {one}" for one in points],
                           flows=["per_interface = yes"], records="flow,mapping")
        for number in range(self.number):
            services[number % len(services)].ask(True)
            if (number + 1) % lab.sized(CONVERSATIONS) == 0:  # as many as the ring buffer holds
                lab.wait_for(lambda: len(self.of_service()) == len(self.wanted()), "all mappings")
        mappings = {maps.faces_of(one): one["ConversationId"]
                    for one in self.check_map("-s", self.socket)}
        if len(self.translators) == 1:
            for before, after in self.random.sample(sorted(mappings, key=str), 3):
                self.check_lookup(before, after, "-s", self.socket)
        tables = [(one, nat.connections(one)) for one in self.translators]
        flows = [one for one in self.stop_service("flow") if one["Proto"] in (6, 17)]
        self.check_faces_of(flows, tables)
        self.check_sides(flows, tables[0][1], {one.port: sides[one.kind] for one in services}, mappings)
        self.note(f"{self.number} conversations in {len(flows)} records")

    def test_each_kind(self):
        self.attempt(self.make_all(*SIDES), SIDES)

    def test_two_in_a_row(self):
        """The client's own and the router's, of both addresses."""
        services = self.make_all("both")
        self.client.run("nft", "-f", "-", input=nat.BASE +
                        "add rule inet nat post oifname eth0 meta l4proto { tcp, udp } "
                        "masquerade to :20000-50000 random\n")
        nat.keep_connections(self.client)
        self.translators.append(self.client)
        self.attempt(services, {"both": (["eth0", "rc"], ["rs"])},
                     [f"netns:{self.client.name}/eth0", "rc", "rs"])

    def test_in_vxlan(self):
        """The client's packets reach the router in a tunnel, which is observed below, too."""
        services = self.make_all("masquerade")
        for ns, own, peer, link in (self.client, 2, 1, "eth0"), (self.router, 1, 2, "rc"):
            ns.ip("link", "add", "vx", "type", "vxlan", "id", "42", "dstport", "4789",
                  "local", f"10.0.1.{own}", "remote", f"10.0.1.{peer}", "dev", link)
            ns.address("vx", f"10.0.9.{own}/24", f"fd09::{own}/64")
            ns.ip("link", "set", "vx", "up")
        for family, gateway in ("-4", "10.0.9.1"), ("-6", "fd09::1"):
            self.client.ip(family, "route", "replace", "default", "via", gateway)
        self.attempt(services, {"masquerade": (["rc", "vx"], ["rs"])}, ("rc", "vx", "rs"))


if __name__ == "__main__":
    lab.main()
