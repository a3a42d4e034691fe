# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
# Needs: bpftool
"""netobsctl trace where it is killed, short of room, or confused."""

import array
import collections
import glob
import os
import re
import signal
import socket
import struct
import subprocess
import threading
import time

from lib import lab
from lib import traffic
from lib.tracer import CLIENT, PORT, Host, Network, Trace, Tracer, bytes_of, by_connection, has_all

KINDS = {"prog": "prog_id", "map": "map_id", "link": "link_id"}
REFUSED = re.compile(r"(\d+) connections were not traced for want of room")
CUT = re.compile(r"(\d+) beyond --max-events")
RESET = struct.pack("ii", 1, 0) # of SO_LINGER: close() sends RST


def objects(pid):
    """BPF objects of a process: {(kind, id)}."""
    found = set()
    for path in glob.glob(f"/proc/{pid}/fdinfo/*"):
        fields = dict(line.split(":", 1) for line in lab.read(path).splitlines() if ":" in line)
        # A link shows its program, too.
        kind = next((kind for kind in ("link", "map", "prog") if KINDS[kind] in fields), None)
        if kind:
            found.add((kind, int(fields[KINDS[kind]])))
    return found


def is_there(kind, number):
    return not subprocess.run(["bpftool", kind, "show", "id", str(number)], check=False,
                              stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode


def read_all(end):
    """Read until the other side has finished; how much it was."""
    size = 0
    while True:
        got = len(end.recv(65536))
        if not got:
            return size
        size += got


class Hostile(Host):
    def tracer(self, *options):
        return Tracer(self, self.port, *options)

    def check_once(self, journeys, direction, size, where=""):
        self.assertEqual(bytes_of(journeys, direction), ([(0, size)] if size else [], 0),
                         f"{self.where} {where}")


class Ends(Hostile):
    """What a tracer leaves behind."""

    def test_stopped_or_killed_in_mid_trace_it_leaves_nothing(self):
        for number, code in (signal.SIGINT, 0), (signal.SIGKILL, -signal.SIGKILL):
            tracer = self.tracer()
            held = objects(tracer.process.pid)
            client, server = self.pair()
            stop = threading.Event()

            def talk(client=client, server=server, stop=stop):
                while not stop.is_set():
                    traffic.send(client, server, 10_000)
            talker = threading.Thread(target=talk)
            talker.start()
            time.sleep(self.random.uniform(0, .5))
            tracer.process.send_signal(number)
            self.assertEqual(tracer.process.wait(60), code)
            stop.set()
            talker.join()
            self.assertEqual({kind for kind, _ in held}, set(KINDS))
            for one in held:
                lab.wait_for(lambda one=one: not is_there(*one), f"the end of {one}")


class Room(Hostile):
    """What has no room is counted."""

    def test_connections_beyond_the_limit_are_counted(self):
        most = self.random.randint(1, 5)
        tracer = self.tracer("--max-connections", str(most))
        time.sleep(1) # the marker has ended
        pairs = [self.pair() for _ in range(20)]
        sizes = {}
        for client, server in pairs:
            sizes[client.getsockname()[1]] = size = self.random.randint(1, 50_000)
            traffic.send(client, server, size)
        self.close(*pairs)
        journeys, messages = tracer.end()
        found = by_connection(journeys)
        self.assertEqual(len(found), most, self.where)
        for own in found.values():
            self.check_once(own, 0, sizes[own[0]["SrcPort"]])
        refused = REFUSED.search(messages)
        self.assertTrue(refused, f"{self.where}: {messages}")
        # Refused before its SYN has passed all points, a connection is refused once more.
        self.assertTrue(20 - most <= int(refused[1]) <= 3 * (20 - most), f"{self.where}: {messages}")

    def test_events_beyond_the_limit_are_counted(self):
        most = self.random.randint(50, 200)
        limit = "--max-events", str(most)
        every = self.tracer("--show", "events")
        some = self.tracer("--show", "events", *limit)
        joined = self.tracer(*limit)
        pairs = [self.pair() for _ in range(5)]
        for _ in range(30):
            for client, server in pairs:
                traffic.send(client, server, self.random.randint(1, 2000))
        self.close(*pairs)
        shown, messages = some.end()
        for own in by_connection(shown).values():
            self.assertLessEqual(len(own), most, self.where)
        cut = CUT.search(messages)
        self.assertTrue(cut, f"{self.where}: {messages}")
        self.assertEqual(len(shown) + int(cut[1]), len(every.stop()), f"{self.where}: {messages}")
        journeys, messages = joined.end()
        self.assertTrue(CUT.search(messages), f"{self.where}: {messages}")
        for own in by_connection(journeys).values():
            self.assertEqual(bytes_of(own, 0)[1], 0, self.where)


class Confusion(Hostile):
    """Connections that are easily taken for others."""

    def test_a_port_that_is_used_again_is_another_connection(self):
        own_port = self.port + 1
        tracer, sizes = self.tracer(), []
        for _ in range(50):
            client, server = self.pair(source_address=(CLIENT, own_port))
            sizes.append([self.random.randint(1, 3000) for _ in range(2)])
            traffic.send(client, server, sizes[-1][0])
            traffic.send(server, client, sizes[-1][1])
            is_reset = self.random.random() < .5
            if is_reset:
                client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
                client.close()
            # The server is the one in TIME-WAIT, which lets the client in again.
            server.close()
            client.close()
        found = sorted(by_connection(tracer.stop()).values(),
                       key=lambda own: min(one["TimeNs"] for one in own))
        self.assertEqual(len(found), 50, self.where)
        for number, (own, size) in enumerate(zip(found, sizes)):
            for direction in range(2):
                self.check_once(own, direction, size[direction], f"{number}")

    def test_a_socket_that_is_connected_to_itself_has_one_direction(self):
        of_this = "--pid", str(os.getpid())
        for number, (is_older, options) in enumerate(((False, ()), (True, ()), (True, of_this))):
            port, size = self.port + 1 + number, 0
            with self.host, socket.socket() as own:
                own.bind((CLIENT, port))
                if is_older:
                    own.connect((CLIENT, port))
                tracer = Tracer(self, port, *options)
                if not is_older:
                    own.connect((CLIENT, port))
                for _ in range(10):
                    sent = self.random.randint(1, 20_000)
                    own.sendall(bytes(sent))
                    self.assertEqual(len(own.recv(sent, socket.MSG_WAITALL)), sent)
                    size += sent
            journeys = tracer.stop()
            self.assertEqual({one["Direction"] for one in journeys}, {0}, self.where)
            ranges, double = bytes_of(journeys, 0)
            self.assertEqual(([end - begin for begin, end in ranges], double), ([size], 0), self.where)
            if self.has_sockets:
                for one in journeys:
                    self.assertEqual(one["Steps"][-1]["Point"], "read", f"{self.where}: {one}")

    def test_a_socket_that_is_passed_on_has_the_reader_as_owner(self):
        tracer = self.tracer()
        client, server = self.pair()
        size = self.random.randint(1, 100_000)
        one, other = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        child = os.fork()
        if not child:
            one.close()
            _, control, _, _ = other.recvmsg(1, 100)
            end = socket.socket(fileno=array.array("i", control[0][2])[0])
            os._exit(read_all(end) != size)
        one.sendmsg([b"x"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS,
                              array.array("i", [server.fileno()]))])
        server.close()
        client.sendall(bytes(size))
        client.shutdown(socket.SHUT_WR)
        self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), 0)
        for end in client, one, other:
            end.close()
        journeys = tracer.stop()
        self.check_once(journeys, 0, size)
        self.assertEqual({(own["SrcPid"], own["DstPid"]) for own in journeys},
                         {(os.getpid(), child)}, self.where)

    def test_servers_of_one_port_are_told_apart(self):
        self.listener.close()
        children = []
        ready = [os.pipe() for _ in range(4)]
        for _, writer in ready:
            children.append(os.fork())
            if not children[-1]:
                self.serve(writer)
        for reader, _ in ready:
            os.read(reader, 1)
        tracer, who, sizes = self.tracer(), {}, {}
        for _ in range(30):
            with self.connect() as client:
                port = client.getsockname()[1]
                sizes[port] = self.random.randint(1, 20_000)
                client.sendall(bytes(sizes[port]))
                client.shutdown(socket.SHUT_WR)
                who[port] = int(client.recv(100))
        journeys = tracer.stop()
        for child in children:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
        for own in by_connection(journeys).values():
            there = [one for one in own if not one["Direction"]]
            port = there[0]["SrcPort"]
            self.check_once(own, 0, sizes.pop(port))
            self.assertEqual({one["DstPid"] for one in there}, {who[port]}, self.where)
        self.assertFalse(sizes, self.where)

    def serve(self, ready):
        """In a process of its own: read all, and answer who it is."""
        lab.die_with_parent()
        listener = self.listen(reuse_port=True)
        os.write(ready, b"x")
        while True:
            with listener.accept()[0] as end:
                read_all(end)
                end.sendall(str(os.getpid()).encode())

    def test_an_older_connection_has_what_comes(self):
        client, server = self.pair()
        before, size = (self.random.randint(1, 100_000) for _ in range(2))
        traffic.exchange(client, server, [before])
        tracer = self.tracer()
        traffic.exchange(client, server, [size])
        self.close((client, server))
        journeys = tracer.stop()
        self.assertEqual(len(by_connection(journeys)), 1, self.where)
        for ends in (0, 1):
            own = [one for one in journeys if one["Direction"] == ends]
            ranges, double = bytes_of(own, ends)
            self.assertEqual(([end - begin for begin, end in ranges], double), ([size], 0),
                             self.where)
            for one in own:
                self.assertEqual(one["Steps"][-1]["Point"], "read", f"{self.where}: {one}")


