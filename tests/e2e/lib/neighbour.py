# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
"""What tests beside other people's programs share: a wire, ports, a look."""

import contextlib
import os
import socket

from lib import bpf
from lib import lab
from lib import traffic
from lib.observer import Observer

BLOCKED, OPEN = 7001, 7002
COUNT = 50


def modes():
    """How netobsctl can attach here; COMPAT(<6.6): not by tcx."""
    return ("tcx", "clsact") if bpf.has_tcx() else ("clsact",)


class NeighbourTest(lab.WiredTest):
    """Two namespaces, a and b; others attach to a's end of the wire."""

    def setUp(self):
        super().setUp()
        self.point = (self.a, "eth0")
        self.bpffs = bpf.mount_bpffs(self.lab)

    def program(self, verdict, port):
        made = bpf.Program(verdict, port)
        self.addCleanup(made.close)
        return made

    def observe(self, *arguments, **options):
        return Observer(self.lab, self.a, "-i", "eth0", *arguments,
                        **options).wait_attached(self.point)

    def snapshot(self):
        return bpf.snapshot(self.a, "eth0")

    def arrivals(self):
        """b sends to both ports of a: how much gets there, to OPEN all of it."""
        cpus = os.sched_getaffinity(0)
        with traffic.make_socket(self.b, socket.SOCK_DGRAM,
                                 "192.0.2.2") as sender, \
                traffic.make_socket(self.a, socket.SOCK_DGRAM, "192.0.2.1",
                                    BLOCKED) as blocked, \
                traffic.make_socket(self.a, socket.SOCK_DGRAM, "192.0.2.1",
                                    OPEN) as free:
            # In one queue: behind the last one, nothing is under way any more.
            os.sched_setaffinity(0, {min(cpus)})
            for _ in range(COUNT):
                sender.sendto(b"x", ("192.0.2.1", BLOCKED))
                sender.sendto(b"x", ("192.0.2.1", OPEN))
            os.sched_setaffinity(0, cpus)
            for _ in range(COUNT):
                free.recv(10)
            counts = []
            for receiver, count in (blocked, 0), (free, COUNT):
                receiver.setblocking(False)
                with contextlib.suppress(BlockingIOError):
                    while receiver.recv(10):
                        count += 1
                counts.append(count)
            return tuple(counts)
