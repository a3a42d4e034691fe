# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
"""`netobsctl flows` with default options, its records in a file."""

import mmap
import os
import re
import time

from lib.observer import Observer

from .base import Agent, remove

INTERVAL_SECONDS = 5 # the default
ACCOUNTS = ("unparsed", "lost") # what became of packets in no record


class Netobs(Agent):
    name = "netobs"
    options = ()

    def start(self):
        self.observer = Observer(self.where, self.ns, "-i", self.interface,
                                 *self.options, release=True, enter=self.pin)
        self.process = self.observer.process
        self.observer.wait_attached((self.ns, self.interface))
        self.attached = time.monotonic()

    def prepare(self, seconds):
        """A drain is part of the cost: it falls into the traffic's middle."""
        due = self.attached + INTERVAL_SECONDS - seconds / 2
        time.sleep(max(0, due - time.monotonic()))

    def count(self):
        """Packets in all records; the agent's own books must say the same."""
        result = self.observer.finish()
        result.check_identity()
        packets = sum_packets(self.observer.out)
        if packets != result.total("exported")[0]:
            raise AssertionError(f"records hold {packets} packets, stats say "
                                 f"{result.stats}")
        remove(self.observer.out)
        self.accounts = {name: result.stats[name] for name in ACCOUNTS}
        return packets


class Rtt(Netobs):
    """With round-trip times, which only TCP has."""
    name = "netobs-rtt"
    options = ("--rtt",)
    protocols = ("tcp",)


def sum_packets(path):
    """Fast, as there may be millions of records."""
    if not os.path.getsize(path):
        return 0
    with open(path, "rb") as file, \
            mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ) as lines:
        return sum(int(found.group(1)) for found in
                   re.finditer(rb'"Packets":(\d+)', lines))
