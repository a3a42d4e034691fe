#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
# Label: ecosystem
# Needs: prometheus
"""
The service map of records in ClickHouse is that of netobsctl map --services of the same records, and all
queries of the dashboard of traffic have answers, of Prometheus and of ClickHouse. Records are random; a
failure prints its seed, and NETOBS_TEST_SEED=SEED repeats it.
"""

import json
import os
import pathlib
import re
import time
import urllib.parse

from lib import clickhouse
from lib import lab
from lib import metrics
from lib.service_map import MapTest, RoutedTest, key_of
from lib.talkers import features

SOURCE = pathlib.Path(os.environ["NETOBS_SOURCE"])
QUERIES = SOURCE / "packaging" / "clickhouse"
PROMETHEUS = 9090
METRICS = """
[metrics]
listen = 127.0.0.1:9436
[capture]
drops = yes
[drops]
enabled = yes
[group "edges"]
by = client,service
histograms = rtt, app_latency
"""
SAME = ("Conversations", "Packets", "Bytes", "SentPackets", "SentBytes", "Connections", "Refused",
        "Resets", "Timeouts", "Failed", "RttSamples", "Hosts", "RepeatedPackets",
        "TimeFlowStartMs", "TimeFlowEndMs")


class FleetTest(MapTest):
    def ask(self, paths, query="SELECT * FROM netobs_services"):
        """@return rows, by ClickHouse"""
        tables, services = (clickhouse.statements((QUERIES / name).read_text(encoding="utf-8"))
                            for name in ("netobs-tables.sql", "netobs-services.sql"))
        inserts = [f"INSERT INTO netobs_records FROM INFILE '{path}' FORMAT JSONEachRow"
                   for path in paths]
        return clickhouse.query(self.lab.path("clickhouse"), *tables,
                                "SET input_format_skip_unknown_fields = 1", *inserts, *services,
                                query)

    def compare(self, paths):
        """@return how many edges"""
        expected, _, _, _ = self.read_map(*paths)
        rows = self.ask(paths)
        found = {key_of(row): row for row in rows}
        self.assertEqual(len(rows), len(found))
        self.assertEqual(set(expected), set(found))
        for key, edge in expected.items():
            self.assertEqual({name: edge.get(name, 0) for name in SAME},
                             {name: int(found[key][name]) for name in SAME}, key)
        return len(found)


class Records(FleetTest):
    def test_of_a_model(self):
        model, paths = self.make_files(300)
        self.assertEqual(len(model.truth), self.compare(paths))


class Traffic(FleetTest, RoutedTest):
    def test_of_hosts_and_a_router(self):
        self.translate()
        paths = self.start_agents()
        for _ in range(40):
            self.talk()
        time.sleep(1)  # sessions end after the exchange
        self.assertEqual([0] * 5, self.stop_agents())
        self.note(f"{self.compare(paths)} edges")


class Dashboard(FleetTest, RoutedTest):
    def setUp(self):
        super().setUp()
        text = (SOURCE / "packaging" / "grafana" / "netobs-traffic.json").read_text(encoding="utf-8")
        targets = [target for panel in json.loads(text)["panels"]
                   for target in panel.get("targets", [])]
        self.expressions = [
            target["expr"].replace("$__rate_interval", "10s").replace("$instance", ".*")
            for target in targets if "expr" in target]
        self.queries = [target["rawSql"] for target in targets if "rawSql" in target]
        self.assertEqual((True, len(targets)), (len(self.queries) > 3, len(self.queries) +
                                                len(self.expressions)))

    def start_prometheus(self):
        """A real one, beside the agent of the router."""
        path = self.lab.path("prometheus.yml")
        with open(path, "w", encoding="utf-8") as file:
            json.dump({"global": {"scrape_interval": "1s"}, "scrape_configs": [
                {"job_name": "netobs", "static_configs": [{"targets": ["127.0.0.1:9436"]}]}]}, file)
        with open(self.lab.path("prometheus.log"), "wb") as log:
            self.lab.spawn("prometheus", f"--config.file={path}",
                           f"--storage.tsdb.path={self.lab.path('data')}",
                           f"--web.listen-address=127.0.0.1:{PROMETHEUS}",
                           ns=self.router, stdout=log, stderr=log)

    def evaluate(self, expression):
        """@return its series; None: it is no expression, or Prometheus has not started"""
        try:
            with self.router:
                response, text = metrics.get(PROMETHEUS, "/api/v1/query?" + urllib.parse.urlencode(
                    {"query": expression}))
        except OSError:
            return None
        return json.loads(text)["data"]["result"] if response.status == 200 else None

    def test_all_queries_have_answers(self):
        paths = self.start_agents(METRICS)
        self.start_prometheus()
        lab.wait_for(lambda: self.evaluate('up == 1'), "a scrape")
        with self.router:
            names = metrics.scrape(9436).names()
        for expression in self.expressions:
            self.assertEqual(set(), {name for name in re.findall(r"\bnetobs_\w+", expression)
                                     if re.sub("_bucket$", "", name) not in names and
                                     name not in names}, expression)

        def is_answered(expression):
            self.talk()
            return self.evaluate(expression)

        for expression in self.expressions:
            # Nothing has to be dropped.
            if "drops" in expression:
                self.assertIsNotNone(self.evaluate(expression), expression)
            else:
                lab.wait_for(lambda asked=expression: is_answered(asked), expression)
        self.assertEqual([0] * 5, self.stop_agents())
        for query in self.queries:
            rows = self.ask(paths, query)
            self.assertTrue(rows or "> 0" in query, query)
        self.note(f"{len(self.expressions)} expressions, {len(self.queries)} queries")


if __name__ == "__main__":
    lab.main("TCP sockets that programs follow", lambda: features().get("sessions"))
