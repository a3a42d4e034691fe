# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
"""
A network as a model: namespaces, the devices in them, and what the kernel does
with a frame. It knows nothing of netobs; from where a packet is sent, it works
out each place that the packet and its copies cross.
"""

from dataclasses import dataclass, field, replace

IN, OUT = 0, 1


@dataclass(frozen=True)
class Tuple:
    """What identifies a flow of UDP."""

    src: str
    dst: str
    sport: int
    dport: int

    def __str__(self):
        return f"{self.src}:{self.sport} > {self.dst}:{self.dport}"


@dataclass(frozen=True)
class Frame:
    """A packet on a link; the outermost tag comes first."""

    flow: Tuple
    mac: str = ""
    tags: tuple = ()
    is_ours: bool = True  # the kernel takes it for its host's, which a redirection does not change

    @property
    def protocol(self):
        """What filters of tc match."""
        if self.tags:
            return self.tags[0][0]
        return "ipv6" if ":" in self.flow.src else "ip"


@dataclass(frozen=True)
class Action:
    """What tc does with packets at a point: redirects them, or sends copies."""

    kind: str            # redirect, mirror
    target: "Device"
    way: int             # in which they go on there
    protocol: str        # of those that match, or all
    classifier: str      # matchall, u32, flower
    port: int = 0        # 0: any, else that of the receiver
    qdisc: str = "clsact"

    def matches(self, frame):
        return self.protocol in ("all", frame.protocol) and \
            self.port in (0, frame.flow.dport)

    def __str__(self):
        return f"{('ingress', 'egress')[self.way]} {self.kind} of {self.protocol} " \
            f"{self.port or ''} to {self.target.name} by {self.classifier} at {self.qdisc}"


@dataclass(eq=False)
class Device:
    """An interface. A tag is (protocol, VLAN)."""

    name: str
    ns: "Node"
    kind: str  # veth, vlan, macvlan, bridge, bond, ifb, lo
    mac: str
    peer: "Device" = None      # of a veth
    lower: "Device" = None     # of a VLAN device or a macvlan
    tag: tuple = ()            # of a VLAN device
    master: "Device" = None    # the bridge that this is a port of
    mirror: "Device" = None    # gets a copy of what comes in here
    actions: dict = field(default_factory=dict)  # way -> Action
    uppers: list = field(default_factory=list)
    ports: list = field(default_factory=list)   # of a bridge or bond
    fdb: dict = field(default_factory=dict)     # MAC -> port, of a bridge
    vlans: dict = field(default_factory=dict)   # VLAN -> is it sent untagged
    pvid: int = 0                               # 0: does not filter VLANs

    def __str__(self):
        return f"{self.ns.name}/{self.name}"

    def tags(self):
        """The tags that a frame here has lost, or gets below; outermost first."""
        if self.kind == "vlan":
            return (*self.lower.tags(), self.tag)
        return self.lower.tags() if self.lower else ()


@dataclass(eq=False)
class Node:
    """A namespace."""

    name: str
    forwards: bool = False
    devices: dict = field(default_factory=dict)
    addresses: dict = field(default_factory=dict)   # address -> device
    routes: dict = field(default_factory=dict)      # address -> (device, via)
    neighbours: dict = field(default_factory=dict)  # (device, address) -> MAC
    snat: dict = field(default_factory=dict)        # tuple -> tuple
    dnat: dict = field(default_factory=dict)

    def add(self, name, kind, mac="", **more):
        device = Device(name, self, kind, mac, **more)
        self.devices[name] = device
        if device.lower:
            device.lower.uppers.append(device)
        if device.master:
            device.master.ports.append(device)
        return device


@dataclass(eq=False)
class Crossing:
    """A packet at an interface; @parent is where it, or what it copies, was."""

    device: Device
    way: int
    flow: Tuple
    tags: tuple
    parent: "Crossing"
    is_copied: bool = False  # several copies go on from here
    is_counted: bool = True  # by the interface itself, which tc bypasses
    action: Action = None    # that tc took

    @property
    def point(self):
        return (str(self.device), self.way)

    def __str__(self):
        return f"{self.device} {('in', 'out')[self.way]}"