class Many(Trace):
    def check_talks(self, tracer, talks):
        """Bytes of both directions of each connection, once."""
        found = collections.Counter()
        for own in by_connection(tracer.stop()).values():
            streams = [bytes_of(own, way) for way in range(2)]
            self.assertEqual([double for _, double in streams], [0, 0])
            self.assertTrue(all(len(ranges) <= 1 for ranges, _ in streams))
            found[tuple(sum(end for _, end in ranges) for ranges, _ in streams)] += 1
        self.assertEqual(found, collections.Counter(tuple(stream.written for stream in one.streams)
                                                    for one in talks))

    def test_all_tracers_see_the_same_bytes(self):
        network, _ = self.network()
        tracers = [Tracer(self, network.address[1]) for _ in range(8)]
        spoken = list(self.talk(network, 5))
        for tracer in tracers:
            self.check_talks(tracer, spoken)

    def test_namespaces_that_vanish_end_nothing(self):
        tracer, spoken = Tracer(self, PORT), []
        for _ in range(4):
            network = Network(self.lab, False, False)
            spoken += self.talk(network, 2)
            for ns in network.client, network.router, network.server:
                lab.run("ip", "netns", "del", ns.name)
        self.check_talks(tracer, spoken)


class Ambiguous(Hostile):
    """What looks like another connection, or like its end."""

    def test_bytes_that_are_read_late_have_a_reader(self):
        """Both sockets are closed by then."""
        tracer = self.tracer()
        client, server = self.pair()
        traffic.send(client, server, 10)
        client.shutdown(socket.SHUT_WR)
        self.assertEqual(server.recv(1), b"")
        server.sendall(bytes(5000))
        server.close()
        self.assertEqual(read_all(client), 5000)
        client.close()
        own, = by_connection(tracer.stop()).values()
        self.check_once(own, 1, 5000)
        self.assertEqual({one.get("DstPid") for one in own if one["Direction"]}, {os.getpid()})

    def test_one_tuple_in_two_namespaces_is_one_connection(self):
        """The first one is traced, and has nothing of the other."""
        other = self.lab.ns("o")
        other.address("lo", f"{CLIENT}/32")
        tracer = self.tracer()
        ends = []
        for ns in self.host, other:
            with ns:
                listener = self.listener if ns is self.host else \
                    socket.create_server((CLIENT, self.port))
                client = socket.create_connection((CLIENT, self.port), source_address=(CLIENT, 9999))
            ends.append((client, listener.accept()[0]))
            self.addCleanup(listener.close)
        for size in 100, 200, 300:
            for client, server in ends:
                traffic.send(client, server, size)
        self.close(*ends)
        found = by_connection(tracer.stop())
        self.assertEqual(len(found), 1, self.where)
        self.check_once(*found.values(), 0, 600)

    def test_connections_that_nobody_answers_take_no_room(self):
        silent = self.lab.ns("q")
        self.lab.wire(self.host, "h0", ["192.0.2.9/24"], silent, "q0", ["192.0.2.10/24"])
        silent.run("nft", "-f", "-", input="table ip q { chain in { "
                   "type filter hook input priority 0; policy drop; }\n}\n")
        tracer = self.tracer("--max-connections", "2")
        with self.host:
            waiting = [socket.socket() for _ in range(2)]
        for one in waiting:
            one.setblocking(False)
            one.connect_ex(("192.0.2.10", self.port))
        lab.wait_for(lambda: not self.is_full(tracer), "room")
        for one in waiting:
            one.close()

    def is_full(self, tracer):
        """Whether a connection that is to be traced is not."""
        before = os.path.getsize(tracer.path)
        pair = self.pair()
        traffic.send(*pair, 10)
        self.close(pair)
        time.sleep(.5)
        return os.path.getsize(tracer.path) == before

    def test_a_sniffer_that_is_full_drops_nothing(self):
        with self.host:
            sniffer = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
        sniffer.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
        tracer = self.tracer()
        pair = self.pair()
        for _ in range(20):
            traffic.send(*pair, 10_000)
        self.close(pair)
        own, = by_connection(tracer.stop()).values()
        dropped = struct.unpack("II", sniffer.getsockopt(263, 6, 8))[1]
        sniffer.close()
        self.assertGreater(dropped, 0)
        self.check_once(own, 0, 200_000)
        self.assertFalse([one for one in own if one["Drops"]], self.where)


if __name__ == "__main__":
    lab.main("tracepoints of processes that write", has_all)
