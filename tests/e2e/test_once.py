# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
"""
A flow is counted once, however many interfaces it crosses. In each topology
flows run for 20 intervals; the totals must be those of a capture at the
sender, and each flow's interfaces and directions the same in every interval.
"""

from lib import lab
from lib import traffic
from lib import truth
from lib.frames import IPV4, UDP, VLAN, ether, ipv4, udp, vlan
from lib.observer import EGRESS as OUT, INGRESS as IN, Observer, points
from lib.once import INTERVALS, Group, OnceTest

SENT = 100
ORIGIN_SLOTS = 4096  # src/bpf/types.h


class Once(OnceTest):
    def test_forwarded(self):
        a, r, b = self.routed()
        seen = self.watch(r, [], [(r, "in0"), (r, "out0")], (a, "eth0"),
                          self.talks(a, "192.0.2.1", b, "198.51.100.1"))
        self.assert_stable(seen, {
            "192.0.2.1": [("in0", IN), ("out0", OUT)],
            "198.51.100.1": [("out0", IN), ("in0", OUT)]})

    def test_origins_that_share_a_slot(self):
        """The programs look further where another interface has the place."""
        a, r, b = self.routed(100, ORIGIN_SLOTS + 100)
        observer = Observer(self.lab, r).wait_attached((r, "in0"), (r, "out0"))
        traffic.udp(a, "192.0.2.1", b, "198.51.100.1", [72] * 10)
        traffic.udp(b, "198.51.100.1", a, "192.0.2.1", [72] * 10)
        result = observer.stop()
        result.check_conservation()
        self.assertEqual([10, 10], [r["Packets"] for r in result.records
                                    if r["Proto"] == 17])
        self.assertNotIn("inferred_packets", result.stats["seen"])

    def test_bridged(self):
        middle, a, b = self.segment("a", "b")
        seen = self.watch(middle, [], [(middle, "p1"), (middle, "p2")],
                          (a, "eth0"), self.talks(a, "192.0.2.1", b,
                                                  "192.0.2.2"))
        self.assert_stable(seen, {
            "192.0.2.1": [("p1", IN), ("p2", OUT)],
            "192.0.2.2": [("p2", IN), ("p1", OUT)]})

    def test_to_the_host_of_the_bridge(self):
        """Through a port and the bridge itself, to an address of the host."""
        middle, a = self.segment("a")
        middle.address("br0", "192.0.2.100/24")
        seen = self.watch(middle, [], [(middle, "p1"), (middle, "br0")],
                          (a, "eth0"), self.talks(a, "192.0.2.1", middle,
                                                  "192.0.2.100"))
        by_index = sorted(("p1", "br0"), key=middle.ifindex)
        self.assert_stable(seen, {
            "192.0.2.1": [(name, IN) for name in by_index],
            "192.0.2.100": [(name, OUT) for name in by_index]})

    def test_port_that_goes_before_the_drain(self):
        """What a bridge and its port both saw is not two flows' worth."""
        middle, a = self.segment("a")
        middle.address("br0", "192.0.2.100/24")
        observer = Observer(self.lab, middle, "--interval", "60")
        observer.wait_attached((middle, "p1"), (middle, "br0"))
        traffic.udp(a, "192.0.2.1", middle, "192.0.2.100", [72] * 10)
        middle.ip("link", "del", "p1")
        result = observer.stop()
        result.check_conservation()
        (record,) = (r for r in result.records if r["Proto"] == 17)
        self.assertEqual((10, 1000), (record["Packets"], record["Bytes"]))
        self.assertEqual({("p1", IN), ("br0", IN)}, set(points(record)))

    def test_pods_that_go_before_the_drain(self):
        """One after the other, with the same name and tuple, by their link or with their namespace."""
        host, pod = self.lab.ns("host"), self.lab.ns("pod")
        watch = ["-i", "/v0/", "-i", f"netns:{pod.name}//eth0/"]
        observer = Observer(self.lab, host, *watch, "--interval", "60").wait_attached()
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

    def test_pod_to_pod(self):
        """Both pods' interfaces and the ports of the bridge between them."""
        middle, a, b = self.segment("a", "b")
        seen = self.watch(
            middle, ["-i", "/./", "-x", "lo", "-i", f"netns:{a.name}/eth0",
                     "-i", f"netns:{b.name}/eth0"],
            [(middle, "p1"), (middle, "p2"), (a, "eth0"), (b, "eth0")],
            (a, "eth0"), self.talks(a, "192.0.2.1", b, "192.0.2.2"))
        for key, lists in seen.items():
            self.assertEqual(1, len({tuple(one) for one in lists}))
            there = key[0] == "192.0.2.1"
            self.assertEqual(
                sorted([("p1", IN if there else OUT),
                        ("p2", OUT if there else IN),
                        ("eth0", IN), ("eth0", OUT)]), sorted(lists[0]))
            self.assertGreaterEqual(len(lists), INTERVALS)

    def test_hairpin(self):
        """A router on a stick: in and out of its only interface."""
        _, a, b, r = self.segment("a", "b", "r")
        b.address("lo", "198.51.100.1/32")
        a.ip("route", "add", "198.51.100.1", "via", "192.0.2.3")
        r.ip("route", "add", "198.51.100.1", "via", "192.0.2.2")
        b.ip("route", "replace", "192.0.2.1/32", "via", "192.0.2.3")
        for ns in (r, b):
            ns.sysctl("ipv4/conf/eth0/rp_filter", 0)
        r.sysctl("ipv4/conf/eth0/send_redirects", 0)
        seen = self.watch(r, [], [(r, "eth0")], (a, "eth0"),
                          self.talks(a, "192.0.2.1", b, "198.51.100.1"))
        both = [("eth0", IN), ("eth0", OUT)]
        self.assert_stable(seen, {"192.0.2.1": both, "198.51.100.1": both})

    def test_equal_cost_links(self):
        a, r, b = self.two_links()
        r.ip("route", "add", "10.1.1.1", "nexthop", "via", "198.51.100.1",
             "nexthop", "via", "203.0.113.1")
        seen = self.watch(r, [], [(r, name) for name in
                                  ("in0", "out0", "out1")], (a, "eth0"),
                          self.talks(a, "192.0.2.1", b, "10.1.1.1", 24))
        used = set()
        for key, lists in seen.items():
            self.assertEqual(1, len({tuple(one) for one in lists}), key)
            self.assertEqual(2, len(lists[0]))
            self.assertGreaterEqual(len(lists), INTERVALS)
            used |= {point for point in lists[0] if point[0] != "in0"}
        # 24 conversations: both links, both ways.
        self.assertEqual({(link, way) for link in ("out0", "out1")
                          for way in (IN, OUT)}, used)

    def test_one_flow_that_moves_between_links(self):
        """Only the links are watched: each has a part, the sum is all."""
        a, r, b = self.two_links()
        vias = ("198.51.100.1", "203.0.113.1")
        r.ip("route", "add", "10.1.1.1", "via", vias[0])

        def move(number):
            if number % 30 == 29:
                r.ip("route", "replace", "10.1.1.1", "via",
                     vias[number // 30 % 2])
        for options in (["-i", "out0", "-i", "out1"], []):
            seen = self.watch(r, options, [(r, "out0"), (r, "out1")],
                              (a, "eth0"), self.talks(
                                  a, "192.0.2.1", b, "10.1.1.1", 1), move)
            used = {point for lists in seen.values() for one in lists
                    for point in one}
            self.assertLessEqual({("out0", OUT), ("out1", OUT)}, used)

    def test_multicast_flooded_by_a_bridge(self):
        middle, a, _, _ = self.segment("a", "b", "c")
        seen = self.watch(
            middle, [], [(middle, f"p{n}") for n in (1, 2, 3)], (a, "eth0"),
            lambda stack: [Group(stack, a, "192.0.2.1", "239.1.2.3")])
        (lists,) = seen.values()
        self.assertGreaterEqual(len(lists), INTERVALS)
        self.assertEqual(1, len({tuple(one) for one in lists}))
        self.assertLessEqual({("p1", IN), ("p2", OUT), ("p3", OUT)},
                             set(lists[0]))

    def test_macvlan_over_its_parent(self):
        a, b = self.node("a"), self.node("b")
        self.lab.wire(a, "eth0", [], b, "eth0", ["192.0.2.2/24"])
        mac = self.lab.mac()
        a.ip("link", "add", "mac0", "link", "eth0", "address", mac, "type",
             "macvlan", "mode", "bridge")
        a.ip("link", "set", "mac0", "up")
        a.address("mac0", "192.0.2.1/24")
        b.neighbour("eth0", mac, "192.0.2.1")
        seen = self.watch(a, [], [(a, "eth0"), (a, "mac0")], (b, "eth0"),
                          self.talks(a, "192.0.2.1", b, "192.0.2.2"))
        by_index = sorted(("eth0", "mac0"), key=a.ifindex)
        self.assert_stable(seen, {
            "192.0.2.1": [(name, OUT) for name in by_index],
            "192.0.2.2": [(name, IN) for name in by_index]})

    def test_bond(self):
        a, b = self.node("a"), self.node("b")
        try:
            for ns in (a, b):
                ns.ip("link", "add", "bond0", "type", "bond", "mode",
                      "balance-rr")
        except RuntimeError as error:
            self.assertIn("Unknown device type", str(error))
            self.note("this kernel has no bonding; tests/unit/lib/flows/test_observe.c "
                      "holds the rule for bonds")
            return
        mac_a, mac_b = self.lab.mac(), self.lab.mac()
        for name in ("eth0", "eth1"):
            self.lab.veth(a, name, b, name)
            for ns in (a, b):
                ns.ip("link", "set", name, "down")
                ns.ip("link", "set", name, "master", "bond0")
        for ns, mac, address in ((a, mac_a, "192.0.2.1/24"),
                                 (b, mac_b, "192.0.2.2/24")):
            ns.ip("link", "set", "bond0", "address", mac, "up")
            ns.address("bond0", address)
        seen = self.watch(a, [], [(a, "eth0"), (a, "eth1"), (a, "bond0")],
                          (b, "bond0"), self.talks(a, "192.0.2.1", b,
                                                   "192.0.2.2"))
        self.assertEqual(8, len(seen))

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


class Unseen(OnceTest):
    """A part of the way is not observed: a namespace, a link between two bridges, a bridge between its ports."""

    def count(self, where, observed, sender, source, receiver, dest, options=()):
        """What records say of @SENT datagrams: (packets, the statistics)."""
        observer = Observer(self.lab, where, "--interval", "60", *options)
        observer.wait_attached(*observed)
        traffic.udp(sender, source, receiver, dest, [72] * SENT)
        result = observer.stop()
        result.check_conservation()
        return sum(record["Packets"] for record in result.records
                   if record["Proto"] == 17), result.stats["seen"]

    def assert_once(self, *args, **options):
        packets, _ = self.count(*args, **options)
        self.assertEqual(SENT, packets)

    def test_two_pods_and_not_the_host(self):
        _, a, b = self.segment("a", "b")
        self.assert_once(a, [(a, "eth0"), (b, "eth0")], a, "192.0.2.1", b, "192.0.2.2",
                         options=["-i", "eth0", "-i", f"netns:{b.name}/eth0"])

    def test_one_pod_and_not_the_host(self):
        """A namespace with one link sends packets of its own: no count has to decide."""
        _, a, b = self.segment("a", "b")
        packets, seen = self.count(b, [(b, "eth0")], a, "192.0.2.1", b, "192.0.2.2",
                                   options=["-i", "eth0"])
        self.assertEqual(SENT, packets)
        self.assertNotIn("inferred_packets", seen)

    def test_two_pods_and_the_router_between_two_hosts_not(self):
        a, _, b = self.routed()
        self.assert_once(a, [(a, "eth0"), (b, "eth0")], a, "192.0.2.1", b, "198.51.100.1",
                         options=["-i", "eth0", "-i", f"netns:{b.name}/eth0"])

    def two_bridges(self):
        middle, a = self.segment("a")
        middle.ip("link", "add", "br1", "type", "bridge", "mcast_snooping", "0")
        middle.ip("link", "add", "j0", "type", "veth", "peer", "name", "j1")
        middle.address("br1", "192.0.2.100/24")
        for port, bridge in (("j0", "br1"), ("j1", "br0")):
            middle.ip("link", "set", port, "master", bridge, "up")
        middle.ip("link", "set", "br1", "up")
        return middle, a

    def test_two_bridges_and_not_the_link_between_them(self):
        middle, a = self.two_bridges()
        self.assert_once(middle, [(middle, "br1"), (middle, "p1")],
                         middle, "192.0.2.100", a, "192.0.2.1",
                         options=["-i", "br1", "-i", "p1"])

    def test_ports_and_not_the_bridge_that_floods(self):
        middle, a, _, _ = self.segment("a", "b", "c")
        middle.ip("link", "set", "br0", "type", "bridge", "ageing_time", "0")
        middle.address("br0", "192.0.2.100/24")
        ports = [(middle, f"p{number}") for number in (1, 2, 3)]
        self.assert_once(middle, ports, middle, "192.0.2.100", a, "192.0.2.1",
                         options=["-i", "/^p/"])

    def redirected(self, way, action):
        """A namespace and its peer: tc sends to t0 what passes v0."""
        middle, a = self.node(f"m{way[0]}{action[0]}"), self.node(f"a{way[0]}{action[0]}")
        self.lab.wire(middle, "v0", ["192.0.2.100/24"], a, "eth0", ["192.0.2.1/24"])
        middle.ip("link", "add", "t0", "type", "ifb")
        middle.ip("link", "set", "t0", "up")
        middle.run("tc", "qdisc", "add", "dev", "v0", "clsact")
        middle.run("tc", "filter", "add", "dev", "v0", way, "protocol", "ip", "u32",
                   "match", "u32", "0", "0", "action", "mirred", "egress", action,
                   "dev", "t0")
        return middle, a

    def test_redirected_and_mirrored(self):
        for way in ("ingress", "egress"):
            for action in ("mirror", "redirect"):
                with self.subTest(way=way, action=action):
                    middle, a = self.redirected(way, action)
                    ends = [middle, "192.0.2.100", a, "192.0.2.1"]
                    if way == "ingress":
                        ends = ends[2:] + ends[:2]
                    self.assert_once(middle, [(middle, "v0"), (middle, "t0")], *ends,
                                     options=["-i", "v0", "-i", "t0"])


if __name__ == "__main__":
    lab.main(at_once=4)
