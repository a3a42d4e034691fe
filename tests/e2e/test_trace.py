# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
# Needs: nftables strace tcpdump
"""netobsctl trace, compared with what the processes at both ends of random connections noted.

A client, a router and a server, with NAT in the router, or VXLAN behind it, or with IPv6.
"""

import collections
import contextlib
import os
import re
import signal
import socket
import threading
import time

from lib import bpf
from lib import lab
from lib import observer
from lib.observer import features
from lib.tracer import CLIENT, CLIENT6, PARTS, ROUTER_IN, SERVER, SERVER6, Network6, Trace, Tracer, \
    by_connection, by_stream, bytes_of, has_all, has_send, union

TRIES = 5 # of what a timer may send again unseen (see traffic.awake)
LOSS = """
table ip lossy {{
    chain forward {{
        type filter hook forward priority 0
        meta length > 90 numgen random mod 100 < {percent} drop
    }}
}}
"""


class Events(Trace):
    """Each byte passes each point exactly once, where nothing is lost."""

    ONCE = "sent", "segment", "ready", "read", "acked"

    def check_stream(self, stream, events, where):
        size = stream.written
        points = collections.defaultdict(list)
        for one in events:
            points[one["Point"]].append((one["Offset"], one["Offset"] + one["Bytes"]))
        for point in self.ONCE if self.has_sockets else ("segment", "read", "acked"):
            ranges, double = union(one for one in points[point] if one[1] > one[0])
            # A loaded host sends again what is on its way.
            spare = double and point == "segment" and points["retransmit"]
            self.assertEqual((ranges, 0 if spare else double),
                             ([(0, size)] if size else [], 0), f"{where}: {point}")

    def check_calls(self, calls, events, point, where):
        """The event of the last byte of a call is within the call."""
        last = {one["Offset"] + one["Bytes"]: one["TimeNs"] for one in events
                if one["Point"] == point and one["Bytes"]}
        for call in calls:
            at = last.get(call.offset + call.length)
            self.assertIsNotNone(at, f"{where}: {point} {call}")
            self.assertTrue(call.begin <= at <= call.end, f"{where}: {point} {call}: {at}")

    def test_every_byte_passes_every_point(self):
        network, where = self.network()
        tracer = Tracer(self, network.address[1], "--show", "events")
        spoken = list(self.talk(network, lab.sized(20)))
        found = by_stream(tracer.stop())
        for one in spoken:
            there = found[one.client[:2], one.server[:2]]
            connection = {event["Connection"] for event in there}
            self.assertEqual(len(connection), 1, f"{where}: {one}")
            back = [event for key, events in found.items() for event in events
                    if event["Connection"] in connection and event["Direction"] == 1]
            for stream, events in zip(one.streams, (there, back)):
                self.check_stream(stream, events, f"{where}: {one}")
                if self.has_sockets:
                    self.check_calls(stream.writes, events, "sent", f"{where}: {one}")
                self.check_calls(stream.reads, events, "read", f"{where}: {one}")

    def test_layers_alone(self):
        """Each has the events that it has beside the others, and no programs that it does not need."""
        network, where = self.network()
        whole = Tracer(self, network.address[1], "--show", "events")
        alone = {layer: Tracer(self, network.address[1], "--show", "events", "--layer", layer)
                 for layer in ("tcp", "device") + ("socket",) * self.has_sockets}
        for layer, tracer in alone.items():
            names = set(bpf.programs_of(tracer.process.pid).values())
            self.assertIn("netobs_tr_queue", names, layer)
            others = set().union(*self.PER_PACKET.values()) - self.PER_PACKET[layer]
            self.assertFalse({f"netobs_tr_{name}" for name in others} & names, layer)
        collections.deque(self.talk(network, lab.sized(10)), 0)
        expected = collections.Counter(self.what(one) for one in whole.stop())
        for layer, tracer in alone.items():
            own = {what: n for what, n in expected.items() if what[0] == layer}
            self.assertTrue(own, where)
            self.assertEqual(own, collections.Counter(self.what(one) for one in tracer.stop()),
                             f"{where}: {layer}")

    def test_check_tries_all_layers(self):
        """What it says of the tracer holds for each of them."""
        calls = self.lab.path("calls")
        with open(os.devnull, "wb") as out:
            process = self.lab.spawn("strace", "-f", "-qq", "-s", "32", "-e", "trace=bpf", "-o", calls,
                                     observer.netobsctl(True), "check", stdout=out)
        process.wait(timeout=observer.LOAD_S)
        loaded = set(re.findall(r'BPF_PROG_LOAD.*prog_name="netobs_tr_(\w+)"', lab.read(calls)))
        for layer, names in self.PER_PACKET.items():
            is_there = layer != "socket" or self.has_sockets
            self.assertEqual(bool(names & loaded), is_there, f"{layer}: {loaded}")

    # Programs that run for each packet, of one layer only.
    PER_PACKET = {"socket": {"ready", "ready2"}, "tcp": {"segm", "segm2"}, "qdisc": {"enq", "deq"},
                  "device": {"xmit", "busy", "rx", "gro", "why", "why2"}}

    @staticmethod
    def what(event):
        """The same by any tracer."""
        return tuple(event.get(name) for name in (
            "Layer", "Point", "SrcAddr", "SrcPort", "DstAddr", "DstPort", "Seq", "Offset", "Bytes",
            "NetnsInode", "Interface"))


