# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
# Needs: prometheus
"""A real Prometheus, in the namespace of its target."""

import json
import urllib.parse

from lib import lab
from lib import metrics

PORT = 9090


class Prometheus:
    def __init__(self, where, ns, target, *rules):
        """@target: what it scrapes each second; @rules: files of alerts"""
        self.ns = ns
        path, log = where.path("prometheus.yml"), where.path("prometheus.log")
        lab.write(path, json.dumps({  # which is YAML, too
            "global": {"scrape_interval": "1s", "evaluation_interval": "1s"}, "rule_files": rules,
            "scrape_configs": [{"job_name": "netobs", "static_configs": [{"targets": [target]}]}]}))
        with open(log, "wb") as file:
            where.spawn("prometheus", f"--config.file={path}", f"--storage.tsdb.path={where.path('data')}",
                        f"--web.listen-address=127.0.0.1:{PORT}", ns=ns, stdout=file, stderr=file)

    def ask(self, path):
        """@return what it answers; None: it refuses that, or has not started"""
        try:
            with self.ns:
                response, text = metrics.get(PORT, path)
        except OSError:
            return None
        return json.loads(text)["data"] if response.status == 200 else None

    def query(self, expression):
        """@return its series, or None"""
        found = self.ask("/api/v1/query?" + urllib.parse.urlencode({"query": expression}))
        return found and found["result"]
