# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
"""What tests of single topologies share: nothing in them is left to chance."""

import random

from lib import lab
from lib import topology_check
from lib import topology_truth
from lib.topology import Burst, Flow, Topology, Tuple
from lib.topology_routes import Routed

PACKETS = 100


class Fixed(Routed):
    """Links without detours, whose bridges know all addresses, or none."""

    DETOURS = 0

    def __init__(self, topology, network=1, knows=True):
        super().__init__(topology, random.Random(1), network, True)
        self.FORGETFUL = 0 if knows else 2 # pylint: disable=invalid-name

    def host(self):
        self.hosts.append(self.node("host"))
        return self.hosts[-1]

    def several(self, count):
        return [self.host() for _ in range(count)]

    def send(self, source, target, sport=3000, count=PACKETS):
        """From a host to another, each by the first of its addresses."""
        src, dst = (next(iter(node.addresses)) for node in (source, target))
        self.topology.flows.append(Flow(
            source, Tuple(src, dst, sport, 4000), 72, [Burst(count)]))


class FixedTest(lab.LabTest):
    """Topologies that a test makes, and what is observed of them."""

    def setUp(self):
        super().setUp()
        self.topology = Topology(0)

    def make(self, **options):
        return Fixed(self.topology, **options)

    def row(self, count=2):
        """Hosts on wires, of which the first sends to the last; with what makes more."""
        made = self.make()
        hosts = made.several(count)
        for left, right in zip(hosts, hosts[1:]):
            made.one_wire(left, [right])
        made.set_routes()
        made.send(hosts[0], hosts[-1])
        return made, hosts

    def switch(self):
        """The only node that is one."""
        (switch,) = (node for node in self.topology.nodes if node.name.startswith("switch"))
        return switch

    def check(self, *devices, nodes=(), interval=60, attach=None):
        """
        With @devices and all of @nodes observed, each packet counts once;
        without either, everything is. Returns the records.
        """
        chosen = {device for node in nodes
                  for device in node.devices.values()} | set(devices)
        self.topology.observed = chosen or set(self.topology.devices())
        self.topology.interval = interval
        wrong, records = topology_check.observe(self.topology, attach)
        if wrong:
            self.fail(topology_check.report(self.topology, wrong))
        total = topology_truth.expected(self.topology).values()
        self.note(f"once: {sum(one.packets for one in total)} packets, in "
                  f"{len(records)} records")
        return records
