# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
# Needs: iproute2 nftables
"""The part of a journey that netobsctl trace blames is the one that was made slow."""

import collections
import contextlib
import json
import socket
import threading
import time

from lib import lab
from lib import relay
from lib import traffic
from lib.tracer import PARTS, PORT, Network, Trace, Tracer, bytes_of, union, has_all

SO_SNDBUFFORCE = 32
TRIES = 5 # of what a timer may send unseen (see traffic.send_awake)
BLAMED = .6 # of the time, at least; how much the rest takes depends on the host


def drain(end, size, pause=0):
    time.sleep(pause)
    traffic.receive(end, size)


class Parts(Trace):
    def check_blame(self, journeys, part, where):
        sums = collections.Counter()
        for one in journeys:
            sums.update({name: one.get(name, 0) for name in PARTS + ["UnknownNs", "TotalNs"]})
        self.assertTrue(journeys, where)
        self.assertEqual(sums["TotalNs"], sum(sums[name] for name in PARTS + ["UnknownNs"]), where)
        self.assertGreater(sums[part], BLAMED * sums["TotalNs"], f"{where}: {sums}")

    def check_once(self, journeys, direction, size, where):
        self.assertEqual(bytes_of(journeys, direction), ([(0, size)], 0), where)

    def send(self, network, size, pause=0, prepare=lambda end: None):
        """So many bytes by one call, which the server reads after a pause."""
        with contextlib.closing(network.connect()) as client, \
                contextlib.closing(network.listener.accept()[0]) as server:
            prepare(client)
            reader = threading.Thread(target=drain, args=(server, size, pause))
            reader.start()
            client.sendall(bytes(size))
            reader.join(60)
            self.assertFalse(reader.is_alive())

    def test_a_slow_reader_is_the_reader(self):
        network, where = self.network()
        size = self.random.randint(1, 10_000)
        tracer = Tracer(self, network.address[1])
        self.send(network, size, pause=1)
        journeys = tracer.stop()
        self.check_once(journeys, 0, size, where)
        self.check_blame(journeys, "ReaderNs", where)

    def test_a_full_window_is_tcp(self):
        """What has no room at the receiver waits in the sender's socket."""
        network, where = self.network()
        size = self.random.randint(500_000, 900_000)
        network.listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 20_000)
        tracer = Tracer(self, network.address[1])
        self.send(network, size, pause=1.5, prepare=lambda end: end.setsockopt(
            socket.SOL_SOCKET, SO_SNDBUFFORCE, 4 << 20))
        journeys = tracer.stop()
        self.check_once(journeys, 0, size, where)
        self.check_blame([one for one in journeys if one["Offset"] > size // 2], "TcpNs", where)

    def test_a_slow_server_is_between_two_journeys(self):
        network, where = self.network()
        tracer = Tracer(self, network.address[1])
        with contextlib.closing(network.connect()) as client, \
                contextlib.closing(network.listener.accept()[0]) as server:
            begin = time.monotonic_ns()
            client.send(b"question")
            server.recv(100)
            time.sleep(1)
            server.send(b"answer")
            client.recv(100)
            took = time.monotonic_ns() - begin
        there, back = sorted(tracer.stop(), key=lambda one: one["Direction"])
        thought = back["TimeNs"] - there["TimeNs"] - there["TotalNs"]
        self.assertGreater(thought, BLAMED * took, f"{where}: {there} {back}")

    def test_a_delayed_link_is_the_device(self):
        link = relay.Link(self.lab, delay_us=1_000_000)
        tracer = Tracer(self, PORT)
        with self.linked(link) as (client, server):
            traffic.send(client, server, 1000)
        journeys = tracer.stop()
        self.check_once(journeys, 0, 1000, "")
        self.check_blame(journeys, "DeviceNs", "")

    def test_bytes_that_a_link_loses_have_one_journey(self):
        """No kernel reports what the link has lost."""
        link = relay.Link(self.lab, delay_us=4_000, loss_ppm=40_000, seed=self.seed)
        size, where = self.random.randint(200_000, 400_000), f"seed {self.seed}"
        for _ in range(TRIES):
            tracer = Tracer(self, PORT)
            with self.linked(link) as (client, server):
                traffic.send_awake(client, server, size)
            journeys = tracer.stop()
            self.check_once(journeys, 0, size, where)
            if not any("UnknownParts" in one for one in journeys):
                break
        self.assertFalse([one for one in journeys if "UnknownParts" in one], where)
        again = [one for one in journeys if one["Attempts"] > 1]
        self.assertTrue(again, where)
        # It takes an answer to what came later, or a timer that is longer.
        quickest = min(one["DeviceNs"] for one in journeys)
        recovered = [one for one in again if one["RecoveryNs"]]
        self.assertTrue(recovered, where)
        for one in recovered:
            self.assertGreater(one["RecoveryNs"], quickest, f"{where}: {one}")

    @contextlib.contextmanager
    def linked(self, link):
        address = relay.ADDRESSES[4][1], PORT
        with link.b:
            listener = socket.create_server(address)
        with listener, link.a, socket.create_connection(address, timeout=60) as client:
            with listener.accept()[0] as server:
                yield client, server


class Queues(Trace):
    """
    tbf at the router, towards the server. A timer dequeues. One of TCP may run on another CPU than the sender:
    so what is not seen is repeated.
    """

    def limited(self, *options):
        network, where = Network(self.lab, self.random.random() < .5, False), f"seed {self.seed}"
        network.router.tc("qdisc", "add", "dev", "rs", "root", "tbf", *options)
        return network, where

    @staticmethod
    def send(network, size):
        with network.connect() as client, network.listener.accept()[0] as server:
            traffic.send_awake(client, server, size)

    @staticmethod
    def wait_of(journey, network):
        """From enqueue to dequeue."""
        at = {step["Point"]: step["AfterNs"] for step in journey["Steps"]
              if "Attempt" not in step and step["NetnsInode"] == network.router.inode
              and step["Point"] in ("enqueue", "dequeue")}
        return at["dequeue"] - at["enqueue"]

    def test_a_queue_is_the_qdisc(self):
        """A first window of segments, of which each waits for those before it."""
        network, where = self.limited("rate", "1mbit", "burst", "2kb", "limit", "1mb")
        size = 14_000
        for _ in range(TRIES):
            tracer = Tracer(self, network.address[1])
            self.send(network, size)
            journeys = tracer.stop()
            # TCP may send the last one again while it waits: which of the two arrives is another test's.
            waited = [one for one in journeys if one["Attempts"] == 1]
            if not any("UnknownParts" in one for one in waited):
                break
        self.assertEqual(bytes_of(journeys, 0), ([(0, size)], 0), where)
        Parts.check_blame(self, waited, "QdiscNs", where)
        for one in waited:
            self.assertNotIn("UnknownParts", one, where)
            self.assertTrue(0 <= self.wait_of(one, network) <= one["QdiscNs"], f"{where}: {one}")
        waits = sum(self.wait_of(one, network) for one in waited)
        self.assertGreater(waits, .9 * sum(one["QdiscNs"] for one in waited), where)

    @staticmethod
    def count_drops(network):
        queue, = json.loads(network.router.tc("-s", "-j", "qdisc", "show", "dev", "rs"))
        return queue["drops"]

    def test_a_full_queue_drops_what_it_counts(self):
        network, where = self.limited("rate", "20mbit", "burst", "4kb", "limit", "12kb")
        # Else it counts the segments of a packet, and TCP has one drop.
        network.client.offload("c0", "tso", "gso", on=False)
        for _ in range(TRIES):
            before = self.count_drops(network)
            tracer = Tracer(self, network.address[1], "--show", "events")
            self.send(network, self.random.randint(200_000, 400_000))
            events = tracer.stop()
            counted = self.count_drops(network) - before
            passed = [one for one in events if one["Point"] == "dequeue" and one["Bytes"]
                      and one["NetnsInode"] == network.router.inode]
            again = sum(one["Bytes"] for one in passed) - union(
                (one["Offset"], one["Offset"] + one["Bytes"]) for one in passed)[1]
            if again == (sent := max(one["Offset"] + one["Bytes"] for one in passed)):
                break
        drops = [one for one in events if one["Point"] == "drop" and one["Bytes"]]
        self.assertGreater(counted, 0, where)
        self.assertTrue(len(drops) <= counted <= len(drops) + tracer.missed,
                        f"{where}: {counted}, {len(drops)}, {tracer.missed}")
        for one in drops:
            self.assertEqual((one["Interface"], one["NetnsInode"], one["Direction"]),
                             ("rs", network.router.inode, 0), f"{where}: {one}")
        self.assertEqual(again, sent, where)


if __name__ == "__main__":
    lab.main("tracepoints of processes that write", has_all)
