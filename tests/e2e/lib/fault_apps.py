# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
"""
The applications of the fault laboratory: fault_apps.py ROLE JSON, a process each. They log what they do, by the
wall clock, and know nothing of netobs. Lines of JSON at standard input change them while they run; they end with it.

client   [begin, end, port, bytes out, bytes in, is answered] for each request; of a stream [time, bytes] by 50 ms
server   [read, answered, port of the client] for each request; of a stream as the client
rival    sends, by TCP or UDP; sink reads what rivals send; spin uses a CPU for some of each 100 ms
"""

import collections
import contextlib
import json
import os
import queue
import random
import select
import socket
import struct
import sys
import threading
import time

HEAD = struct.Struct("!III") # bytes that follow, of the answer, number
CHUNK = 1 << 16
BUCKET_NS = 50_000_000


class Options:
    """Those of the command line, which lines of standard input change."""

    def __init__(self, text):
        self.think_ms = self.read_ms = self.accept_ms = self.rcvbuf = self.sndbuf = self.burst = 0
        self.flows, self.read_bytes = 1, CHUNK
        self.__dict__.update(json.loads(text))
        self.random = random.Random(self.seed)
        self.log = []
        self.ends = set()

    def obey(self):
        for line in sys.stdin:
            self.__dict__.update(json.loads(line))
            for end in list(self.ends):
                self.tune(end)
            print("ok", flush=True)
        with open(self.path, "w", encoding="ascii") as file:
            json.dump(self.log, file)
        os._exit(0)

    def tune(self, end):
        for name, size in ((socket.SO_RCVBUF, self.rcvbuf), (socket.SO_SNDBUF, self.sndbuf)):
            if size and end.fileno() >= 0:
                end.setsockopt(socket.SOL_SOCKET, name, size)

    def socket(self, kind=socket.SOCK_STREAM):
        end = socket.socket(socket.AF_INET6 if ":" in self.address else socket.AF_INET, kind)
        self.own(end)
        return end

    def own(self, end):
        self.ends.add(end)
        self.tune(end)
        if end.type == socket.SOCK_STREAM:
            end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def close(self, end):
        self.ends.discard(end)
        end.close()

    def think(self, mean_ms):
        """As long as it always does, and as a fault makes it."""
        wait_ms = self.random.expovariate(1 / mean_ms) if mean_ms else 0
        if self.think_ms:
            wait_ms += self.think_ms * self.random.uniform(.5, 1.5)
        time.sleep(wait_ms / 1e3)

    def receive(self, end, size):
        """All of that size; late and little by little, if it reads slowly."""
        parts, left = [], size
        while left:
            if self.read_ms:
                select.select([end], [], [], 10)
                time.sleep(self.read_ms / 1e3)
            part = end.recv(min(left, self.read_bytes))
            if not part:
                raise ConnectionError
            parts.append(part)
            left -= len(part)
        return b"".join(parts)


