# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
"""The dashboards of packaging/grafana: what their panels ask, of Prometheus and of ClickHouse."""

import json
import os
import pathlib

FOLDER = pathlib.Path(os.environ["NETOBS_SOURCE"]) / "packaging" / "grafana"


def names():
    return sorted(path.stem for path in FOLDER.glob("*.json"))


def panels(name):
    """All that show data: not the rows, but what is in them."""
    text = (FOLDER / f"{name}.json").read_text(encoding="utf-8")
    found = json.loads(text)["panels"]
    found += [inner for panel in found for inner in panel.get("panels", [])]
    return [panel for panel in found if panel["type"] != "row"]


def targets(name):
    return [target for panel in panels(name) for target in panel["targets"]]


def expressions(name, interval):
    """Of PromQL, with what Grafana fills in."""
    return [target["expr"].replace("$__rate_interval", interval).replace("$instance", ".*")
            for target in targets(name) if "expr" in target]


def queries(name):
    """Of SQL."""
    return [target["rawSql"] for target in targets(name) if "rawSql" in target]
