# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
"""Random topologies: their links, the packets sent, and the observed interfaces."""

import random
from dataclasses import dataclass, replace

from lib import lab
from lib import topology_actions
from lib import topology_truth
from lib.topology import IN, OUT, Burst, Flow, Topology, Tuple, Walk
from lib.topology_actions import Acting
from lib.topology_known import is_nat_knowable
from lib.topology_observed import observe
from lib.topology_tunnels import add_tunnels

FLOWS = 6
PACKETS = 40
INTERVALS = 0.05, 0.2, 60, 60 # seconds
SECOND = 0.25 # how often there is another observer
NAT = 0.7 # how often an observer is to know translations, where there are any


@dataclass(frozen=True)
class Features:
    """What a kernel has, of all that networks may have."""

    vlans: bool
    classifiers: tuple # of tc


def find_features():
    return Features(has_vlans(), topology_actions.classifiers())


def has_vlans():
    """Found by trying: VLAN devices, and bridges that filter VLANs."""
    where = lab.Lab()
    try:
        ns = where.ns("probe")
        ns.ip("link", "add", "br0", "type", "bridge", "vlan_filtering", "1")
        ns.ip("link", "add", "link", "br0", "name", "v0", "type", "vlan",
              "protocol", "802.1ad", "id", "5")
        return True
    except RuntimeError:
        return False
    finally:
        where.close()


def make(seed, features, attempt=""):
    """The topology that @seed stands for, on kernels with these features."""
    rng = random.Random(f"{seed}{attempt}" if attempt else seed)
    topology = Topology(seed, has_ipv6=rng.random() < 0.4,
                        interval=rng.choice(INTERVALS))
    network = rng.randrange(1, 200)
    part = Part(topology, rng, network, features)
    if rng.random() < 0.3:
        # Another tenant with the same addresses, and the same conversations.
        Part(topology, rng, network, features, part)
        # What is translated may become the other's tuple, in their middle.
        if any(node.snat or node.dnat for node in topology.nodes):
            return make(seed, features, attempt + "'")
    observe(topology, rng)
    if rng.random() < SECOND:
        add_second(topology, rng)
    for view in topology.views():
        view.nat = topology_truth.has_nat(topology) and rng.random() < NAT and \
            is_nat_knowable(view)
    add_tunnels(topology)
    return topology


def add_second(topology, rng):
    """Another observer, which knows nothing of the first."""
    second = replace(topology, observed=set(), ways=(IN, OUT), is_clear=True,
                     interval=rng.choice(INTERVALS))
    observe(second, rng)
    if second.observed and topology.observed:
        topology.second = second
        topology.is_second_late = rng.random() < 0.3
        topology.is_second_last = rng.random() < 0.5


