# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
# Needs: curl
"""Sessions: the records of TCP connections, compared with what the programs at both ends
know: their processes, counters and how it ended.

Who talks to whom, and how, is random.
"""

import collections
import contextlib
import json
import os
import re
import signal
import socket
import struct
import subprocess
import tempfile
import time

from lib import lab
from lib import observer
from lib import talkers
from lib.observer import features
from lib.sessions import RESET, Sessions
from lib.talkers import child, command, join, kill, rename

# linux/tcp.h, struct tcp_info: name in the record -> format, offset
INFO = {
    "Retransmits": ("I", 100), "BytesAcked": ("Q", 120), "BytesReceived": ("Q", 128),
    "SegmentsSent": ("I", 136), "SegmentsReceived": ("I", 140), "MinRttNs": ("I", 148),
    "DataSegmentsReceived": ("I", 152), "DataSegmentsSent": ("I", 156),
    "Delivered": ("I", 192), "BytesSent": ("Q", 200), "BytesRetransmitted": ("Q", 208),
    "Duplicates": ("I", 216), "TimeFlowRttNs": ("I", 68), "RttVariationNs": ("I", 72),
    "Cwnd": ("I", 80), "Reordering": ("I", 88),
}
IN_MICROSECONDS = ("MinRttNs", "TimeFlowRttNs", "RttVariationNs")
FOREIGN_MAC = "02:00:00:00:0f:0f"  # whose owner never answers


def key(sock):
    return [os.stat("/proc/thread-self/ns/net").st_ino, sock.getsockname()[1],
            sock.getpeername()[1]]


def receive(sock, n):
    while n:
        part = sock.recv(min(n, 1 << 20))
        assert part, "the connection ended"
        n -= len(part)


class Notes:
    """What processes tell about themselves: lines that are shorter than PIPE_BUF."""

    def __init__(self):
        self.file = tempfile.TemporaryFile("a+", encoding="utf-8")

    def add(self, sock, **more):
        line = {"key": key(sock), "Pid": os.getpid(), "Process": command(),
                "Uid": os.getuid(), "Thread": talkers.thread(), **more}
        os.write(self.file.fileno(), (json.dumps(line) + "\n").encode())

    def read(self):
        self.file.seek(0)
        return [json.loads(line) for line in self.file]


class SessionTest(lab.LabTest):
    def setUp(self):
        super().setUp()
        self.features = features()
        self.netns = self.lab.ns("a", ipv6=True)
        # Ports say which connection a record is of: none is used twice within a minute.
        self.netns.sysctl("ipv4/tcp_tw_reuse", 0)
        self.netns.acknowledge_at_once()
        self.notes = Notes()
        self.addCleanup(self.notes.file.close)

    def here(self, records, inode=None):
        """Ports of this end and the other -> record, of a namespace."""
        found = {}
        for one in records:
            if one["NetnsInode"] == (inode or self.netns.inode):
                ports = one["SrcPort"], one["DstPort"]
                self.assertIsNone(found.get(ports))
                found[ports] = one
        return found

    def check_notes(self, records, count):
        """Each note has a record, with the same process, and each record a note."""
        notes = self.notes.read()
        known = {tuple(note["key"]): note for note in notes}
        self.assertEqual((len(notes), len(known)), (count, count))
        inodes = {inode for inode, _, _ in known}
        found = {(one["NetnsInode"], one["SrcPort"], one["DstPort"]): one
                 for one in records if one["NetnsInode"] in inodes}
        self.assertEqual({key: one for key, one in found.items() if key not in known}, {})
        self.assertEqual(set(known) - set(found), set())
        for where, note in known.items():
            for field in set(note) - {"key"}:
                self.assertEqual(found[where].get(field), note[field],
                                 (field, note, found[where]))


# ---- Programs that talk -----------------------------------------------------------------

