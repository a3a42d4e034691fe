#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
# Needs: conntrack nftables
# Lock: sockets, it names the owners of short-lived sockets.
"""Processes behind one masquerade use the same tuples, one soon after the other.

Several clients have four ports together, and processes of a client share two. Each record names the
right process and the right client, or none. Who talks when is random.
"""

import collections
import json
import os
import socket
import struct
import threading
import time

from lib import lab
from lib import nat
from lib import observer
from lib import talkers

PORT = 8080
PORTS = range(20000, 20004)
CLIENTS, PROCESSES, USES = 4, 5, 1000
RESET = struct.pack("ii", 1, 0)
KINDS = {6: socket.SOCK_STREAM, 17: socket.SOCK_DGRAM}
# A record has whole milliseconds; the programs have the time of a tick of the clock.
SLACK = 0.02


class Use:
    """Of a tuple, by a process, as this and the server have noted it."""

    def __init__(self, note, outer):
        self.first, self.last, self.proto, self.address, self.port, self.pid, self.count = note
        self.outer = outer

    def may_be_in(self, begin, end):
        return self.first <= end + SLACK and self.last >= begin - SLACK

    def is_in(self, begin, end):
        return begin + SLACK <= self.first and self.last <= end


def ask(sock):
    """
    @return how often it took: the kernel drops a datagram if another one took its tuple at the same time.
    """
    for attempt in range(20):
        if not attempt or sock.type == socket.SOCK_DGRAM:
            sock.send(talkers.command().encode())
        try:
            sock.recv(100)
            return attempt + 1
        except TimeoutError:
            pass
    raise TimeoutError("no answer")


def use_tuple(server, proto, address, port, count):
    """Ask @count times; @return a note, with the questions. A connection is reset, so that its tuple is free."""
    with socket.socket(socket.AF_INET, KINDS[proto]) as sock:
        sock.settimeout(20 if proto == 6 else 1)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if proto == 6:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
        sock.bind((address, port))
        first = time.time()
        sock.connect(server)
        asked = sum(ask(sock) for _ in range(count))
    return first, time.time(), proto, address, port, os.getpid(), asked


def work(name, orders, server):
    talkers.rename(name)
    for line in orders.makefile():
        orders.sendall((json.dumps(use_tuple(server, *json.loads(line))) + "\n").encode())


