# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
"""Sinks of a service that take records of any type, and their collectors."""

import ipaddress
import json
import os
import re
import socket
import threading

from lib import collectors
from lib import grpc_lab
from lib import http_lab
from lib import lab
from lib import netobs_proto


def take_host(records):
    """Records in JSON without what they say of their host, which is checked."""
    for record in records:
        if record.pop("HostName", None) != os.uname().nodename:
            raise AssertionError(f"the host is missing: {record}")
        ipaddress.ip_address(record.pop("AgentIP", "::"))
        if not re.fullmatch("[0-9a-f]{32}", record.pop("HostId", "0" * 32)):
            raise AssertionError(f"the host's ID is wrong: {record}")
        yield record


class Lines(threading.Thread):
    """A collector of JSON lines over TCP."""

    def __init__(self, ns):
        super().__init__(daemon=True)
        with ns:
            self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.found = []
        self.start()

    def run(self):
        peer, _ = self.listener.accept()
        with peer, peer.makefile("rb") as lines:
            self.found += take_host(map(json.loads, lines))


class Flows(collectors.NfCapd):
    """All rows that nfdump prints, including records that it takes for flows."""

    @staticmethod
    def row(flow):
        return flow


class Http(http_lab.Collector):
    """It takes any records."""

    def take(self, records, is_unanswered):
        with self.lock:
            self.lines += take_host(records)
        return http_lab.Answer(204)


def sink_section(name, output, *more):
    return [f'[sink "{name}"]', f"output = {output}", *more]


class Sinks:
    """Collectors of each kind of sink that takes records of any type, for one type."""

    def __init__(self, test, ns, kind):
        self.test, self.kind = test, kind
        self.lines, self.http = Lines(ns), Http(ns)
        self.grpc = grpc_lab.Collector(test.lab, "--netobs", ns=ns).start()
        test.addCleanup(self.http.stop)

    def sections(self):
        """Of the configuration."""
        records = f"records = {self.kind}"
        return [*sink_section("tcp", f"json:tcp://127.0.0.1:{self.lines.port}", records),
                *sink_section("http", f"http://127.0.0.1:{self.http.port}/", records),
                *sink_section("grpc", self.grpc.spec(), records, f"agent_ip = {netobs_proto.AGENT}")]

    def check(self, records, own=list):
        """
        Each has got these, once the service has ended. @own: those of all that it has got that are of the test.
        """
        self.lines.join(lab.PATIENCE_S) # it has read all that was sent
        self.test.assertFalse(self.lines.is_alive())
        for found in self.lines.found, self.http.lines:
            self.test.assertEqual(sorted(map(str, records)), sorted(map(str, own(found))))
        self.test.assertEqual(netobs_proto.lines(records), netobs_proto.lines(own(self.grpc.others())))