def answer(sock, notes, **more):
    """The server's end of a connection."""
    receive(sock, 5)
    notes.add(sock, **more)
    sock.sendall(b"world")
    sock.recv(1)
    sock.close()


def ask(sock, notes, **more):
    sock.sendall(b"hello")
    notes.add(sock, **more)
    receive(sock, 5)
    sock.close()


# ---- Containers -------------------------------------------------------------------------

CLONES = 0x20000000 | 0x08000000 | 0x04000000 | 0x00020000 # pid ipc uts mnt


def host_pid():
    """The number in the namespace of this /proc, and not in its own namespace."""
    return int(os.readlink("/proc/self"))


def answer_some(name, listener, notes, count):
    rename(name)
    for _ in range(count):
        answer(listener.accept()[0], notes, Pid=host_pid())


def ask_inside(name, port, notes):
    rename(name)
    ask(socket.create_connection(("127.0.0.1", port)), notes, Pid=host_pid())


def run_inside(name, notes, clients):
    """The first process of a container."""
    listener = socket.create_server(("127.0.0.1", 0), backlog=100)
    port = listener.getsockname()[1]
    join([child(answer_some, f"{name}-s", listener, notes, clients),
          *(child(ask_inside, f"{name}-{i}", port, notes) for i in range(clients))])


def contain(name, notes, clients):
    lab.check_errno(lab.LIBC.unshare(CLONES), "unshare")
    join([child(run_inside, name, notes, clients)])


class Talks(talkers.TalkTest):
    HAS_ODD_NAMES = True
    kinds_of_tcp = talkers.kinds_of_tcp()

    def test_each_end_has_its_process(self):
        """And the thread that used it last; ended ones, of which each has one record."""
        self.wire_all()
        inodes = {ns.inode for ns in (self.host, *self.containers)}
        sessions = Sessions(self)
        self.talk_at_random()
        notes, threads, ids = self.notes.read(), self.notes.threads(), self.notes.thread_ids()
        keys = {key for key in notes if key[0] == socket.IPPROTO_TCP}

        def own():
            return [one for one in sessions.records() if one["NetnsInode"] in inodes]
        lab.wait_for(lambda: len(own()) >= len(keys), "records")
        _, totals = sessions.stop()
        self.assertEqual(totals["lost"], 0)
        found = {(6, *(one[name] for name in ("SrcAddr", "SrcPort", "DstAddr", "DstPort"))): one for one in own()}
        self.assertEqual((len(own()), set(found)), (len(keys), keys))
        for key, one in found.items():
            self.assertEqual((one["Pid"], one["Process"], one["Uid"], one.get("Thread")),
                             (*notes[key], threads[key]), one)
            self.assertIn(ids[key], (None, one["Tid"]), one)
        self.note(f"{len(keys)} ends")


