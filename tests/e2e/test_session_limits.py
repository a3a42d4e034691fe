# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
"""Limits of TCP in records of sessions, compared with what the senders note about their waits.

Over a link that delays (lib/relay.py), all connections of a test at once. NETOBS_TEST_LIMITS=N tries N
random ones, NETOBS_TEST_SEED repeats them.
"""

import array
import contextlib
import fcntl
import json
import os
import select
import socket
import struct
import threading
import time

from lib import lab
from lib import relay
from lib.observer import features
from lib.sessions import RESET, Sessions
from lib.talkers import child, join, kill

CASES = int(os.environ.get("NETOBS_TEST_LIMITS", "24"))
AT_ONCE = 24
SECONDS = 1.5
DELAY_US = 40_000
TICK_S = 0.01  # of the kernel, at most
SLACK_S = 0.06  # what is counted in ticks of the kernel
SIOCOUTQ, SIOCOUTQNSD, SO_MEMINFO = 0x5411, 0x894b, 55
ADDRESS, NARROW = "192.0.2.2", "192.0.2.3"  # the congestion window to the latter is of 4 segments
FAST, SLOW = 7000, 7001
# linux/tcp.h, struct tcp_info
INFO = {"mss": 16, "unacked": 24, "sacked": 28, "lost": 32, "retrans": 36, "last_sent_ms": 44,
        "last_ack_ms": 56, "cwnd": 80, "total_retrans": 100, "window": 228}


def tcp_info(sock):
    raw = sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 256)
    return {name: struct.unpack_from("=I", raw, at)[0] for name, at in INFO.items()}


def queued(sock, request):
    count = array.array("i", [0])
    fcntl.ioctl(sock, request, count)
    return count[0]


def is_full(sock):
    """Less than a third of the buffer is free. poll(2) would change what the kernel knows."""
    memory = struct.unpack("=9I", sock.getsockopt(socket.SOL_SOCKET, SO_MEMINFO, 36))
    return memory[3] - memory[5] < memory[5] // 2


class Sender:
    """A client that notes for how long the buffer certainly kept it from sending, and for how long that is
    possible, in seconds."""

    def __init__(self, way="poll", port=FAST, to=ADDRESS, buffer=0, size=3000, pause=0, options=()):
        self.way, self.port, self.to, self.buffer = way, port, to, buffer
        self.size, self.pause, self.options = size, pause, options
        self.certain = self.possible = 0
        self.last = None  # when data had last left after the last write, if the buffer was full then

    def __str__(self):
        return (f"{self.way}, port {self.port}, to {self.to}, buffer {self.buffer}, size {self.size}, "
                f"pause {self.pause}, options {self.options}")

    def run(self, file, number):
        self.sock = socket.socket()
        if self.buffer:
            self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, self.buffer)
        for option in self.options:
            self.sock.setsockopt(socket.IPPROTO_TCP, option, 1)
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)  # it ends with what is queued
        self.sock.connect((self.to, self.port))
        self.sock.setblocking(self.way == "blocking")
        self.poller = select.epoll() if self.way == "epoll" else select.poll()
        self.poller.register(self.sock, select.POLLOUT)
        end = time.monotonic() + SECONDS
        while time.monotonic() < end:
            self.send()
            time.sleep(self.pause)
        note = {"number": number, "port": self.sock.getsockname()[1], "certain": self.certain,
                "possible": self.possible}
        os.write(file.fileno(), (json.dumps(note) + "\n").encode())
        self.sock.close()

    def send(self):
        if self.way in ("poll", "epoll"):
            self.wait()
        begin = time.monotonic()
        if self.last:
            self.possible += begin - self.last
        try:
            self.sock.send(bytes(self.size))
        except BlockingIOError:
            self.wait()
        now = time.monotonic()
        if self.way == "blocking":
            self.possible += now - begin
        self.last = now - tcp_info(self.sock)["last_sent_ms"] / 1000 if is_full(self.sock) else None

    def could_send(self, info):
        """But for the buffer: neither window is full, also once what is unsent has left, and no whole segment waits."""
        unsent = queued(self.sock, SIOCOUTQNSD)
        in_flight = info["unacked"] - info["sacked"] - info["lost"] + info["retrans"] + (unsent > 0)
        return unsent < info["mss"] and in_flight < info["cwnd"] and queued(self.sock, SIOCOUTQ) < info["window"]

    def wait(self):
        was_full, before, begin = is_full(self.sock), tcp_info(self.sock), time.monotonic()
        could_send = self.could_send(before)
        self.poller.poll()
        now = time.monotonic()
        info = tcp_info(self.sock)
        # Without the time in which this process waited for a CPU. Sending again is no wait for the buffer.
        if was_full and could_send and info["total_retrans"] == before["total_retrans"]:
            self.certain += max(0, now - begin - info["last_ack_ms"] / 1000 - TICK_S)
        if was_full or self.last:
            if queued(self.sock, SIOCOUTQNSD) < info["mss"]:
                self.possible += now - (self.last or begin - before["last_sent_ms"] / 1000)
        self.last = None


def read_all(sock, is_slow):
    with contextlib.suppress(ConnectionResetError):
        while sock.recv(4096 if is_slow else 1 << 20):
            time.sleep(0.02 if is_slow else 0)


