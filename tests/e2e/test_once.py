# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
"""
A flow is counted once, however many interfaces it crosses, which are the same in every interval, also where
interfaces go, share what the programs note, or are a part of the way only.
"""

import collections
import socket

from lib import lab
from lib import topology_check
from lib import traffic
from lib import truth
from lib.frames import IPV4, UDP, VLAN, ether, ipv4, udp, vlan
from lib.observer import EGRESS as OUT, INGRESS as IN, Observer, points
from lib.once import OnceTest
from lib.topology import Burst
from lib.topology_fixed import FixedTest

SENT = 100
ORIGIN_SLOTS = 4096  # src/bpf/types.h
INTERVALS, INTERVAL_S = 20, 0.05
BURSTS = 150 # each takes 20 ms or more


class Stable(FixedTest):
    """The points in all records of a flow are the same; in a namespace, those of what came in are the first ones."""

    def check_stable(self, *devices, nodes=()):
        for flow in self.topology.flows:
            flow.bursts = [Burst(4) for _ in range(BURSTS)]
        found = collections.defaultdict(list)
        for record in topology_check.of_udp(self.check(*devices, nodes=nodes, interval=INTERVAL_S)):
            if record["Packets"] > 1: # one alone may be between two points when its interval ends
                found[topology_check.record_tuple(record)].append(
                    list(zip(record["IfDirections"], record["IfIndexes"])))
        for lists in found.values():
            self.assertGreaterEqual(len(lists), INTERVALS)
            self.assertEqual([lists[0]] * len(lists), lists)
            if len({device.ns for device in self.topology.observed}) == 1:
                self.assertEqual(sorted(lists[0]), lists[0])

    def both_ways(self, made, a, b):
        made.set_routes()
        made.send(a, b)
        made.send(b, a, 3001)

    def test_forwarded(self):
        made, (a, router, b) = self.row(3)
        made.send(b, a, 3001)
        self.check_stable(nodes=[router])

    def bridged(self):
        made = self.make()
        a, b = made.several(2)
        made.switch(a, [b])
        self.both_ways(made, a, b)
        return self.switch(), a, b

    def test_bridged(self):
        switch, *_ = self.bridged()
        self.check_stable(nodes=[switch])

    def test_pod_to_pod(self):
        """Both pods' interfaces and the ports of the bridge between them."""
        self.bridged()
        self.check_stable()

    def test_two_pods_and_not_the_host(self):
        _, *pods = self.bridged()
        self.check(nodes=pods)

    def test_two_pods_and_the_router_between_two_hosts_not(self):
        _, (a, _, b) = self.row(3)
        self.check(nodes=[a, b])

    def own_bridge(self, count, **options):
        """Of a host, which has an address on the bridge itself."""
        made = self.make(**options)
        host, *others = made.several(1 + count)
        made.rng.random = lambda: 1
        made.own_bridge(host, others)
        self.both_ways(made, host, others[0])
        return host

    def test_to_the_host_of_the_bridge(self):
        """Through a port and the bridge."""
        self.check_stable(nodes=[self.own_bridge(1)])

    def test_ports_and_not_the_bridge_that_floods(self):
        host = self.own_bridge(3, knows=False)
        self.check(*(host.devices[f"port{number}"] for number in range(3)))

    def test_hairpin(self):
        """A router on a stick: in and out of its only interface."""
        made = self.make()
        a, router, b = made.several(3)
        made.switch(a, [router, b])
        self.both_ways(made, a, b)
        router.forwards = True
        (via,) = router.addresses
        for ns, other in (a, b), (b, a):
            ns.routes[next(iter(other.addresses))] = ns.devices["eth0"], via
        self.check_stable(nodes=[router])

    def test_one_flow_that_moves_between_links(self):
        """Each has a part, the sum is all."""
        made = self.make()
        a, router, b = made.several(3)
        made.one_wire(a, [router])
        made.two_wires(router, [b])
        made.set_routes()
        made.send(a, b)
        (flow,) = self.topology.flows
        links = [router.devices[name] for name in ("eth1", "eth2")]
        ways = [(router, flow.flow.dst, link, address) for link, address in zip(links, b.addresses)]
        flow.bursts = [Burst(30, (ways[number % 2],)) for number in range(20)]
        self.check(*links, interval=INTERVAL_S)
        self.check(nodes=[router], interval=INTERVAL_S)

    def test_macvlan_over_its_parent(self):
        made = self.make()
        a, b = made.several(2)
        end, lower = made.wire(b, a)
        made.segment(end, made.macvlan(a, lower))
        self.both_ways(made, a, b)
        self.check_stable(nodes=[a])


