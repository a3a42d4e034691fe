# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
# Needs: iptables
"""Packets that netfilter gives to a queue of user space, where they wait: no program takes them."""

import socket
import struct

NETLINK_NETFILTER = 12
CONFIG = 3 << 8 | 2 # NFNL_SUBSYS_QUEUE, NFQNL_MSG_CONFIG
REQUEST, ACK, ERROR = 1, 4, 2
COMMAND, PARAMETERS = 1, 2 # enum nfqnl_attr_config
BIND, COPY_META = 1, 1


def attribute(kind, value):
    return struct.pack("=HH", 4 + len(value), kind) + value + bytes(-len(value) % 4)


class Queue:
    """Of a namespace, for packets that a rule of iptables selects."""

    NUMBER = 0

    def __init__(self, ns, chain, *match):
        self.ns = ns
        with ns:
            self.socket = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, NETLINK_NETFILTER)
        self.configure(attribute(COMMAND, struct.pack(">BBH", BIND, 0, 0)))
        self.configure(attribute(PARAMETERS, struct.pack(">IB", 0, COPY_META)))
        ns.run("iptables", "-A", chain, *match, "-j", "NFQUEUE", "--queue-num", str(self.NUMBER))

    def configure(self, attributes):
        body = struct.pack(">BBH", socket.AF_UNSPEC, 0, self.NUMBER) + attributes
        self.socket.send(struct.pack("=IHHII", 16 + len(body), CONFIG, REQUEST | ACK, 1, 0) + body)
        kind, error = struct.unpack_from("=4xH10xi", self.socket.recv(4096))
        if kind != ERROR or error:
            raise OSError(-error, "configuration of a queue")

    def waiting(self):
        """How many packets."""
        with self.ns, open("/proc/thread-self/net/netfilter/nfnetlink_queue", encoding="ascii") as file:
            return next(int(line.split()[2]) for line in file if int(line.split()[0]) == self.NUMBER)

    def close(self):
        self.socket.close()