class Walk:
    """One packet, from its socket to wherever it ends."""

    HOPS = 60

    def __init__(self, node=None, flow=None):
        self.crossings = []
        self.arrived = []  # (namespace, tuple)
        if node:
            self._output(node, flow, None)

    @classmethod
    def of_frame(cls, device, frame):
        """Of what leaves by @device."""
        walk = cls()
        walk._send(device, frame, None)
        return walk

    def _cross(self, device, way, frame, parent):
        if len(self.crossings) > self.HOPS:
            raise OverflowError("the packet runs in circles")
        crossing = Crossing(device, way, frame.flow,
                            (*device.tags(), *frame.tags), parent)
        self.crossings.append(crossing)
        return crossing

    def _output(self, node, flow, parent):
        """IP sends: a packet of this host's, or one that it forwards."""
        if flow.dst in node.addresses or flow.dst == "127.0.0.1":
            frame = Frame(flow)
            out = self._cross(node.devices["lo"], OUT, frame, parent)
            self._cross(node.devices["lo"], IN, frame, out)
            self.arrived.append((node, flow))
            return
        device, via = node.routes[flow.dst]
        flow = node.snat.get(flow, flow)
        self._send(device, Frame(flow, node.neighbours[device.name, via]),
                   parent)

    def _act(self, here, frame):
        """What tc does at a point; whether it takes the packet away."""
        action = here.device.actions.get(here.way)
        if not action or not action.matches(frame):
            return False
        here.action = action
        is_redirect = action.kind == "redirect"
        here.is_copied |= not is_redirect
        here.is_counted &= here.way == IN or not is_redirect
        if action.way == IN:
            self._take_in(action.target, frame, here, is_counted=False)
        elif action.target.kind == "ifb":
            self._bounce(action.target, frame, here, is_redirect)
        else:
            self._send(action.target, frame, here)
        return is_redirect

    def _bounce(self, ifb, frame, here, is_redirect):
        """An ifb returns what is redirected to it, past all filters, and drops copies."""
        there = self._cross(ifb, OUT, frame, here)
        if not is_redirect:
            there.is_counted = False
        elif here.way == IN:
            self._pass_up(here.device, frame, there)
        else:
            self._pass_down(frame, self._cross(here.device, OUT, frame, there))

    def _send(self, device, frame, parent):
        here = self._cross(device, OUT, frame, parent)
        if not self._act(here, frame):
            self._pass_down(frame, here)

    def _pass_down(self, frame, here):
        device = here.device
        if device.kind == "veth":
            self._receive(device.peer, frame, here)
        elif device.kind == "vlan":
            self._send(device.lower,
                       replace(frame, tags=(device.tag, *frame.tags)), here)
        elif device.kind == "macvlan":
            # To another macvlan by way of the interface that both are on.
            if self._macvlan(device.lower, frame):
                self._receive(device.lower, frame, here)
            else:
                self._send(device.lower, frame, here)
        elif device.kind == "bond":
            self._send(device.ports[0], frame, here)
        else:
            self._bridge(device, device, frame, here)

    @staticmethod
    def _macvlan(lower, frame):
        return next((upper for upper in lower.uppers
                     if upper.kind == "macvlan" and upper.mac == frame.mac),
                    None)

    def _receive(self, device, frame, parent):
        self._take_in(device, replace(frame, is_ours=frame.mac == device.mac), parent)

    def _take_in(self, device, frame, parent, is_counted=True):
        here = self._cross(device, IN, frame, parent)
        here.is_counted = is_counted
        if self._act(here, frame):
            return
        if device.mirror:
            here.is_copied = True
            self._send(device.mirror, frame, here)
        self._pass_up(device, frame, here)

    def _pass_up(self, device, frame, here):
        upper = next((upper for upper in device.uppers if frame.tags and
                      upper.tag == frame.tags[0]), None)
        if upper:
            self._take_in(upper, replace(
                frame, tags=frame.tags[1:],
                is_ours=frame.is_ours or frame.mac == upper.mac), here)
        elif self._macvlan(device, frame):
            self._receive(self._macvlan(device, frame), frame, here)
        elif device.master and device.master.kind == "bond":
            self._receive(device.master, frame, here)
        elif device.master:
            self._bridge(device.master, device, frame, here)
        elif frame.is_ours and not frame.tags:
            self._input(device.ns, frame.flow, here)

    def _input(self, node, flow, here):
        flow = node.dnat.get(flow, flow)
        if flow.dst in node.addresses:
            self.arrived.append((node, flow))
        elif node.forwards:
            self._output(node, flow, here)

    def _bridge(self, bridge, source, frame, here):
        """@source: the port, or the bridge itself when its host sends."""
        vlan = 0
        if bridge.pvid:
            tag = frame.tags[0] if frame.tags else None
            vlan = tag[1] if tag and tag[0] == "802.1Q" else source.pvid
            if vlan not in source.vlans:
                return
            if tag:
                frame = replace(frame, tags=frame.tags[1:])
        known = bridge if frame.mac == bridge.mac else \
            bridge.fdb.get((frame.mac, vlan))
        targets = [known] if known else bridge.ports
        targets = [port for port in targets if port is not source and
                   (not vlan or vlan in port.vlans)]
        here.is_copied |= len(targets) > 1
        for port in targets:
            out = frame
            if vlan and not port.vlans[vlan]:
                out = replace(frame, tags=(("802.1Q", vlan), *frame.tags))
            if port is bridge:
                self._receive(bridge, out, here)
            else:
                self._send(port, out, here)


