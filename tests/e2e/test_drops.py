# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
# Needs: nftables
# Cost: 40
# Lock: drops, its drops need room among those of the whole host.
"""netobsctl drops, compared with the counter of the kernel that knows of each drop.

A client, a router and a server: whatever the router and the server drop is in a counter of theirs. Counts
and the order are random.
"""

import collections
import contextlib
import functools
import json
import os
import signal
import socket
import subprocess
import time

from lib import bpf
from lib import drops
from lib import frames as f
from lib import lab
from lib import observer
from lib import traffic
from lib.drops import CLIENT, SERVER, cause_of, nft_packets
from lib.observer import features

UDP_SEGMENT = 103
ROOM = 32768 # flows with a reason, of two intervals
ATTEMPTS, PAUSE_S = 10, 6 # longer than another test floods
FEW = 1000 # flows of others whose drops leave room enough


class Crowded(AssertionError):
    """Drops of others took room in the tables, which the whole host shares."""


def repeat_if_crowded(case):
    """Other tests drop packets of many flows at any time: try again, with a new lab."""
    @functools.wraps(case)
    def repeat(self):
        for _ in range(ATTEMPTS - 1):
            try:
                return case(self)
            except Crowded as crowded:
                self.note(str(crowded))
                self.doCleanups()
                time.sleep(PAUSE_S)
                self.setUp()
        return case(self)
    return repeat


class Observer:
    """A `netobsctl drops`, which is known to observe."""

    def __init__(self, test, *options):
        self.path, self.errors = test.lab.path("drops"), test.lab.path("errors")
        with open(self.path, "wb") as out, open(self.errors, "wb") as errors:
            self.process = test.lab.spawn(
                observer.netobsctl(), "drops", "-o", "json", "--all", "--interval", "0.2", *options,
                stdout=out, stderr=errors)
        self.wait_until_ready(test.lab.ns("m"))

    def wait_until_ready(self, marker):
        """No message says so: until it has seen a drop."""
        def is_seen():
            traffic.throw(marker, ("127.0.0.1", 9))
            if self.process.poll() is not None:
                raise RuntimeError(self.messages())
            return self.records(marker)
        lab.wait_for(is_seen, "the observer")

    def messages(self):
        return lab.read(self.errors)

    def all_records(self):
        lines = lab.read(self.path).rsplit("\n", 1)[0].split("\n")
        return [json.loads(line) for line in lines if line]

    def records(self, *namespaces):
        inodes = {ns.inode for ns in namespaces}
        return [one for one in self.all_records() if one.get("NetnsInode") in inodes]

    def stop(self):
        self.process.send_signal(signal.SIGINT)
        code = self.process.wait(timeout=60)
        observer.check_sanitizer(self.messages())
        if code:
            raise AssertionError(f"exit {code}: {self.messages()}")
        if "netobsctl drops: not shown" in self.messages():
            raise Crowded(self.messages())


