# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
# Label: measure
# Cost: 60
# Lock: measure, what is idle, and how many handshakes wait, depends on when it gets the CPU.
"""
The table of TCP connections: many that come and go, more than it has places for, and floods of
SYNs. Flows stay exact, memory stays what it is, and connections that are real keep their place.

NETOBS_TEST_CONNECTIONS=1000000 opens and closes so many, a fifth of them open at once.
"""

import array
import ipaddress
import json
import os
import re
import socket
import subprocess
import time

from lib import lab
from lib import metrics
from lib.observer import Observer

CONNECTIONS = int(os.environ.get("NETOBS_TEST_CONNECTIONS", lab.sized(60000)))
RATE = 16000 # a second: bodies come in time, also for those that are the first
OPEN = CONNECTIONS // 5
IDLE_SECONDS = 12 # more than a connection keeps its place for, CONN_IDLE_SECONDS

# Of the table, see src/bpf/connection.h: places of a bucket, its bytes, those of a place in three
# maps, and those of a body, which come in parts.
WAYS, BUCKET, PLACE, BODY, PART = 8, 64, (64, 24, 4), 896, 1024

# What tcpgen sends of a connection, and of a handshake in a flood.
CLIENT_PACKETS, SERVER_PACKETS = 6, 3
CLIENTS, PORTS, FIRST_PORT = int(ipaddress.ip_address("10.0.0.1")), 50000, 1024
SERVER = "198.18.0.1"


def map_memory(pid):
    """[(entries, bytes of a value, bytes)] of the BPF maps that a process has open."""
    found = {}
    for fd in os.listdir(f"/proc/{pid}/fdinfo"):
        try:
            fields = dict(re.findall(r"^(\w+):\s*(\d+)$", lab.read(f"/proc/{pid}/fdinfo/{fd}"), re.MULTILINE))
        except OSError:
            continue # it was closed meanwhile
        if "map_id" in fields:
            found[fields["map_id"]] = tuple(int(fields[name]) for name in
                                            ("max_entries", "value_size", "memlock"))
    return list(found.values())


def power_of_two(least):
    return 1 << (least - 1).bit_length()


class Real:
    """Connections of the kernel's, which talk in turn."""

    def __init__(self, client, server, count):
        with server:
            self.listener = socket.create_server(("192.0.2.2", 0), backlog=count)
        self.ends = []
        for _ in range(count):
            with client:
                one = socket.create_connection(self.listener.getsockname())
            self.ends.append((one, self.listener.accept()[0]))
        self.ports = {one.getsockname()[1] for one, _ in self.ends}

    def talk(self, times=1):
        for _ in range(times):
            for one, other in self.ends:
                for sender, receiver in ((one, other), (other, one)):
                    sender.sendall(b"x" * 100)
                    receiver.recv(100, socket.MSG_WAITALL)

    def close(self):
        self.listener.close()
        for pair in self.ends:
            for end in pair:
                end.close()


class Records:
    """What they say: of connections of tcpgen by number, of others by the client's port."""

    def __init__(self, result, count):
        self.packets = {way: array.array("L", bytes(8 * count)) for way in (0, 1)}
        self.has_health = bytearray(count)
        self.real = {}
        for record in result.each():
            self.add(record)

    def add(self, record):
        way = int(record["SrcAddr"] in (SERVER, "192.0.2.2"))
        address, port = ((record["SrcAddr"], record["SrcPort"]),
                         (record["DstAddr"], record["DstPort"]))[way]
        if address == "192.0.2.1":
            self.real.setdefault(port, []).append((way, record))
            return
        number = (int(ipaddress.ip_address(address)) - CLIENTS) * PORTS + port - FIRST_PORT
        self.packets[way][number] += record["Packets"]
        self.has_health[number] |= "Retransmits" in record


