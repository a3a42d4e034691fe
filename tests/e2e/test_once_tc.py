#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
"""
What tc redirects or copies counts once, also where the kernel's mark of a packet's origin means
another interface, and for each of two observers.
"""

from dataclasses import replace

from lib import lab
from lib import topology_actions
from lib.topology import IN, OUT, Action
from lib.topology_fixed import FixedTest


class OnceTc(FixedTest):
    """A host a, one or two wires, a host b."""

    def hosts(self, count=2):
        """In a row, on wires; the first sends to the last."""
        made = self.make()
        hosts = made.several(count)
        for left, right in zip(hosts, hosts[1:]):
            made.one_wire(left, [right])
        made.set_routes()
        made.send(hosts[0], hosts[-1])
        return made, hosts

    @staticmethod
    def act(device, way, kind, target, onto=OUT):
        classifier, = topology_actions.classifiers()[:1]
        device.actions[way] = Action(kind, target, onto, "ip", classifier)

    def ifb(self, node):
        return node.add("ifb0", "ifb", "02:00:00:00:ff:01")

    def test_copied_on_its_way_out_of_its_host(self):
        made, (a, _) = self.hosts()
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
        _, (a, _) = self.hosts()
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
        _, (a, router, _) = self.hosts(3)
        self.act(router.devices["eth0"], IN, "redirect", self.ifb(router))
        self.check(nodes=[router])

    def test_translated_and_back_from_an_ifb(self):
        made, (a, router, b) = self.hosts(3)
        (flow,) = self.topology.flows
        source = next(iter(router.addresses))
        router.snat[flow.flow] = replace(flow.flow, src=source, sport=40000)
        self.act(router.devices["eth1"], OUT, "redirect", self.ifb(router))
        self.check(nodes=[router])
        self.assertIn(b, made.hosts)

    def test_in_by_another_interface_of_which_both_ends_are_observed(self):
        made, (a, router, _) = self.hosts(3)
        side, end = made.wire(router, made.node("side"), "side")
        self.act(router.devices["eth0"], IN, "redirect", side, IN)
        self.check(nodes=[a, router, end.ns])

    def observed_twice(self, is_second_last):
        _, (a, router, b) = self.hosts(3)
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


if __name__ == "__main__":
    lab.main("actions of tc, or no tcx", topology_actions.classifiers, at_once=3)