class Part(Acting):
    """Namespaces that reach one another, and flows between them."""

    def __init__(self, topology, rng, network, features, twin=None):
        super().__init__(topology, rng, network, features)
        self.first = len(topology.nodes)
        self.hosts.append(self.node("host"))
        for _ in range(rng.choice([1, 1, 2, 2, 3])):
            self.grow(twin)
        self.set_routes()
        if twin:
            self.repeat(twin)
        while len(self.flows) < rng.randrange(1, FLOWS + 1):
            self.add_flow()
        for step, chance in ((self.add_nat, 0.8), (self.add_nat, 0.5), (self.add_nat, 0.5),
                             (self.add_moves, 0.5),
                             (self.add_mirror, 0.3),
                             (self.add_loopback, 0.3),
                             (self.add_action, 0.5), (self.add_action, 0.3)):
            if rng.random() < chance:
                step()
        topology.flows += self.flows

    def grow(self, twin):
        anchor = self.rng.choice(self.hosts)
        others = [self.node("host")
                  for _ in range(self.rng.choice([1, 1, 2, 2, 3]))]
        switches = [node for node in self.topology.nodes[:self.first]
                    if node.name.startswith("switch")]
        if twin and switches and self.rng.random() < 0.5:
            # Both tenants' bridges are in one namespace.
            self.switch(anchor, others, switches[0])
        else:
            self.rng.choice(self.kinds())(anchor, others)
        attached = {device.ns for one in self.segments for device in one}
        self.hosts += [node for node in others if node in attached]
        if len(self.hosts) > 3 and self.rng.random() < 0.2:
            self.segment(*self.wire(*self.rng.sample(self.hosts, 2)))

    # ---- What is sent ------------------------------------------------------

    def a_tuple(self, source, target):
        is_ipv6 = self.topology.has_ipv6 and self.rng.random() < 0.5
        src, dst = (self.rng.choice([address for address in node.addresses
                                     if (":" in address) == is_ipv6])
                    for node in (source, target))
        return Tuple(src, dst, self.rng.randrange(1024, 30000),
                     self.rng.randrange(1024, 30000))

    def bursts(self, count=0):
        return [Burst(self.rng.randrange(1, PACKETS))
                for _ in range(count or self.rng.choice([1, 1, 2, 3]))]

    def add(self, node, flow):
        self.flows.append(Flow(node, flow, self.rng.randrange(0, 300),
                               self.bursts()))
        return self.flows[-1]

    def add_flow(self):
        source, target = self.rng.sample(self.hosts, 2)
        flow = self.a_tuple(source, target)
        if self.arrives(source, flow, target):
            self.add(source, flow)

    def add_loopback(self):
        """The same tuple in several namespaces, each talking to itself."""
        for node in self.hosts[:2]:
            self.add(node, Tuple("127.0.0.1", "127.0.0.1", 700, 800))
        node = self.rng.choice(self.hosts)
        address = self.rng.choice(list(node.addresses))
        self.add(node, Tuple(address, address, 701, 801))

    def repeat(self, twin):
        """What the twin sends, sent here: loopback, and where addresses fit."""
        for one in twin.flows:
            if one.flow.dst == "127.0.0.1":
                self.add(self.hosts[0], one.flow)
                continue
            source, target = (next(
                (node for node in self.hosts if address in node.addresses),
                None) for address in (one.flow.src, one.flow.dst))
            if source and target and source is not target and \
                    self.arrives(source, one.flow, target):
                self.add(source, one.flow)

    def routers(self, flow):
        """Namespaces that forward @flow once, and have no bridge in them."""
        crossed = [one.device.ns for one in Walk(flow.node, flow.flow)
                   .crossings]
        return [node for node in dict.fromkeys(crossed)
                if node.forwards and node is not flow.node and
                crossed[-1] is not node and
                not any(device.kind == "bridge"
                        for device in node.devices.values())]

    def add_nat(self):
        flow = self.rng.choice(self.flows)
        routers = self.routers(flow)
        if not routers or len({(one.node, one.flow) for one in self.flows
                               if one.flow == flow.flow}) > 1:
            return
        router = self.rng.choice(routers)
        old = flow.flow
        came = next(one.flow for one in Walk(flow.node, old).crossings
                    if one.device.ns is router)
        port = sum(len(node.snat) + len(node.dnat) for node in self.topology.nodes)
        if came != old or self.rng.random() < 0.5:
            left = router.dnat.get(came, came)
            router.snat.setdefault(left, replace(
                left, src=self.own_address(router, old.src), sport=40000 + port))
            return
        # To an address of the router's, which passes it on.
        asked = Tuple(old.src, self.own_address(router, old.dst), old.sport, 30000 + port)
        router.dnat[asked] = old
        flow.flow = asked
        target = next(node for node in self.hosts if old.dst in node.addresses)
        if not self.arrives(flow.node, asked, target):
            del router.dnat[asked]
            flow.flow = old

    @staticmethod
    def own_address(node, like):
        return next(address for address in node.addresses
                    if (":" in address) == (":" in like))

    def add_moves(self):
        """A flow that changes between equal ways, burst by burst."""
        choices = [(flow, node, ways) for flow in self.flows
                   for (node, address), ways in self.ways.items()
                   if address == flow.flow.dst and len(ways) > 1 and
                   (node, address) not in self.moved()]
        if not choices:
            return
        flow, node, ways = self.rng.choice(choices)
        flow.bursts = self.bursts(4)
        for burst in flow.bursts:
            burst.routes = ((node, flow.flow.dst, *self.rng.choice(ways)),)

    def moved(self):
        return {route[:2] for flow in self.flows for burst in flow.bursts
                for route in burst.routes}

    def add_mirror(self):
        """A copy of all that comes in at one place, to another namespace."""
        flow = self.rng.choice(self.flows)
        places = [one.device for one in Walk(flow.node, flow.flow).crossings
                  if one.way == IN and one.device.kind == "veth"]
        if places:
            place = self.rng.choice(places)
            span, _ = self.wire(place.ns, self.node("span"), "span")
            place.mirror = span
