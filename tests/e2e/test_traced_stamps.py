# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
# Alone: a flow of UDP that is not chosen takes a place too, until that is known
"""netobsctl trace, compared with the time stamps that sockets have of the kernel (SO_TIMESTAMPING)."""

import collections
import contextlib
import socket
import struct
import threading
import time

from lib import lab
from lib import traffic
from lib.observer import features
from lib.tracer import Network, Trace, Tracer

# linux/net_tstamp.h, linux/errqueue.h
SO_TIMESTAMPING = SCM_TIMESTAMPING = 37
TX_SOFTWARE, RX_SOFTWARE, SOFTWARE, OPT_ID = 1 << 1, 1 << 3, 1 << 4, 1 << 7
TX_SCHED, TX_ACK, OPT_TSONLY = 1 << 8, 1 << 9, 1 << 11
SENDS = TX_SOFTWARE | TX_SCHED | SOFTWARE | OPT_ID | OPT_TSONLY
SND, SCHED, ACK = range(3)
STAMP, ERROR = struct.Struct("qq"), struct.Struct("IBBBBII")


def stamp_of(ancillary):
    data = next(data for level, kind, data in ancillary
                if (level, kind) == (socket.SOL_SOCKET, SCM_TIMESTAMPING))
    seconds, ns = STAMP.unpack_from(data)
    return seconds * 10**9 + ns


def new_stamps():
    """{number that the kernel gives: {SND, SCHED, ACK: ns}}"""
    return collections.defaultdict(dict)


def take_stamps(end, found):
    """Those that are there; of a process that takes them late, the kernel may have no room for the last ones."""
    with contextlib.suppress(BlockingIOError):
        while True:
            _, ancillary, _, _ = end.recvmsg(0, 1024, socket.MSG_ERRQUEUE | socket.MSG_DONTWAIT)
            error = next(data for level, kind, data in ancillary if level in (socket.IPPROTO_IP, socket.IPPROTO_IPV6))
            kind, number = ERROR.unpack_from(error)[5:]
            found[number][kind] = stamp_of(ancillary)


def await_stamp(end, found, number, kind):
    """That of the last bytes, which has all others before it."""
    def is_there():
        take_stamps(end, found)
        return kind in found[number]
    lab.wait_for(is_there, "the last stamp")


class Stamps(Trace):
    def setUp(self):
        super().setUp()
        self.where = f"seed {self.seed}"
        self.network = Network(self.lab, self.random.random() < .5, False)

    def step(self, journey, point, ns):
        """When it has passed this point of a namespace."""
        at = [step for step in journey["Steps"] if step["Point"] == point
              and step["NetnsInode"] == ns.inode and "Attempt" not in step]
        self.assertEqual(len(at), 1, f"{self.where}: {point} {journey}")
        return journey["TimeNs"] + at[0]["AfterNs"]

    def check_sent(self, journey, stamps):
        """The kernel stamps what it sends on its way from a point to the next one."""
        text = f"{self.where}: {stamps} {journey}"
        queued = self.step(journey, "queue", self.network.client)
        transmitted = self.step(journey, "transmit", self.network.client)
        arrived = self.step(journey, "receive", self.network.router)
        self.assertLessEqual(stamps[SCHED], queued, text)
        self.assertTrue(transmitted <= stamps[SND] <= arrived, text)

    def test_bytes_of_a_stream(self):
        tracer = Tracer(self, self.network.address[1])
        client = self.network.connect()
        server = self.network.listener.accept()[0]
        self.addCleanup(client.close)
        self.addCleanup(server.close)
        client.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPING, SENDS | TX_ACK)
        ends, sent, stamps = [], 0, new_stamps()
        for _ in range(lab.sized(100)):
            size = self.random.choice((1, 100, 5000))
            traffic.send(client, server, size)
            ends.append(sent := sent + size)
            take_stamps(client, stamps)
            time.sleep(self.random.choice((0, 0, .002)))
        await_stamp(client, stamps, sent - 1, ACK)
        journeys = [one for one in tracer.stop() if not one["Direction"]]
        checked = 0
        for end in ends:
            own = [one for one in journeys if one["Offset"] < end <= one["Offset"] + one["Bytes"]]
            self.assertEqual(len(own), 1, self.where)
            got = stamps.get(end - 1, {})
            # A segment that goes on with the next call is stamped for that one.
            if len(got) < 3 or own[0]["Attempts"] > 1:
                continue
            checked += 1
            self.check_sent(own[0], got)
            self.assertLessEqual(own[0]["AckedTimeNs"], got[ACK], f"{self.where}: {got} {own}")
            self.assertGreaterEqual(got[ACK], self.step(own[0], "receive", self.network.server))
        self.assertGreater(checked, len(ends) / 2, self.where)

    def receive(self, end, count, arrivals):
        end.settimeout(lab.PATIENCE_S)
        for _ in range(count):
            data, ancillary, _, _ = end.recvmsg(65536, 1024)
            arrivals[int.from_bytes(data[:4], "big")] = stamp_of(ancillary)

    def test_datagrams(self):
        count, arrivals, stamps = lab.sized(100), {}, new_stamps()
        with self.network.server:
            server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
            server.bind(self.network.listener.getsockname())
        with self.network.client:
            client = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
            client.connect(self.network.address)
        self.addCleanup(client.close)
        self.addCleanup(server.close)
        server.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPING, RX_SOFTWARE | SOFTWARE)
        client.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPING, SENDS)
        tracer = Tracer(self, self.network.address[1], also="or udp")
        receiver = threading.Thread(target=self.receive, args=(server, count, arrivals))
        receiver.start()
        for i in range(count):
            client.send(i.to_bytes(4, "big").ljust(self.random.choice((4, 100, 1400)), b"x"))
            take_stamps(client, stamps)
            time.sleep(self.random.choice((0, 0, .002)))
        receiver.join()
        await_stamp(client, stamps, count - 1, SND)
        journeys = {one["Seq"] - 1: one for one in tracer.stop()
                    if one["Proto"] == socket.IPPROTO_UDP and not one["Direction"]}
        self.assertEqual((sorted(journeys), sorted(arrivals), sorted(stamps)),
                         (list(range(count)),) * 3, self.where)
        for number, journey in journeys.items():
            self.check_sent(journey, stamps[number])
            text = f"{self.where}: {arrivals[number]} {journey}"
            self.assertTrue(self.step(journey, "transmit", self.network.router) <= arrivals[number]
                            <= self.step(journey, "receive", self.network.server), text)


if __name__ == "__main__":
    lab.main("tracepoints of TCP", lambda: features()["trace"])
