# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
"""No agent, and what bench/live/baseline.c attaches where netobs would be."""

import json
import os

from lib import lab

from .base import Agent


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
        self.spawn_and_wait("ready", os.path.join(os.environ["NETOBS_BENCH"], "baseline"), self.name, self.interface)


class Empty(Baseline):
    name = "empty"

    def count(self):
        return None


class V0(Baseline):
    """The first published agent: a ring buffer record for each packet, which user space sums up."""
    name = "v0"

    def count(self):
        return json.loads(lab.read(self.said.name).splitlines()[-1])["packets"]