class Who(SessionTest):
    def test_processes_of_containers(self):
        """Their process IDs are the host's, and their ports are the same as in other namespaces."""
        # They outlive the observer: no other test gets a namespace with the inode of one.
        containers, clients = [self.lab.ns("c") for _ in range(lab.sized(40))], 4
        for ns in containers:
            ns.acknowledge_at_once()
        sessions = Sessions(self)
        for first in range(0, len(containers), 10):
            join([child(contain, f"box-{first + i}", self.notes, clients, ns=ns)
                  for i, ns in enumerate(containers[first:first + 10])])
        records, totals = sessions.stop()
        self.assertEqual(totals["lost"], 0)
        self.check_notes(records, 2 * clients * len(containers))

    def test_sockets_older_than_the_observer(self):
        with self.netns:
            listener = socket.create_server(("127.0.0.1", 0), backlog=1000)
            pids = []
            for i in range(lab.sized(200)):
                pids.append(child(self.hold, f"old-{i}", listener.getsockname()[1]))
            ends = [listener.accept()[0] for _ in pids]
            sessions = Sessions(self, "--interval", "0.2")
            lab.wait_for(lambda: len({(one["SrcPort"], one["DstPort"])
                                      for one in sessions.records()
                                      if one["NetnsInode"] == self.netns.inode}) ==
                         2 * len(pids), "the list of open ones")
            for one in sessions.records():
                if one["NetnsInode"] == self.netns.inode:
                    self.assertEqual(one["Ended"], "open")
                    self.assertEqual(one["ProcessBy"], "holding")
            for end in ends:
                self.notes.add(end)
                end.close()
            join(pids)
            listener.close()
        records = [one for one in sessions.stop()[0] if one["Ended"] != "open"]
        for one in self.here(records).values():
            self.assertNotIn("TimeFlowStartMs", one)
            self.assertNotIn("Opened", one)
        self.check_notes(records, 2 * len(pids))

    def hold(self, name, port):
        rename(name)
        sock = socket.create_connection(("127.0.0.1", port))
        self.notes.add(sock)
        sock.recv(1)
        sock.close()

    def test_old_sockets_of_several_processes_belong_to_none(self):
        with self.netns:
            listener = socket.create_server(("127.0.0.1", 0))
            sock = socket.create_connection(listener.getsockname())
            other = listener.accept()[0]
            ports = sock.getsockname()[1], sock.getpeername()[1]
            pid = child(time.sleep, 1000)
            self.addCleanup(kill, [pid])
            sessions = Sessions(self, "--interval", "0.1")

            def record():
                latest = [one for one in sessions.records()
                          if (one["SrcPort"], one["DstPort"]) == ports and
                          one["NetnsInode"] == self.netns.inode]
                return latest[-1] if latest else None

            lab.wait_for(record, "the open connection")
            self.assertNotIn("Pid", record())
            if self.features["session_io"]:
                sock.sendall(b"mine")
                lab.wait_for(lambda: record().get("Pid") == os.getpid(), "its user")
            other.close()
            sock.close()
        sessions.stop()

    def test_container_of_a_process_that_is_gone(self):
        directory = tempfile.mkdtemp(prefix="nobs-cgroup-")
        self.addCleanup(os.rmdir, directory)
        lab.run("mount", "-t", "cgroup2", "none", directory)
        self.addCleanup(lab.run, "umount", directory)
        container = "".join(self.random.choice("0123456789abcdef") for _ in range(64))
        uid = "0f3e9c1a-5b7d-4c2e-8a6f-1d2c3b4a5f60"
        path = ["kubepods.slice", "kubepods-burstable.slice",
                f"kubepods-burstable-pod{uid.replace('-', '_')}.slice",
                f"cri-containerd-{container}.scope"]
        made = [os.path.join(directory, *path[:i + 1]) for i in range(len(path))]
        made = [one for one in made if not os.path.exists(one)]
        for one in made:
            os.mkdir(one)
        group = os.stat(made[-1]).st_ino
        sessions = Sessions(self)
        with self.netns:
            listener = socket.create_server(("127.0.0.1", 0))
            pid = child(self.talk_in, made[-1], listener.getsockname()[1])
            answer(listener.accept()[0], self.notes)
            join([pid])
        for one in reversed(made):
            os.rmdir(one)
        records = sessions.stop()[0]
        self.check_notes(records, 2)
        inside = [one for one in records if one.get("Pid") == pid]
        self.assertEqual([(one["CgroupPath"], one["ContainerId"], one["PodUid"],
                           one["CgroupId"]) for one in inside],
                         [("/" + "/".join(path), container, uid, group)])

    def talk_in(self, group, port):
        lab.write(f"{group}/cgroup.procs", "0")
        rename("contained")
        ask(socket.create_connection(("127.0.0.1", port)), self.notes)


def tcp_info(sock):
    raw = sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 256)
    values = {name: struct.unpack_from("=" + form, raw, at)[0]
              for name, (form, at) in INFO.items() if at + struct.calcsize(form) <= len(raw)}
    for name in IN_MICROSECONDS:
        values[name] *= 1000
    return values


