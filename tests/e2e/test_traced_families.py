#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
# Needs: iproute2
"""netobsctl trace of IPv6, and of IPv4 by sockets of IPv6: each byte has one journey.

A failure prints its seed, and NETOBS_TEST_SEED=SEED repeats it.
"""

import collections
import socket
import time

from lib import lab
from lib.tracer import PARTS, PORT, Trace, Tracer, by_connection, bytes_of, has_all

CLIENT, SERVER = ("192.0.2.1", "2001:db8:1::1"), ("198.51.100.1", "2001:db8:2::1")
ROUTER = ("192.0.2.254", "2001:db8:1::fe"), ("198.51.100.254", "2001:db8:2::fe")
MAPPED = "::ffff:"


class Families(Trace):
    def setUp(self):
        super().setUp()
        self.client, self.router, self.server = (self.lab.ns(tag, ipv6=True) for tag in "crs")
        self.wire(self.client, "c0", CLIENT, "rc", ROUTER[0])
        self.wire(self.server, "s0", SERVER, "rs", ROUTER[1])
        self.router.sysctl("ipv4/ip_forward", 1)
        self.router.sysctl("ipv6/conf/all/forwarding", 1)

    @staticmethod
    def nets(addresses):
        return [f"{address}/{64 if ':' in address else 24}" for address in addresses]

    def wire(self, end, name, addresses, router_name, router_addresses):
        self.lab.wire(end, name, self.nets(addresses), self.router, router_name,
                      self.nets(router_addresses))
        for address in router_addresses:
            end.ip("route", "add", "default", "via", address)

    def listen(self, address, family):
        with self.server:
            listener = socket.create_server((address, PORT), family=family, backlog=64,
                                            dualstack_ipv6=address == "::")
        self.addCleanup(listener.close)
        return listener

    def connect(self, address, family):
        with self.client:
            end = socket.socket(family)
            end.connect((address, PORT))
        return end

    def check(self, listener, address, family, shown):
        """@shown: addresses of the first direction in the journeys."""
        network = collections.namedtuple("Ends", "listener connect")(
            listener, lambda: self.connect(address, family))
        where = f"seed {self.seed}"
        tracer = Tracer(self, PORT)
        spoken = list(self.talk(network, lab.sized(10)))
        time.sleep(.5)
        found = {}
        for own in by_connection(tracer.stop()).values():
            first = next(one for one in own if not one["Direction"])
            self.assertEqual((first["SrcAddr"], first["DstAddr"]), shown, where)
            found[first["SrcPort"]] = own
        for one in spoken:
            own = found.pop(one.client[1])
            for direction, stream in enumerate(one.streams):
                size = stream.written
                self.assertEqual(bytes_of(own, direction), ([(0, size)] if size else [], 0),
                                 f"{where}: {one}")
            for each in own:
                text = f"{where}: {each}"
                self.assertNotIn("UnknownParts", each, text)
                self.assertEqual(each["TotalNs"], sum(each[name] for name in PARTS), text)
                passed = {step["NetnsInode"] for step in each["Steps"]}
                self.assertEqual(passed, {self.client.inode, self.router.inode,
                                          self.server.inode}, text)
        self.assertFalse(found, where)

    def test_ipv6(self):
        self.check(self.listen(SERVER[1], socket.AF_INET6), SERVER[1], socket.AF_INET6,
                   (CLIENT[1], SERVER[1]))

    def test_ipv4_to_a_socket_of_both(self):
        self.check(self.listen("::", socket.AF_INET6), SERVER[0], socket.AF_INET,
                   (CLIENT[0], SERVER[0]))

    def test_ipv4_between_sockets_of_ipv6(self):
        self.check(self.listen("::", socket.AF_INET6), MAPPED + SERVER[0], socket.AF_INET6,
                   (CLIENT[0], SERVER[0]))

    def test_ipv6_to_a_socket_of_both(self):
        self.check(self.listen("::", socket.AF_INET6), SERVER[1], socket.AF_INET6,
                   (CLIENT[1], SERVER[1]))


if __name__ == "__main__":
    lab.main("tracepoints of processes that write", has_all)