class TupleReuse(nat.RandomNatTest):
    def setUp(self):
        super().setUp()
        self.rules(nat.BASE + "add rule inet nat post meta l4proto { tcp, udp } oifname rs "
                   f"masquerade to :{PORTS.start}-{PORTS.stop - 1}\n")
        self.points = [(self.router, "rs")]
        self.outer = {}  # what the server has seen: {(process, protocol): port}
        self.workers, self.ports = [], 0
        self.serve()
        for number in range(CLIENTS):
            self.add_client(number)

    def serve(self):
        with self.server:
            self.listener = socket.create_server(("0.0.0.0", PORT), backlog=100)
            self.receiver = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.receiver.bind(("0.0.0.0", PORT))

        def answer(sock, peer):
            with sock:
                try:
                    while data := sock.recv(100):
                        self.outer[data.decode(), 6] = peer[1]
                        sock.sendall(data)
                except ConnectionResetError:
                    pass

        def accept():
            while True:
                threading.Thread(target=answer, args=self.listener.accept(), daemon=True).start()

        def receive():
            while True:
                data, peer = self.receiver.recvfrom(100)
                self.outer[data.decode(), 17] = peer[1]
                self.receiver.sendto(data, peer)

        for task in accept, receive:
            threading.Thread(target=task, daemon=True).start()

    def add_client(self, number):
        client, address, link = self.lab.ns(f"c{number}"), f"10.1.{number}.2", f"r{number}"
        self.lab.wire(client, "eth0", [f"{address}/24"], self.router, link,
                      [f"10.1.{number}.1/24"])
        client.ip("route", "add", "default", "via", f"10.1.{number}.1")
        self.points += [(client, "eth0"), (self.router, link)]
        pids = []
        for process in range(PROCESSES):
            name = f"client-{number}-{process}"
            ours, theirs = socket.socketpair()
            pids.append(talkers.child(work, name, theirs, (self.SERVER, PORT), ns=client))
            theirs.close()
            self.workers.append((name, address, ours, ours.makefile()))
        self.addCleanup(talkers.kill, pids)

    def choose_port(self, proto):
        """Of datagrams another one each time: netobsctl-flows(8) says why."""
        self.ports += 1
        return self.random.choice((4000, 4001)) if proto == 6 else 5000 + self.ports

    def use(self):
        """One to three clients at a time; @return what they note."""
        chosen = {}
        for name, address, orders, notes in self.random.sample(self.workers, 3):
            chosen.setdefault(address, (name, orders, notes))
        chosen = dict(list(chosen.items())[:self.random.randint(1, 3)])
        proto, sent = self.random.choice((6, 17)), []
        for address, (name, orders, notes) in chosen.items():
            order = proto, address, self.choose_port(proto), self.random.choice((1, 1, 4))
            orders.sendall((json.dumps(order) + "\n").encode())
            sent.append((name, notes))
        return [Use(json.loads(notes.readline()), self.outer[name, proto])
                for name, notes in sent]

    def use_often(self):
        """USES times, and some with rests of more than an interval."""
        uses = []
        while len(uses) < lab.sized(USES):
            # The kernel would keep a tuple for as long as it takes to time out.
            self.router.run("conntrack", "-F")
            uses += self.use()
            time.sleep(0.5 if self.random.random() < 0.05 else 0)
        return uses

    def check_end(self, record, uses, pid, address):
        """Of @uses of the record's tuple, at that time. @return whether it names both"""
        begin, end = (record[f"TimeFlow{which}Ms"] / 1000 for which in ("Start", "End"))
        near = [one for one in uses if one.may_be_in(begin, end)]
        inside = [one for one in uses if one.is_in(begin, end)]
        self.assertTrue(near, record)
        if pid is not None:
            self.assertIn(pid, {one.pid for one in near}, record)
            self.assertLessEqual({one.pid for one in inside}, {pid}, record)
        if address is not None:
            self.assertIn(address, {one.address for one in near}, record)
            self.assertLessEqual({one.address for one in inside}, {address}, record)
        return pid is not None and address is not None

    def test_each_record_names_the_right_process_and_client_or_none(self):
        watch = observer.Observer(
            self.lab, self.router, "--nat", "--process", "--interval", "0.2",
            *(word for ns, name in self.points for word in ("-i", f"netns:{ns.name}/{name}"))
        ).wait_attached(*self.points)
        began = time.monotonic()
        uses = self.use_often()
        took = time.monotonic() - began
        result = watch.stop()
        result.check_conservation()
        inner, outer = collections.defaultdict(list), collections.defaultdict(list)
        for one in uses:
            inner[one.proto, one.address, one.port].append(one)
            outer[one.proto, one.outer].append(one)
        named, counted = collections.Counter(), collections.Counter()
        for record in result.records:
            if record["Proto"] not in KINDS:
                continue
            if record["DstPort"] == PORT:
                key = record["Proto"], record["SrcAddr"], record["SrcPort"]
                counted[key] += record["Packets"] * (record["Proto"] == 17)
                found = self.check_end(record, inner[key], record.get("SrcPid"), record["SrcAddr"])
                named["asked", found] += 1
            else:
                key = record["Proto"], record["DstPort"]
                found = self.check_end(record, outer[key], record.get("DstPid"),
                                       record.get("XlatDstAddr"))
                named["answered", found] += 1
        # Also what left when it was not known whose translation that was: where it came in.
        self.assertEqual({key: sum(one.count for one in found) for key, found in inner.items() if key[0] == 17},
                         dict(+counted))
        self.assertEqual(set(PORTS), {one.outer for one in uses})
        for way in "asked", "answered":
            self.assertGreater(named[way, True], named[way, False] / 20, named)
        self.note(f"{len(uses)} uses of {len(outer)} tuples in {took:.0f} s; {dict(named)}")


if __name__ == "__main__":
    lab.main()
