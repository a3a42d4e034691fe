#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
"""
Copies that the host itself makes of a packet are no traffic: a bridge that
does not know the receiver, mirrors, other tc programs' clones.
"""

from lib import bpf
from lib import lab
from lib import topology_check
from lib.topology_fixed import FixedTest

CLONE_REDIRECT = 13


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
        (bridge,) = (node for node in self.topology.nodes
                     if node.name.startswith("switch"))
        return bridge, hosts

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
        made = self.make()
        a, router, b = made.several(3)
        made.one_wire(a, [router])
        made.one_wire(router, [b])
        made.set_routes()
        made.send(a, b)
        span, _ = made.wire(router, made.node("span"), "span")
        router.devices["eth0"].mirror = span
        return router

    def test_mirrored_by_a_filter(self):
        router = self.mirrored()
        self.check(nodes=[router])

    def test_mirrored_and_seen_at_the_other_end_too(self):
        self.mirrored()
        self.check()

    def test_mirror_of_what_is_for_the_host_itself(self):
        made = self.make()
        a, b = made.several(2)
        made.one_wire(a, [b])
        made.set_routes()
        made.send(a, b)
        span, _ = made.wire(b, made.node("span"), "span")
        b.devices["eth0"].mirror = span
        self.check(nodes=[b])

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


if __name__ == "__main__":
    lab.main(at_once=3)
