#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
"""
The same addresses in several namespaces are several hosts, unless the kernel
joins the namespaces: nothing vanishes where tenants overlap.
"""

from lib import lab
from lib import topology_check
from lib.frames import IPV4, UDP, VLAN, ether, ipv4, udp, vlan
from lib.observer import Observer
from lib.topology import Burst, Flow, Tuple
from lib.topology_fixed import PACKETS, FixedTest

LOOPBACK = Tuple("127.0.0.1", "127.0.0.1", 1000, 2000)


class Tenants(FixedTest):
    def loopback(self, node, count):
        self.topology.flows.append(Flow(node, LOOPBACK, 72, [Burst(count)]))

    def assert_by_namespace(self, records, counts):
        """Loopback's records name one namespace each."""
        found = {}
        for record in topology_check.of_udp(records):
            inode = record["NetnsInode"]
            found[inode] = found.get(inode, 0) + record["Packets"]
        self.assertEqual(sorted(counts), sorted(found.values()))

    def test_loopback_of_two_namespaces(self):
        made = self.make()
        a, b = made.several(2)
        self.loopback(a, 100)
        self.loopback(b, 300)
        records = self.check(a.devices["lo"], b.devices["lo"])
        self.assert_by_namespace(records, [100, 300])

    def test_loopback_of_namespaces_that_a_wire_joins(self):
        made = self.make()
        a, b = made.several(2)
        made.one_wire(a, [b])
        made.set_routes()
        self.loopback(a, 100)
        self.loopback(b, 300)
        records = self.check(nodes=[a, b])
        self.assert_by_namespace(records, [100, 300])

    def pairs(self, count=2):
        """Two hosts on a wire, @count times with the same addresses."""
        for number in range(1, count + 1):
            made = self.make()
            a, b = made.several(2)
            made.one_wire(a, [b])
            made.set_routes()
            made.send(a, b, count=number * PACKETS)
            yield a, b

    def test_overlapping_tenants_apart(self):
        hosts = [host for pair in self.pairs() for host in pair]
        self.check(nodes=hosts)

    def test_overlapping_tenants_seen_at_one_end_each(self):
        (a, _), (_, b) = self.pairs()
        self.check(a.devices["eth0"], b.devices["eth0"])

    def bridged(self):
        """Two tenants with the same addresses, their bridges on one host."""
        switch, hosts = None, []
        for number in (1, 2):
            made = self.make()
            a, b = made.several(2)
            switch = switch or made.node("switch")
            made.switch(a, [b], switch)
            made.set_routes()
            made.send(a, b, count=number * PACKETS)
            hosts += [a, b]
        return switch, hosts

    def test_overlapping_tenants_on_two_bridges_of_a_host(self):
        switch, _ = self.bridged()
        self.check(nodes=[switch])

    def test_overlapping_tenants_and_their_host(self):
        switch, hosts = self.bridged()
        self.check(nodes=[switch, *hosts])

    def test_back_from_where_nothing_is_observed(self):
        """A router on a stick that is not observed: in and out count twice."""
        made = self.make()
        a, router, b = made.several(3)
        made.switch(a, [router, b])
        made.set_routes()
        made.send(a, b)
        address = next(iter(b.addresses))
        a.routes[address] = (a.devices["eth0"], next(iter(router.addresses)))
        router.forwards = True
        (switch,) = (node for node in self.topology.nodes
                     if node.name.startswith("switch"))
        self.check(nodes=[switch, router])
        self.topology.observed = set(switch.devices.values())
        _, records = topology_check.observe(self.topology)
        self.assertEqual(2 * PACKETS, sum(
            record["Packets"] for record in topology_check.of_udp(records)))

    def test_two_vlans_on_a_wire(self):
        """Tenants with equal addresses, tagged, stay two flows."""
        a, r = self.lab.ns("a"), self.lab.ns("r")
        macs = self.lab.veth(a, "eth0", r, "trunk0")
        packet = ipv4("192.0.2.1", "192.0.2.2", UDP, udp(1000, 2000, bytes(8)))
        tagged = {tag: ether(macs[1], macs[0], VLAN, vlan(tag, IPV4, packet))
                  for tag in (10, 20)}
        observer = Observer(self.lab, r).wait_attached((r, "trunk0"))
        for tag, frame in tagged.items():
            a.send_frames("eth0", [frame] * tag)
        result = observer.stop()
        result.check_conservation()
        self.assertEqual({10: 10, 20: 20}, {
            record["VlanId"]: record["Packets"] for record in result.records})
        self.assertEqual(30, result.total("seen")[0])

    def test_two_vlans_through_a_bridge(self):
        """The same, and each frame crosses two ports."""
        a, m, b = (self.lab.ns(tag) for tag in "amb")
        macs = self.lab.veth(a, "eth0", m, "port0")[0], \
            self.lab.veth(b, "eth0", m, "port1")[0]
        m.ip("link", "add", "name", "br0", "type", "bridge", "mcast_snooping",
             "0")
        for port in ("port0", "port1"):
            m.ip("link", "set", port, "master", "br0")
        m.ip("link", "set", "br0", "up")
        packet = ipv4("192.0.2.1", "192.0.2.2", UDP, udp(1000, 2000, bytes(8)))
        observer = Observer(self.lab, m, "-i", "/port/").wait_attached(
            (m, "port0"), (m, "port1"))
        for tag in (10, 20):
            a.send_frames("eth0", [ether(
                macs[1], macs[0], VLAN, vlan(tag, IPV4, packet))] * tag)
        result = observer.stop()
        result.check_conservation()
        self.assertEqual({10: 10, 20: 20}, {
            record["VlanId"]: record["Packets"] for record in result.records})
        self.assertEqual([["port0", "port1"]] * 2, [
            sorted(record["Interfaces"]) for record in result.records])
        self.assertEqual(30, result.total("seen")[0])


if __name__ == "__main__":
    lab.main(at_once=3)