@dataclass(eq=False)
class Burst:
    """Packets sent in a row; @routes are changed first."""

    count: int
    routes: tuple = ()  # (node, address, device, via)


@dataclass(eq=False)
class Flow:
    """Traffic from a socket in one namespace to one in another."""

    node: Node
    flow: Tuple
    size: int
    bursts: list
    inner: Tuple = None  # of a tunnel: of the packet in each of its packets
    payload: bytes = b""

    def __str__(self):
        sent = " + ".join(
            str(burst.count) + "".join(
                f" (then {node.name}: {address} dev {device.name} via {via})"
                for node, address, device, via in burst.routes)
            for burst in self.bursts)
        return f"{self.node.name}: {self.flow}, {sent} packets of " \
            f"{self.size} octets" + (f", with {self.inner} in them" if self.inner else "")


@dataclass(eq=False)
class Topology:
    """Namespaces, what is sent, and what is observed."""

    seed: int
    nodes: list = field(default_factory=list)
    flows: list = field(default_factory=list)
    observed: set = field(default_factory=set)  # devices
    ways: tuple = (IN, OUT)
    is_clear: bool = True  # what is observed shows for each packet whether it was seen before
    interval: float = 60
    filter: tuple = ()  # the words of an expression
    nat: bool = False   # the observer is to know what is translated
    has_ipv6: bool = False
    macs: int = 0
    rounds: int = 1 # how often the traffic is sent while it is observed
    second: "Topology" = None # the same network with another observer, at the same time
    is_second_late: bool = False # it begins after a round
    is_second_last: bool = False # of both, it ends last
    records: list = field(default_factory=list) # of the observer

    def views(self):
        """One for each observer."""
        return [self, self.second] if self.second else [self]

    def devices(self):
        return [device for node in self.nodes
                for device in node.devices.values()]

    def networks(self, nodes=None):
        """{namespace: a number, the same for all that links join to it}. @nodes: of these alone"""
        number = {node: at for at, node in enumerate(self.nodes) if nodes is None or node in nodes}
        for device in self.devices():
            for other in (device.peer, device.lower):
                if other and device.ns in number and other.ns in number:
                    mine, its = number[device.ns], number[other.ns]
                    for node, one in number.items():
                        number[node] = mine if one == its else one
        return number

    def walks(self):
        """
        [(Flow, how many packets, Walk)], routes changing as they do. All of them at once: whoever
        stops at one would leave the routes as they are then.
        """
        walks = []
        for flow in self.flows:
            for burst in flow.bursts:
                for node, address, device, via in burst.routes:
                    node.routes[address] = (device, via)
                walks.append((flow, burst.count * self.rounds, Walk(flow.node, flow.flow)))
        return walks

    def describe_view(self):
        return f"{self.rounds} rounds, interval {self.interval} s, filter '" + \
            " ".join(self.filter) + f"'{', --nat' * self.nat}, observed: " + \
            " ".join(sorted(map(str, self.observed))) + \
            f", {' and '.join(('in', 'out')[way] for way in self.ways)}"

    def describe(self):
        lines = [f"seed {self.seed}, {view.describe_view()}" for view in self.views()]
        for node in self.nodes:
            lines += describe_node(node)
        return "\n".join(lines + [f"  {flow}" for flow in self.flows])


def describe_device(device):
    words = [f"    {device.name}: {device.kind} {device.mac}"]
    for name in ("peer", "lower", "master", "mirror"):
        if getattr(device, name):
            words.append(f"{name} {getattr(device, name)}")
    if device.tag:
        words.append(f"tag {device.tag}")
    words += [f"{('in', 'out')[way]}: {action}" for way, action in device.actions.items()]
    if device.vlans:
        words.append(f"pvid {device.pvid}, untagged {device.vlans}")
    words += [f"{mac}@{vlan} is at {port.name}"
              for (mac, vlan), port in device.fdb.items()]
    words += [address for address, at in device.ns.addresses.items()
              if at is device]
    return ", ".join(words)


def describe_node(node):
    lines = [f"  {node.name}{' forwards' if node.forwards else ''}"]
    lines += map(describe_device, node.devices.values())
    lines += [f"    {address} dev {device.name} via {via}"
              for address, (device, via) in node.routes.items()
              if address != via]
    lines += [f"    {name} {old} to {new}" for name in ("snat", "dnat")
              for old, new in getattr(node, name).items()]
    return lines
