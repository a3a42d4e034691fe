# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
"""Agents that get packets by libpcap."""

import csv
import os
import re
import socket

from lib import lab

from .base import Agent, remove

# They hand it a timeout of up to a second, after which the last packets come.
PCAP_SECONDS = 1.1
HEADERS = 128


class Tcpdump(Agent):
    """The headers of each packet, to /dev/null."""
    name = "tcpdump"
    packages = ("tcpdump",)
    lag_seconds = PCAP_SECONDS

    def start(self):
        self.spawn_and_wait("listening on", "tcpdump", "-n", "-i", self.interface, "-s", HEADERS,
                            "-Z", "root", "-w", "/dev/null")

    def count(self):
        return int(re.search(r"(\d+) packets? captured",
                             lab.read(self.said.name)).group(1))


CONFIGURATION = """\
daemonize: false
pcap_interface: {interface}
snaplen: 128
aggregate: src_host, dst_host, src_port, dst_port, proto
plugins: print
print_output: csv
print_output_file: {flows}
print_output_file_append: true
"""


class Pmacctd(Agent):
    """Flows by 5-tuple, printed to a file."""
    name = "pmacctd"
    packages = ("pmacct",)
    lag_seconds = PCAP_SECONDS

    def start(self):
        self.flows = self.where.path("pmacctd-flows")
        remove(self.flows)
        with self.log("conf") as file:
            file.write(CONFIGURATION.format(interface=self.interface,
                                            flows=self.flows))
        self.spawn_and_wait("cache entries", "pmacctd", "-f", file.name)

    def count(self):
        packets = 0
        with open(self.flows, encoding="ascii") as file:
            for row in csv.reader(file):
                if row[-2].isdigit():
                    packets += int(row[-2])
        remove(self.flows)
        return packets


COLLECTOR = ("127.0.0.1", 2055)


class Softflowd(Agent):
    """It exports to a port of its own host where no collector listens."""
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
