#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
# Label: ecosystem
# Needs: rsyslog
"""rsyslog, configured as docs/recipes.md says, has the records that netobs reports."""

import json
import os
import re

from lib import lab
from lib import store
from lib.record_sinks import take_host

PORT = 5140


class Rsyslog(store.StoreTest):
    def setUp(self):
        super().setUp()
        configuration, command = re.search(r"^## rsyslog\n\n```\n(.*?)^```\n\n```\n(.*?)^```", store.recipes(),
                                           re.M | re.S).groups()
        self.file = self.lab.path("flows.json")
        with open(self.lab.path("rsyslog.conf"), "w", encoding="utf-8") as file:
            file.write(configuration.replace("/var/log/flows.json", self.file))
        self.spec = re.search("-o '(.*)'", command)[1].replace("rsyslog.example", "127.0.0.1")
        self.lab.spawn("/usr/sbin/rsyslogd", "-n", "-f", self.lab.path("rsyslog.conf"), "-i",
                       self.lab.path("pid"), ns=self.a)
        lab.wait_for(lambda: f":{PORT} " in self.a.run("ss", "-Hltn"), "rsyslog")

    def lines(self):
        if not os.path.exists(self.file):
            return []
        with open(self.file, encoding="utf-8") as file:
            return file.readlines()

    def test_the_recipe_as_it_is(self):
        result = self.observe(self.spec)
        self.assertEqual((len(result.records), {}), self.outcome(result))
        lab.wait_for(lambda: len(self.lines()) >= len(result.records), "all lines")
        self.assertEqual(store.in_order(result.records),
                         store.in_order(take_host(map(json.loads, self.lines()))))


if __name__ == "__main__":
    lab.main()
