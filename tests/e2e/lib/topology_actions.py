# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
"""What tc does with packets on their way, by chance: redirects them, or sends copies."""

from dataclasses import replace

from lib import bpf
from lib import lab
from lib.topology import IN, OUT, Action, Frame, Tuple, Walk
from lib.topology_routes import Routed

EVERY = {"matchall": "matchall", "u32": "u32 match u32 0 0", "flower": "flower"}
OF_PORT = {"u32": "u32 match {} dport {} 0xffff",
           "flower": "flower ip_proto udp dst_port {1}"}
NAMES = {"ip": "ip", "ipv6": "ip6"} # what u32 calls the protocols


def classifiers():
    """
    Those that the kernel has, found by trying; none where it lacks the rest. Before tcx, what
    tc redirects is out of netobs's sight.
    """
    if not bpf.has_tcx():
        return ()
    where = lab.Lab()
    try:
        ns = where.ns("probe")
        ns.ip("link", "add", "t0", "type", "ifb")
        ns.run("tc", "qdisc", "add", "dev", "lo", "clsact")
        return tuple(name for name in EVERY if has_classifier(ns, name))
    except RuntimeError:
        return ()
    finally:
        where.close()


def has_classifier(ns, name):
    try:
        ns.run("tc", "filter", "add", "dev", "lo", "ingress", "protocol", "ip",
               *EVERY[name].split(), "action", "mirred", "egress", "redirect", "dev", "t0")
        return True
    except RuntimeError:
        return False


def commands(node):
    """What `tc -batch` reads."""
    for device in node.devices.values():
        for qdisc in {action.qdisc: None for action in device.actions.values()}:
            yield f"qdisc add dev {device.name} {qdisc}"
        for way, action in device.actions.items():
            hook = ("ingress", "egress")[way]
            yield f"filter add dev {device.name} {hook} protocol {action.protocol} " \
                f"{matching(action)} action mirred {('ingress', 'egress')[action.way]} " \
                f"{action.kind} dev {action.target.name}"


def matching(action):
    if not action.port:
        return EVERY[action.classifier]
    return OF_PORT[action.classifier].format(NAMES[action.protocol], action.port)


def has_action(node):
    """Packets that tc redirects twice in a namespace are one of netobs's limits."""
    return any(device.actions for device in node.devices.values())


def leaves_twice(walk):
    """Whether a packet and copies of it leave by one interface, other than from an ifb."""
    points = [(one.device, one.way, one.flow) for one in walk.crossings if one.is_counted]
    return len(set(points)) < len(points)


def taken(topology):
    """The kinds of actions that packets meet."""
    return {crossing.action.kind for _, _, walk in topology.walks()
            for crossing in walk.crossings if crossing.action}


class Acting(Routed):
    """Links on which tc acts."""

    TRIALS = 8

    def __init__(self, topology, rng, network, features):
        super().__init__(topology, rng, network, features.vlans)
        self.classifiers = features.classifiers
        self.others = set(topology.devices()) # of another tenant
        self.flows = []

    @staticmethod
    def arrives(node, flow, where):
        """Whether it comes to @where, and no copy of it anywhere."""
        try:
            return [one for one, _ in Walk(node, flow).arrived] == [where]
        except (OverflowError, KeyError):
            return False  # in circles, or no route

    def flow_walks(self):
        """Of all flows, each way that they take; as Topology.walks()."""
        walks = []
        for flow in self.flows:
            for burst in flow.bursts:
                for node, address, device, via in burst.routes:
                    node.routes[address] = (device, via)
                walks.append(Walk(flow.node, flow.flow))
        return walks

    def add_action(self):
        """
        At a point that packets cross, such that all of them arrive as before. Copies of what
        address translation has changed may be further packets, for all that counts tell.
        """
        if not self.classifiers:
            return
        before = self.outcomes()
        for _ in range(self.TRIALS):
            walk = self.rng.choice(list(self.flow_walks()))
            place = self.rng.choice(walk.crossings)
            if place.device.kind in ("lo", "ifb") or has_action(place.device.ns) or \
                    self.has_uppers_elsewhere(place.device.ns):
                continue
            action = self.an_action(place)
            is_undecidable = action.kind == "mirror" and (place.device.ns.snat or
                                                          place.device.ns.dnat)
            if not is_undecidable and self.try_action(place, action, before):
                return

    def has_uppers_elsewhere(self, node):
        """Copies that tc makes of what these send are another limit of netobs."""
        return any(device.lower and device.lower.ns is node and device.ns is not node
                   for device in self.topology.devices())

    def an_action(self, place):
        device = place.device
        kind, way = self.rng.choice((("redirect", OUT), ("redirect", OUT), ("redirect", IN),
                                     ("redirect", IN), ("mirror", OUT)))
        targets = [other for other in device.ns.devices.values()
                   if other is not device and other not in self.others and
                   other.kind != "lo" and not (other.master and other.master.kind == "bond")]
        if way == IN: # otherwise nothing shows where the packet comes from
            targets = [other for other in targets if other.peer]
        target = self.rng.choice((*targets, None)) if self.rng.random() < 0.7 else None
        classifier = self.rng.choice(self.classifiers)
        ours = "ipv6" if ":" in place.flow.src else "ip"
        protocol = self.rng.choice(("all", "all", ours, ours, place.tags[0][0] if place.tags
                                    else "802.1Q"))
        has_port = protocol == ours and classifier in OF_PORT and self.rng.random() < 0.4
        return Action(kind, target, way, protocol, classifier,
                      place.flow.dport if has_port else 0,
                      self.rng.choice(("clsact", "ingress")) if place.way == IN else "clsact")

    def outcomes(self):
        return [(walk.arrived, leaves_twice(walk)) for walk in self.flow_walks()]

    def spare(self, node, action):
        """A device that is there for @action alone."""
        is_ifb = action.way == OUT and (action.kind == "redirect" or self.rng.random() < 0.3)
        if is_ifb:
            return node.add(self.free(node, "ifb"), "ifb", self.mac())
        return self.wire(node, self.node("span"), "span")[0]

    def remove(self, device):
        del device.ns.devices[device.name]
        if device.peer:
            self.topology.nodes.remove(device.peer.ns)

    def try_action(self, place, action, before):
        device = place.device
        if action.target:
            device.actions[place.way] = action
        else:
            device.actions[place.way] = replace(action, target=self.spare(device.ns, action))
        if self.is_harmless(before):
            return True
        removed = device.actions.pop(place.way)
        if not action.target:
            self.remove(removed.target)
        return False

    def is_harmless(self, before):
        """
        Whether all arrives as before, nothing runs in circles, noise of IPv6 neither, and no two
        copies leave by one interface.
        """
        noise = Frame(Tuple("fe80::1", "ff02::1", 0, 0), "33:33:00:00:00:01", is_ours=False)
        try:
            for device in self.topology.devices():
                if device.kind != "lo":
                    Walk.of_frame(device, noise)
            return self.outcomes() == before
        except (OverflowError, KeyError):
            return False
