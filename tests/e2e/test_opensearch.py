#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
# Label: ecosystem
# Needs: default-jdk-headless
"""
OpenSearch has the records that netobs reports, also as the Elastic Common Schema names and types them, and netobs
counts those that it refuses.
"""

import collections
import json
import os
import re

from lib import lab
from lib import maven
from lib import store
from lib import traffic
from lib.record_sinks import sink_section, take_host
from lib.service import ServiceTest

VERSION, LOG4J = "2.19.0", "2.21.0"
PORT = 9200
LAUNCHER = os.path.join(os.path.dirname(store.__file__), "OneNode.java")
JAVA = ["java", "-Xms256m", "-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]
NUMBER_MAX = 32767 # of type "short"
DATA_STREAM = "logs-netobs.flow-default"
# The fields of ECS 8.11 that records have, by the type that it gives them.
ECS = {
    "date": "@timestamp event.start event.end",
    "ip": "source.ip destination.ip client.ip server.ip source.nat.ip destination.nat.ip host.ip",
    "long": "source.port destination.port client.port server.port source.nat.port destination.nat.port "
            "network.bytes network.packets process.pid process.thread.id",
    "keyword": "ecs.version event.kind event.dataset event.category network.iana_number network.transport "
               "network.type network.vlan.id host.name host.id container.id process.name "
               "process.real_user.id rule.name rule.description",
}


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


def ecs_template():
    """For a data stream: the types of ECS, and for other fields those of their first values."""
    types = {name: {"type": kind} for kind, names in ECS.items() for name in names.split()}
    return {"index_patterns": ["logs-netobs.*"], "data_stream": {}, "priority": 500,
            "template": {"mappings": {"properties": types}}}


def type_of(mappings, name):
    for part in name.split("."):
        mappings = mappings.get("properties", {}).get(part, {})
    return mappings.get("type")


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


class Ecs(ServiceTest):
    def setUp(self):
        super().setUp()
        self.store = OpenSearch(self.lab, self.a)
        self.store.ask("PUT", "/_index_template/ecs", ecs_template())
        spec = store.recipe("elastic.example:9200", f"127.0.0.1:{PORT}", "layout=ecs")
        self.assertIn(f"/{DATA_STREAM}/", spec)
        types = "records = flow,session,alert,group,drop"
        self.write("[sessions]", "enabled = yes", "[drops]", "enabled = yes", "[host]", "field.site = berlin",
                   '[group "services"]', "by = service,client", "records = yes",
                   '[alert "any"]', "rule = rtt > 1us",
                   *sink_section("all", f"json:{self.lab.path('all')}", types),
                   *sink_section("ecs", spec, types), more="rtt = yes\nprocess = yes")

    def counts(self):
        """Documents by their type."""
        self.store.ask("POST", f"/{DATA_STREAM}/_refresh")
        found = self.store.ask("GET", f"/{DATA_STREAM}/_search", {
            "size": 0, "track_total_hits": True,
            "aggs": {"types": {"terms": {"field": "event.dataset", "size": 100}}}})
        return {bucket["key"]: bucket["doc_count"]
                for bucket in found["aggregations"]["types"]["buckets"]}

    def count(self, query):
        return self.store.ask("GET", f"/{DATA_STREAM}/_count", q=query)["count"]

    def test_no_record_is_refused(self):
        self.start()
        for port in range(5000, 5010):
            traffic.tcp(self.a, self.A4, self.b, self.B4, 1000 * (port - 4999), port=port)
        traffic.udp(self.a, self.A4, self.b, self.B4, [100] * 10)
        traffic.udp_refused(self.a, self.A4, self.B4)
        traffic.ping(self.a, self.B4)
        self.stop()
        records = list(take_host(lab.json_lines(self.lab.path("all"))))
        expected = collections.Counter(f"netobs.{record.get('type', 'flow')}" for record in records)
        self.assertLessEqual({f"netobs.{name}" for name in ("flow", "session", "alert", "group", "drop")},
                             set(expected))
        self.assertNotRegex(self.messages(), r'"refused":\{"records":[1-9]')
        self.assertEqual(dict(expected), self.counts())
        self.note(f"{dict(expected)}")
        self.check_types()
        self.check_queries([record for record in records if "type" not in record])

    def check_types(self):
        """Those of ECS; a name that is not of netobs is one of ECS."""
        mappings, = (index["mappings"] for index in
                     self.store.ask("GET", f"/{DATA_STREAM}/_mapping").values())
        for kind, names in ECS.items():
            for name in names.split():
                self.assertEqual(kind, type_of(mappings, name), name)
        tops = {name.split(".")[0] for names in ECS.values() for name in names.split()}
        self.assertEqual(tops | {"netobs", "site"}, set(mappings["properties"]))
        for top in tops - {"@timestamp"}:
            for name in self.leaves(mappings["properties"][top], top):
                self.assertIn(name, " ".join(ECS.values()).split())
        self.assertEqual(0, self.count("_exists_:_ignored"))

    def leaves(self, mapping, name):
        if "properties" not in mapping:
            return [name]
        return [leaf for key, value in mapping["properties"].items()
                for leaf in self.leaves(value, f"{name}.{key}")]

    def check_queries(self, flows):
        """As dashboards ask."""
        for query, count in (
                ("source.ip:192.0.2.0\\/31", sum(flow["SrcAddr"] == self.A4 for flow in flows)),
                ("network.transport:tcp", sum(flow["Proto"] == 6 for flow in flows)),
                ("destination.port:[5000 TO 5004]",
                 sum(5000 <= flow.get("DstPort", 0) <= 5004 for flow in flows)),
                (f"event.end:{flows[0]['TimeFlowEndMs']}",
                 sum(flow["TimeFlowEndMs"] == flows[0]["TimeFlowEndMs"] for flow in flows))):
            self.assertGreater(count, 0)
            self.assertEqual(count, self.count(f"event.dataset:netobs.flow AND {query}"), query)


if __name__ == "__main__":
    lab.main()