class Counters(SessionTest):
    def setUp(self):
        super().setUp()
        self.peer = self.lab.ns("b", ipv6=True)
        _, self.peer_mac = self.lab.wire(
            self.netns, "eth0", ["192.0.2.1/24", "2001:db8::1/64"],
            self.peer, "eth0", ["192.0.2.2/24", "2001:db8::2/64"])
        for ns in self.netns, self.peer:
            ns.acknowledge_at_once()

    def connect(self, address):
        with self.peer:
            listener = socket.create_server(
                (address, 0), family=socket.AF_INET6 if ":" in address else socket.AF_INET)
        with self.netns:
            sock = socket.create_connection((address, listener.getsockname()[1]))
        other = listener.accept()[0]
        listener.close()
        return sock, other

    def exchange(self, sock, other):
        for _ in range(self.random.randrange(1, 6)):
            for a, b in ((sock, other), (other, sock)):
                size = self.random.randrange(1, 300000)
                pid = child(a.sendall, b"x" * size)
                receive(b, size)
                join([pid])

    def test_they_are_those_of_tcp_info(self):
        sessions = Sessions(self)
        expected = {}
        for i in range(20):
            sock, other = self.connect(self.random.choice(("192.0.2.2", "2001:db8::2")))
            self.exchange(sock, other)
            # A RST, which has no acknowledgement, is the only segment still to come.
            time.sleep(0.3)
            for end, namespace in ((other, self.peer), (sock, self.netns)):
                expected[namespace.inode, end.getsockname()[1],
                         end.getpeername()[1]] = tcp_info(end)
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
            sock.close()
            other.close()
        records = {(one["NetnsInode"], one["SrcPort"], one["DstPort"]): one
                   for one in sessions.stop()[0]}
        for where, info in expected.items():
            got = {name: records[where][name] for name in info}
            if where[0] == self.peer.inode:
                info["SegmentsReceived"] += 1  # the RST
            self.assertEqual(got, info)
            self.assertGreaterEqual(records[where]["DurationMs"], 300)

    def ended(self, sock, other, end):
        """What both records say about the end that this makes."""
        ports = sock.getsockname()[1], sock.getpeername()[1]
        sessions = Sessions(self)
        end(sock, other)
        sock.close()
        other.close()
        records = [(one["Ended"], one.get("Errno"))
                   for inode, way in ((self.netns.inode, ports),
                                      (self.peer.inode, ports[::-1]))
                   for one in lab.wait_for(lambda inode=inode, way=way: [
                       one for one in sessions.records()
                       if one["NetnsInode"] == inode and
                       (one["SrcPort"], one["DstPort"]) == way], "its end")]
        sessions.stop()
        return records

    def test_endings(self):
        def by_fin(sock, other):
            sock.close()
            self.assertEqual(other.recv(1), b"")

        def by_the_other_s_fin(sock, other):
            by_fin(other, sock)

        def half_closed(sock, other):
            sock.shutdown(socket.SHUT_WR)
            other.sendall(b"more")
            receive(sock, 4)
            by_fin(other, sock)

        def by_reset(sock, other):
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
            sock.close()
            with self.assertRaises(ConnectionResetError):
                other.recv(1)

        def with_unread_data(sock, other):
            other.sendall(b"unread")
            sock.recv(6, socket.MSG_PEEK | socket.MSG_WAITALL)
            sock.close()
            with self.assertRaises(ConnectionResetError):
                other.recv(1)

        fin, aborted, reset = ("fin", None), ("aborted", None), ("reset", 104)
        for end, expected in ((by_fin, [fin, fin]), (by_the_other_s_fin, [fin, fin]),
                              (half_closed, [fin, fin]), (by_reset, [aborted, reset]),
                              (with_unread_data, [aborted, reset])):
            with self.subTest(end=end.__name__):
                self.assertEqual(self.ended(*self.connect("192.0.2.2"), end), expected)

    def fail_connections(self):
        """@return how they ended, and how they should have, by port."""
        self.netns.neighbour("eth0", self.peer_mac, "192.0.2.2")
        sessions = Sessions(self)
        with self.netns:
            sock, other = self.connect("192.0.2.2")
            with self.assertRaises(ConnectionRefusedError):
                socket.create_connection(("192.0.2.2", 1))
            with self.assertRaises(TimeoutError):
                socket.create_connection(("192.0.2.9", 2))
            # The other end is gone.
            self.netns.neighbour("eth0", FOREIGN_MAC, "192.0.2.2")
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, 300)
            sock.sendall(b"x")
            with self.assertRaises(TimeoutError):
                sock.recv(1)
        port = other.getsockname()[1]
        sock.close()
        other.close()
        found = {one["DstPort"]: (one["Ended"], one.get("Errno"))
                 for one in self.here(sessions.stop()[0]).values()}
        return found, {1: ("refused", 111), 2: ("timeout", 110), port: ("timeout", 110)}

    def test_connections_that_fail(self):
        """
        Two of them in the context of a timer, which any task may be interrupted by: some hosts run no
        tracing program while their process 1 is the current task.
        """
        self.netns.sysctl("ipv4/tcp_syn_retries", 1)
        self.netns.neighbour("eth0", FOREIGN_MAC, "192.0.2.9")
        for _ in range(3):
            found, expected = self.fail_connections()
            if found == expected:
                break
        self.assertEqual(found, expected)


