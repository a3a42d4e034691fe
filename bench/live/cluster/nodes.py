# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
"""
Namespaces that stand for the nodes of a cluster. Each has an agent, a link to the router between them, which the agent
observes, and one to the store, which carries its records.
"""

import collections
import http.client
import json
import os
import socket
import subprocess
import sys
import time

from lib import clickhouse
from lib import lab
from lib import observer
from lib.service import Supervisor
import load
import measure

HERE = os.path.dirname(os.path.abspath(__file__))
QUERIES = os.path.join(HERE, "..", "..", "..", "packaging", "clickhouse")
PORT = 8123
INTERFACE = "eth0"
STARTING = 4 # agents at a time
LOOK_SECONDS = 1
SETTLE_SECONDS = 120
INSERT = "INSERT INTO netobs_records FORMAT JSONEachRow"
CONFIGURATION = """
[capture]
interface = {interface}
[control]
path = {control}
[sink "clickhouse"]
output = http://{store}:{port}/?param.query={insert}
agent_ip = {address}
batch_bytes = 1M
"""
LEAVES, GROUPS = ("pending", "filtered", "sampled_out"), ("unparsed", "lost")


def addresses(net, number):
    """Those of both ends of the link of a node: of the other end, and of the node."""
    first = 4 * number + 1
    return [f"10.{net}.{part >> 8}.{part & 255}" for part in (first, first + 1)]


class Node:
    def __init__(self, place, router, store, number):
        self.place, self.name = place, f"n{number}"
        self.ns = place.ns(self.name)
        gateway, self.address = addresses(80, number)
        self.store_address, own = addresses(96, number)
        place.veth(self.ns, INTERFACE, router, self.name, offload=False)
        place.veth(self.ns, "mgmt0", store, self.name)
        for ns, interface, address in ((self.ns, INTERFACE, self.address), (router, self.name, gateway),
                                       (self.ns, "mgmt0", own), (store, self.name, self.store_address)):
            ns.address(interface, f"{address}/30")
        self.ns.ip("route", "add", "default", "via", gateway)
        self.counters = load.Counters(place, self.ns, INTERFACE)
        self.control = place.path(f"control-{self.name}")
        self.agent = None

    def spawn(self, supervisor, messages):
        path = self.place.path(f"conf-{self.name}")
        lab.write(path, CONFIGURATION.format(interface=INTERFACE, control=self.control, store=self.store_address,
                                             port=PORT, insert=INSERT, address=self.address))
        self.agent = self.place.spawn(
            observer.netobsctl(release=True), "run", "-c", path, ns=self.ns, stdout=subprocess.DEVNULL,
            stderr=messages, env=os.environ | {"NOTIFY_SOCKET": supervisor.path})

    def status(self):
        """What netobsctl status -o json shows."""
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(self.control)
            client.sendall(b"status\n")
            text = b"".join(iter(lambda: client.recv(1 << 16), b""))
        return json.loads(text)["status"]

    def crossed(self):
        return sum(self.counters.packets())

    def usage(self):
        """CPU seconds of the agent, and of its BPF programs; memory of both."""
        pid = self.agent.pid
        return {"cpu_seconds": measure.process_cpu_seconds(pid),
                "bpf_seconds": sum(measure.program_times(pid).values()),
                "rss_peak_bytes": measure.peak_rss(pid),
                "kernel_bytes": sum(measure.map_sizes(pid).values())}


