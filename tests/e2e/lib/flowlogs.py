# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
"""flowlogs-pipeline, the consumer of NetObserv's records."""

import json
import subprocess

from lib import golang
from lib import lab

MODULE, VERSION = "github.com/netobserv/flowlogs-pipeline", "v0.1.11"


def program():
    return golang.program("flowlogs-pipeline", MODULE, VERSION)


class Pipeline:
    """
    Records, reinterpreted for the host with the address that they name as the agent's, as
    metrics, and tracked as connections; all in JSON on its standard output.
    """

    METRICS = 9102

    def __init__(self, where, ingest, ns):
        self.out, self.err = where.path("connections"), where.path("pipeline.log")
        self.seconds = 3 # that a connection may rest
        path = where.path("pipeline.json")
        with open(path, "w", encoding="utf-8") as file:
            json.dump(self.configuration(ingest), file)
        with open(self.out, "wb") as out, open(self.err, "wb") as err:
            self.process = where.spawn(program(), "--config", path, ns=ns, stdout=out,
                                       stderr=err, stdin=subprocess.PIPE)

    def configuration(self, ingest):
        stages = {
            "ingest": ("ingest", ingest),
            "hosts": ("transform", {"type": "generic", "generic": {
                "policy": "preserve_original_keys",
                "rules": [{"input": "SrcAddr", "output": "SrcHost"},
                          {"input": "DstAddr", "output": "DstHost"}]}}),
            "direction": ("transform", {"type": "network", "network": {
                "rules": [{"type": "reinterpret_direction"}],
                "directionInfo": {
                    "reporterIPField": "AgentIP", "srcHostField": "SrcHost",
                    "dstHostField": "DstHost", "flowDirectionField": "FlowDirection",
                    "ifDirectionField": "IfDirection"}}}),
            "connections": ("extract", {"type": "conntrack", "conntrack": self.tracking()}),
            "write": ("write", {"type": "stdout", "stdout": {"format": "json"}}),
        }
        pipeline = [{"name": name, **({"follows": before} if before else {})}
                    for name, before in zip(stages, (None, *stages))]
        stages["metrics"] = ("encode", {"type": "prom", "prom": {
            "prefix": "flp_", "expiryTime": "10m", "metrics": [
                {"name": f"{name.lower()}_total", "type": "counter", "valueKey": name,
                 "labels": ["SrcAddr", "DstAddr", "Proto", "FlowDirection", "IfDirection"]}
                for name in ("Bytes", "Packets")]}})
        pipeline.append({"name": "metrics", "follows": "direction"})
        return {"log-level": "error", "pipeline": pipeline,
                "metricsSettings": {"address": "127.0.0.1", "port": self.METRICS},
                "parameters": [{"name": name, kind: value}
                               for name, (kind, value) in stages.items()]}

    def tracking(self):
        groups = {"src": ["SrcAddr", "SrcPort"], "dst": ["DstAddr", "DstPort"],
                  "protocol": ["Proto"]}
        timeout = f"{self.seconds}s"
        return {
            "keyDefinition": {
                "fieldGroups": [{"name": name, "fields": fields}
                                for name, fields in groups.items()],
                "hash": {"fieldGroupRefs": ["protocol"], "fieldGroupARef": "src",
                         "fieldGroupBRef": "dst"}},
            "outputRecordTypes": ["newConnection", "endConnection"],
            "outputFields": [{"name": name, "operation": "sum", "splitAB": True}
                             for name in ("Bytes", "Packets")],
            "scheduling": [{"selector": {}, "endConnectionTimeout": timeout,
                            "terminatingTimeout": timeout, "heartbeatInterval": "10m"}],
            "tcpFlags": {"fieldName": "Flags", "detectEndConnection": True, "swapAB": True},
        }

    def messages(self):
        return lab.read(self.err)

    def connections(self, kind):
        with open(self.out, encoding="utf-8") as file:
            records = [json.loads(line) for line in file
                       if '"_RecordType"' in line and line.endswith("\n")]
        return [record for record in records if record["_RecordType"] == kind]
