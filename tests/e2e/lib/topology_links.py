# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
"""The pieces that random topologies are made of: links between namespaces."""

from lib.topology import Node, Topology


class Links:
    """Makes namespaces, devices and segments of a topology, by chance."""

    FORGETFUL = 0.15  # how often a bridge does not know where an address is

    def __init__(self, topology, rng, network, has_vlans):
        self.topology: Topology = topology
        self.rng = rng
        self.network = network
        self.has_vlans = has_vlans
        self.segments = []  # [[device]]: those with addresses of one subnet

    def node(self, kind):
        node = Node(f"{kind}{len(self.topology.nodes)}")
        node.add("lo", "lo")
        self.topology.nodes.append(node)
        return node

    def mac(self):
        self.topology.macs += 1
        return f"02:00:00:00:{self.topology.macs >> 8:02x}:" \
            f"{self.topology.macs & 255:02x}"

    @staticmethod
    def free(node, stem):
        return next(name for name in (f"{stem}{n}" for n in range(99))
                    if name not in node.devices)

    def wire(self, node_a, node_b, stem_a="eth", stem_b="eth"):
        ends = [node.add(self.free(node, stem), "veth", self.mac())
                for node, stem in ((node_a, stem_a), (node_b, stem_b))]
        ends[0].peer, ends[1].peer = ends[1], ends[0]
        return ends

    def plug(self, node, bridge):
        """A wire from @node to a new port; the end that is not the port."""
        end, port = self.wire(node, bridge.ns, "eth", "port")
        port.master = bridge
        bridge.ports.append(port)
        return end

    def bridge(self, node):
        return node.add(self.free(node, "br"), "bridge", self.mac())

    def learn(self, bridge, port, device, vlan=0):
        if self.rng.random() > self.FORGETFUL:
            bridge.fdb[device.mac, vlan] = port

    def segment(self, *devices):
        """A subnet, with an address for each of @devices."""
        self.segments.append(list(devices))
        number = len(self.segments)
        for host, device in enumerate(devices, 1):
            device.ns.addresses[f"10.{self.network}.{number}.{host}"] = device
            if self.topology.has_ipv6:
                address = f"fd00:{self.network:x}:{number:x}::{host:x}"
                device.ns.addresses[address] = device

    # ---- Kinds of links: each joins @anchor and @others --------------------

    def one_wire(self, anchor, others):
        for other in others:
            self.segment(*self.wire(anchor, other))

    def two_wires(self, anchor, others):
        for _ in range(2):
            self.segment(*self.wire(anchor, others[0]))

    def switch(self, anchor, others, node=None):
        """A bridge in a namespace without addresses."""
        bridge = self.bridge(node or self.node("switch"))
        devices = [self.plug(node, bridge) for node in (anchor, *others)]
        for port, device in zip(bridge.ports, devices):
            self.learn(bridge, port, device)
        self.segment(*devices)

    def own_bridge(self, anchor, others):
        """A bridge that its host has an address on, itself or by a veth."""
        bridge = self.bridge(anchor)
        mine = bridge
        if self.rng.random() < 0.4:
            mine = self.plug(anchor, bridge)
        devices = [self.plug(node, bridge) for node in others]
        for port, device in zip(bridge.ports, [mine] * (mine is not bridge) +
                                devices):
            self.learn(bridge, port, device)
        self.segment(mine, *devices)

    def macvlans(self, anchor, others):
        """An interface of @anchor's, shared by macvlans here and elsewhere."""
        holder = others[0] if self.rng.random() < 0.5 else self.node("holder")
        end, lower = self.wire(anchor, holder)
        self.segment(end, *(self.macvlan(node, lower) for node in others))

    def macvlan(self, node, lower):
        """COMPAT(<5.15): its name must be free where @lower is, too."""
        mac = self.mac()
        return node.add(f"mac{self.topology.macs}", "macvlan", mac,
                        lower=lower)

    def bonds(self, anchor, others):
        """Two wires, the first of which is used."""
        pair = [node.add(self.free(node, "bond"), "bond", self.mac())
                for node in (anchor, others[0])]
        for _ in range(2):
            for bond, slave in zip(pair, self.wire(anchor, others[0])):
                slave.mac, slave.master = bond.mac, bond
                bond.ports.append(slave)
        if self.rng.random() < 0.5:
            pair = [self.vlan(bond, ("802.1Q", 10)) for bond in pair]
        self.segment(*pair)

    def vlan(self, lower, tag):
        device = lower.ns.add(f"{lower.name}.{tag[1]}", "vlan", self.mac(),
                              lower=lower, tag=tag)
        return device

    def trunk(self, anchor, others):
        """VLANs over a wire or a bridge that is no part of them."""
        if self.rng.random() < 0.5:
            ends = self.wire(anchor, others[0])
            others = others[:1]
        else:
            bridge = self.bridge(self.node("switch"))
            ends = [self.plug(node, bridge) for node in (anchor, *others)]
        stacks = self.rng.choice([[("802.1Q", 10)], [("802.1Q", 10)],
                                  [("802.1ad", 5), ("802.1Q", 10)]])
        for tag in stacks:
            ends = [self.vlan(end, tag) for end in ends]
        self.segment(*ends)
        if len(stacks) == 1:
            self.segment(*(self.vlan(end.lower, ("802.1Q", 20))
                           for end in ends))
        # What a bridge knows of VLANs that it only passes on are the MACs.
        for end in ends:
            port = end
            while port.lower:
                port = port.lower
            if port.peer.master:
                self.learn(port.peer.master, port.peer, end)

    def access(self, anchor, others):
        """A bridge that filters VLANs: a trunk to @anchor, ports for others."""
        bridge = self.bridge(self.node("switch"))
        bridge.pvid = 1
        bridge.vlans = {1: True}
        trunk = self.plug(anchor, bridge).peer
        trunk.vlans = {10: False, 20: False}
        members = {10: [], 20: []}
        for number, node in enumerate(others):
            vlan = (10, 20)[number % 2]
            port = self.plug(node, bridge).peer
            port.vlans, port.pvid = {vlan: True}, vlan
            self.learn(bridge, port, port.peer, vlan)
            members[vlan].append(port.peer)
        for vlan, devices in members.items():
            if devices:
                mine = self.vlan(trunk.peer, ("802.1Q", vlan))
                self.learn(bridge, trunk, mine, vlan)
                self.segment(mine, *devices)

    def kinds(self):
        plain = [self.one_wire, self.two_wires, self.switch, self.switch,
                 self.own_bridge, self.own_bridge, self.macvlans]
        return plain + [self.trunk, self.access, self.bonds] * 2 * \
            self.has_vlans