class Once(OnceTest):
    def count(self, where, names, send, *options):
        """@return packets of UDP in the records, their points, and the statistics"""
        observer = Observer(self.lab, where, "--interval", "600", *options)
        observer.wait_attached(*((where, name) for name in names))
        send()
        result = observer.stop()
        result.check_conservation()
        records = [record for record in result.records if record["Proto"] == 17]
        return sum(record["Packets"] for record in records), \
            {point for record in records for point in points(record)}, result.stats["seen"]

    def test_origins_that_share_a_slot(self):
        """The programs look further where another interface has the place."""
        a, r, b = self.routed(100, ORIGIN_SLOTS + 100)

        def send():
            traffic.udp(a, "192.0.2.1", b, "198.51.100.1", [72] * 10)
            traffic.udp(b, "198.51.100.1", a, "192.0.2.1", [72] * 10)
        packets, _, seen = self.count(r, ("in0", "out0"), send)
        self.assertEqual(20, packets)
        self.assertNotIn("inferred_packets", seen)

    def test_port_that_goes_before_the_drain(self):
        """What a bridge and its port both saw is not two flows' worth."""
        middle, a = self.segment("a")
        middle.address("br0", "192.0.2.100/24")

        def send():
            traffic.udp(a, "192.0.2.1", middle, "192.0.2.100", [72] * SENT)
            middle.ip("link", "del", "p1")
        self.assertEqual((SENT, {("p1", IN), ("br0", IN)}), self.count(middle, ("p1", "br0"), send)[:2])

    def test_pods_that_go_before_the_drain(self):
        """One after the other, with the same name and tuple, by their link or with their namespace."""
        host, pod = self.lab.ns("host"), self.lab.ns("pod")
        watch = ["-i", "/v0/", "-i", f"netns:{pod.name}//eth0/"]
        observer = Observer(self.lab, host, *watch, "--interval", "600").wait_attached()
        for way in "link", "namespace", "link":
            self.lab.wire(pod, "eth0", ["192.0.2.1/24"], host, "v0", ["192.0.2.2/24"])
            observer.wait_attached((pod, "eth0"), (host, "v0"))
            traffic.udp(pod, "192.0.2.1", host, "192.0.2.2", [72] * 10, sport=7000)
            if way == "link":
                host.ip("link", "del", "v0")
            lab.run(lab.IP, "netns", "del", pod.name)
            lab.wait_for(lambda: "v0" not in host.ip("-br", "link"), "the link to go")
            pod = lab.Namespace(pod.name)
            self.lab.namespaces.append(pod)
        result = observer.stop()
        result.check_conservation()
        (record,) = (r for r in result.records if r["Proto"] == 17)
        self.assertEqual((30, 3000), (record["Packets"], record["Bytes"]))
        self.assertEqual({("v0", IN), ("eth0", OUT)}, set(points(record)))

    def test_multicast_flooded_by_a_bridge(self):
        middle, a, _, _ = self.segment("a", "b", "c")

        def send():
            with traffic.make_socket(a, socket.SOCK_DGRAM, "192.0.2.1") as sender:
                sender.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, socket.inet_aton("192.0.2.1"))
                for _ in range(SENT):
                    sender.sendto(bytes(72), ("239.1.2.3", 7000))
            lab.await_quiet(a, middle)
        packets, found, _ = self.count(middle, ("p1", "p2", "p3"), send)
        self.assertEqual(SENT, packets)
        self.assertLessEqual({("p1", IN), ("p2", OUT), ("p3", OUT)}, found)

    def test_bond_of_which_both_links_are_used(self):
        a, b = self.node("a"), self.node("b")
        try:
            for ns in a, b:
                ns.ip("link", "add", "bond0", "type", "bond", "mode", "balance-rr")
        except RuntimeError as error:
            self.assertIn("Unknown device type", str(error))
            self.note("this kernel has no bonding; tests/unit/lib/flows/test_observe.c "
                      "holds the rule for bonds")
            return
        for name in "eth0", "eth1":
            self.lab.veth(a, name, b, name)
            for ns in a, b:
                ns.ip("link", "set", name, "down")
                ns.ip("link", "set", name, "master", "bond0")
        for number, ns in enumerate((a, b), 1):
            ns.ip("link", "set", "bond0", "address", self.lab.mac(), "up")
            ns.address("bond0", f"192.0.2.{number}/24")
        self.assertEqual((SENT, {("eth0", OUT), ("eth1", OUT), ("bond0", OUT)}), self.count(
            a, ("eth0", "eth1", "bond0"),
            lambda: traffic.udp(a, "192.0.2.1", b, "192.0.2.2", [72] * SENT))[:2])

    def test_one_pod_and_not_the_host(self):
        """A namespace with one link sends packets of its own: no count has to decide."""
        _, a, b = self.segment("a", "b")
        packets, _, seen = self.count(b, ("eth0",), lambda: traffic.udp(
            a, "192.0.2.1", b, "192.0.2.2", [72] * SENT), "-i", "eth0")
        self.assertEqual(SENT, packets)
        self.assertNotIn("inferred_packets", seen)

    def test_two_bridges_and_not_the_link_between_them(self):
        middle, a = self.segment("a")
        middle.ip("link", "add", "br1", "type", "bridge", "mcast_snooping", "0")
        middle.ip("link", "add", "j0", "type", "veth", "peer", "name", "j1")
        middle.address("br1", "192.0.2.100/24")
        for port, bridge in (("j0", "br1"), ("j1", "br0")):
            middle.ip("link", "set", port, "master", bridge, "up")
        middle.ip("link", "set", "br1", "up")
        packets, _, _ = self.count(middle, ("br1", "p1"), lambda: traffic.udp(
            middle, "192.0.2.100", a, "192.0.2.1", [72] * SENT), "-i", "br1", "-i", "p1")
        self.assertEqual(SENT, packets)

    def test_per_interface_shows_each_point(self):
        a, r, b = self.routed()
        capture = truth.Capture(self.lab, a, "eth0", "icmp")
        observer = Observer(self.lab, r, "--per-interface").wait_attached(
            (r, "in0"), (r, "out0"))
        traffic.ping(a, "198.51.100.1", 20)
        capture.stop()
        result = observer.stop()
        real = truth.sums(capture.file)
        expected = [("in0", IN), ("out0", OUT), ("out0", IN), ("in0", OUT)]
        for point in expected:
            part = [r for r in result.records if points(r) == [point]]
            ours = truth.record_sums(part)
            self.assertEqual(1, len(ours), point)
            (key,) = ours
            self.assertEqual(real[key].counts(), ours[key].counts())
        self.assertEqual(sorted([point] for point in expected),
                         sorted({str(points(r)): points(r)
                                 for r in result.records}.values()))

    def test_two_vlans_stay_two_flows(self):
        """Of tenants with equal addresses: on a wire, and where each frame crosses two ports of a bridge."""
        packet = ipv4("192.0.2.1", "192.0.2.2", UDP, udp(1000, 2000, bytes(8)))
        a, m, b = (self.lab.ns(tag) for tag in "amb")
        macs = self.lab.veth(a, "eth0", m, "port0")[0], self.lab.veth(b, "eth0", m, "port1")[0]

        def check(*ports):
            observer = Observer(self.lab, m, "-i", "/port/").wait_attached(*((m, port) for port in ports))
            for tag in (10, 20):
                a.send_frames("eth0", [ether(macs[1], macs[0], VLAN, vlan(tag, IPV4, packet))] * tag)
            result = observer.stop()
            result.check_conservation()
            self.assertEqual({10: 10, 20: 20}, {
                record["VlanId"]: record["Packets"] for record in result.records})
            self.assertEqual([list(ports)] * 2, [sorted(record["Interfaces"]) for record in result.records])
            self.assertEqual(30, result.total("seen")[0])

        m.ip("link", "set", "port1", "down")
        check("port0")
        m.ip("link", "set", "port1", "up")
        self.bridge(m, "port0", "port1")
        check("port0", "port1")


if __name__ == "__main__":
    lab.main(at_once=4)