class Drops(drops.DropsTest):
    def check(self, scenario, records, counted):
        own = [one for one in records if scenario.is_own(one)]
        sums = collections.Counter()
        for one in own:
            sums[cause_of(one), one["Function"]] += one["PktDropPackets"]
        self.assertEqual(counted, sums.total(), f"{scenario}: {sums}")
        if self.has_reasons:
            self.assertLessEqual({cause for cause, _ in sums}, set(scenario.causes), str(scenario))
        if scenario.layer and self.has_reasons:
            self.assertEqual({scenario.layer}, {one["Layer"] for one in own})
        return sums

    def run_scenarios(self, plan):
        """@plan: how many packets each is sent."""
        scenarios = {kind: kind(self) for kind in {kind for kind, _ in plan}}
        watcher = Observer(self)
        for kind, count in plan:
            before = scenarios[kind].counted()
            scenarios[kind].send(count)
            scenarios[kind].wait_for(before + count)
        counted = {kind: one.counted() for kind, one in scenarios.items()}
        watcher.stop()
        records = watcher.records(self.client, self.router, self.server)
        for kind, one in scenarios.items():
            self.assertGreater(counted[kind], 0, str(one))
            self.note(f"{one}: {counted[kind]}, {dict(self.check(one, records, counted[kind]))}")

    @repeat_if_crowded
    def test_random_mixtures_are_counted_as_by_the_kernel(self):
        self.run_scenarios(drops.random_plan(self.random, 20, 200))

    def watch(self, traffic, *namespaces):
        """The records of what @traffic does."""
        watcher = Observer(self)
        traffic()
        watcher.stop()
        return watcher.records(*namespaces)

    def test_buffers_count_as_segments(self):
        """Where the buffer is not segmented before it is dropped, as nft counts it."""
        segments, size, buffers, port = 10, 500, 7, 2004

        def send():
            with self.client, socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
                sender.setsockopt(socket.IPPROTO_UDP, UDP_SEGMENT, size)
                for _ in range(buffers):
                    with contextlib.suppress(PermissionError):
                        sender.sendto(bytes(segments * size), (SERVER, port))

        records = [one for one in self.watch(send, self.client) if one.get("DstPort") == port]
        record = records[0]
        self.assertEqual(buffers, nft_packets(self.client, str(port)))
        self.assertEqual(buffers * segments, sum(one["PktDropPackets"] for one in records))
        self.assertEqual(buffers * segments * (size + 28),
                         sum(one["PktDropBytes"] for one in records))
        self.assertEqual((CLIENT, SERVER, port, 17), tuple(
            record[name] for name in ("SrcAddr", "DstAddr", "DstPort", "Proto")))
        self.assertEqual("netfilter", record["Layer"])

    @repeat_if_crowded
    def test_an_expression_chooses(self):
        """What it does not match is not shown, nor what has no addresses."""
        ports = (2001, 2003)
        watcher = Observer(self, "udp", "dst", "port", "9", "or", "dst", "port", "2001")
        frame = f.ether("ff:ff:ff:ff:ff:ff", self.macs[0], 0x88b5, bytes(60))
        for _ in range(20):
            for port in ports:
                traffic.throw(self.client, (SERVER, port))
            self.router.send_frames("rs", [frame])
        watcher.stop()
        records = watcher.records(self.client, self.router, self.server)
        self.assertEqual({(2001, 20)}, {(port, sum(one["PktDropPackets"] for one in records
                                                    if one["DstPort"] == port))
                                        for port in {one["DstPort"] for one in records}})
        self.assertEqual([20, 20], [nft_packets(ns, str(port)) for ns, port in
                                    zip((self.server, self.router), ports)])

    def test_a_full_backlog(self):
        """SYNs that it refuses are freed as if they were used: only ListenDrops has them."""
        before, attempts = self.server.snmp("TcpExt", "ListenDrops", "netstat"), []

        def connect():
            with self.server:
                listener = socket.create_server((SERVER, 2021), backlog=1)
            self.addCleanup(listener.close)
            with self.client:
                for _ in range(10):
                    attempts.append(socket.socket())
                    self.addCleanup(attempts[-1].close)
                    attempts[-1].setblocking(False)
                    attempts[-1].connect_ex((SERVER, 2021))
            lab.wait_for(lambda: self.server.snmp("TcpExt", "ListenDrops", "netstat") >
                         before + 5, "SYNs that are refused")

        records = self.watch(connect, self.server)
        counted = self.server.snmp("TcpExt", "ListenDrops", "netstat") - before
        self.assertGreater(counted, 5)
        self.assertEqual([], [one for one in records if one.get("DstPort") == 2021])

    def test_connections_that_are_refused(self):
        refused = 20

        def connect():
            with self.client:
                for _ in range(refused):
                    with socket.socket() as one:
                        self.assertRaises(ConnectionRefusedError, one.connect, (SERVER, 2020))

        records = [one for one in self.watch(connect, self.server) if one.get("DstPort") == 2020]
        self.assertEqual(refused, sum(one["PktDropPackets"] for one in records))
        self.assertEqual({"tcp_v4_rcv"}, {one["Function"] for one in records})
        if self.has_reasons:
            self.assertEqual({"NO_SOCKET"}, {cause_of(one) for one in records})

    def test_ipv6(self):
        self.client.sysctl("ipv6/conf/c0/disable_ipv6", 0)
        self.router.sysctl("ipv6/conf/rc/disable_ipv6", 0)
        self.client.address("c0", "fd00::1/64")
        self.router.address("rc", "fd00::2/64")
        self.client.neighbour("c0", self.macs[1], "fd00::2")
        count = 30

        def send():
            traffic.throw(self.client, ("fd00::2", 2030), count, data=b"six")

        records = [one for one in self.watch(send, self.router) if one.get("DstPort") == 2030]
        self.assertEqual(count, sum(one["PktDropPackets"] for one in records))
        self.assertEqual(count * 51, sum(one["PktDropBytes"] for one in records))
        self.assertEqual({("fd00::1", "fd00::2", "rc")},
                         {(one["SrcAddr"], one["DstAddr"], one["Interface"]) for one in records})

    @repeat_if_crowded
    def test_more_flows_than_there_is_room_for(self):
        """Those that find none are counted by reason, without addresses and protocols."""
        first, flows, protocol, protocols = 20000, 40000, 0xa000, 6000
        self.server.run("nft", "add", "rule", "inet", "drops", "input", "udp", "dport", ">=", first,
                        "counter", "drop", "comment", "many")

        def send():
            with self.client, socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
                for port in range(first, first + flows):
                    sender.sendto(b"", (SERVER, port))

        # An interval begins when it has seen a drop.
        watcher = Observer(self, "--interval", "5")
        send()
        self.router.send_frames("rs", [f.ether("ff:ff:ff:ff:ff:ff", self.macs[0], protocol + one,
                                               bytes(60)) for one in range(protocols)])
        watcher.stop()
        records = watcher.records(self.server)
        others = len(watcher.all_records()) - len(records)
        if others > FEW:
            raise Crowded(f"{others} records of others")
        rest = [one for one in records if "SrcAddr" not in one and
                not protocol <= one.get("Etype", 0) < protocol + protocols]
        if not lab.is_shrunk():
            self.assertGreaterEqual(sum(one["PktDropPackets"] for one in rest),
                                    flows + protocols - ROOM)
            self.assertEqual(set(), {name for one in rest for name in ("Etype", "Proto", "Unparsed")
                                     if name in one})
            # By place: fewer than there is room for.
            self.assertLess(len(rest), 100)
            # What a flood at another place leaves is enough for these.
            self.assertEqual(protocols, sum("Etype" in one for one in records
                                            if one["Layer"] != "netfilter"))
        others = [one for one in records if one["Layer"] != "netfilter"]
        self.assertEqual(protocols, sum(one["PktDropPackets"] for one in others))
        records = [one for one in records if one["Layer"] == "netfilter"]
        counted = nft_packets(self.server, "many")
        self.assertEqual((flows, flows), (counted, sum(one["PktDropPackets"] for one in records)))

    def test_frames_of_can_have_their_interface(self):
        """What a queue drops that is marked as such: the kernel may have no CAN."""
        can = 0x000c
        self.lab.veth(self.client, "can0", self.server, "can1")
        self.client.tc("qdisc", "add", "dev", "can0", "root", "tbf", "rate", "8kbit", "burst", "2000",
                       "limit", "3000")
        frame = f.ether("ff:ff:ff:ff:ff:ff", self.macs[0], can, bytes(500))

        def send():
            with self.client, socket.socket(socket.AF_PACKET, socket.SOCK_RAW) as sender:
                for _ in range(50):
                    with contextlib.suppress(OSError):
                        sender.sendto(frame, ("can0", can))

        records = [one for one in self.watch(send, self.client) if one.get("Etype") == can]
        counted = json.loads(self.client.tc("-s", "-j", "qdisc", "show", "dev", "can0"))[0]["drops"]
        self.assertGreater(counted, 0)
        self.assertEqual(counted, sum(one["PktDropPackets"] for one in records))
        self.assertEqual({("can0", "not_ip", False)}, {
            (one["Interface"], one["Unparsed"], "SrcAddr" in one) for one in records})
        if self.has_reasons:
            self.assertEqual({"tc"}, {one["Layer"] for one in records})

    def test_what_is_off_costs_nothing(self):
        """Nothing is attached before, nor after; also not after kill -9."""
        watcher = Observer(self)
        programs = bpf.programs_of(watcher.process.pid)
        # An interrupt may drop packets while the first program runs: the second one counts these.
        self.assertEqual(2, sum(name.startswith("netobs_drop_") for name in programs.values()))
        watcher.stop()
        self.wait_until_freed(programs)
        watcher = Observer(self)
        programs = bpf.programs_of(watcher.process.pid)
        watcher.process.kill()
        watcher.process.wait()
        self.wait_until_freed(programs)

    def wait_until_freed(self, programs):
        """The kernel frees a program only when no CPU can still be running it."""
        self.assertTrue(programs)
        lab.wait_for(lambda: not set(programs) & set(bpf.programs()), "the kernel to detach")

    def test_output_that_cannot_be_written(self):
        with open("/dev/full", "wb") as full:
            table = self.lab.spawn(observer.netobsctl(), "drops", "--interval", "0.2", ns=self.server,
                                   stdout=full, stderr=subprocess.PIPE, text=True)

        def is_over():
            traffic.throw(self.client, (SERVER, 2041))
            return table.poll() is not None
        lab.wait_for(is_over, "the command to end")
        self.assertEqual(1, table.returncode)
        self.assertEqual(1, table.stderr.read().count("cannot write to standard output: No space"))

    def test_table(self):
        """Benign ones are hidden, rows summed up, interfaces selected."""
        out = self.lab.path("table")
        with open(out, "wb") as file:
            table = self.lab.spawn(observer.netobsctl(), "drops", "-i", "s0", "--interval", "0.2",
                                   stdout=file)

        def rows():
            with open(out, encoding="utf-8") as text:
                return [line.split() for line in text if str(self.server.inode) in line and ":2040" in line]

        def is_seen():
            traffic.throw(self.client, (SERVER, 2040), 3)
            return rows()

        lab.wait_for(is_seen, "a row")
        table.send_signal(signal.SIGINT)
        self.assertEqual(0, table.wait(timeout=60))
        for row in rows():
            self.assertEqual("s0", row[-3], row)
            self.assertTrue([cell for cell in row if "udp" in cell and "_" in cell], row)

    def test_the_demo(self):
        """It loses packets in four ways, each of which is named, and shows no drops of others."""
        demo = os.path.join(os.environ["NETOBS_SOURCE"], "examples/demo.sh")
        self.lab.spawn("bash", "-c", f"while sleep 0.1; do echo lost >/dev/udp/{SERVER}/2040; done",
                       ns=self.client, stderr=subprocess.DEVNULL)
        with self.lab.spawn("bash", demo, observer.netobsctl(), "drops", "-o", "json", "-d", "9",
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as shown:
            out, errors = shown.communicate(timeout=120)
        self.assertEqual(0, shown.returncode, errors)
        flows, interfaces = collections.defaultdict(set), set()
        for record in map(json.loads, out.splitlines()):
            interfaces.add(record.get("Interface"))
            if record.get("DstAddr") in ("192.0.2.2", "192.0.2.3") and record["DropKind"] != "benign":
                flows[record["DstAddr"], record["DstPort"]].add(cause_of(record))
        wanted = {("192.0.2.2", 514): "SOCKET_RCVBUFF", ("192.0.2.2", 53): "NO_SOCKET",
                  ("192.0.2.2", 22): "NETFILTER_DROP", ("192.0.2.3", 7): "NEIGH_FAILED"}
        self.assertLessEqual(set(wanted), set(flows))
        self.assertEqual({"demo0", "demo1"}, interfaces)
        if self.has_reasons:
            self.assertEqual([], [flow for flow, cause in wanted.items() if cause not in flows[flow]])


if __name__ == "__main__":
    lab.main("tracepoint of dropped packets", lambda: features()["drops"])
