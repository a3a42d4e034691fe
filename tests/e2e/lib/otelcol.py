# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
"""An OpenTelemetry Collector that writes what it receives to files, as OTLP has it in JSON."""

import json
import os
import pathlib
import signal
import socket

from lib import golang
from lib import lab

CONTRIB = "github.com/open-telemetry/opentelemetry-collector-contrib"
CORE = "go.opentelemetry.io/collector"
VERSION, STABLE = "v0.130.1", "v1.36.1"
MODULES = {f"{CONTRIB}/exporter/fileexporter": "v0.130.0",
           f"{CORE}/receiver/otlpreceiver": VERSION, f"{CORE}/otelcol": VERSION,
           f"{CORE}/confmap/provider/fileprovider": STABLE}
GRPC, HTTP = 4317, 4318


def program():
    return golang.own_program("otelcol", VERSION, pathlib.Path(__file__).with_name("otelcol.go"),
                              MODULES, (1, 23))


def is_open(ns, port):
    with ns, socket.socket() as probe:
        return not probe.connect_ex(("127.0.0.1", port))


def any_value(value):
    if not value:
        return ""
    (kind, inside), = value.items()
    if kind == "intValue":
        return int(inside)
    if kind == "arrayValue":
        return [any_value(element) for element in inside["values"]]
    assert kind == "stringValue", value
    return inside


def attributes(pairs):
    return {pair["key"]: any_value(pair["value"]) for pair in pairs}


class Collector:
    def __init__(self, where, ns):
        self.lab, self.ns = where, ns
        self.log = where.path("otelcol.log")
        self.files = {signal_name: where.path(f"{signal_name}.json")
                      for signal_name in ("logs", "metrics")}
        self.process = None

    def configuration(self):
        return {
            "receivers": {"otlp": {"protocols": {
                "grpc": {"endpoint": f"127.0.0.1:{GRPC}"},
                "http": {"endpoint": f"127.0.0.1:{HTTP}"}}}},
            "exporters": {f"file/{name}": {"path": path, "append": True}
                          for name, path in self.files.items()},
            "service": {"telemetry": {"metrics": {"level": "none"}}, "pipelines": {
                name: {"receivers": ["otlp"], "exporters": [f"file/{name}"]}
                for name in self.files}}}

    def start(self):
        path = self.lab.path("otelcol.yml")
        with open(path, "w", encoding="utf-8") as file:
            json.dump(self.configuration(), file)  # which is YAML, too
        with open(self.log, "ab") as log:
            self.process = self.lab.spawn(program(), f"--config=file:{path}", ns=self.ns,
                                          stdout=log, stderr=log)
        lab.wait_for(self.serves, "the Collector", 60)
        return self

    def serves(self):
        if self.process.poll() is not None:
            raise RuntimeError(lab.read(self.log))
        return is_open(self.ns, GRPC) and is_open(self.ns, HTTP)

    def end(self):
        """It writes what it has."""
        self.process.send_signal(signal.SIGTERM)
        if self.process.wait(lab.PATIENCE_S):
            raise RuntimeError("the Collector failed")

    def lines(self, name):
        if not os.path.exists(self.files[name]):
            return []
        return lab.json_lines(self.files[name])

    def scopes(self, name, resources, scopes):
        return [(resource["resource"], scope) for line in self.lines(name)
                for resource in line[resources] for scope in resource[scopes]]

    def logs(self):
        return [record for _, scope in self.scopes("logs", "resourceLogs", "scopeLogs")
                for record in scope["logRecords"]]

    def points(self, kind="sum"):
        """(metric, data point) of all sums, or exponential histograms."""
        return [(metric, point)
                for _, scope in self.scopes("metrics", "resourceMetrics", "scopeMetrics")
                for metric in scope["metrics"] if kind in metric
                for point in metric[kind]["dataPoints"]]

    def resources(self):
        return [attributes(resource["attributes"]) for resource, _ in
                self.scopes("logs", "resourceLogs", "scopeLogs")]
