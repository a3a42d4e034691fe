#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
"""
A packet counts once where a part of its way is not observed: a namespace between two observed
ones, a link between two bridges, a bridge between its ports, a device that tc redirects to.
"""

from lib import lab
from lib import traffic
from lib.observer import Observer
from lib.once import OnceTest
from lib.topology import Burst, Flow, Tuple
from lib.topology_fixed import FixedTest

SENT = 100


class Unseen(OnceTest):
    def count(self, where, observed, sender, source, receiver, dest, options=()):
        """What records say of @SENT datagrams: (packets, the statistics)."""
        observer = Observer(self.lab, where, "--interval", "60", *options)
        observer.wait_attached(*observed)
        traffic.udp(sender, source, receiver, dest, [72] * SENT)
        result = observer.stop()
        result.check_conservation()
        return sum(record["Packets"] for record in result.records
                   if record["Proto"] == 17), result.stats["seen"]

    def assert_once(self, *args, **options):
        packets, _ = self.count(*args, **options)
        self.assertEqual(SENT, packets)

    def test_two_pods_and_not_the_host(self):
        _, a, b = self.segment("a", "b")
        self.assert_once(a, [(a, "eth0"), (b, "eth0")], a, "192.0.2.1", b, "192.0.2.2",
                         options=["-i", "eth0", "-i", f"netns:{b.name}/eth0"])

    def test_one_pod_and_not_the_host(self):
        """A namespace with one link sends packets of its own: no count has to decide."""
        _, a, b = self.segment("a", "b")
        packets, seen = self.count(b, [(b, "eth0")], a, "192.0.2.1", b, "192.0.2.2",
                                   options=["-i", "eth0"])
        self.assertEqual(SENT, packets)
        self.assertNotIn("inferred_packets", seen)

    def test_two_pods_and_the_router_between_two_hosts_not(self):
        a, _, b = self.routed()
        self.assert_once(a, [(a, "eth0"), (b, "eth0")], a, "192.0.2.1", b, "198.51.100.1",
                         options=["-i", "eth0", "-i", f"netns:{b.name}/eth0"])

    def two_bridges(self):
        middle, a = self.segment("a")
        middle.ip("link", "add", "br1", "type", "bridge", "mcast_snooping", "0")
        middle.ip("link", "add", "j0", "type", "veth", "peer", "name", "j1")
        middle.address("br1", "192.0.2.100/24")
        for port, bridge in (("j0", "br1"), ("j1", "br0")):
            middle.ip("link", "set", port, "master", bridge, "up")
        middle.ip("link", "set", "br1", "up")
        return middle, a

    def test_two_bridges_and_not_the_link_between_them(self):
        middle, a = self.two_bridges()
        self.assert_once(middle, [(middle, "br1"), (middle, "p1")],
                         middle, "192.0.2.100", a, "192.0.2.1",
                         options=["-i", "br1", "-i", "p1"])

    def test_ports_and_not_the_bridge_that_floods(self):
        middle, a, _, _ = self.segment("a", "b", "c")
        middle.ip("link", "set", "br0", "type", "bridge", "ageing_time", "0")
        middle.address("br0", "192.0.2.100/24")
        ports = [(middle, f"p{number}") for number in (1, 2, 3)]
        self.assert_once(middle, ports, middle, "192.0.2.100", a, "192.0.2.1",
                         options=["-i", "/^p/"])

    def redirected(self, way, action):
        """A namespace and its peer: tc sends to t0 what passes v0."""
        middle, a = self.node(f"m{way[0]}{action[0]}"), self.node(f"a{way[0]}{action[0]}")
        self.lab.wire(middle, "v0", ["192.0.2.100/24"], a, "eth0", ["192.0.2.1/24"])
        middle.ip("link", "add", "t0", "type", "ifb")
        middle.ip("link", "set", "t0", "up")
        middle.run("tc", "qdisc", "add", "dev", "v0", "clsact")
        middle.run("tc", "filter", "add", "dev", "v0", way, "protocol", "ip", "u32",
                   "match", "u32", "0", "0", "action", "mirred", "egress", action,
                   "dev", "t0")
        return middle, a

    def test_redirected_and_mirrored(self):
        for way in ("ingress", "egress"):
            for action in ("mirror", "redirect"):
                with self.subTest(way=way, action=action):
                    middle, a = self.redirected(way, action)
                    ends = [middle, "192.0.2.100", a, "192.0.2.1"]
                    if way == "ingress":
                        ends = ends[2:] + ends[:2]
                    self.assert_once(middle, [(middle, "v0"), (middle, "t0")], *ends,
                                     options=["-i", "v0", "-i", "t0"])


class UnseenUppers(FixedTest):
    """
    A router forwards what came in observed by a macvlan that is not, on an interface of another
    namespace. That one's number of the interface by which packets came in is another's there.
    """

    def setUp(self):
        super().setUp()
        self.made = self.make()
        self.other, self.client, self.router, self.server = self.made.several(4)
        self.made.one_wire(self.other, [self.router])
        self.made.one_wire(self.client, [self.router])
        self.end, self.lower = self.made.wire(self.server, self.made.node("holder"))

    def join(self, *nodes):
        macvlans = [self.made.macvlan(node, self.lower) for node in nodes]
        self.made.segment(self.end, *macvlans)
        self.made.set_routes()
        self.made.send(self.client, self.server)
        return macvlans

    def test_macvlan_on_an_interface_elsewhere(self):
        self.join(self.router)
        self.check(self.router.devices["eth1"], self.lower)

    def test_macvlan_beside_one_that_is_observed(self):
        _, seen = self.join(self.router, self.other)
        self.made.send(self.other, self.server, 3001)
        self.check(self.router.devices["eth1"], self.lower, seen)

    def test_macvlan_to_another_one_past_a_router_that_is_not_observed(self):
        target = self.made.host()
        self.join(self.router, target)
        self.made.send(self.client, target, 3001)
        self.check(self.lower, nodes=[self.client])


class UnseenPorts(FixedTest):
    def test_copies_of_a_bridge_beside_one_that_is_observed(self):
        """The bridges are in one namespace; that one sends copies by ports that are not observed."""
        made = self.make(knows=False)
        sender, receiver, other, *neighbours = made.several(5)
        made.switch(sender, [receiver, other])
        (switch,) = (node for node in self.topology.nodes if "br0" in node.devices)
        made.switch(neighbours[0], neighbours[1:], switch)
        made.set_routes()
        made.send(sender, receiver)
        self.check(switch.devices["port3"], nodes=[receiver, other])


class UnseenSender(FixedTest):
    def test_two_ways_to_observed_namespaces(self):
        """By a bridge, then past it: what came out by either way was not seen before."""
        made = self.make()
        sender, receiver = made.several(2)
        made.switch(sender, [receiver])
        made.one_wire(sender, [receiver])
        made.set_routes()
        source, dest = (next(iter(node.addresses)) for node in (sender, receiver))
        (around,) = (address for address, at in receiver.addresses.items() if address != dest)
        first, second = ((sender, dest, sender.devices[device], via)
                         for device, via in (("eth0", dest), ("eth1", around)))
        self.topology.flows.append(Flow(sender, Tuple(source, dest, 3000, 4000), 72,
                                        [Burst(100, (first,)), Burst(70, (second,))]))
        (switch,) = (node for node in self.topology.nodes if "br0" in node.devices)
        self.check(nodes=[switch, receiver])


if __name__ == "__main__":
    lab.main(at_once=3)
