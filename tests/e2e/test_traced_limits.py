# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
"""netobsctl trace of many connections, by many tracers, and where there is no room for more."""

import collections
import json
import os
import re
import resource
import signal
import socket
import time

from lib import lab
from lib import observer
from lib.observer import features
from lib import traffic
from lib.tracer import CLIENT, Host, Tracer, by_connection, bytes_of

CUT = re.compile(r"(\d+) beyond --max-events")
CUT_BY_RATE = re.compile(r"(\d+) beyond --max-rate")
LOST = re.compile(r"not traced for want of room|[1-9]\d* without room")
TRIES = 4
IDLE_SECONDS = 5 # before a connection makes room


class Limited(Host):
    def check_all(self, journeys, sizes):
        """@sizes: bytes of either direction, by the client's port."""
        found = {}
        for own in by_connection(journeys).values():
            ports = {one["SrcPort"] for one in own} - {self.port}
            self.assertEqual(len(ports), 1, self.where)
            found[ports.pop()] = own
        self.assertEqual(sorted(found), sorted(sizes), self.where)
        for port, own in found.items():
            for direction in range(2):
                self.assertEqual(bytes_of(own, direction), ([(0, sizes[port])], 0),
                                 f"{self.where}: {port}")


class Chosen(Limited):
    def test_few_of_many_are_traced(self):
        """Events are those of the chosen connections alone, and all of them."""
        others = min(int(os.environ.get("NETOBS_TEST_CONNECTIONS", "1000")), 100_000)
        chosen = max(others // 100, 10)
        other = self.listen(self.port + 1)
        tracer = Tracer(self, self.port)
        pairs = {}
        for i in range(others + chosen):
            is_chosen = i % (others // chosen + 1) == 0 and len(pairs) < chosen
            pair = self.pair(None if is_chosen else other)
            traffic.exchange(*pair, [size := self.random.randint(1, 5000)])
            if is_chosen:
                pairs[pair[0].getsockname()[1]] = size
            self.close(pair)
        self.check_all(tracer.stop(), pairs)

    def test_an_idle_connection_makes_room(self):
        most = self.random.randint(2, 5)
        tracer = Tracer(self, self.port, "--max-connections", most)
        time.sleep(IDLE_SECONDS + 1) # the marker has ended
        idle = [self.pair() for _ in range(most)]
        sizes = {}
        for pair in idle:
            sizes[pair[0].getsockname()[1]] = size = self.random.randint(1, 5000)
            traffic.exchange(*pair, [size])
        time.sleep(IDLE_SECONDS + 2)
        for pair in idle[1:]:
            traffic.exchange(*pair, [10])
            sizes[pair[0].getsockname()[1]] += 10
        pair = self.pair()
        sizes[pair[0].getsockname()[1]] = 77
        traffic.exchange(*pair, [77])
        self.check_all(tracer.stop(), sizes)

    def test_ended_connections_make_room_where_no_layer_sees_that_all_is_read(self):
        most = 12
        tracer = Tracer(self, self.port, "--max-connections", most, "--show", "events", "--layer", "tcp")
        for _ in range(2 * most): # they end before the first of them is idle for long enough
            pair = self.pair()
            traffic.exchange(*pair, [100])
            self.close(pair)
            time.sleep(IDLE_SECONDS / (2 * most))
        self.assertEqual(2 * most, len(by_connection(tracer.stop())), self.where)


class Layers(Limited):
    """Events of layers that are not wanted take nothing of the limits, and are not counted."""

    ROUNDS, EVENTS = 40, 20 # fewer events than these have, and more than a marker
    READS = 40_000 # of single bytes; the segments are few
    SHARE, LEAST = 16, 100 # of reads in a second: the rest may be as slow

    def trace(self, talk, *limit):
        """@return events without the limit and with it; what is cut by either limit"""
        for _ in range(TRIES):
            tracers = [Tracer(self, self.port, "--show", "events", "--layer", "tcp", *more)
                       for more in ((), limit)]
            for _ in range(3):
                talk(self.pair())
            (events, said), (shown, messages) = (tracer.end() for tracer in tracers)
            cut = [int(found[1]) if (found := pattern.search(messages)) else 0 for pattern in (CUT, CUT_BY_RATE)]
            if not LOST.search(said + messages) and not cut[1]:
                break
            self.note(f"connections of other tests have taken room: {said}{messages}")
        self.assertNotRegex(said + messages, LOST, self.where)
        for one in events + shown:
            self.assertEqual(one["Layer"], "tcp", self.where)
            self.assertIn("Offset", one, self.where) # the SYN of its stream was seen, of another layer
        return self.count(events), self.count(shown), *cut

    def count(self, events):
        """Events by connection, where each is."""
        found = collections.defaultdict(collections.Counter)
        for one in events:
            port, = {one["SrcPort"], one["DstPort"]} - {self.port}
            found[port][one["Direction"], one["Point"], one["Offset"]] += 1
        return found

    def test_events_of_a_connection(self):
        def talk(pair):
            traffic.exchange(*pair, [self.random.randint(1, 1000) for _ in range(self.ROUNDS)])

        every, some, cut, _ = self.trace(talk, "--max-events", self.EVENTS)
        self.assertEqual(len(every), 3, self.where)
        self.assertEqual(set(some), set(every), self.where)
        for port, own in every.items():
            self.assertEqual(some[port].total(), min(own.total(), self.EVENTS), self.where)
            self.assertFalse(some[port] - own, self.where)
        total = [sum(own.total() for own in found.values()) for found in (some, every)]
        self.assertEqual(total[0] + cut, total[1], self.where)

    def read_bytes(self, pair):
        """@return reads in a second, on one CPU; fewer if there are fewer of them"""
        cpus, number = os.sched_getaffinity(0), lab.sized(self.READS)
        os.sched_setaffinity(0, {min(cpus)})
        try:
            pair[0].sendall(bytes(number))
            begin = time.monotonic()
            for _ in range(number):
                self.assertEqual(len(pair[1].recv(1)), 1)
            return number / max(time.monotonic() - begin, 1)
        finally:
            os.sched_setaffinity(0, cpus)

    def test_events_of_a_second(self):
        """Reads of single bytes are many more than the limit; connections begin after these."""
        tracer, rates = Tracer(self, self.port, "--show", "events", "--layer", "tcp"), []
        limit = max(int(self.read_bytes(self.pair()) / self.SHARE), self.LEAST)
        tracer.end()
        every, some, _, cut_by_rate = self.trace(lambda pair: rates.append(self.read_bytes(pair)),
                                                 "--max-rate", limit)
        self.note(f"{limit} of {rates}")
        self.assertGreater(min(rates) / 2, limit, self.where) # a second may begin in between
        self.assertEqual(len(every), 3, self.where)
        self.assertEqual(cut_by_rate, 0, self.where)
        self.assertEqual(some, every, self.where)


class Budgets(Limited):
    """Many that are open at a time, of which a few are armed."""

    CONNECTIONS, ROUNDS = 20_000, 4
    EVENTS = 40 # fewer than these have, and more than a marker

    def setUp(self):
        super().setUp()
        wanted = int(os.environ.get("NETOBS_TEST_CONNECTIONS", lab.sized(self.CONNECTIONS)))
        self.others = min(wanted, 100_000)
        self.chosen = max(self.others // 20, 10) if self.others < 20_000 else 1000
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        self.addCleanup(resource.setrlimit, resource.RLIMIT_NOFILE, (soft, hard))
        self.each = min(4000, hard // 2 - 200) # connections of a process

    def hold(self, number, port, end):
        """In a process of its own: connections that talk once they are told to."""
        lab.die_with_parent()
        listener = self.listen(port)
        pairs = [self.pair(listener) for _ in range(number)]
        end.send(b"x")
        while end.recv(1):
            for pair in pairs:
                traffic.exchange(*pair, [10])
            end.send(b"x")

    def hold_others(self):
        """A socket for each process that holds some of them."""
        ends, left = [], self.others
        while left > 0:
            here, there = socket.socketpair()
            self.addCleanup(here.close)
            child = os.fork()
            if not child:
                try:
                    here.close()
                    self.hold(min(left, self.each), self.port + 1 + len(ends), there)
                finally:
                    os._exit(0)
            there.close()
            self.addCleanup(os.waitpid, child, 0)
            self.addCleanup(here.shutdown, socket.SHUT_WR)
            ends.append(here)
            left -= self.each
        for end in ends:
            self.assertEqual(end.recv(1), b"x", self.where)
        return ends

    def trace(self, others, chosen, pause_s):
        """
        @return bytes by the client's port, and for a tracer without and one with a budget: events, messages
        """
        options = "--show", "events", "--max-connections", 2 * self.chosen
        every = Tracer(self, self.port, *options)
        some = Tracer(self, self.port, *options, "--max-events", self.EVENTS)
        sizes = {}
        for end in others:
            end.send(b"x")
        for own in chosen:
            size = self.random.randint(1, 5000)
            sizes[own[0].getsockname()[1]] = self.ROUNDS * size
            traffic.exchange(*own, [size] * self.ROUNDS)
            time.sleep(pause_s)
        for end in others:
            self.assertEqual(end.recv(1), b"x", self.where)
        return sizes, every.end(), some.end()

    def test_the_armed_of_many_are_traced_and_what_is_cut_is_counted(self):
        others = self.hold_others()
        chosen = [self.pair() for _ in range(self.chosen)]
        for attempt in range(TRIES): # a busy host reads the ring later
            sizes, (events, said), (shown, messages) = self.trace(others, chosen, attempt * .002)
            if not LOST.search(said + messages):
                break
            self.note(f"the ring, or connections of other tests, had no room: {said}{messages}")
        self.assertNotRegex(said + messages, LOST, self.where)
        ports = {frozenset((one["SrcPort"], one["DstPort"])) - {self.port} for one in events}
        self.assertEqual(ports, {frozenset([port]) for port in sizes}, self.where)
        for own in by_connection(events).values():
            port, = {one["SrcPort"] for one in own} - {self.port}
            for direction in range(2):
                taken = sum(one["Bytes"] for one in own
                            if one["Direction"] == direction and one["Point"] == "read")
                self.assertEqual(taken, sizes[port], f"{self.where}: {port}")
        for own in by_connection(shown).values():
            self.assertLessEqual(len(own), self.EVENTS, self.where)
        counted = int(CUT.search(messages)[1])
        self.assertGreater(counted, 0, self.where)
        self.assertEqual(len(shown) + counted, len(events), f"{self.where}: {messages}")


class Together(Limited):
    def test_as_many_as_may_be_are_complete_or_count(self):
        """Each has all events of each connection, or says how many it lacks."""
        number = int(os.environ.get("NETOBS_TEST_TRACERS", "12"))
        tracers = []
        for i in range(number):
            path = self.lab.path(f"many-{i}")
            with open(path, "wb") as out, open(f"{path}-errors", "wb") as errors:
                tracers.append((path, self.lab.spawn(
                    observer.netobsctl(release=True), "trace", "-o", "json", "--max-connections", "512",
                    f"tcp port {self.port}", stdout=out, stderr=errors)))
        for path, _ in tracers:
            lab.wait_for(lambda path=path: self.is_tracing(path), "each tracer", 600)
        sizes = {}
        for _ in range(5):
            pair = self.pair()
            sizes[pair[0].getsockname()[1]] = size = self.random.randint(1, 20_000)
            traffic.exchange(*pair, [size])
        lab.await_quiet(self.host)
        for _, process in tracers:
            process.send_signal(signal.SIGINT)
        complete = 0
        for path, process in tracers:
            self.assertEqual(process.wait(timeout=120), 0, self.where)
            with open(path, encoding="utf-8") as file, open(f"{path}-errors", encoding="utf-8") as errors:
                journeys, said = [json.loads(line) for line in file], errors.read()
            own = [one for one in journeys if {one["SrcPort"], one["DstPort"]} & set(sizes)
                   and one["SrcAddr"] == CLIENT]
            # Connections of other tests may have taken its room.
            if "events that are missing" in said or "want of room" in said:
                continue
            complete += 1
            self.check_all(own, sizes)
        self.assertGreater(complete, 0, self.where)

    def is_tracing(self, path):
        """It has seen a connection of its own."""
        traffic.exchange(*self.pair(), [1])
        time.sleep(.1)
        with open(path, "rb") as file:
            return file.read(1)


if __name__ == "__main__":
    lab.main("tracepoints of TCP", lambda: features()["trace"])
