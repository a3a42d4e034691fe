#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
"""
The service map of records in ClickHouse is that of netobsctl map --services of the same records. They are
random; a failure prints its seed, and NETOBS_TEST_SEED=SEED repeats it.
"""

import os
import pathlib
import time

from lib import clickhouse
from lib import lab
from lib.service_map import MapTest, RoutedTest, key_of
from lib.talkers import features

QUERIES = pathlib.Path(os.environ["NETOBS_SOURCE"]) / "packaging" / "clickhouse"
SAME = ("Conversations", "Packets", "Bytes", "SentPackets", "SentBytes", "Connections", "Refused",
        "Resets", "Timeouts", "Failed", "RttSamples", "Hosts", "RepeatedPackets",
        "TimeFlowStartMs", "TimeFlowEndMs")


class FleetTest(MapTest):
    def ask(self, paths):
        """@return {key: edge} by ClickHouse"""
        tables, services = (clickhouse.statements((QUERIES / name).read_text(encoding="utf-8"))
                            for name in ("netobs-tables.sql", "netobs-services.sql"))
        inserts = [f"INSERT INTO netobs_records FROM INFILE '{path}' FORMAT JSONEachRow"
                   for path in paths]
        rows = clickhouse.query(self.lab.path("clickhouse"), *tables,
                                "SET input_format_skip_unknown_fields = 1", *inserts, *services,
                                "SELECT * FROM netobs_services")
        found = {key_of(row | {"ServerPort": row["ServerPort"]}): row for row in rows}
        self.assertEqual(len(rows), len(found))
        return found

    def compare(self, paths):
        """@return how many edges"""
        expected, _, _, _ = self.read_map(*paths)
        found = self.ask(paths)
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


if __name__ == "__main__":
    lab.main("TCP sockets that programs follow", lambda: features().get("sessions"))
