# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
"""softflowd, which exports to a port of its own host where no collector listens."""

import os
import re
import socket

from lib import lab

from .base import PCAP_SECONDS, Agent

COLLECTOR = ("127.0.0.1", 2055)


class Softflowd(Agent):
    name = "softflowd"
    packages = ("softflowd",)
    lag_seconds = PCAP_SECONDS

    def start(self):
        # A socket, so that no ICMP error comes back.
        with self.ns:
            self.collector = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.collector.bind(COLLECTOR)
        self.control = self.where.path("softflowd.ctl")
        self.err = self.log("err")
        self.spawn("softflowd", "-d", "-i", self.interface, "-n",
                   "%s:%d" % COLLECTOR, "-c", self.control, "-p",
                   self.where.path("softflowd.pid"), stderr=self.err,
                   stdout=self.err)
        lab.wait_for(lambda: os.path.exists(self.control), "softflowd")

    def tell(self, command):
        return lab.run("softflowctl", "-c", self.control, command)

    def ask_to_end(self):
        """A signal that comes just before it waits for packets is lost on it."""
        self.tell("shutdown")

    def stop(self):
        statistics = self.tell("statistics")
        self.packets = int(re.search(r"Packets processed: (\d+)",
                                     statistics).group(1))
        super().stop()
        self.collector.close()

    def count(self):
        return self.packets
