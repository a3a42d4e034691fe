# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
"""A service with groups, and the metrics that it serves."""

from lib import metrics
from lib.service import ServiceTest


def group(name, *parts):
    return [f'[group "{name}"]', *parts]


class GroupedTest(ServiceTest):
    def configure(self, *parts, **options):
        self.metrics = self.lab.path("metrics")
        self.write(*parts, "[metrics]", f"listen = unix:{self.metrics}", **options)

    def scrape(self):
        return metrics.scrape(self.metrics)
