# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
"""A service that has the connections of alerts traced, and the programs that it holds for that."""

import contextlib
import json

from lib import bpf
from lib import lab
from lib.record_sinks import take_host
from lib.service import ServiceTest


class TracedTest(ServiceTest):
    def configure(self, *parts, rule, trace=None, sinks=(), **options):
        self.metrics = self.lab.path("metrics")
        self.write('[alert "slow"]', f"rule = {rule}", *([f"trace = {trace}"] if trace else []),
                   *parts, "[metrics]", f"listen = unix:{self.metrics}", more="rtt = yes",
                   sinks=sinks, **options)

    def records(self, kind, name="file"):
        with contextlib.suppress(FileNotFoundError), \
                open(self.lab.path(name), encoding="utf-8") as file:
            return [record for record in take_host(json.loads(line) for line in file
                                                   if line.endswith("\n"))
                    if record["type"] == kind]
        return []

    def programs(self):
        """The tracer's programs that the service holds, by id."""
        return {number: name for number, name in bpf.programs_of(self.pid).items()
                if name.startswith("netobs_tr_")}

    @staticmethod
    def loaded():
        """All programs of tracers on this host."""
        shown = json.loads(lab.run("bpftool", "-j", "prog", "show"))
        return {one["id"]: one["name"] for one in shown
                if one.get("name", "").startswith("netobs_tr_")}

    def status(self):
        return super().status()["trace"]

    def is_at_rest(self):
        return not self.programs()
