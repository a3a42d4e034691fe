# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
"""Topologies that tests of what is counted have in common."""

from lib import lab
from lib import traffic


class OnceTest(lab.LabTest):
    """A bridge with hosts, and a router between two."""

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
