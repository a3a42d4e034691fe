# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
"""tcpdump, which copies the headers of each packet to /dev/null."""

import re

from .base import PCAP_SECONDS, Agent, whole

HEADERS = 128


class Tcpdump(Agent):
    name = "tcpdump"
    packages = ("tcpdump",)
    lag_seconds = PCAP_SECONDS

    def start(self):
        self.err = self.log("err")
        self.spawn("tcpdump", "-n", "-i", self.interface, "-s", HEADERS,
                   "-Z", "root", "-w", "/dev/null", stderr=self.err)
        self.wait_for_words(self.err, "listening on")

    def count(self):
        return int(re.search(r"(\d+) packets? captured",
                             whole(self.err)).group(1))
