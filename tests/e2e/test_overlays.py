# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
"""
A packet that passes a tunnel of this host is counted once, with the tunnel's fields: random overlays
between two hosts, of all kinds of tunnels that the kernel has, with tenants that use the same addresses.
What was sent, and where it passes, is known from the senders. NETOBS_TEST_SEED repeats a run.
"""

import os
import random
import socket
import subprocess
import time
from collections import defaultdict
from dataclasses import dataclass, field

from lib import lab
from lib import traffic
from lib.observer import EGRESS, INGRESS, Observer, points

OVERLAYS = max(6, lab.sized(8))  # at least one of each kind
IP_UDP = {4: 28, 6: 48}

# Of each kind: its TunnelType, octets in front of the inner IP header, and whether that is Ethernet.
KINDS = {"vxlan": ("vxlan", 30, True), "geneve": ("geneve", 30, True),
         "gretap": ("gre", 22, True), "gre": ("gre", 8, False),
         "ipip": ("ipip", 0, False), "sit": ("ipip", 0, False)}


def link_words(kind, local, remote, vni):
    return {
        "vxlan": ["id", vni, "local", local, "remote", remote, "dstport", "4789"],
        "geneve": ["id", vni, "remote", remote],
        "gretap": ["local", local, "remote", remote, "key", vni],
        "gre": ["local", local, "remote", remote, "key", vni],
        "ipip": ["local", local, "remote", remote],
        "sit": ["local", local, "remote", remote],
    }[kind]


def find_kinds(ns):
    """Those that the kernel has."""
    found = []
    for number, kind in enumerate(KINDS, 1):
        try:
            ns.ip("link", "add", f"try{number}", "type", kind,
                  *link_words(kind, "192.0.2.1", "192.0.2.2", number))
            found.append(kind)
        except (RuntimeError, subprocess.CalledProcessError):
            pass
    return found


@dataclass(eq=False)
class End:
    """A tenant at a host: where its sockets are, and what packets pass from there to the underlay."""

    ns: object
    address: str
    inner: list = field(default_factory=list)  # [(namespace, interface, way)] on the way out
    tunnel: tuple = ()  # (namespace, interface)


@dataclass(eq=False)
class Tenant:
    """An overlay with two ends."""

    vni: int
    ends: list


def turned(path):
    return [(ns, name, INGRESS if way == EGRESS else EGRESS)
            for ns, name, way in reversed(path)]


