# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
"""No agent, and what bench/live/baseline.c attaches where netobs would be."""

import json
import os

from .base import Agent, whole


class Nothing(Agent):
    name = "none"

    def start(self):
        pass

    def stop(self):
        pass

    def count(self):
        return None


class Baseline(Agent):
    def start(self):
        self.out = self.log("out")
        self.spawn(os.path.join(os.environ["NETOBS_BENCH"], "baseline"), self.name, self.interface,
                   stdout=self.out)
        self.wait_for_words(self.out, "ready")


class Empty(Baseline):
    name = "empty"

    def count(self):
        return None


class V0(Baseline):
    """The first published agent: a ring buffer record for each packet, which user space sums up."""
    name = "v0"

    def count(self):
        return json.loads(whole(self.out).splitlines()[-1])["packets"]
