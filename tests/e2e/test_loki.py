#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
# Label: ecosystem
"""Loki has the records that netobs reports, and netobs counts those that it refuses."""

import json
import socket

from lib import capfile
from lib import frames
from lib import golang
from lib import lab
from lib import observer
from lib import store
from lib.record_sinks import take_host

MODULE, VERSION = "github.com/grafana/loki/v3", "v3.0.0"
PUSH = "github.com/grafana/loki/pkg/push" # which it replaces by a module inside it
PORT = 3100
OLD = 40
OLD_NS = 10 ** 18 # September 2001


def configuration(directory):
    return {
        "auth_enabled": False,
        "analytics": {"reporting_enabled": False},
        "server": {"http_listen_address": "127.0.0.1", "http_listen_port": PORT,
                   "grpc_listen_address": "127.0.0.1", "log_level": "error"},
        "common": {"path_prefix": directory, "replication_factor": 1,
                   "instance_addr": "127.0.0.1", "ring": {"kvstore": {"store": "inmemory"}},
                   "storage": {"filesystem": {"chunks_directory": f"{directory}/chunks",
                                              "rules_directory": f"{directory}/rules"}}},
        "schema_config": {"configs": [
            {"from": "2024-01-01", "store": "tsdb", "object_store": "filesystem",
             "schema": "v13", "index": {"prefix": "index_", "period": "24h"}}]},
    }


class Loki(store.Store):
    def __init__(self, where, ns):
        super().__init__(where, ns, PORT)
        program = golang.program("loki", MODULE, VERSION, PUSH)
        path = where.path("loki.yml")
        with open(path, "w", encoding="utf-8") as file:
            json.dump(configuration(where.path("loki")), file) # which is YAML, too
        with open(self.log, "wb") as log:
            self.process = where.spawn(program, f"-config.file={path}", ns=ns, stdout=log,
                                       stderr=log)
        self.await_ready("/ready")

    def streams(self, query):
        return self.ask("GET", "/loki/api/v1/query_range", query=query, limit=5000)["data"][
            "result"]

    def records(self):
        return list(take_host(json.loads(line) for stream in self.streams('{job="netobs"}')
                              for _, line in stream["values"]))


class LokiTest(store.StoreTest):
    def setUp(self):
        super().setUp()
        self.store = Loki(self.lab, self.a)
        self.spec = store.recipe("loki.example", f"127.0.0.1:{PORT}")

    def test_the_recipe_as_it_is(self):
        result = self.observe(self.spec)
        self.assertEqual((len(result.records), {}), self.outcome(result))
        self.assertEqual(store.in_order(result.records), store.in_order(self.store.records()))
        for stream in self.store.streams('{site="berlin"}'):
            self.assertEqual(("netobs", socket.gethostname()),
                             (stream["stream"]["job"], stream["stream"]["host"]))
        large = self.store.streams('{job="netobs"} | json | Bytes > 100000')
        self.assertEqual(sum(record["Bytes"] > 100000 for record in result.records),
                         sum(len(stream["values"]) for stream in large))

    def test_records_that_are_too_old(self):
        packets = [(OLD_NS, frames.ether(
            "02:00:00:00:00:01", "02:00:00:00:00:02", frames.IPV4,
            frames.ipv4(self.A4, self.B4, frames.UDP, frames.udp(1024 + at, 9, b"?"))))
            for at in range(OLD)]
        path = self.lab.path("old.pcap")
        with open(path, "wb") as file:
            file.write(capfile.pcap(capfile.ETHERNET, packets))
        result = observer.flows(self.lab, "-r", path, "-o", "json", "-o", self.spec, "--stats",
                                ns=self.a)
        self.assertEqual((0, {"refused": OLD}), self.outcome(result))
        self.assertIn("400", result.errors)
        self.assertEqual([], self.store.records())


if __name__ == "__main__":
    lab.main()
