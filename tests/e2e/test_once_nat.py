#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
"""
A conversation counts once through NAT, also where packets after translation have no conntrack
entry: sent on by tc, or back in the namespace that translated them.
"""

from dataclasses import replace

from lib import lab
from lib import topology_actions
from lib.topology import OUT, Action
from lib.topology_fixed import FixedTest


class OnceNat(FixedTest):
    """A host sends through a router that gives its packets another source."""

    def translate(self, router):
        self.topology.nat = True
        (flow,) = self.topology.flows
        source = next(iter(router.addresses))
        router.snat[flow.flow] = replace(flow.flow, src=source, sport=40000)

    def redirect(self, device, target, kind="redirect"):
        classifier, = topology_actions.classifiers()[:1]
        device.actions[OUT] = Action(kind, target, OUT, "ip", classifier)

    def ifb(self, node):
        return node.add("ifb0", "ifb", "02:00:00:00:ff:01")

    def test_at_an_ifb(self):
        made = self.make()
        hosts = made.several(3)
        for left, right in zip(hosts, hosts[1:]):
            made.one_wire(left, [right])
        made.set_routes()
        made.send(hosts[0], hosts[-1])
        self.translate(hosts[1])
        self.redirect(hosts[1].devices["eth1"], self.ifb(hosts[1]))
        self.check(nodes=hosts)

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
        self.translate(router)
        self.redirect(mine, self.ifb(router))
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
        self.translate(router)
        to_router, to_server = next(node for node in self.topology.nodes
                                    if "br0" in node.devices).devices["br0"].ports
        self.redirect(to_server, to_router, "mirror")
        self.check(nodes=[client, router, server, to_router.ns])


if __name__ == "__main__":
    lab.main("actions of tc, or no tcx", topology_actions.classifiers, at_once=3)
