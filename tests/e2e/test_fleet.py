# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
# Label: ecosystem
"""
The service map of records in ClickHouse is that of netobsctl map --services of the same records, and all
queries of the dashboards have answers, of Prometheus and of ClickHouse. Records are random.
"""

import json
import os
import pathlib
import re
import time

from lib import clickhouse
from lib import dashboards
from lib import lab
from lib import metrics
from lib.observer import features
from lib.prometheus import Prometheus
from lib.service_map import MapTest, RoutedTest, key_of

SOURCE = pathlib.Path(os.environ["NETOBS_SOURCE"])
QUERIES = SOURCE / "packaging" / "clickhouse"
# Nothing has to be lost or dropped, and a sink to a file counts nothing of its own.
MAY_BE_SILENT = re.compile(r"drops|> 0\)?$|netobs_sink_events")
METRICS = """
[capture]
drops = yes
default_action = accept
[filter "metrics"]
match = tcp port 9436
action = accept
[metrics]
listen = 127.0.0.1:9436
[drops]
enabled = yes
[group "edges"]
by = client,service
histograms = rtt, app_latency
[alert "any"]
rule = rtt > 1us
"""
SAME = ("Conversations", "Packets", "Bytes", "SentPackets", "SentBytes", "Connections", "Refused",
        "Resets", "Timeouts", "Failed", "RttSamples", "Hosts", "RepeatedPackets",
        "TimeFlowStartMs", "TimeFlowEndMs", "ResponseTimeNs", "AppResponses")


WORKLOADS = "ClientWorkload", "ServerWorkload"


class FleetTest(MapTest):
    def ask(self, paths, query="SELECT * FROM netobs_services"):
        """@return rows, by ClickHouse"""
        tables, verdicts, services = (
            clickhouse.statements((QUERIES / name).read_text(encoding="utf-8"))
            for name in ("netobs-tables.sql", "netobs-verdicts.sql", "netobs-services.sql"))
        inserts = [f"INSERT INTO netobs_records FROM INFILE '{path}' FORMAT JSONEachRow"
                   for path in paths]
        return clickhouse.query(self.lab.path("clickhouse"), *tables, *verdicts,
                                "SET input_format_skip_unknown_fields = 1", *inserts, *services,
                                query)

    def export(self):
        """@return a path: the rows of the table, which have all its columns"""
        rows = clickhouse.query(self.lab.path("clickhouse"), "SELECT * FROM netobs_records "
                                "SETTINGS output_format_json_quote_64bit_integers = 0")
        path = self.lab.path("exported")
        with open(path, "w", encoding="utf-8") as file:
            file.writelines(json.dumps(row) + "\n" for row in rows)
        return path

    def compare(self, paths):
        """@return how many edges"""
        expected, _, _, _ = self.read_map(*paths)
        rows = self.ask(paths)
        exported, _, _, _ = self.read_map(self.export())
        self.assertEqual(*({key: {name: edge.get(name, 0) for name in (*SAME, *WORKLOADS)}
                            for key, edge in edges.items()} for edges in (expected, exported)))
        found = {key_of(row): row for row in rows}
        self.assertEqual(len(rows), len(found))
        self.assertEqual(set(expected), set(found))
        for key, edge in expected.items():
            self.assertEqual({name: edge.get(name, 0) for name in SAME},
                             {name: int(found[key][name]) for name in SAME}, key)
            self.assertEqual([edge.get(name, "") for name in WORKLOADS],
                             [found[key][name] for name in WORKLOADS], key)
        return len(found)


class Records(FleetTest):
    def test_of_a_model(self):
        model, paths = self.make_files(300)
        self.assertEqual(len(model.truth), self.compare(paths))
        self.check_names(model, paths)

    def check_names(self, model, paths):
        """An end has the name of its only workload, in each form of the map."""
        edges, _, _, _ = self.read_map(*paths)
        named = {(host, edge[member]) for key, edge in edges.items()
                 for host, member in zip(key, WORKLOADS) if member in edge}
        self.assertGreater(len(named), 20)
        for host, name in named:
            self.assertIn(name, model.workloads(host))
        picture = self.lab.path("map.svg")
        table, _ = self.run_map("--svg", picture, *paths)
        svg = lab.read(picture)
        for text in table, svg:
            self.assertRegex(text, r"10\.0\.0\.\d+ \(shop/web-\d+\)")


class Traffic(FleetTest, RoutedTest):
    def test_of_hosts_and_a_router(self):
        self.translate()
        paths = self.start_agents()
        for _ in range(40):
            self.talk()
        lab.await_closed(*self.clients, *self.servers)
        time.sleep(1)  # sessions end after the exchange
        self.assertEqual([0] * 5, self.stop_agents())
        self.note(f"{self.compare(paths)} edges")


class Dashboards(FleetTest, RoutedTest):
    def names(self):
        """Of the metrics, also of those without a series."""
        with self.router:
            found = metrics.scrape(9436)
        return found.names() | {f"{family.name}_total" for family in found.families
                                if family.type == "counter"}

    def test_each_panel_asks(self):
        self.assertEqual(["netobs-health", "netobs-traffic"], dashboards.names())
        for name in dashboards.names():
            for panel in dashboards.panels(name):
                for target in panel["targets"]:
                    self.assertEqual(1, len({"expr", "rawSql"} & set(target)), panel["title"])
            self.assertGreater(len(dashboards.targets(name)), 15)

    def test_all_queries_have_answers(self):
        paths = self.start_agents(METRICS)
        prometheus = Prometheus(self.lab, self.router, "127.0.0.1:9436")
        lab.wait_for(lambda: prometheus.query("up == 1"), "a scrape")
        expressions = [text for name in dashboards.names()
                       for text in dashboards.expressions(name, "10s")]

        def is_answered(expression):
            self.talk()
            return prometheus.query(expression)

        silent = []
        for expression in expressions:
            if MAY_BE_SILENT.search(expression):
                found = prometheus.query(expression)
                self.assertIsNotNone(found, expression)
                self.assertLessEqual(set(re.findall(r"\bnetobs_\w+", expression)), self.names())
                silent += [] if found else [expression]
            else:
                lab.wait_for(lambda asked=expression: is_answered(asked), expression)
        self.assertEqual([0] * 5, self.stop_agents())
        queries = [text for name in dashboards.names() for text in dashboards.queries(name)]
        for query in queries:
            rows = self.ask(paths, query)
            self.assertTrue(rows or "> 0" in query, query)
        self.note(f"{len(expressions)} expressions, {len(silent)} without a series; {len(queries)} queries")


if __name__ == "__main__":
    lab.main("TCP sockets that programs follow", lambda: features().get("sessions"))