class Server(Options):
    def answer(self, end, port):
        """One request."""
        follows, size, number = HEAD.unpack(self.receive(end, HEAD.size))
        self.receive(end, follows)
        begin = time.time_ns()
        self.think(self.serve_ms)
        end.sendall(HEAD.pack(size, 0, number) + bytes(size))
        self.log.append([begin, time.time_ns(), port])

    def serve(self, end):
        try:
            port = end.getpeername()[1]
            while True:
                self.answer(end, port)
        except OSError:
            self.close(end)

    def work(self, jobs):
        while True:
            self.serve(jobs.get())

    def loop(self, jobs, bell):
        """All connections of one thread, which another one accepts."""
        ends = {}
        while True:
            for end in select.select([bell, *ends], [], [])[0]:
                if end is bell:
                    bell.recv(1)
                    new = jobs.get()
                    ends[new] = new.getpeername()[1]
                    continue
                try:
                    self.answer(end, ends[end])
                except OSError:
                    del ends[end]
                    self.close(end)

    def starters(self):
        """Functions that give an accepted connection to a thread, by turns."""
        if self.workload == "pool":
            jobs = queue.Queue()
            for _ in range(6):
                threading.Thread(target=self.work, args=(jobs,), daemon=True).start()
            return [jobs.put]
        if self.workload == "loop":
            return [self.looper() for _ in range(2)]
        serve = self.stream if self.workload.startswith("stream") else self.serve
        return [lambda end: threading.Thread(target=serve, args=(end,), daemon=True).start()]

    def looper(self):
        jobs, (bell, ringer) = queue.Queue(), socket.socketpair()
        threading.Thread(target=self.loop, args=(jobs, bell), daemon=True).start()

        def start(end):
            jobs.put(end)
            ringer.send(b"x")
        return start

    def stream(self, end):
        try:
            pour(self, end) if self.workload == "stream down" else drain(self, end)
        except OSError:
            self.close(end)

    def accept(self):
        listener = self.socket()
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((self.address, self.port))
        listener.listen(self.backlog)
        print("ready", flush=True)
        starters = collections.deque(self.starters())
        while True:
            select.select([listener], [], [])
            if self.accept_ms:
                time.sleep(self.accept_ms / 1e3)
            end = listener.accept()[0]
            self.own(end)
            starters[0](end)
            starters.rotate()

    def datagrams(self):
        end = self.socket(socket.SOCK_DGRAM)
        end.bind((self.address, self.port))
        print("ready", flush=True)
        while True:
            if self.read_ms:
                select.select([end], [], [])
                time.sleep(self.read_ms / 1e3)
            data, peer = end.recvfrom(CHUNK)
            begin = time.time_ns()
            _, size, number = HEAD.unpack_from(data)
            self.think(self.serve_ms)
            end.sendto(HEAD.pack(0, 0, number) + bytes(size), peer)
            self.log.append([begin, time.time_ns(), peer[1]])

    def run(self):
        self.datagrams() if self.workload == "udp" else self.accept()


def pour(app, end):
    """Send for ever, in pieces."""
    while True:
        if app.think_ms:
            app.think(0)
        end.sendall(bytes(1 << 14))


def drain(app, end):
    while True:
        if app.read_ms:
            time.sleep(app.read_ms / 1e3)
        size = len(end.recv(app.read_bytes))
        if not size:
            raise ConnectionError
        now = time.time_ns()
        if app.log and now - app.log[-1][0] < BUCKET_NS:
            app.log[-1][1] += size
        else:
            app.log.append([now, size])