def accept_all(listener, count):
    """Each is reset, in the context of the process that does it.

    Not in that of a timer, which any task may be interrupted by: some hosts run no tracing
    program while their process 1 is the current task, so none sees what happens then.
    """
    for _ in range(count):
        with listener.accept()[0] as sock:
            with contextlib.suppress(ConnectionResetError):
                sock.recv(1)


def open_and_reset(port, count):
    for _ in range(count):
        with socket.create_connection(("127.0.0.1", port)) as sock:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)


class Flood(SessionTest):
    def flood(self, count):
        with self.netns:
            listener = socket.create_server(("127.0.0.1", 0), backlog=4096)
            pids = [child(accept_all, listener, count),
                    child(open_and_reset, listener.getsockname()[1], count)]
            listener.close()
        return pids

    def test_none_is_missing(self):
        count = lab.sized(100000)
        sessions = Sessions(self, "--buffer", "128M")
        pids = self.flood(count)
        join(pids)
        # All that they have would be 350 MB, which each process that later tests fork would share.
        records, totals = sessions.stop(keep=lambda one: (one["NetnsInode"], one.get("Pid")))
        self.assertEqual(totals["lost"], 0)
        owners = collections.Counter(pid for inode, pid in records if inode == self.netns.inode)
        self.assertEqual(owners, {pids[0]: count, pids[1]: count})

    def test_those_that_a_late_reader_misses_are_counted(self):
        count = 5000
        sessions = Sessions(self, "--buffer", "64K")
        sessions.process.send_signal(signal.SIGSTOP)
        join(self.flood(count))
        sessions.process.send_signal(signal.SIGCONT)
        records, totals = sessions.stop()
        self.assertGreater(totals["lost"], 0)
        self.assertGreaterEqual(totals["ended"], 2 * count)
        self.assertLess(totals["lost"], totals["ended"]) # both also of others on this host
        self.assertEqual(len(records), totals["reported"])


def connect_and_close(name, port):
    rename(name)
    socket.create_connection(("127.0.0.1", port)).close()