class Journeys(Trace):
    """Each byte has exactly one journey, and each part of it is known."""

    def setUp(self):
        super().setUp()
        self.has_send = has_send()

    @staticmethod
    def call_of(calls, journey):
        """The call that moved its last byte."""
        last = journey["Offset"] + journey["Bytes"] - 1
        return next(call for call in calls if call.offset <= last < call.offset + call.length)

    def check_time(self, journey, where):
        parts = sum(journey.get(name, 0) for name in PARTS + ["UnknownNs"])
        self.assertEqual(journey["TotalNs"], parts, where)
        way = [step for step in journey["Steps"] if "Attempt" not in step]
        times = [step["AfterNs"] for step in way]
        self.assertEqual(times, sorted(times), where)
        self.assertEqual(times[-1], journey["TotalNs"], where)
        # Else a journey may begin with an attempt that did not arrive.
        if self.has_send:
            self.assertEqual(times[0], 0, where)
            self.assertIn(way[0]["Point"], ("send", "sent"), where)
        self.assertEqual(way[-1]["Point"], "read", where)

    def check_way(self, journey, network, where):
        """Namespaces in order, as its bytes have passed them."""
        way = [step for step in journey["Steps"] if "Attempt" not in step]
        order = [network.client.inode, network.router.inode, network.server.inode]
        passed = [one["NetnsInode"] for one in way if one["Point"] != "retransmit"]
        passed = [one for one, before in zip(passed, [None] + passed) if one != before]
        self.assertEqual(passed, order[::-1] if journey["Direction"] else order, where)

    def check_ends(self, journey, stream, where):
        begin, end = journey["TimeNs"], journey["TimeNs"] + journey["TotalNs"]
        wrote = self.call_of(stream.writes, journey)
        got = self.call_of(stream.reads, journey)
        if self.has_send:
            self.assertTrue(wrote.begin <= begin <= wrote.end, f"{where}: {wrote}")
        self.assertTrue(got.begin <= end <= got.end, f"{where}: {got}")

    def check_talk(self, one, journeys, network, where):
        for direction, stream in enumerate(one.streams):
            self.assertEqual(bytes_of(journeys, direction),
                             ([(0, stream.written)] if stream.written else [], 0), where)
            for each in (each for each in journeys if each["Direction"] == direction):
                text = f"{where}: {each}"
                self.check_time(each, text)
                if not self.with_unknown_parts([each]):
                    self.check_way(each, network, text)
                if self.has_sockets:
                    self.check_ends(each, stream, text)

    def with_unknown_parts(self, journeys):
        """Which the caller refuses."""
        return [one for one in journeys if self.has_send and "UnknownParts" in one]

    def trace(self, network, where):
        """@return journeys, which are those of the connections that were spoken on"""
        tracer = Tracer(self, network.address[1])
        spoken = list(self.talk(network, lab.sized(20)))
        journeys = tracer.stop()
        by_client = {}
        for own in by_connection(journeys).values():
            by_client[next(one["SrcPort"] for one in own if not one["Direction"])] = own
        for one in spoken:
            self.check_talk(one, by_client.pop(one.client[1]), network, f"{where}: {one}")
        self.assertFalse(by_client, where)
        return journeys

    def test_every_byte_has_one_journey(self):
        network, where = self.network()
        journeys = self.trace(network, where)
        self.assertFalse(self.with_unknown_parts(journeys), where)
        # A loaded host sends again what is on its way: then one of two is dropped.
        self.assertFalse([one for one in journeys if one["Drops"] and one["Attempts"] == 1], where)

    def test_bytes_that_are_lost_arrive_by_another_attempt(self):
        for _ in range(TRIES):
            network, where = self.network()
            network.router.run("nft", "-f", "-", input=LOSS.format(percent=20 if lab.is_shrunk() else 4))
            journeys = self.trace(network, where)
            if not self.with_unknown_parts(journeys):
                break
        self.assertFalse(self.with_unknown_parts(journeys), where)
        again = [one for one in journeys if one["Attempts"] > 1]
        self.assertTrue(again, where)
        self.assertTrue(any(one["RecoveryNs"] for one in again), where)
        dropped = [one for one in journeys if one["Drops"]]
        router, server = network.router.inode, network.server.inode
        self.assertTrue(any(self.drops_of(one)[router] for one in dropped), where)
        for one in dropped:
            drops = self.drops_of(one)
            # A loaded host sends again what is on its way: the server drops one of two.
            self.assertLessEqual(set(drops), {router, server}, f"{where}: {one}")
            self.assertLess(drops[router], one["Attempts"], f"{where}: {one}")

    @staticmethod
    def drops_of(journey):
        """How many, by namespace."""
        return collections.Counter(step["NetnsInode"] for step in journey["Steps"] if step["Point"] == "drop")

    def test_ipv6_and_ipv4_by_sockets_of_ipv6(self):
        if not has_all():
            self.skipTest("the kernel has no tracepoints of processes that write")
        for address, listens, shown in (
                (SERVER6, SERVER6, (CLIENT6, SERVER6)), (SERVER6, "::", (CLIENT6, SERVER6)),
                (SERVER, "::", (CLIENT, SERVER)), (f"::ffff:{SERVER}", "::", (CLIENT, SERVER))):
            with self.subTest(address=address, listens=listens):
                where = f"seed {self.seed}"
                journeys = self.trace(Network6(self.lab, address, listens), where)
                self.assertFalse(self.with_unknown_parts(journeys), where)
                for one in journeys:
                    self.assertEqual((one["SrcAddr"], one["DstAddr"])[::-1 if one["Direction"] else 1],
                                     shown, where)


