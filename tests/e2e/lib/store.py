# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
"""Stores that records are sent to by HTTP, as docs/recipes.md says; all that a store of a test
has is in a namespace of its own."""

import http.client
import json
import os
import re
import urllib.parse

from lib import lab
from lib import observer
from lib import traffic
from lib.exact import ExactTest

FLOWS = 60


class Store:
    """A server at @port of the loopback of @ns."""

    def __init__(self, where, ns, port):
        self.ns, self.port = ns, port
        self.log = where.path("store.log")
        self.process = None

    def request(self, method, path, body=None, **query):
        """The status of the answer, and its body."""
        if query:
            path += "?" + urllib.parse.urlencode(query)
        client = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        with self.ns:
            client.connect()
        client.request(method, path, body and json.dumps(body),
                       {"Content-Type": "application/json"})
        response = client.getresponse()
        text = response.read()
        client.close()
        return response.status, text

    def ask(self, method, path, body=None, **query):
        status, text = self.request(method, path, body, **query)
        if status != 200:
            raise RuntimeError(f"{method} {path}: {status} {text[:1000]}")
        return json.loads(text)

    def is_ready(self, path):
        if self.process.poll() is not None:
            with open(self.log, encoding="utf-8", errors="replace") as file:
                raise RuntimeError(f"the store ended: {file.read()[-4000:]}")
        try:
            return self.request("GET", path)[0] == 200
        except OSError:
            return False

    def await_ready(self, path):
        lab.wait_for(lambda: self.is_ready(path), "the store", 120)


def recipes():
    path = os.path.join(os.environ["NETOBS_SOURCE"], "docs/recipes.md")
    return lab.read(path)


def recipe(host, address, part=""):
    """
    The first specification for @host that has this part, for a server without TLS and passwords at
    @address.
    """
    specs = re.findall(rf"-o '(https?://{re.escape(host)}\S*)'", recipes())
    spec = next(spec for spec in specs if part in spec)
    spec = re.sub(r"&(ca|header_file)=[^&]*", "", spec)
    return re.sub(r"^https?://[^/]*", f"http://{address}", spec)


def in_order(records):
    return sorted(json.dumps(record, sort_keys=True) for record in records)


class StoreTest(ExactTest):
    def setUp(self):
        super().setUp()
        self.join(ipv6=False)

    def observe(self, spec, code=0):
        """What a run with @spec reports of some traffic; it ends with @code."""
        run = observer.Observer(self.lab, self.a, "-i", "eth0", "--interval", "0.2", "-o", spec)
        run.wait_attached((self.a, "eth0"))
        for _ in range(FLOWS):
            sizes = [self.random.randrange(1400) for _ in range(self.random.randrange(1, 9))]
            traffic.udp(self.a, self.A4, self.b, self.B4, sizes,
                        port=self.random.randrange(1024, 1 << 16))
        traffic.tcp(self.a, self.A4, self.b, self.B4, 100000, answer=1000)
        traffic.ping(self.a, self.B4)
        result = run.stop(code=code)
        result.check_conservation()
        return result

    def outcome(self, result):
        """Records that were delivered and refused; no other is lost."""
        _, sink = result.stats["sinks"]
        dropped = {reason: part["records"] for reason, part in sink["dropped"].items()
                   if part["records"]}
        self.assertEqual(len(result.records), sink["taken"]["records"])
        self.assertEqual(0, sink["pending"]["records"])
        return sink["delivered"]["records"], dropped
