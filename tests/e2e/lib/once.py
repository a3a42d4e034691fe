# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
"""What tests of counting once share: topologies, conversations, assertions."""

import contextlib
import socket
import time

from lib import lab
from lib import traffic
from lib import truth
from lib.observer import Observer, points

INTERVALS = 20


class Talk:
    """A UDP conversation: each round one datagram there and one back."""

    def __init__(self, stack, client, source, server, dest, sport, dport):
        self.there = (dest, dport)
        self.sender, self.receiver = (
            stack.enter_context(traffic.make_socket(
                ns, socket.SOCK_DGRAM, address, port))
            for ns, address, port in ((client, source, sport),
                                      (server, dest, dport)))

    def round(self, number):
        self.sender.sendto(bytes(number % 1000), self.there)
        _, back = self.receiver.recvfrom(2000)
        self.receiver.sendto(bytes(10), back)
        self.sender.recv(2000)


class Group:
    """Multicast: one datagram per round, without answers."""

    def __init__(self, stack, ns, source, group):
        self.there = (group, 7000)
        self.sender = stack.enter_context(traffic.make_socket(
            ns, socket.SOCK_DGRAM, source, 6000))
        self.sender.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF,
                               socket.inet_aton(source))

    def round(self, number):
        self.sender.sendto(bytes(number % 1000), self.there)


class OnceTest(lab.LabTest):
    """Topologies, and the assertions in each of them."""

    def node(self, tag, forward=False):
        ns = self.lab.ns(tag)
        if forward:
            ns.sysctl("ipv4/ip_forward", 1)
            ns.sysctl("ipv4/conf/all/send_redirects", 0)
            ns.sysctl("ipv4/conf/all/rp_filter", 0)
        return ns

    def bridge(self, ns, *ports):
        ns.ip("link", "add", "br0", "type", "bridge", "mcast_snooping", "0")
        for port in ports:
            ns.ip("link", "set", port, "master", "br0")
        ns.ip("link", "set", "br0", "up")

    def segment(self, *tags, ports="p"):
        """Hosts 192.0.2.1, .2 ... on a bridge in a namespace of its own."""
        middle = self.node("m")
        hosts = []
        macs = []
        for number, tag in enumerate(tags, 1):
            ns = self.node(tag, forward=tag == "r")
            macs.append(self.lab.veth(ns, "eth0", middle,
                                      f"{ports}{number}")[0])
            ns.address("eth0", f"192.0.2.{number}/24")
            hosts.append(ns)
        for ns in hosts:
            for number, mac in enumerate(macs, 1):
                ns.neighbour("eth0", mac, f"192.0.2.{number}")
        self.bridge(middle, *(f"{ports}{n}" for n in range(1, len(tags) + 1)))
        for ns in hosts[1:]:  # the bridge learns, and then floods no more
            traffic.ping(ns, "192.0.2.1", 1)
        return middle, *hosts

    def routed(self, index_in=None, index_out=None):
        """a -- in0 r out0 -- b"""
        a, r, b = self.node("a"), self.node("r", forward=True), self.node("b")
        self.lab.wire(a, "eth0", ["192.0.2.1/24"], r, "in0",
                      ["192.0.2.254/24"], index_b=index_in)
        self.lab.wire(b, "eth0", ["198.51.100.1/24"], r, "out0",
                      ["198.51.100.254/24"], index_b=index_out)
        a.ip("route", "add", "default", "via", "192.0.2.254")
        b.ip("route", "add", "default", "via", "198.51.100.254")
        return a, r, b

    def watch(self, observed, options, where, tap, make_talks, each_round=None,
              intervals=INTERVALS):
        """
        Let talks run until each of their flows has a record in @intervals
        intervals. @tap: (namespace, interface) of the capture that is the
        truth. Returns {flow: [(points) of each record]}.
        """
        capture = truth.Capture(self.lab, *tap, "udp")
        observer = Observer(self.lab, observed, "--interval", "0.2",
                            *options).wait_attached(*where)
        with contextlib.ExitStack() as stack:
            talks = make_talks(stack)
            number = 0
            end = time.monotonic() + 60
            while number % 40 or not self.is_enough(observer, intervals):
                self.assertLess(time.monotonic(), end, "too few intervals")
                for talk in talks:
                    talk.round(number)
                if each_round:
                    each_round(number)
                number += 1
                time.sleep(0.004)
        capture.stop()
        result = observer.stop()
        result.check_conservation()
        # Nothing but the talks: neighbour discovery is no matter here.
        result.records = [r for r in result.records if r["Proto"] == 17]
        real = truth.sums(capture.file)
        ours = truth.record_sums(result.records)
        self.assertEqual([], truth.differences(ours, real))
        self.note(f"once: {truth.summary(real)}, in {len(result.records)} "
                  "records")
        seen = {}
        for record in filter(self.is_whole, result.records):
            seen.setdefault(truth.record_key(record), []).append(
                points(record))
        return seen

    @staticmethod
    def is_whole(record):
        """One packet alone may be between two points when its interval ends."""
        return record["Packets"] > 1

    def is_enough(self, observer, intervals):
        count = {}
        for record in observer.lines():
            key = truth.record_key(record)
            count[key] = count.get(key, 0) + self.is_whole(record)
        return bool(count) and min(count.values()) >= intervals

    def assert_stable(self, seen, expected):
        """@expected: {source address: points} of every record."""
        found = {}
        for key, lists in seen.items():
            for one in lists:
                found.setdefault(key[0], set()).add(tuple(one))
        self.assertEqual({source: {tuple(one)}
                          for source, one in expected.items()}, found)
        self.assertGreaterEqual(min(map(len, seen.values())), INTERVALS)

    def talks(self, client, source, server, dest, count=4):
        return lambda stack: [
            Talk(stack, client, source, server, dest, 3000 + n, 4000 + n)
            for n in range(count)]

    def two_links(self):
        """a -- in0 r =(out0, out1)= b: two links to the same address."""
        a, r, b = self.routed()
        self.lab.wire(r, "out1", ["203.0.113.254/24"], b, "eth1",
                      ["203.0.113.1/24"])
        b.address("lo", "10.1.1.1/32")
        for ns in (r, b):
            ns.sysctl("ipv4/fib_multipath_hash_policy", 1)
            for key in ("all", "eth0", "eth1") if ns is b else ("all",):
                ns.sysctl(f"ipv4/conf/{key}/rp_filter", 0)
        b.ip("route", "replace", "default", "nexthop", "via",
             "198.51.100.254", "nexthop", "via", "203.0.113.254")
        return a, r, b