class Network:
    """Two hosts, what is between them, and the tenants' namespaces."""

    def __init__(self, where, chance, kind):
        self.lab, self.chance = where, chance
        self.kind = kind
        self.version = 6 if self.kind == "sit" else 4 if self.kind == "ipip" else \
            chance.choice((4, 6))
        self.outer = 6 if self.kind in ("vxlan", "geneve") and chance.random() < 0.3 else 4
        self.hosts = [where.ns("a", True), where.ns("b", True)]
        self.devices, self.tunnels = [], []  # (namespace, interface)
        self.wires = self.join()
        self.is_taken = [False, False]
        self.routed = None  # the tenant that is
        self.tenants = [self.tenant(10 * number)
                        for number in range(1, 1 + self.count_tenants())]

    def count_tenants(self):
        """Without VNIs, tenants with equal addresses cannot be told apart."""
        return 1 if self.kind in ("ipip", "sit") else self.chance.choice((1, 2, 3))

    def outer_address(self, number):
        return f"2001:db8:{number}::{number}" if self.outer == 6 else f"192.0.{number}.{number}"

    def add(self, ns, name):
        self.devices.append((ns, name))
        return ns, name

    def join(self):
        """The underlay: for each way, the points between the tunnels."""
        a, b = self.hosts
        one, two = self.outer_address(1), self.outer_address(2)
        length = 128 if self.outer == 6 else 32
        if self.chance.random() < 0.5:
            macs = self.lab.veth(a, "eth0", b, "eth0", offload=False)
            middle, ways = [], [(a, "eth0"), (b, "eth0")]
        else:
            r = self.lab.ns("r", True)
            r.sysctl("ipv4/ip_forward", 1)
            r.sysctl("ipv6/conf/all/forwarding", 1)
            first = self.lab.veth(a, "eth0", r, "e0", offload=False)
            second = self.lab.veth(b, "eth0", r, "e1", offload=False)
            for name, mac, address in (("e0", first[0], one), ("e1", second[0], two)):
                r.neighbour(name, mac, address)
                r.ip("route", "add", f"{address}/{length}", "dev", name)
            macs = second[1], first[1]
            middle = [(r, "e0", INGRESS), (r, "e1", EGRESS)]
            ways = [(a, "eth0"), (r, "e0"), (r, "e1"), (b, "eth0")]
        for device in ways:
            self.add(*device)
        for host, mine, its, mac in ((a, one, two, macs[1]), (b, two, one, macs[0])):
            host.address("eth0", f"{mine}/{length}")
            host.ip("route", "add", f"{its}/{length}", "dev", "eth0")
            host.neighbour("eth0", mac, its)
        path = [(a, "eth0", EGRESS), *middle, (b, "eth0", INGRESS)]
        return path, turned(path)

    def make_tunnel(self, at, ns, name, vni):
        """In the namespace @ns; what it sends leaves by the host."""
        host = self.hosts[at]
        made = f"t{vni}"
        host.ip("link", "add", made, "type", self.kind, *link_words(
            self.kind, self.outer_address(1 + at), self.outer_address(2 - at), vni))
        if ns is not host:
            host.ip("link", "set", made, "netns", ns.name)
        ns.ip("link", "set", made, "name", name, "mtu", "1400")
        ns.ip("link", "set", name, "up")
        self.tunnels.append((ns, name))
        return self.add(ns, name)

    def end(self, at, vni):
        """
        Tenants use the same addresses: only one of them may do so in the host's namespace. Behind
        routes, nothing says which tenant a packet belongs to, so there is only one there.
        """
        host, address = self.hosts[at], \
            f"2001:db8:9::{at + 1}" if self.version == 6 else f"10.9.0.{at + 1}"
        # A Geneve device in another namespace does not say where its tunnel is.
        moves = self.kind != "geneve"
        shapes = ["bridged"] * 2 * KINDS[self.kind][2]
        if moves or not self.is_taken[at]:
            shapes += ["local"] + ["routed"] * (self.routed in (None, vni))
        shape = self.chance.choice(shapes)
        if shape == "routed":
            self.routed = vni
        place = host
        if moves and ((shape != "bridged" and self.is_taken[at]) or
                      self.chance.random() < 0.25):
            place = self.lab.ns(f"{at}x{vni}", True)
        elif shape != "bridged":
            self.is_taken[at] = True
        tunnel = self.make_tunnel(at, place, f"tun{vni}", vni)
        if shape == "local":
            return End(place, address, [(*tunnel, EGRESS)], tunnel), tunnel
        inside = self.lab.ns(f"{at}c{vni}", True)
        port = f"p{vni}"
        face = f"c{vni}"
        macs = self.lab.veth(inside, face, place, port, offload=False)
        for device in ((inside, face), (place, port)):
            self.add(*device)
        end = End(inside, address, [(inside, face, EGRESS), (place, port, INGRESS),
                                    (*tunnel, EGRESS)], tunnel)
        if shape == "bridged":
            bridge = f"br{vni}"
            place.ip("link", "add", bridge, "type", "bridge", "mcast_snooping", "0")
            for name in (port, tunnel[1]):
                place.ip("link", "set", name, "master", bridge)
            place.ip("link", "set", bridge, "up")
            self.add(place, bridge)
            return end, (inside, face)
        place.sysctl("ipv4/ip_forward", 1)
        place.sysctl("ipv6/conf/all/forwarding", 1)
        length = 128 if self.version == 6 else 32
        place.ip("route", "add", f"{address}/{length}", "dev", port)
        place.neighbour(port, macs[0], address)
        other = f"2001:db8:9::{2 - at}" if self.version == 6 else f"10.9.0.{2 - at}"
        inside.address(face, f"{address}/{length}")
        inside.ip("route", "add", f"{other}/{length}", "dev", face)
        inside.neighbour(face, macs[1], other)
        return end, tunnel

    def mac(self, device):
        return device[0].run("cat", f"/sys/class/net/{device[1]}/address").strip()

    def tenant(self, vni):
        made = [self.end(at, vni) for at in (0, 1)]
        length = 128 if self.version == 6 else 32
        for (end, faces), (other, other_faces) in (made, made[::-1]):
            ns, name = faces
            if end.ns is ns:  # its address is there, and no route by another interface
                ns.address(name, f"{end.address}/{length}")
            ns.ip("route", "replace", f"{other.address}/{length}", "dev", name)
            if KINDS[self.kind][2]:
                ns.neighbour(name, self.mac(other_faces), other.address)
        return Tenant(vni, [end for end, _ in made])

    def path(self, tenant, way):
        """[(namespace, interface, way, whether it is in the tunnel)]"""
        near, far = tenant.ends if way == 0 else tenant.ends[::-1]
        return [(*point, False) for point in near.inner] + \
            [(*point, True) for point in self.wires[way]] + \
            [(*point, False) for point in turned(far.inner)]

    def describe(self):
        return f"{self.kind} over IPv{self.outer}, IPv{self.version} in it; " + "; ".join(
            " > ".join(f"{ns.name.split('-')[-1]}/{name}" for ns, name, _, _ in self.path(tenant, 0))
            for tenant in self.tenants)


