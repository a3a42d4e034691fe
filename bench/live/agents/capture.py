# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
"""`netobsctl capture` of all packets that leave, into files."""

import json
import os

from .base import Agent, whole

FILTER = "ip"
SNAP = 96 # bytes of each packet


class Capture(Agent):
    name = "capture"
    is_default = False

    def start(self):
        self.err = self.log("err")
        self.spawn(os.environ["NETOBSCTL"], "capture", "-v", "--stats", "-i", self.interface,
                   "-s", SNAP, "-w", self.where.path("flood.pcapng"), "--rotate", "64M",
                   "--keep", 2, FILTER, stderr=self.err)
        self.wait_for_words(self.err, "capturing at")

    def count(self):
        """Packets matched: each is captured, or counted as lost."""
        stats = json.loads([line for line in whole(self.err).splitlines()
                            if line.startswith('{"matched"')][-1])
        self.accounts = {name: stats[name] for name in
                         ("captured", "unwritten", "limited", "lost")}
        if stats["matched"] != sum(self.accounts.values()):
            raise AssertionError(f"a capture that does not add up: {stats}")
        return stats["matched"]
