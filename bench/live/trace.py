#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
"""
What netobsctl trace costs connections that it does not trace: their throughput beside a tracer, by that without one.

Rounds with and without the tracer alternate, in an order that turns (without, with, with, without), so that what changes slowly
on the host falls on both. The tracer has connections of its own, which talk now and then. Beside 0 traced connections are empty
programs at the same tracepoints: what the kernel takes for calling them.
"""

import argparse
import contextlib
import os
import signal
import socket
import subprocess
import threading
import time

import command
import method
from lib import lab
from lib import observer

ADDRESS, OTHERS_PORT, TRACED_PORT = "10.0.1.1", 5001, 5002
SECONDS = 1.0 # of a measurement
TRACED = (0, 1, 1_000)
EXIT_NOISY = 3


class Place(lab.Lab):
    """A client and a server, with a stream or datagrams between them that no tracer chooses."""

    def __init__(self, traced, extra):
        super().__init__()
        self.extra = extra
        self.client, self.server = map(self.ns, ("client", "server"))
        self.wire(self.client, "eth0", ["10.0.1.2/24"], self.server, "eth0", [f"{ADDRESS}/24"])
        with self.server:
            self.listener = socket.create_server((ADDRESS, OTHERS_PORT))
            self.own = socket.create_server((ADDRESS, TRACED_PORT), backlog=traced)
            self.sink = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
            self.sink.bind((ADDRESS, OTHERS_PORT))
        self.traced, self.pairs = traced, []

    def open_traced(self):
        self.close_traced()
        for _ in range(self.traced):
            with self.client:
                client = socket.create_connection((ADDRESS, TRACED_PORT))
            self.pairs.append((client, self.own.accept()[0]))

    def close_traced(self):
        for pair in self.pairs:
            for end in pair:
                end.close()
        self.pairs = []

    def stream(self):
        """Bytes a second."""
        with self.client:
            client = socket.create_connection((ADDRESS, OTHERS_PORT))
        server = self.listener.accept()[0]
        data, received = bytes(1 << 18), 0

        def send():
            with contextlib.suppress(OSError):
                while True:
                    client.sendall(data)
        sender = threading.Thread(target=send)
        sender.start()
        start = time.monotonic()
        while (now := time.monotonic()) - start < SECONDS:
            received += len(server.recv(1 << 20))
        server.close()
        sender.join()
        client.close()
        return received / (now - start)

    def datagrams(self):
        """Sent a second; none is read, so they take the way to a full socket."""
        with self.client, socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
            client.connect((ADDRESS, OTHERS_PORT))
            start, sent = time.monotonic(), 0
            while (now := time.monotonic()) - start < SECONDS:
                for _ in range(100):
                    client.send(b"x")
                sent += 100
        return sent / (now - start)


class Tracer:
    """It is ready once it reports what one of its connections does."""

    def __init__(self, place):
        self.place = place
        self.process = place.spawn(observer.netobsctl(), "trace", "-o", "json", *place.extra,
                                   f"tcp port {TRACED_PORT}", stdout=subprocess.PIPE,
                                   stderr=subprocess.DEVNULL)
        self.is_ready = threading.Event()
        self.reader = threading.Thread(target=self.read)
        self.reader.start()
        place.open_traced()
        while not self.is_ready.wait(.1):
            if self.process.poll() is not None:
                raise RuntimeError("netobsctl trace has ended")
            client, server = place.pairs[0]
            client.send(b"x")
            server.recv(1)

    def read(self):
        for _ in self.process.stdout:
            self.is_ready.set()

    def stop(self):
        self.process.send_signal(signal.SIGINT)
        self.reader.join()
        self.process.wait()
        self.place.close_traced()


class EmptyPrograms:
    """Where a tracer has programs."""

    def __init__(self, place):
        self.process = place.spawn(os.path.join(os.environ["NETOBS_BENCH"], "tracepoints"), stdout=subprocess.PIPE)
        if self.process.stdout.readline() != b"ready\n":
            raise RuntimeError("no empty programs")

    def stop(self):
        self.process.terminate()
        self.process.wait()


def measure_round(place, measure):
    """The ratio of throughput beside the tracer to that without it."""
    before = measure()
    tracer = (Tracer if place.traced else EmptyPrograms)(place)
    beside = measure() * measure()
    tracer.stop()
    return (beside / (before * measure())) ** .5


def measure_case(name, traced, extra, most, width):
    place = Place(traced, extra)
    ratios, others = [], method.Others()
    try:
        while not method.decides(len(ratios), most) or \
                (len(ratios) < most and not method.is_narrow(method.interval(ratios), width)):
            ratios.append(measure_round(place, getattr(place, name)))
    finally:
        place.close_traced()
        place.close()
    found = method.interval(ratios)
    is_exact = method.is_narrow(found, width)
    print(f"{name:<10} {traced:>7} {found.median:8.3f}  [{found.low:.3f}, {found.high:.3f}]"
          f"{'' if is_exact else '  too noisy'}  ({len(ratios)} rounds, others {others.share():.2f} CPU)",
          flush=True)
    return is_exact


def main():
    parser = argparse.ArgumentParser(prog="./dev bench trace", allow_abbrev=False, description=__doc__)
    parser.add_argument("--rounds", type=int, default=60, metavar="N",
                        help="at most so many of a case (default 60)")
    parser.add_argument("--traced", type=int, action="append", metavar="N",
                        help="so many traced connections only; repeatable (default " +
                        ", ".join(map(str, TRACED)) + "); 0: empty programs")
    parser.add_argument("--layer", action="append", metavar="LAYER",
                        help="events of this layer only; repeatable")
    parser.add_argument("--netfilter", action="store_true", help="trace netfilter's hooks, too")
    options = parser.parse_args()
    extra = ["--netfilter"] if options.netfilter else []
    for layer in options.layer or ():
        extra += ["--show", "events", "--layer", layer]
    print(f"{'others':<10} {'traced':>7} {'ratio':>8}")
    exact = [measure_case(name, traced, extra, options.rounds, method.WIDTH)
             for name in ("stream", "datagrams") for traced in options.traced or TRACED]
    return 0 if all(exact) else EXIT_NOISY


if __name__ == "__main__":
    command.run(main)