class Rules(lab.LabTest):
    """An alert arms the tracer for its connection, for a time."""

    SLOW, FAST = 7001, 7002
    ROUNDS = 12

    def setUp(self):
        super().setUp()
        self.client, self.server = self.lab.ns("c"), self.lab.ns("s")
        self.lab.wire(self.client, "c0", [f"{CLIENT}/24"], self.server, "s0", [f"{ROUTER_IN}/24"])

    @staticmethod
    def answer(listener, seconds):
        with contextlib.closing(listener.accept()[0]) as end:
            while end.recv(100):
                time.sleep(seconds)
                end.send(b"answer")

    def talk(self, port, seconds):
        """Requests and answers that take so long; returns the client's port."""
        with self.server:
            listener = socket.create_server((ROUTER_IN, port))
        server = threading.Thread(target=self.answer, args=(listener, seconds))
        server.start()
        with self.client, listener, socket.create_connection((ROUTER_IN, port)) as end:
            for _ in range(self.ROUNDS):
                end.send(b"request")
                end.recv(100)
            name = end.getsockname()
        server.join(60)
        return name[1]

    def links(self):
        """To tracepoints, but for the one that round-trip times need."""
        return sum("raw_tracepoint" in text and "qdisc_dequeue" not in text
                   for text in bpf.fdinfos(self.process.pid))

    def test_alerts_arm_the_tracer(self):
        path = self.lab.path("trace")
        with open(path, "wb") as out:
            self.process = self.lab.spawn(
                observer.netobsctl(), "trace", "-o", "json", "--rule", "slow=app_latency > 30ms",
                "--for", "2", "-i", f"netns:{self.server.name}/s0", stdout=out)
        lab.wait_for(lambda: bpf.attached(self.server, "s0"), "the observer")
        self.assertEqual(self.links(), 0)
        self.talk(self.FAST, 0)
        self.assertEqual((self.links(), os.path.getsize(path)), (0, 0))
        port = self.talk(self.SLOW, .06)
        self.assertGreater(self.links(), 5)
        lab.wait_for(lambda: not self.links(), "the end of --for")
        self.process.send_signal(signal.SIGINT)
        self.assertEqual(self.process.wait(60), 0)
        records = lab.json_lines(path)
        self.assertEqual(records[0]["type"], "alert")
        journeys = [one for one in records if one["type"] == "journey"]
        self.assertEqual({tuple(sorted((one["SrcPort"], one["DstPort"]))) for one in journeys},
                         {tuple(sorted((port, self.SLOW)))})
        for direction, size in enumerate((len(b"request"), len(b"answer"))):
            own = [one for one in journeys if one["Direction"] == direction]
            ranges, double = union((one["Offset"], one["Offset"] + one["Bytes"]) for one in own)
            self.assertEqual((len(ranges), double), (1, 0), own)
            # All but what was there when the alert came.
            self.assertGreaterEqual(ranges[0][1] - ranges[0][0], (self.ROUNDS - 3) * size)


if __name__ == "__main__":
    lab.main("tracepoints of TCP", lambda: features()["trace"], at_once=2)