def serve(listener, is_slow):
    lab.run_first()
    while True:
        threading.Thread(target=read_all, args=(listener.accept()[0], is_slow)).start()


class Limits(lab.LabTest):
    def setUp(self):
        super().setUp()
        self.link = relay.Link(self.lab, DELAY_US)
        self.link.b.address("eth0", f"{NARROW}/24")
        self.link.a.neighbour("eth0", self.link.a.mac, NARROW)  # of the other end
        self.link.a.ip("route", "add", NARROW, "dev", "eth0", "initcwnd", 4, "cwnd", "lock", 4)
        self.servers = []
        for port in FAST, SLOW:
            with self.link.b:
                listener = socket.socket()
                if port == SLOW:
                    listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 8192)
                listener.bind(("", port))
                listener.listen(100)
            self.servers.append(child(serve, listener, port == SLOW))
            listener.close()
        self.addCleanup(kill, self.servers)
        with self.link.a:  # the kernel takes the limit of the route when a connection ends
            socket.create_connection((NARROW, FAST)).close()

    def send(self, senders):
        """The note and the last record of each, whose records have been checked."""
        path = self.lab.path("notes")
        sessions = Sessions(self, "--interval", "0.3")
        with open(path, "a", encoding="utf-8") as file:
            join([child(sender.run, file, i, ns=self.link.a)
                  for i, sender in enumerate(senders)])
        notes = sorted(lab.json_lines(path), key=lambda note: note["number"])
        os.unlink(path)
        records = [one for one in sessions.stop()[0] if one["NetnsInode"] == self.link.a.inode]
        found = []
        for sender, note in zip(senders, notes):
            own = [one for one in records if one["SrcPort"] == note["port"]]
            self.assertTrue(own, sender)
            self.assertNotEqual(own[-1]["Ended"], "open")
            for before, one in zip([None] + own, own):
                limited = one["BufferLimitedUs"] + one["WindowLimitedUs"]
                self.assertLessEqual(limited, one["BusyUs"], one)
                for name in ("BufferLimitedUs", "WindowLimitedUs", "BusyUs"):
                    self.assertGreaterEqual(one[name], before[name] if before else 0, one)
            found.append((note, own[-1]))
        return found

    def check_bounds(self, note, one):
        """The record says no less than what is certain, and no more than what is possible."""
        limited = one["BufferLimitedUs"] / 1e6
        self.assertGreaterEqual(limited, 0.7 * note["certain"] - SLACK_S)
        self.assertLessEqual(limited, 1.1 * note["possible"] + SLACK_S)

    def test_what_limits_is_told_apart(self):
        # Without Nagle's algorithm: each write of an unfinished segment passes by the limit of the buffer.
        small = {"buffer": 4096, "options": [socket.TCP_NODELAY]}
        cases = (
            ("buffer", Sender("poll", **small)), ("buffer", Sender("epoll", **small)),
            ("buffer", Sender("again", **small)), ("buffer", Sender("blocking", **small)),
            ("buffer", Sender("poll", buffer=4096)),
            ("buffer", Sender("again", size=100000, **small)),
            ("window", Sender("poll", SLOW, size=30000)),
            ("window", Sender("blocking", SLOW, size=30000)),
            ("congestion", Sender("poll", to=NARROW, buffer=1 << 20, size=60000)),
            ("congestion", Sender("blocking", to=NARROW, buffer=1 << 20, size=60000)),
            ("none", Sender("poll", pause=0.1, buffer=1 << 18)),
            ("none", Sender("blocking", pause=0.1, buffer=1 << 18)),
            ("none", Sender("again", pause=0.1, size=5000, **small)))
        for (limit, sender), (note, one) in zip(cases, self.send([case for _, case in cases])):
            with self.subTest(limit=limit, sender=str(sender)):
                shares = {name: one[f"{name}LimitedUs"] / one["BusyUs"]
                          for name in ("Buffer", "Window")}
                self.check_bounds(note, one)
                for name, share in shares.items():
                    if limit == name.lower():  # the rest is the process's own on a slow machine
                        self.assertGreater(share, 0)
                    else:
                        self.assertLess(share, 0.1)

    def draw(self):
        choice, between = self.random.choice, self.random.randrange
        return Sender(choice(("poll", "epoll", "again", "blocking")), choice((FAST, FAST, FAST, SLOW)),
                      choice((ADDRESS, ADDRESS, ADDRESS, NARROW)),
                      choice((0, 4096, between(4096, 1 << 15), between(4096, 1 << 18))),
                      choice((between(1, 3000), between(1, 1 << 17))), choice((0, 0, 0.005, 0.05)),
                      choice(((), (socket.TCP_NODELAY,), (socket.TCP_CORK,))))

    def test_random_senders(self):
        waited = []
        for first in range(0, CASES, AT_ONCE):
            senders = [self.draw() for _ in range(min(AT_ONCE, CASES - first))]
            for sender, (note, one) in zip(senders, self.send(senders)):
                with self.subTest(sender=str(sender), note=note, record=one):
                    self.check_bounds(note, one)
                waited.append((note["certain"], one["BufferLimitedUs"] / 1e6, note["possible"]))
        self.note(f"{CASES} senders: certain, in the record, possible: "
                  f"{[round(sum(part), 1) for part in zip(*waited)]} s")


if __name__ == "__main__":
    lab.main("TCP sockets that programs follow", lambda: features().get("sessions"))
