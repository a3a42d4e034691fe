# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
"""
A packet is counted once in topologies where that was difficult: copies that the host itself makes of
it, what tc redirects and NAT translates, parts of its way that are not observed, and tenants with the same
addresses.
"""

import itertools
from dataclasses import replace

from lib import bpf
from lib import lab
from lib import topology_actions
from lib import topology_check
from lib.topology import IN, OUT, Action, Burst, Flow, Topology, Tuple
from lib.topology_fixed import PACKETS, FixedTest

CLONE_REDIRECT = 13
LOOPBACK = Tuple("127.0.0.1", "127.0.0.1", 1000, 2000)


def cloning_program(ifindex):
    """A tc program that sends a copy of everything by an interface."""
    return b"".join([
        bpf.instruction(0xb7, 2, 0, 0, ifindex),
        bpf.instruction(0xb7, 3, 0, 0, 0),
        bpf.instruction(0x85, 0, 0, 0, CLONE_REDIRECT),
        bpf.instruction(0xb7, 0, 0, 0, bpf.NEXT),
        bpf.instruction(0x95)])


class Copies(FixedTest):
    def four_ports(self):
        """Four hosts on a bridge that does not know where they are."""
        made = self.make(knows=False)
        hosts = made.several(4)
        made.switch(hosts[0], hosts[1:])
        made.set_routes()
        made.send(hosts[0], hosts[1])
        made.send(hosts[1], hosts[0], 3001)
        return self.switch(), hosts

    def test_flooded_by_a_bridge_of_four_ports(self):
        bridge, _ = self.four_ports()
        records = self.check(nodes=[bridge])
        self.assertEqual({4}, {len(record["Interfaces"])
                               for record in topology_check.of_udp(records)})

    def test_flooded_and_seen_in_each_namespace(self):
        self.four_ports()
        self.check()

    def test_flooded_and_seen_at_one_port_and_its_host(self):
        bridge, hosts = self.four_ports()
        self.check(bridge.devices["port0"], bridge.devices["port1"],
                   nodes=[hosts[2]])

    def test_flooded_in_many_intervals(self):
        bridge, _ = self.four_ports()
        for flow in self.topology.flows:
            flow.bursts *= 10
        self.check(nodes=[bridge], interval=0.05)

    def test_flooded_by_the_host_of_the_bridge(self):
        made = self.make(knows=False)
        hosts = made.several(4)
        made.own_bridge(hosts[0], hosts[1:])
        made.set_routes()
        made.send(hosts[0], hosts[1])
        self.check(nodes=hosts[:1])

    def mirrored(self):
        """a - r - b, and a copy of what r gets from a goes to another port."""
        made, (_, router, _) = self.row(3)
        return self.mirror(made, router)

    @staticmethod
    def mirror(made, node):
        node.devices["eth0"].mirror, _ = made.wire(node, made.node("span"), "span")
        return node

    def test_mirrored_by_a_filter(self):
        router = self.mirrored()
        self.check(nodes=[router])

    def test_mirrored_and_seen_at_the_other_end_too(self):
        self.mirrored()
        self.check()

    def test_mirror_of_what_is_for_the_host_itself(self):
        made, (_, b) = self.row()
        self.check(nodes=[self.mirror(made, b)])

    def test_cloned_by_a_tcx_program_behind_ours(self):
        if not bpf.has_tcx():
            self.note("this kernel has no tcx; other mirrors are tested above")
            return
        router = self.mirrored()
        source = router.devices["eth0"]
        span, source.mirror = source.mirror, None

        def attach(network):
            # The lab makes no mirror, a program does; the model has one.
            source.mirror = span
            place = network.places[router]
            program = bpf.Program(
                bpf.NEXT, 0, cloning_program(place.ifindex(span.name)))
            self.addCleanup(program.close)
            program.attach(place, source.name, "ingress", bpf.AFTER)
        self.check(nodes=[router], attach=attach)


class CopiesWithFilter(Copies):
    """Nothing marks copies then, also if all packets match."""

    def setUp(self):
        super().setUp()
        self.topology.filter = ("ip", "or", "not", "ip")


