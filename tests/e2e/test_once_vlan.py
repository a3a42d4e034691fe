# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
"""
A VLAN is where a flow entered, not what it is: routed and switched between
VLANs and untagged ports it stays one flow, counted once.
"""

from lib import lab
from lib import topology_check
from lib.topology_fixed import FixedTest
from lib.topology_random import has_vlans

TEN, TWENTY = ("802.1Q", 10), ("802.1Q", 20)


class Vlan(FixedTest):
    def stack(self, made, ends, tags):
        for tag in tags:
            ends = [made.vlan(end, tag) for end in ends]
        return ends

    def routed(self):
        """
        x and z on VLANs of one trunk of r's, y on an untagged port: as much of
        x to y, x to z and y to z as back.
        """
        made = self.make()
        x, z, r, y = made.several(4)
        switch = made.bridge(made.node("switch"))
        trunk = made.plug(r, switch)
        ends = [made.plug(node, switch) for node in (x, z)]
        for end, tag in zip(ends, (TEN, TWENTY)):
            pair = [made.vlan(lower, tag) for lower in (trunk, end)]
            for device, lower in zip(pair, (trunk, end)):
                made.learn(switch, lower.peer, device)
            made.segment(*pair)
        made.one_wire(r, [y])
        made.set_routes()
        for number, (source, target) in enumerate(
                ((x, y), (x, z), (y, z), (y, x), (z, x), (z, y))):
            made.send(source, target, 3000 + number, 100 + number)
        return r

    def assert_vlans(self, records, expected):
        """@expected: {source port: the record's VLANs}."""
        self.assertEqual(expected, {
            record["SrcPort"]: topology_check.vlan_ids(record)
            for record in topology_check.of_udp(records)})

    def test_routed_between_vlans_and_an_untagged_port(self):
        r = self.routed()
        records = self.check(nodes=[r])
        self.assert_vlans(records, {3000: (10,), 3001: (10,), 3002: (),
                                    3003: (), 3004: (20,), 3005: (20,)})
        self.assertEqual(6, len(topology_check.of_udp(records)))

    def test_routed_between_vlans_and_seen_everywhere(self):
        self.routed()
        self.check()

    def test_routed_between_vlans_and_seen_on_the_trunk(self):
        r = self.routed()
        self.check(r.devices["eth0"])

    def test_routed_between_vlans_and_seen_on_vlan_devices(self):
        r = self.routed()
        self.check(r.devices["eth0.10"], r.devices["eth0.20"])

    def test_routed_between_vlans_for_many_intervals(self):
        r = self.routed()
        for flow in self.topology.flows:
            flow.bursts *= 5
        self.check(nodes=[r], interval=0.05)

    def test_routed_out_of_a_stack_of_two_tags(self):
        made = self.make()
        a, r, b = made.several(3)
        made.segment(*self.stack(made, made.wire(a, r), [("802.1ad", 5), TEN]))
        made.one_wire(r, [b])
        made.set_routes()
        made.send(a, b)
        made.send(b, a, 3001)
        records = self.check(nodes=[r])
        self.assert_vlans(records, {3000: (5, 10), 3001: ()})

    def test_pods_behind_a_vlan_on_a_bond(self):
        """Pods on a bridge, and the host's uplink: a VLAN on a bond."""
        made = self.make()
        host, peer, *pods = made.several(4)
        made.own_bridge(host, pods)
        made.rng.random = lambda: 0  # a VLAN on top of the bonds
        made.bonds(host, [peer])
        made.set_routes()
        for number, pod in enumerate(pods):
            made.send(pod, peer, 3000 + number)
            made.send(peer, pod, 3010 + number)
        records = self.check(nodes=[host])
        self.assert_vlans(records, {3000: (), 3001: (), 3010: (10,),
                                    3011: (10,)})
        self.check()

    def test_access_ports_and_a_trunk(self):
        """A bridge tags what comes from an access port, and the reverse."""
        made = self.make()
        r, *hosts = made.several(4)
        made.access(r, hosts)
        made.set_routes()
        made.send(hosts[0], r)
        made.send(r, hosts[0], 3001)
        made.send(hosts[0], hosts[1], 3002)  # from VLAN to VLAN, by r
        made.send(hosts[0], hosts[2], 3003)  # both on one VLAN
        switch = self.switch()
        self.check(nodes=[switch, r])
        self.check(nodes=[r])
        self.check()

    def test_access_ports_flooded_within_their_vlan(self):
        made = self.make(knows=False)
        r, *hosts = made.several(6)
        made.access(r, hosts)
        made.set_routes()
        made.send(hosts[0], hosts[2])
        made.send(hosts[0], r, 3001)
        switch = self.switch()
        self.check(nodes=[switch])
        self.check(nodes=[switch, r])

    def test_vlan_device_as_a_port_of_a_bridge(self):
        """The trunk's VLAN 10 is bridged with an untagged port."""
        made = self.make()
        a, b, r = made.several(3)
        bridge = made.bridge(r)
        outer = self.stack(made, made.wire(a, r), [TEN])
        outer[1].master = bridge
        bridge.ports.append(outer[1])
        inner = made.plug(b, bridge)
        made.learn(bridge, outer[1], outer[0])
        made.learn(bridge, inner.peer, inner)
        made.segment(outer[0], inner)
        made.set_routes()
        made.send(a, b)
        made.send(b, a, 3001)
        records = self.check(nodes=[r])
        self.assert_vlans(records, {3000: (10,), 3001: ()})


if __name__ == "__main__":
    lab.main("VLAN devices", has_vlans)
