# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
# Needs: golang-go
"""flowlogs-pipeline, the consumer of NetObserv's records.

It is built from its Go modules, once, and kept in the user's cache directory. Go has to be
1.21 or newer; an older one gets that as a module.
"""

import json
import os
import platform
import re
import shutil
import stat
import subprocess
import tempfile

from lib import lab

MODULE, VERSION = "github.com/netobserv/flowlogs-pipeline", "v0.1.11"
GO_LEAST, GO_MODULE = (1, 21), "v0.0.1-go1.21.13"
MACHINES = {"x86_64": "amd64", "aarch64": "arm64"}


def cache_dir():
    home = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return os.path.join(home, "netobs", "go")


def download(go, module, version):
    """Where its source is, which is read-only."""
    with tempfile.TemporaryDirectory() as nowhere:
        return json.loads(lab.run(go, "mod", "download", "-json", f"{module}@{version}",
                                  cwd=nowhere))["Dir"]


def is_new(go):
    found = re.search(r"go(\d+)\.(\d+)", lab.run(go, "env", "GOVERSION"))
    return found and tuple(map(int, found.groups())) >= GO_LEAST


def copy_writable(source, target):
    shutil.copytree(source, target, symlinks=True)
    for directory, _, names in os.walk(target):
        for name in (".", *names):
            path = os.path.join(directory, name)
            os.chmod(path, os.stat(path).st_mode | stat.S_IWUSR)


def newer_go(go):
    """Modules have no executables."""
    root = os.path.join(cache_dir(), GO_MODULE)
    if not os.path.isdir(root):
        copy_writable(download(go, "golang.org/toolchain",
                               f"{GO_MODULE}.linux-{MACHINES[platform.machine()]}"), f"{root}.new")
        for folder in "bin", "pkg/tool":
            for directory, _, names in os.walk(f"{root}.new/{folder}"):
                for name in names:
                    os.chmod(os.path.join(directory, name), 0o755)
        os.rename(f"{root}.new", root)
    return os.path.join(root, "bin", "go")


def build(target):
    go = shutil.which("go")
    if not go:
        raise RuntimeError("not installed: go (Debian: golang-go)")
    if not is_new(go):
        go = newer_go(go)
    os.makedirs(cache_dir(), exist_ok=True)
    with tempfile.TemporaryDirectory() as work:
        source = f"{work}/source"
        copy_writable(download(go, MODULE, VERSION), source)
        lab.run(go, "build", "-mod=mod", "-o", f"{target}.new", "./cmd/flowlogs-pipeline",
                cwd=source, env=os.environ | {"GOTOOLCHAIN": "local"})
    os.rename(f"{target}.new", target)


def program():
    target = os.path.join(cache_dir(), f"flowlogs-pipeline-{VERSION}")
    if not os.path.exists(target):
        build(target)
    return target


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
        with open(self.err, encoding="utf-8") as file:
            return file.read()

    def connections(self, kind):
        with open(self.out, encoding="utf-8") as file:
            records = [json.loads(line) for line in file
                       if '"_RecordType"' in line and line.endswith("\n")]
        return [record for record in records if record["_RecordType"] == kind]
