# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
# Needs: python3-prometheus-client
"""Reads the metrics of `netobsctl flows --metrics`."""

import http.client
import re
import socket

from prometheus_client import parser

from lib import lab

SERVING = re.compile(r"serving metrics at (?:127\.0\.0\.1:(\d+)|unix:(\S+))")


def connect(where):
    """To a port, in the namespace of this thread, or to a socket's path."""
    is_port = isinstance(where, int)
    connection = socket.socket(socket.AF_INET if is_port else socket.AF_UNIX)
    connection.settimeout(lab.PATIENCE_S)
    connection.connect(("127.0.0.1", where) if is_port else where)
    return connection


def get(where, path="/metrics", method="GET"):
    """The response, which has been read, and its body."""
    client = http.client.HTTPConnection("localhost")
    client.sock = connect(where)
    client.request(method, path)
    response = client.getresponse()
    body = response.read().decode()
    client.close()
    return response, body


def served_at(observer):
    """Where an observer serves them, as connect() takes it."""
    found = lab.wait_for(lambda: SERVING.search(observer.messages()),
                         "metrics to be served")
    return int(found[1]) if found[1] else found[2]


class Samples:
    """All series of a text, by name and labels."""

    def __init__(self, text):
        self.families = list(parser.text_string_to_metric_families(text))
        self.series = {}
        for family in self.families:
            for sample in family.samples:
                key = sample.name, tuple(sorted(sample.labels.items()))
                if key in self.series:
                    raise AssertionError(f"{key} is there twice")
                self.series[key] = sample.value

    def value(self, name, **labels):
        return self.series[name, tuple(sorted(labels.items()))]

    def all_of(self, name):
        """{labels: value}"""
        return {labels: value for (found, labels), value in self.series.items()
                if found == name}

    def total(self, name):
        return sum(self.all_of(name).values())

    def names(self):
        return {name for name, _ in self.series}

    def check_identity(self):
        for unit in ("packets", "bytes"):
            parts = [self.total(f"netobs_{term}_{unit}_total") for term in
                     ("exported", "filtered", "sampled_out", "unparsed", "lost")]
            parts.append(self.value(f"netobs_pending_{unit}"))
            seen = self.value(f"netobs_seen_{unit}_total")
            if seen != sum(parts):
                raise AssertionError(f"{unit}: seen {seen}, accounted for {parts}")
            self.check_interfaces(unit)

    def check_interfaces(self, unit):
        """The identity at each interface, and that all of them have what there is in all."""
        by_outcome = {outcome: self.all_of(f"netobs_interface_{outcome}{unit}_total")
                      for outcome in ("seen_", "", "filtered_", "sampled_out_", "unparsed_",
                                      "lost_")}
        seen = by_outcome.pop("seen_")
        for labels, value in seen.items():
            parts = {name: found[labels] for name, found in by_outcome.items()}
            if value != sum(parts.values()):
                raise AssertionError(f"{unit} at {labels}: seen {value}, {parts}")
        if self.value(f"netobs_lost_{unit}_total", reason="restart"):
            return
        totals = [self.total(f"netobs_{name}_{unit}_total") for name in
                  ("observed", "filtered", "sampled_out", "unparsed", "lost", "small")]
        totals[1] -= totals.pop()
        totals[-1] -= self.value(f"netobs_lost_{unit}_total", reason="memory")
        sums = [sum(found.values()) for found in
                (seen, *(by_outcome[name] for name in
                         ("filtered_", "sampled_out_", "unparsed_", "lost_")))]
        if totals != sums:
            raise AssertionError(f"{unit}: in all {totals}, at interfaces {sums}")


def scrape(where):
    response, text = get(where)
    if response.status != 200:
        raise AssertionError(f"{response.status}: {text}")
    return Samples(text)