class Actions(FixedTest):
    """
    What tc redirects or copies, also where the kernel's mark of a packet's origin means another interface, for each
    of two observers, or through a router that translates its source.
    """

    def setUp(self):
        super().setUp()
        if not topology_actions.classifiers():
            self.skipTest("the kernel has no actions of tc, or no tcx")

    @staticmethod
    def act(device, way, kind, target, onto=OUT):
        classifier, = topology_actions.classifiers()[:1]
        device.actions[way] = Action(kind, target, onto, "ip", classifier)

    @staticmethod
    def ifb(node):
        return node.add("ifb0", "ifb", "02:00:00:00:ff:01")

    def translate(self, router):
        """The source of the only flow."""
        (flow,) = self.topology.flows
        source = next(iter(router.addresses))
        router.snat[flow.flow] = replace(flow.flow, src=source, sport=40000)

    def test_sent_to_an_ifb_that_is_observed(self):
        for way, kind in itertools.product((IN, OUT), ("redirect", "mirror")):
            with self.subTest(way=way, kind=kind):
                self.topology = Topology(0)
                _, hosts = self.row()
                host = hosts[way == IN]
                self.act(host.devices["eth0"], way, kind, self.ifb(host))
                self.check(nodes=[host])

    def test_copied_on_its_way_out_of_its_host(self):
        made, (a, _) = self.row()
        span, _ = made.wire(a, made.node("span"), "span")
        self.act(a.devices["eth0"], OUT, "mirror", span)
        self.check(nodes=[a])

    def test_redirected_on_its_way_out_of_its_host(self):
        """By one of two bridged ports, instead of the other."""
        made = self.make(knows=False)
        a, b, c = made.several(3)
        made.own_bridge(a, [b, c])
        made.set_routes()
        made.send(a, b)
        bridge = a.devices["br0"]
        self.act(bridge, OUT, "redirect", a.devices["port0"])
        self.check(nodes=[a])

    def test_back_from_an_ifb_that_is_not_observed(self):
        _, (a, _) = self.row()
        self.act(a.devices["eth0"], OUT, "redirect", self.ifb(a))
        self.check(a.devices["eth0"])

    def test_of_a_macvlan_elsewhere_and_back_from_an_ifb(self):
        made = self.make()
        a, b, holder = made.several(3)
        end, lower = made.wire(a, holder)
        made.segment(end, made.macvlan(b, lower))
        made.set_routes()
        made.send(b, a)
        self.act(lower, OUT, "redirect", self.ifb(holder))
        self.check(nodes=[holder])

    def test_forwarded_from_macvlan_to_macvlan_and_back_from_an_ifb(self):
        """It passes the interface below them twice, and so the macvlan that forwards it."""
        made = self.make()
        client, router, server, holder = made.several(4)
        end, lower = made.wire(made.node("far"), holder)
        made.segment(end, *(made.macvlan(node, lower) for node in (client, router, server)))
        made.set_routes()
        made.send(client, server)
        router.forwards = True
        (way,), (dest,) = router.addresses.items(), server.addresses
        (out,) = client.addresses.values()
        client.routes[dest] = (out, way[0])
        self.act(way[1], OUT, "redirect", self.ifb(router))
        self.check(lower, nodes=[router])

    def test_back_from_an_ifb_on_its_way_in(self):
        _, (a, router, _) = self.row(3)
        self.act(router.devices["eth0"], IN, "redirect", self.ifb(router))
        self.check(nodes=[router])

    def test_translated_and_back_from_an_ifb(self):
        """What NAT has translated has no conntrack entry there."""
        _, hosts = self.row(3)
        router = hosts[1]
        self.translate(router)
        self.act(router.devices["eth1"], OUT, "redirect", self.ifb(router))
        self.check(nodes=[router])
        self.topology.nat = True
        self.check(nodes=hosts)

    def test_back_from_an_ifb_before_and_after_its_translation(self):
        """On its way in, from the client and from the router that has returned it translated."""
        made = self.make()
        client, router, nat = made.several(3)
        end, lower = made.wire(client, made.node("holder"))
        made.segment(end, *(made.macvlan(node, lower) for node in (router, nat)))
        made.set_routes()
        made.send(client, nat)
        router.forwards = nat.forwards = True
        (way,), (mine,) = router.addresses.items(), nat.addresses
        client.routes[mine] = (end, way[0])
        (flow,) = self.topology.flows
        asked = nat.dnat[flow.flow] = replace(flow.flow, dst=way[0])
        nat.snat[asked] = replace(asked, src=mine, sport=40000)
        self.topology.nat = True
        self.act(way[1], IN, "redirect", self.ifb(router))
        self.check(nodes=[lower.ns, router, nat])

    def test_copied_to_its_other_way_out(self):
        """A macvlan elsewhere has the sender's address, too, beside one of a router that is not observed."""
        made = self.make()
        a, b, twin, hidden = made.several(4)
        made.two_wires(a, [b])
        end, lower = made.wire(b, made.node("holder"))
        made.segment(end, *(made.macvlan(node, lower) for node in (twin, hidden)))
        made.one_wire(hidden, [b])
        made.set_routes()
        made.send(a, b)
        (flow,) = self.topology.flows
        one, other = a.addresses.values()
        here, there, *_ = b.addresses
        flow.bursts = [Burst(PACKETS, ((a, here, one, here),)),
                       Burst(PACKETS // 2, ((a, here, other, there),))]
        (twin.addresses[flow.flow.src],) = twin.addresses.values()
        self.topology.flows.append(Flow(twin, flow.flow, flow.size, [Burst(PACKETS // 10)]))
        self.act(one, OUT, "mirror", other)
        self.check(nodes=[a, b, twin, lower.ns])

    def test_in_by_another_interface_of_which_both_ends_are_observed(self):
        made, (a, router, _) = self.row(3)
        side, end = made.wire(router, made.node("side"), "side")
        self.act(router.devices["eth0"], IN, "redirect", side, IN)
        self.check(nodes=[a, router, end.ns])

    def observed_twice(self, is_second_last):
        _, (a, router, b) = self.row(3)
        self.act(router.devices["eth0"], IN, "redirect", self.ifb(router))
        self.topology.second = replace(
            self.topology, interval=0.05, observed={a.devices["eth0"], b.devices["eth0"]})
        self.topology.is_second_late = True
        self.topology.is_second_last = is_second_last
        self.check(nodes=[router])

    def test_second_observer_that_ends_first(self):
        self.observed_twice(False)

    def test_second_observer_that_ends_last(self):
        self.observed_twice(True)

    def test_through_an_interface_of_another_namespace(self):
        """A wire to the client, a macvlan on another wire to the server."""
        made = self.make()
        client, router, server = made.several(3)
        made.one_wire(client, [router])
        end, lower = made.wire(server, made.node("holder"))
        mine = made.macvlan(router, lower)
        made.segment(mine, end)
        made.set_routes()
        made.send(client, server)
        self.topology.nat = True
        self.translate(router)
        self.act(mine, OUT, "redirect", self.ifb(router))
        self.check(nodes=[client, router, lower.ns, server])

    def test_from_one_macvlan_to_another(self):
        """What the router sends comes in again below its macvlan."""
        made = self.make()
        client, router, server = made.several(3)
        end, lower = made.wire(client, router)
        made.segment(end, made.macvlan(router, lower), made.macvlan(server, lower))
        made.set_routes()
        made.send(client, server)
        router.forwards = True
        client.routes[next(iter(server.addresses))] = (end, next(iter(router.addresses)))
        self.topology.nat = True
        self.translate(router)
        self.check(nodes=[client, router, server])

    def test_copies_that_come_back(self):
        """The server's port of a bridge sends copies to the router's."""
        made = self.make()
        client, router, server = made.several(3)
        made.one_wire(client, [router])
        made.switch(router, [server])
        made.set_routes()
        made.send(client, server)
        self.topology.nat = True
        self.translate(router)
        to_router, to_server = self.switch().devices["br0"].ports
        self.act(to_server, OUT, "mirror", to_router)
        self.check(nodes=[client, router, server, to_router.ns])


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
        switch = self.switch()
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
        switch = self.switch()
        self.check(nodes=[switch, receiver])


class Tenants(FixedTest):
    """Equal addresses of several namespaces are several hosts', unless the kernel joins the namespaces."""

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
        switch = self.switch()
        self.check(nodes=[switch, router])
        self.topology.observed = set(switch.devices.values())
        _, records = topology_check.observe(self.topology)
        self.assertEqual(2 * PACKETS, sum(
            record["Packets"] for record in topology_check.of_udp(records)))


if __name__ == "__main__":
    lab.main(at_once=4)
