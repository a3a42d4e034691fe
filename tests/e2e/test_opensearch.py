#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
# Label: ecosystem
# Needs: default-jdk-headless
"""OpenSearch has the records that netobs reports, and netobs counts those that it refuses."""

import json
import os
import re

from lib import lab
from lib import maven
from lib import store
from lib.record_sinks import take_host

VERSION, LOG4J = "2.19.0", "2.21.0"
PORT = 9200
LAUNCHER = os.path.join(os.path.dirname(store.__file__), "OneNode.java")
JAVA = ["java", "-Xms256m", "-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]
NUMBER_MAX = 32767 # of type "short"


class OpenSearch(store.Store):
    def __init__(self, where, ns):
        super().__init__(where, ns, PORT)
        jars = maven.jars("opensearch", VERSION, ("org.opensearch", "opensearch", VERSION),
                          ("org.opensearch.plugin", "transport-netty4-client", VERSION),
                          ("org.apache.logging.log4j", "log4j-core", LOG4J))
        with open(self.log, "wb") as log:
            self.process = where.spawn(*JAVA, "-cp", jars, LAUNCHER, where.path("opensearch"),
                                       PORT, ns=ns, stdout=log, stderr=log)
        self.await_ready("/_cluster/health?wait_for_status=yellow")

    def records(self, index):
        self.ask("POST", f"/{index}/_refresh")
        hits = self.ask("GET", f"/{index}/_search", size=10000)["hits"]["hits"]
        return [hit["_source"] for hit in hits]


def template():
    """The one that the recipe has: the path, and the body."""
    found = re.search(r"^PUT (\S+)\n(\{\n.*?\n\})$", store.recipes(), re.M | re.S)
    return f"/{found[1]}", json.loads(found[2])


class OpenSearchTest(store.StoreTest):
    def setUp(self):
        super().setUp()
        self.store = OpenSearch(self.lab, self.a)
        self.spec = store.recipe("elastic.example:9200", f"127.0.0.1:{PORT}")

    def test_the_recipe_as_it_is(self):
        self.assertIn("compress=gzip", self.spec)
        self.store.ask("PUT", *template())
        for spec in self.spec, self.spec.replace("gzip", "none"):
            result = self.observe(spec)
            self.assertEqual((len(result.records), {}), self.outcome(result))
            expected = [record | {"@timestamp": record["TimeFlowEndMs"]}
                        for record in result.records]
            self.assertEqual(store.in_order(expected),
                             store.in_order(take_host(self.store.records("netobs-flows"))))
            found = self.store.ask("GET", "/netobs-flows/_count", q="SrcAddr:192.0.2.0\\/31")
            self.assertEqual(sum(record["SrcAddr"] == self.A4 for record in result.records),
                             found["count"])
            self.store.ask("DELETE", "/_data_stream/netobs-flows")

    def test_items_that_it_refuses(self):
        self.store.ask("PUT", "/ports", {"mappings": {"properties": {
            "DstPort": {"type": "short"}}}})
        result = self.observe(self.spec.replace("netobs-flows", "ports"), code=1)
        accepted = [record for record in result.records
                    if record.get("DstPort", 0) <= NUMBER_MAX]
        self.assertGreater(len(result.records), len(accepted))
        self.assertEqual((len(accepted), {"refused": len(result.records) - len(accepted)}),
                         self.outcome(result))
        self.assertEqual(store.in_order(record | {"@timestamp": record["TimeFlowEndMs"]}
                                        for record in accepted),
                         store.in_order(take_host(self.store.records("ports"))))


if __name__ == "__main__":
    lab.main()