@dataclass(eq=False)
class Sent:
    """A conversation in one direction."""

    tenant: Tenant
    way: int
    ports: tuple
    sizes: list

    def tuple(self):
        near, far = self.tenant.ends if self.way == 0 else self.tenant.ends[::-1]
        return near.address, far.address, *self.ports

    def send(self):
        near, far = self.tenant.ends if self.way == 0 else self.tenant.ends[::-1]
        with traffic.make_socket(far.ns, socket.SOCK_DGRAM, far.address, self.ports[1]) as there, \
                traffic.make_socket(near.ns, socket.SOCK_DGRAM, near.address,
                                    self.ports[0]) as sender:
            for size in self.sizes:
                sender.sendto(bytes(size), (far.address, self.ports[1]))
                there.recv(2000)


class Overlays(lab.LabTest):
    """Random ones."""

    def check_flow(self, network, sent, records, observed):
        """One record, which has all packets, points, and the tunnel."""
        name, overhead, _ = KINDS[network.kind]
        path = [(ns.name, interface, way, is_inside)
                for ns, interface, way, is_inside in network.path(sent.tenant, sent.way)
                if (ns, interface) in observed]
        if not path:
            self.assertEqual([], records)
            return
        self.assertEqual(1, len(records), records)
        record = records[0]
        inner = sum(sent.sizes) + len(sent.sizes) * IP_UDP[network.version]
        outer = inner + len(sent.sizes) * (overhead + (40 if network.outer == 6 else 20))
        self.assertEqual(len(sent.sizes), record["Packets"], record)
        # Where nothing proves what is seen again, the larger bytes count.
        sizes = {outer if path[0][3] else inner} if self.is_all(network, observed) else {inner, outer}
        self.assertIn(record["Bytes"], sizes)
        self.assertEqual(sorted((interface, way) for _, interface, way, _ in path),
                         sorted(points(record)))
        if not any(is_inside for *_, is_inside in path):
            self.assertNotIn("TunnelType", record)
            return
        self.assertEqual(name, record["TunnelType"])
        self.assertEqual({network.outer_address(1 + sent.way), network.outer_address(2 - sent.way)},
                         {record["OuterSrcAddr"], record["OuterDstAddr"]})
        self.assertEqual(network.outer_address(1 + sent.way), record["OuterSrcAddr"])
        if network.kind not in ("ipip", "sit"):
            self.assertEqual(sent.tenant.vni, record["Vni"])

    @staticmethod
    def is_all(network, observed):
        return len(observed) == len(network.devices)

    @staticmethod
    def is_of(tenant, record):
        """Interfaces are named after their tenants, but for those of the underlay."""
        return any(name.strip("brtunpc") == str(tenant.vni) for name in record["Interfaces"]) or \
            record.get("Vni") == tenant.vni

    def check_sums(self, network, group, records, observed):
        """
        Of tenants that a part of the interfaces cannot tell apart: packets alone. Those of a tenant that is seen
        outside of its tunnel only may be in the flow of another tenant, of which the larger one counts.
        """
        ways = [[point for point in network.path(sent.tenant, sent.way) if point[:2] in observed]
                for sent in group]
        seen = [(len(sent.sizes), any(is_inside or (ns, name) in network.tunnels
                                      for ns, name, _, is_inside in way))
                for sent, way in zip(group, ways) if way]
        found = sum(record["Packets"] for record in records)
        self.assertLessEqual(found, sum(packets for packets, _ in seen), records)
        self.assertGreaterEqual(found, sum(packets for packets, has_tag in seen if has_tag), records)
        self.assertGreaterEqual(found, max((packets for packets, _ in seen), default=0), records)
        if all(has_tag for _, has_tag in seen):
            self.assertEqual(found, sum(packets for packets, _ in seen), records)
        self.assertLessEqual(len(records), len(group))
        self.assertEqual(sorted({(name, way) for path in ways for _, name, way, _ in path}),
                         sorted({point for record in records for point in points(record)}))

    def check(self, network, sents, records, observed):
        found = defaultdict(list)
        for record in records:
            if record["Proto"] == 17:
                found[record["SrcAddr"], record["DstAddr"], record["SrcPort"],
                      record["DstPort"]].append(record)
        groups = defaultdict(list)
        for sent in sents:
            groups[sent.tuple()].append(sent)
        self.assertLessEqual(set(found), set(groups))
        for key, group in groups.items():
            if len(group) == 1:
                self.check_flow(network, group[0], found[key], observed)
            elif self.is_all(network, observed) or not network.routed:
                for sent in group:
                    self.check_flow(network, sent, [
                        record for record in found[key]
                        if self.is_of(sent.tenant, record)], observed)
            else:
                self.check_sums(network, group, found[key], observed)

    def observe(self, network, observed, interval, traffic_of):
        home = network.hosts[0]
        options = []
        for ns in {ns for ns, _ in observed}:
            prefix = "" if ns is home else f"netns:{ns.name}/"
            for at, name in observed:
                if at is ns:
                    options += ["-i", prefix + name]
        observer = Observer(self.lab, home, "--interval", interval, *options)
        observer.wait_observing(len(observed))
        traffic_of()
        result = observer.stop()
        result.check_conservation()
        return result.records

    def choose_traffic(self, chance, network):
        """Tenants talk alike, from the same ports."""
        sents = []
        for number in range(3):
            ports = 1000 + number, 2000 + number
            for tenant in network.tenants:
                for way in (0, 1) if chance.random() < 0.5 else (number % 2,):
                    sents.append(Sent(tenant, way, ports if way == 0 else ports[::-1], [
                        chance.randrange(1200) for _ in range(chance.randrange(1, 40))]))
        return sents

    def run_one(self, seed, kinds):
        chance = random.Random(seed)
        network = Network(self.lab, chance, kinds[seed % len(kinds)])
        sents = self.choose_traffic(chance, network)
        observed = list(network.devices) if chance.random() < 0.5 else \
            [device for device in network.devices if chance.random() < 0.6]
        text = f"seed {seed}: {network.describe()}; " + (
            "all observed" if self.is_all(network, observed) else
            "observed: " + " ".join(f"{ns.name.split('-')[-1]}/{name}" for ns, name in observed))
        if not observed:
            return
        with self.subTest(text):
            records = self.observe(network, observed, "60",
                                   lambda: [sent.send() for sent in sents])
            self.check(network, sents, records, observed)

    def test_each_packet_is_counted_once(self):
        seed = int(os.environ.get("NETOBS_TEST_SEED", time.time_ns() // 1000 % 10 ** 9))
        kinds = find_kinds(self.lab.ns("try"))
        count = 1 if "NETOBS_TEST_SEED" in os.environ else OVERLAYS
        self.note(f"seeds from {seed} on, {count} overlays of {', '.join(kinds)}")
        for number in range(seed, seed + count):
            self.lab.close()
            self.lab = lab.Lab()
            self.addCleanup(self.lab.close)
            self.run_one(number, kinds)


if __name__ == "__main__":
    lab.main("vxlan")