class Options(SessionTest):
    def test_it_ends_with_its_reader_though_nothing_happens(self):
        process = self.lab.spawn(
            observer.netobsctl(), "sessions", "-o", "json", "-v", "--comm", "not-there",
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.assertIn("following", process.stderr.readline())
        process.stdout.close()
        observer.check_sanitizer(process.stderr.read())
        process.wait(timeout=60)

    def test_names_are_as_long_as_the_kernel_s(self):
        name = "of-sixteen-bytes"
        self.assertEqual(len(name), 16)
        with self.netns:
            listener = socket.create_server(("127.0.0.1", 0))
            sessions = Sessions(self, "--comm", name)
            join([child(connect_and_close, name, listener.getsockname()[1])])
            listener.close()
        found = self.here(sessions.stop()[0]).values()
        self.assertEqual([one["Process"] for one in found], [name[:15]])

    def test_selection_count_and_table(self):
        with self.netns:
            listener = socket.create_server(("127.0.0.1", 0), backlog=100)
            port = listener.getsockname()[1]
            table = self.lab.spawn(
                observer.netobsctl(), "sessions", "-o", "table", "-n", "3", "-v", "--pid",
                str(os.getpid()), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            self.assertIn("following", table.stderr.readline())
            other = Sessions(self, "--comm", "not-there")
            for _ in range(3):
                socket.create_connection(("127.0.0.1", port)).close()
            out, errors = table.communicate(timeout=60)
        self.assertEqual(table.returncode, 0, errors)
        lines = out.splitlines()
        self.assertRegex(lines[0], "^TIME +LOCAL +REMOTE +PID +PROCESS ")
        self.assertEqual(len(lines), 4)
        for line in lines[1:]:
            self.assertIn(f" 127.0.0.1:{port} ", line)
            self.assertIn(f" {os.getpid()} ", line)
        self.assertEqual(other.stop()[0], [])

    def test_the_table_counts_bytes_of_data(self):
        """As programs count them: no byte for SYN and FIN, whoever closes first, and how."""
        sizes = [(self.random.randrange(1, 900), self.random.randrange(1, 900)) for _ in range(4)]
        with self.netns:
            listener = socket.create_server(("127.0.0.1", 0), backlog=100)
            table = self.lab.spawn(
                observer.netobsctl(), "sessions", "-o", "table", "-B", "64M", "-v",
                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            self.assertIn("following", table.stderr.readline())
            expected = {}
            for way, (sent, received) in zip(("first", "last", "reset", "aborted"), sizes):
                client = socket.create_connection(listener.getsockname())
                server = listener.accept()[0]
                expected[f"{client.getsockname()[1]}"] = sent, received
                client.sendall(bytes(sent))
                receive(server, sent)
                server.sendall(bytes(received))
                receive(client, received)
                if way == "reset":
                    server.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
                if way == "aborted":
                    client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
                for end in (client, server) if way == "first" else (server, client):
                    end.close()
            request, answered = self.curl(listener)
            table.send_signal(signal.SIGTERM)
            out, errors = table.communicate(timeout=60)
        self.assertEqual(table.returncode, 0, errors)
        rows = re.findall(r" 127\.0\.0\.1:(\d+) +127\.0\.0\.1:(\d+) .* (\d+) B +(\d+) B +\d+ ", out)
        port = f"{listener.getsockname()[1]}"
        found = {local: (int(sent), int(received)) for local, remote, sent, received in rows
                 if remote == port}
        for client, counts in expected.items():
            self.assertEqual(found.pop(client), counts, out)
        self.assertEqual(list(found.values()), [(request, answered)], out)

    def curl(self, listener):
        """Fetch something: the sizes of the request and of the answer, as curl counts them."""
        process = self.lab.spawn(
            "curl", "-s", "-o", "/dev/null", "-w", "%{size_request} %{size_header} %{size_download}",
            f"http://127.0.0.1:{listener.getsockname()[1]}/", stdout=subprocess.PIPE, text=True)
        server = listener.accept()[0]
        server.recv(1 << 16)
        server.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello")
        request, *answer = map(int, process.communicate(timeout=60)[0].split())
        server.close()
        return request, sum(answer)


if __name__ == "__main__":
    lab.main("TCP sockets that programs follow", lambda: features().get("sessions"))
