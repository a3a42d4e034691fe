# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
# Needs: nftables
"""A topology made of real namespaces, and its traffic sent."""

import json
import re
import socket
import time
from dataclasses import replace

from lib import lab
from lib import topology_actions
from lib import topology_truth
from lib import traffic
from lib.topology import IN, OUT, Walk

AT_ONCE = 25  # packets that a socket's buffer surely takes
SYSCTLS = {
    "ipv6/conf/default/accept_dad": 0, "ipv6/conf/default/router_solicitations": 0,
    "ipv6/conf/default/accept_ra": 0, "ipv4/conf/all/send_redirects": 0,
    "ipv4/conf/default/send_redirects": 0, "ipv4/conf/all/rp_filter": 0,
    "ipv4/conf/default/rp_filter": 0, "ipv4/conf/all/accept_local": 1,
}


def run_batch(lines, *tool):
    """Many commands of one of iproute2's tools; names the one that failed."""
    try:
        lab.run(*tool, "-batch", "-", input="\n".join(lines))
    except RuntimeError as error:
        number = re.search(r"Command failed -:(\d+)", str(error))
        line = lines[int(number.group(1)) - 1] if number else ""
        raise RuntimeError(f"{error}: {line}") from error


class Place(lab.Namespace):
    """The namespace of a node; the batch that makes it has been run."""

    def __init__(self, name, node, has_ipv6):
        self.name, self.outside, self.node = name, [], node
        settings = dict(SYSCTLS)
        settings["ipv6/conf/default/disable_ipv6"] = int(not has_ipv6)
        settings["ipv4/ip_forward"] = int(node.forwards)
        settings["ipv6/conf/all/forwarding"] = int(node.forwards)
        with self:
            for key, value in settings.items():
                lab.write(f"/proc/sys/net/{key}", str(value))

    def batch(self, tool, lines):
        if lines:
            run_batch(lines, tool, "-n", self.name)

    def counts(self):
        links = json.loads(self.ip("-s", "-j", "link", "show"))
        return {(link["ifname"], way): link["stats64"][name]["packets"]
                for link in links for name, way in (("rx", IN), ("tx", OUT))}


def is_first(device):
    return device.mac < device.peer.mac


class Network:
    """All of a topology in the kernel."""

    def __init__(self, where, topology):
        self.lab, self.topology = where, topology
        self.rounds = 0
        names = {node: where.name(node) for node in topology.nodes}
        run_batch([f"netns add {name}" for name in names.values()], lab.IP)
        self.places = {node: Place(name, node, topology.has_ipv6)
                       for node, name in names.items()}
        run_batch([
            f"link add {device.name} netns {names[device.ns]} address "
            f"{device.mac} type veth peer name {device.peer.name} netns "
            f"{names[device.peer.ns]} address {device.peer.mac}"
            for device in topology.devices()
            if device.kind == "veth" and is_first(device)], lab.IP)
        for node, place in self.places.items():
            place.batch(lab.IP, [line for device in node.devices.values()
                                 for line in self.stacked(device)])
        for node, place in self.places.items():
            place.batch(lab.IP, [*settings(node), *addresses(node)])
            place.batch("bridge", list(forwarding(node)))
            place.batch("tc", list(topology_actions.commands(node)))
            if rules := "\n".join((*translations(node), *mirrors(node))):
                place.run("nft", "-f", "-", input=rules)
        lab.wait_for(self.are_up, "links to be up and bridges to forward")

    def stacked(self, device):
        """What is made of an interface in @device's namespace."""
        if device.kind == "bridge":
            options = " vlan_filtering 1" if device.pvid else ""
            yield f"link add name {device.name} address {device.mac} type " \
                f"bridge mcast_snooping 0{options}"
        if device.kind == "ifb":
            yield f"link add name {device.name} address {device.mac} type ifb"
        if device.kind == "bond":
            yield f"link add name {device.name} address {device.mac} type " \
                "bond mode active-backup miimon 10"
        for upper in device.uppers:
            what = f"link add link {device.name} name {upper.name} address " \
                f"{upper.mac} netns {self.places[upper.ns].name} type "
            if upper.kind == "vlan":
                yield what + f"vlan protocol {upper.tag[0]} id {upper.tag[1]}"
            else:
                yield what + "macvlan mode bridge"

    def has_bonds(self):
        return any(device.kind == "bond" for device in self.topology.devices())

    def are_up(self):
        """The kernel takes its time to see that the other end is up."""
        for node, place in self.places.items():
            for link in json.loads(place.ip("-d", "-j", "link", "show")):
                device = node.devices[link["ifname"]]
                if device.kind != "lo" and not is_ready(device, link):
                    return False
        return True

    # ---- Traffic -----------------------------------------------------------

    def send_all(self):
        """Send every flow; each packet must arrive where the model says."""
        self.rounds += 1
        sockets = Sockets(self.places)
        with sockets:
            for flow in self.topology.flows:
                for burst in flow.bursts:
                    for route in burst.routes:
                        self.change(*route)
                    sockets.send(flow, burst.count)
                    if min(view.interval for view in self.topology.views()) < 1:
                        time.sleep(0.02)

    def change(self, node, address, device, via):
        node.routes[address] = (device, via)
        self.places[node].ip("route", "replace", address, "via", via, "dev",
                             device.name, "onlink")

    def differences(self):
        """Where the kernel's counters are not what the model says."""
        if self.topology.has_ipv6 or self.has_bonds():
            return []  # what they say of themselves is counted as well
        model = topology_truth.device_counts(replace(self.topology, rounds=self.rounds))
        found = []
        for node, place in self.places.items():
            real = place.counts()
            for device in node.devices.values():
                for way in IN, OUT:
                    ours = model.get((device, way), 0)
                    if real[device.name, way] != ours and not \
                            hides_counts(device):
                        found.append(f"{device} {('in', 'out')[way]}: "
                                     f"{real[device.name, way]} packets, the "
                                     f"model has {ours}")
        return found


