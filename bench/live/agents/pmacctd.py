# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
"""pmacctd, with flows by 5-tuple printed to a file."""

import csv

from .base import PCAP_SECONDS, Agent, remove

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
    name = "pmacctd"
    packages = ("pmacct",)
    lag_seconds = PCAP_SECONDS

    def start(self):
        self.flows = self.where.path("pmacctd-flows")
        remove(self.flows)
        with self.log("conf") as file:
            file.write(CONFIGURATION.format(interface=self.interface,
                                            flows=self.flows))
        self.err = self.log("err")
        self.spawn("pmacctd", "-f", file.name, stderr=self.err,
                   stdout=self.err)
        self.wait_for_words(self.err, "cache entries")

    def count(self):
        packets = 0
        with open(self.flows, encoding="ascii") as file:
            for row in csv.reader(file):
                if row[-2].isdigit():
                    packets += int(row[-2])
        remove(self.flows)
        return packets