class Client(Options):
    def size(self, limits):
        return self.random.randint(*limits)

    def connect(self):
        end = self.socket()
        end.settimeout(self.timeout_s)
        try:
            end.connect((self.address, self.port))
        except OSError:
            self.close(end)
            raise
        return end

    def exchange(self, end, out, back):
        end.sendall(HEAD.pack(out, back, 0) + bytes(out))
        size, _, _ = HEAD.unpack(self.receive(end, HEAD.size))
        self.receive(end, size)

    def request(self, end):
        """One request, with a connection of its own if there is none; @return the connection, or None."""
        out, back = self.size(self.out), self.size(self.back)
        begin, port, is_answered = time.time_ns(), end.getsockname()[1] if end else 0, 0
        try:
            end = end or self.connect()
            port = end.getsockname()[1]
            self.exchange(end, out, back)
            is_answered = 1
        except OSError:
            if end:
                self.close(end)
            end = None
        self.log.append([begin, time.time_ns(), port, out, back, is_answered])
        return end

    def converse(self):
        """Requests one by one, some on each connection."""
        end, left = None, 0
        while True:
            if end and not left:
                self.close(end)
                end = None
            if not end:
                left = self.size(self.requests)
            end = self.request(end)
            left -= 1
            self.think(self.idle_ms)

    def multiplex(self):
        """Several requests at once on a connection: as HTTP/2, without turns."""
        while True:
            with contextlib.suppress(OSError), self.connect() as end:
                self.use_slots(end)

    def pause_s(self):
        return (self.random.expovariate(1 / self.idle_ms) + self.think_ms * self.random.uniform(.5, 1.5)) / 1e3

    def use_slots(self, end):
        port, begun = end.getsockname()[1], {}
        due = {number: time.monotonic() + self.pause_s() for number in range(self.slots)}
        while True:
            if select.select([end], [], [], max(0, min(due.values(), default=1e9) - time.monotonic()))[0]:
                size, _, number = HEAD.unpack(self.receive(end, HEAD.size))
                self.receive(end, size)
                begin, out, back = begun.pop(number)
                self.log.append([begin, time.time_ns(), port, out, back, 1])
                due[number] = time.monotonic() + self.pause_s()
            for number in [one for one, when in due.items() if when <= time.monotonic()]:
                del due[number]
                begun[number] = time.time_ns(), *(self.size(limits) for limits in (self.out, self.back))
                end.sendall(HEAD.pack(*begun[number][1:], number) + bytes(begun[number][1]))

    def datagrams(self):
        """Some datagrams at once; what is not answered in time is asked again."""
        end, number = self.socket(socket.SOCK_DGRAM), 0
        end.connect((self.address, self.port))
        port = end.getsockname()[1]
        while True:
            out, back, begin = self.size(self.out), self.size(self.back), time.time_ns()
            waiting = set(range(number, number + self.size(self.requests)))
            number += len(waiting)
            while waiting:
                for one in waiting:
                    end.send(HEAD.pack(0, back, one) + bytes(out))
                self.take(end, waiting, time.monotonic() + self.retry_s)
            self.log.append([begin, time.time_ns(), port, out, back, 1])
            self.think(self.idle_ms)

    def take(self, end, waiting, until):
        while waiting and time.monotonic() < until:
            if select.select([end], [], [], until - time.monotonic() if until > time.monotonic() else 0)[0]:
                if self.read_ms:
                    time.sleep(self.read_ms / 1e3)
                try:
                    waiting.discard(HEAD.unpack_from(end.recv(CHUNK))[2])
                except OSError:
                    time.sleep(.01)

    def stream(self):
        while True:
            try:
                end = self.connect()
                end.settimeout(None)
                pour(self, end) if self.workload == "stream up" else drain(self, end)
            except OSError:
                time.sleep(.05)

    def run(self):
        print("ready", flush=True)
        what = {"udp": self.datagrams, "h2": self.multiplex, "stream up": self.stream, "stream down": self.stream}
        what = what.get(self.workload, self.converse)
        for _ in range(self.clients - 1):
            threading.Thread(target=what, daemon=True).start()
        what()


class Rival(Options):
    """Sends at a rate (bits a second; 0: as fast as it can), steadily or in bursts of so many bytes."""

    def run(self):
        ends = [self.socket(socket.SOCK_DGRAM if self.proto == "udp" else socket.SOCK_STREAM)
                for _ in range(self.flows)]
        for end in ends:
            end.connect((self.address, self.port))
        print(*(end.getsockname()[1] for end in ends), flush=True)
        for end in ends[1:]:
            threading.Thread(target=self.send, args=(end,), daemon=True).start()
        self.send(ends[0])

    def send(self, end):
        size = 1200 if self.proto == "udp" else CHUNK
        begin, sent = time.monotonic(), 0
        while True:
            for _ in range(max(1, self.burst // size)):
                try:
                    end.send(bytes(size))
                except OSError: # the sink is not there, or no longer
                    time.sleep(.01)
                sent += size
            if self.rate:
                time.sleep(max(0, begin + sent * 8 / self.rate - time.monotonic()))


class Sink(Options):
    def run(self):
        ends = [self.socket(), self.socket(socket.SOCK_DGRAM)]
        for end in ends:
            end.bind((self.address, self.port))
        listener = ends[0]
        listener.listen(64)
        print("ready", flush=True)
        while True:
            for end in select.select(ends, [], [])[0]:
                if end is listener:
                    ends.append(end.accept()[0])
                elif not end.recv(1 << 20) and end.type == socket.SOCK_STREAM:
                    ends.remove(end)


class Spin(Options):
    def run(self):
        print("ready", flush=True)
        while True:
            end = time.monotonic() + self.busy_ms / 1e3
            while time.monotonic() < end:
                pass
            time.sleep(max(0, .1 - self.busy_ms / 1e3))


def main():
    app = {"server": Server, "client": Client, "rival": Rival, "sink": Sink, "spin": Spin}[sys.argv[1]](sys.argv[2])
    threading.Thread(target=app.obey, daemon=True).start()
    app.run()


if __name__ == "__main__":
    main()