class Store:
    """The embedded ClickHouse; its tables are those of packaging/clickhouse."""

    def __init__(self, place, ns):
        self.ns = ns
        with open(place.path("store-messages"), "wb") as messages:
            self.process = place.spawn(
                sys.executable, os.path.join(HERE, "store.py"), clickhouse.package(), place.path("clickhouse"),
                PORT, os.path.join(QUERIES, "netobs-tables.sql"), ns=ns, stdout=subprocess.PIPE,
                stderr=messages)
        if self.process.stdout.readline() != b"ready\n":
            raise RuntimeError(f"the store has ended: {lab.read(place.path('store-messages'))[-2000:]}")

    def ask(self, query):
        """@return the rows of the answer"""
        connection = http.client.HTTPConnection("127.0.0.1", PORT, timeout=600)
        with self.ns:
            connection.connect()
        connection.request("POST", "/", query)
        answer = connection.getresponse()
        text = answer.read().decode()
        connection.close()
        if answer.status != 200:
            raise RuntimeError(text)
        return [json.loads(line) for line in text.splitlines() if line]

    def make_map(self):
        """The service map of all records, as netobs-services.sql makes it."""
        for statement in clickhouse.statements(lab.read(os.path.join(QUERIES, "netobs-services.sql"))):
            self.ask(statement)

    def usage(self):
        return {"cpu_seconds": measure.process_cpu_seconds(self.process.pid),
                "rss_peak_bytes": measure.peak_rss(self.process.pid)}


class Cluster:
    def __init__(self, place, number):
        self.place = place
        self.router, self.ns = place.ns("router"), place.ns("store")
        self.router.sysctl("ipv4/ip_forward", 1)
        self.store = Store(place, self.ns)
        self.nodes = [Node(place, self.router, self.ns, i) for i in range(number)]
        self.before = 0

    def start_agents(self):
        """A few at a time; all observe when it returns."""
        supervisor = Supervisor(self.place)
        try:
            with open(self.place.path("agents-messages"), "wb") as messages:
                for first in range(0, len(self.nodes), STARTING):
                    starting = self.nodes[first:first + STARTING]
                    for node in starting:
                        node.spawn(supervisor, messages)
                    for _ in starting:
                        supervisor.wait("READY=1")
        finally:
            supervisor.close()
        self.before = self.crossed()

    def crossed(self):
        return sum(node.crossed() for node in self.nodes)

    def usages(self):
        return [node.usage() for node in self.nodes]

    def start_traffic(self, flows_per_minute, seconds):
        process = self.place.spawn(sys.executable, os.path.join(HERE, "talk.py"), stdin=subprocess.PIPE,
                                   stdout=subprocess.PIPE)
        wanted = {"nodes": [{"netns": f"/run/netns/{node.ns.name}", "address": node.address}
                            for node in self.nodes],
                  "flows_per_minute": flows_per_minute, "seconds": seconds}
        process.stdin.write(json.dumps(wanted).encode())
        process.stdin.close()
        return process

    def settle(self):
        """
        Wait until all agents have read, and delivered, what has crossed their interfaces.
        @return (packets that have, the status of each agent), and if they never do, as they are
        """
        end = time.monotonic() + SETTLE_SECONDS
        while True:
            before = self.crossed()
            statuses = [node.status() for node in self.nodes]
            after = self.crossed()
            if time.monotonic() > end or \
                    (before == after and account(statuses)["seen"] == after - self.before and
                     not any(map(is_waiting, statuses))):
                return after - self.before, statuses
            time.sleep(LOOK_SECONDS)

    def stop_agents(self):
        """@return whether all of them ended as they should"""
        for node in self.nodes:
            node.agent.terminate()
        return not any([node.agent.wait(60) for node in self.nodes]) # pylint: disable=use-a-generator


def is_waiting(status):
    return "pending" in status["packets"] or \
        any(sink["pending"]["records"] for sink in status["sinks"])


def account(statuses):
    """What became of all packets: {name: packets}, and the records that were delivered."""
    found = collections.Counter()
    for status in statuses:
        packets = status["packets"]
        for name in ("seen", "exported", *LEAVES):
            found[name] += packets.get(name, {"packets": 0})["packets"] # pending: only if there are some
        for group in GROUPS:
            for reason, count in packets[group].items():
                found[f"{group}: {reason}"] += count["packets"]
        found["delivered"] += sum(sink["delivered"]["records"] for sink in status["sinks"])
    return found