def hides_counts(device):
    """The kernel does not count what macvlans send to one another below."""
    return any(upper.kind == "macvlan" for upper in device.uppers)


def is_ready(device, link):
    """Whether @link, as ip shows it, does what the model says."""
    info = link.get("linkinfo", {})
    state = info.get("info_slave_data", {}).get("state", "")
    if device.kind == "bond" and \
            info["info_data"].get("active_slave") != device.ports[0].name:
        return False
    # A bridge without ports that are up has no carrier; its ports say it all. An ifb has no state.
    return (device.kind in ("bridge", "ifb") or link["operstate"] == "UP") and \
        state.lower() in ("", "forwarding", "active", "backup")


class Sockets:
    """The senders and receivers, made when they are first needed."""

    def __init__(self, places):
        self.places = places
        self.made = {}

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for one in self.made.values():
            one.close()

    def get(self, node, address, port):
        key = node, address, port
        if key not in self.made:
            self.made[key] = traffic.make_socket(
                self.places[node], socket.SOCK_DGRAM, address, port)
        return self.made[key]

    def send(self, flow, count):
        key = flow.flow
        sender = self.get(flow.node, key.src, key.sport)
        (where, arrived), = Walk(flow.node, key).arrived
        receiver = self.get(where, arrived.dst, arrived.dport)
        for start in range(0, count, AT_ONCE):
            part = min(AT_ONCE, count - start)
            for _ in range(part):
                sender.sendto(flow.payload or bytes(flow.size), (key.dst, key.dport))
            for _ in range(part):
                _, source = receiver.recvfrom(2000)
                if source[:2] != (arrived.src, arrived.sport):
                    raise AssertionError(f"{flow} came from {source[:2]}")


# ---- What is configured ------------------------------------------------------

def settings(node):
    yield "link set lo up"
    for device in node.devices.values():
        if device.master:
            yield f"link set {device.name} master {device.master.name}"
            if device.master.kind == "bridge":
                yield f"link set {device.name} type bridge_slave learning off"
    for device in node.devices.values():
        if device.kind == "bond":
            yield f"link set {device.name} type bond primary " \
                f"{device.ports[0].name}"
    # Lower devices first.
    for device in sorted(node.devices.values(),
                         key=lambda one: len(one.tags())):
        yield f"link set {device.name} up"


def addresses(node):
    """Only routes that the model has: addresses bring none along."""
    for address, device in node.addresses.items():
        length = 128 if ":" in address else 32
        yield f"address add {address}/{length} dev {device.name}" + \
            " nodad" * (length == 128)
    for (name, address), mac in node.neighbours.items():
        yield f"neighbour replace {address} lladdr {mac} dev {name} nud " \
            "permanent"
        yield f"route replace {address} dev {name}"
    for address, (device, via) in node.routes.items():
        if via != address:
            yield f"route replace {address} via {via} dev {device.name} " \
                "onlink"


def forwarding(node):
    """The bridges' tables."""
    for bridge in node.devices.values():
        is_filter = bridge.kind == "bridge" and bridge.pvid
        for port in [bridge, *bridge.ports] if is_filter else []:
            self_ = " self" if port is bridge else ""
            if 1 not in port.vlans:
                yield f"vlan del dev {port.name} vid 1{self_}"
            for vlan, is_untagged in port.vlans.items():
                yield f"vlan add dev {port.name} vid {vlan}" + \
                    " pvid" * (vlan == port.pvid) + \
                    " untagged" * is_untagged + self_
        for (mac, vlan), port in bridge.fdb.items():
            yield f"fdb replace {mac} dev {port.name} master static" + \
                f" vlan {vlan}" * (vlan > 0)


def translations(node):
    for hook, priority, kind in (("prerouting", -100, "dnat"),
                                 ("postrouting", 100, "snat")):
        for old, new in getattr(node, kind).items():
            family = "ip6" if ":" in old.src else "ip"
            chain = f"{family} to_{kind}"
            address, port = (new.src, new.sport) if kind == "snat" else \
                (new.dst, new.dport)
            if family == "ip6":
                address = f"[{address}]"
            yield f"add table {chain}"
            yield f"add chain {chain} c {{ type nat hook {hook} priority " \
                f"{priority}; }}"
            yield f"add rule {chain} c {family} saddr {old.src} {family} " \
                f"daddr {old.dst} udp sport {old.sport} udp dport " \
                f"{old.dport} {kind} to {address}:{port}"


def mirrors(node):
    for device in node.devices.values():
        if device.mirror:
            chain = f"netdev {device.name}"
            yield f"add table {chain}"
            yield f"add chain {chain} c {{ type filter hook ingress device " \
                f"{device.name} priority 0; }}"
            yield f"add rule {chain} c dup to \"{device.mirror.name}\""