class Connections(lab.LabTest):
    def setUp(self):
        super().setUp()
        self.a, self.b = self.lab.ns("a"), self.lab.ns("b")
        self.lab.wire(self.a, "eth0", ["192.0.2.1/24"], self.b, "eth0", ["192.0.2.2/24"],
                      offload=False)

    def observe(self, places):
        self.places = places
        self.observer = Observer(
            self.lab, self.a, "-i", "eth0", "--rtt", "--max-connections", places, "--interval",
            "1", "--metrics", f"unix:{self.lab.path('metrics')}", release=True, enter=lab.run_first)
        self.observer.wait_attached((self.a, "eth0"))
        self.sent = 0
        self.bounds, bodies = self.memory()
        self.assertEqual(PART * BODY, bodies)

    def connect(self, count):
        real = Real(self.a, self.b, count)
        self.addCleanup(real.close)
        return real

    def memory(self):
        """Of the table: what the kernel has for it, without bodies, and bytes of these."""
        maps = {(self.places // WAYS, BUCKET), *((self.places, size) for size in PLACE)}
        # Another map of that size takes as much.
        found = {(entries, size): octets for entries, size, octets in
                 map_memory(self.observer.process.pid) if (entries, size) in maps}
        self.assertEqual(maps, set(found))
        fixed = self.places * (BUCKET // WAYS + sum(PLACE))
        memory = sum(found.values())
        self.assertLessEqual(fixed, memory)
        self.assertLess(memory - fixed, fixed / 100 + 65536)
        bodies = self.metric("netobs_connections_memory_bytes") - fixed
        self.assertEqual(0, bodies % (PART * BODY))
        return memory, bodies

    def metric(self, name, **labels):
        return metrics.scrape(self.lab.path("metrics")).value(name, **labels)

    def evicted(self, reason):
        return self.metric("netobs_connections_evicted_total", reason=reason)

    def start(self, *arguments, **options):
        return self.lab.spawn(
            lab.tool("tcpgen"), "--interface", "eth0", "--peer", f"/run/netns/{self.b.name}",
            "--peer-interface", "eth0", *arguments, ns=self.a, stdout=subprocess.PIPE, **options)

    def finish(self, process):
        out, _ = process.communicate(timeout=300)
        self.assertEqual(0, process.returncode)
        sent = json.loads(out)
        self.assertEqual(0, sent["client"]["refused"] + sent["server"]["refused"])
        self.sent += sum(sent[end]["packets"] for end in ("client", "server"))
        return sent

    def generate(self, *arguments, **options):
        return self.finish(self.start(*arguments, **options))

    def check_table(self):
        """Only bodies were added, as many as were needed, and what it says adds up."""
        memory, bodies = self.memory()
        self.assertEqual(self.bounds, memory)
        found = metrics.scrape(self.lab.path("metrics"))
        self.assertEqual(self.places, found.value("netobs_connections_limit"))
        used = found.value("netobs_connections")
        created = found.value("netobs_connections_created_total")
        self.assertLessEqual(used * BODY, bodies)
        # Bodies stay when connections have ended, as most have on a busy machine: all may have been there at once.
        self.assertLessEqual(bodies, min(self.places, created * 5 / 4 + 2 * PART) * BODY)
        self.assertLessEqual(used, self.places)
        self.bodies = int(bodies)
        self.assertEqual(used, created - found.total("netobs_connections_evicted_total"))
        return used

    def stop(self, count, *reals):
        """All packets are in flows, of what tcpgen and the kernel sent."""
        own = self.observer.memory()["own"] >> 10
        for real in reals:
            real.close()
        time.sleep(0.5)
        counters = self.a.counters("eth0")
        result = self.observer.stop(seconds=300)
        result.check_identity()
        self.assertEqual(counters["rx"]["packets"] + counters["tx"]["packets"],
                         result.total("seen")[0])
        self.assertEqual(result.total("seen"), result.total("exported"))
        self.note(f"{own} KiB of the process's own, {self.bounds >> 10} KiB of the table and "
                  f"{self.bodies >> 10} KiB of bodies")
        records = Records(result, count)
        kernel = sum(record["Packets"] for found in records.real.values()
                     for _, record in found)
        self.assertEqual(result.total("seen")[0], self.sent + kernel)
        return records

    def assert_each(self, records, way, packets, first, end):
        self.assertEqual({packets}, set(records.packets[way][first:end]))

    def assert_kept(self, records, real):
        """The handshake was measured, and each record since says so: the entry is the same."""
        for port in real.ports:
            found = records.real[port]
            self.assertEqual({0, 1}, {way for way, _ in found})
            for _, record in found:
                self.assertIn("HandshakeRttNs", record)

    def test_many_come_and_go(self):
        self.observe(power_of_two(5 * OPEN))
        real = self.connect(50)
        process = self.start("--connections", CONNECTIONS, "--open", OPEN, "--rate", RATE)
        while process.poll() is None:
            real.talk()
            time.sleep(0.2)
        sent = self.finish(process)
        real.talk()
        used = self.check_table()
        refused = self.metric("netobs_connections_refused_packets_total")
        evicted = {reason: self.evicted(reason) for reason in ("half_open", "closed", "idle")}
        self.note(f"{CONNECTIONS} in {sent['seconds']:.1f} s, {OPEN} at once: {used:.0f} of "
                  f"{self.places} places used, evicted {evicted}, {refused:.0f} packets without "
                  "a place")
        # Where all eight of a bucket were open, or opened: with a fifth as many open ones as
        # places, that is one bucket in 5,000 (Poisson).
        self.assertLess(evicted["half_open"] + evicted["idle"], CONNECTIONS / 1000)
        self.assertLess(refused, sent["connections"] * (CLIENT_PACKETS + SERVER_PACKETS) / 200)
        records = self.stop(CONNECTIONS, real)
        self.assert_each(records, 0, CLIENT_PACKETS, 0, CONNECTIONS)
        self.assert_each(records, 1, SERVER_PACKETS, 0, CONNECTIONS)
        self.assert_kept(records, real)

    def test_idle_ones_make_room(self):
        """There are three times as many as places, and then new ones, which all get one."""
        places = power_of_two(OPEN // 3)
        self.observe(places)
        real = self.connect(20)
        first, then = 3 * places, places // 2
        # All at once, so that none is idle before the last one has begun.
        process = self.start("--connections", first, "--hold", IDLE_SECONDS + 5, enter=lab.run_first)
        begin = time.monotonic()
        while time.monotonic() - begin < IDLE_SECONDS:
            real.talk()
            time.sleep(0.5)
        self.assertEqual(0, self.evicted("idle"))
        self.generate("--first", first, "--connections", then, "--hold", 2, enter=lab.run_first)
        idle = self.evicted("idle")
        used = self.check_table()
        self.note(f"{first} in {places} places, of which {used:.0f} are used; {then} new ones: "
                  f"{idle:.0f} idle ones evicted")
        self.assertGreater(idle, then * 0.9)
        self.assertLessEqual(idle, then)
        self.finish(process)
        records = self.stop(first + then, real)
        self.assert_each(records, 0, CLIENT_PACKETS, 0, first + then)
        self.assert_each(records, 1, SERVER_PACKETS, 0, first + then)
        known = sum(records.has_health[first:])
        self.assertGreater(known, then * 0.9)
        self.assert_kept(records, real)

    def test_a_flood_of_syns_pushes_no_connection_out(self):
        """Nor keeps it out. The server answers them."""
        self.observe(4096) # so that more than 8 of the 300 real ones never share a bucket
        idle, old = self.connect(100), self.connect(100)
        begin = time.monotonic()
        while time.monotonic() - begin < IDLE_SECONDS:
            old.talk()
            time.sleep(0.5)
        process = self.start("--flood", "--connections", CONNECTIONS, "--rate", 20000)
        lab.wait_for(lambda: self.evicted("half_open") > 1000, "the flood")
        new = self.connect(100)
        new.talk(3)
        while process.poll() is None:
            old.talk()
            new.talk()
        self.finish(process)
        for real in idle, old, new:
            real.talk()
        self.check_table()
        flooded = self.evicted("half_open")
        self.note(f"{CONNECTIONS} SYNs, answered: {flooded:.0f} of them evicted")
        self.assertGreater(flooded, CONNECTIONS / 2)
        self.assertEqual(0, self.evicted("idle") + self.evicted("closed"))
        records = self.stop(CONNECTIONS, idle, old, new)
        self.assert_each(records, 0, 1, 0, CONNECTIONS)
        self.assert_each(records, 1, 1, 0, CONNECTIONS)
        self.assert_kept(records, idle)
        self.assert_kept(records, old)
        for port in new.ports:
            self.assertTrue(any("TimeFlowRttNs" in record
                                for _, record in records.real[port]))


if __name__ == "__main__":
    lab.main()
