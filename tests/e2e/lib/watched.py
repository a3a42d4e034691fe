# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
"""A service, with checks of its counters, descriptors and memory while it runs."""

import collections
import os
import re

from lib import lab
from lib import metrics
from lib import traffic
from lib.service import ServiceTest


class WatchedTest(ServiceTest):
    def observe(self, *sink, **options):
        """Write to the file "a", with the options @sink."""
        self.metrics = self.lab.path("metrics")
        self.write("[metrics]", f"listen = unix:{self.metrics}", '[sink "a"]',
                   f"output = json:{self.lab.path('a')}", *sink, sinks=(), **options)
        self.start(release=True)

    def scrape(self):
        with self.a:
            samples = metrics.scrape(self.metrics)
        samples.check_identity()
        self.assertEqual(0, samples.total("netobs_lost_packets_total"))
        return samples

    def flood(self):
        """A thousand flows; @return how many packets"""
        return traffic.flood(self.lab, self.a, "eth0", "--flows", 1000, "--packets", 1000)["packets"]

    def descriptors(self):
        """What the open ones are, without numbers."""
        directory = f"/proc/{self.pid}/fd"
        found = []
        for fd in os.listdir(directory):
            try:
                found.append(re.sub(r"\d+", "", os.readlink(f"{directory}/{fd}")))
            except FileNotFoundError:  # closed meanwhile
                pass
        return sorted(found)

    def await_closed(self, open_ones):
        """Until no more descriptors are open than these, of which some may have been closing."""
        def more():
            return collections.Counter(self.descriptors()) - collections.Counter(open_ones)
        try:
            lab.wait_for(lambda: not more(), "descriptors to be closed")
        except TimeoutError:
            self.fail(f"more descriptors are open: {more()}")

    def await_exported(self, packets):
        lab.wait_for(lambda: self.scrape().value("netobs_exported_packets_total") >= packets,
                     "all packets to be exported")
