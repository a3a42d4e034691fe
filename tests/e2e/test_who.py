# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
# Cost: 50
# Lock: sockets, it names the owners of short-lived sockets, and lists all sockets of the host.
"""The processes at the ends of flows, compared with what the processes themselves note.

Who talks to whom, and how, is random.
"""

import collections
import concurrent.futures
import json
import os
import select
import socket
import sys
import time

from lib import lab
from lib import observer
from lib import talkers
from lib.observer import features
from lib.terminal import Terminal
from lib.talkers import child, join, rename

SO_BINDTODEVICE = 25
ENDS = ("Src", "Dst")


class WhoTest(talkers.TalkTest):
    HAS_ODD_NAMES = True

    def observe(self, *arguments):
        count = self.CONTAINERS
        return observer.Observer(self.lab, self.host, "--process", *arguments).wait_attached(
            (self.host, "lo"), *((self.host, f"v{i}") for i in range(count)))

    def check(self, records, before=()):
        """
        Each end that was noted is the note's in the last record that has it; in earlier ones
        it may be of a process that had the socket @before. Of several users of a port, one or none
        may be named. @return how many
        """
        notes, users, last = self.notes.read(), self.notes.users(), {}
        threads = self.notes.threads()
        for record in records:
            here = record["SrcAddr"], record.get("SrcPort")
            there = record["DstAddr"], record.get("DstPort")
            for end, key in (("Src", (*here, *there)), ("Dst", (*there, *here))):
                key = record["Proto"], *key
                if key not in notes:
                    continue
                found = tuple(record.get(end + name) for name in ("Pid", "Process", "Uid"))
                self.assertIn(found[0], (None, *users[key], *before), (end, record))
                last[key, end] = found, record
        for (key, end), (found, record) in last.items():
            if len(users[key]) == 1:
                self.assertEqual(found, notes[key], (end, record))
                self.assertEqual(record.get(end + "Thread"), threads.get(key), (end, record))
        self.assertEqual({key for key, _ in last}, set(notes))
        return len(last)


class Processes(WhoTest):
    def test_each_end_has_its_process(self):
        self.wire_all()
        watch = self.observe("--interval", "1")
        count = self.talk_at_random()
        records = watch.stop().records
        self.note(f"{count} questions, {self.check(records, self.pids)} ends")

    def test_threads_have_the_name_of_their_process(self):
        """A process with four threads, with a connection each, is one group."""
        def run():
            def ask(i):
                rename(f"thread-{i}")
                with socket.create_connection(listener.getsockname()) as sock:
                    sock.sendall(b"hello")
                    sock.recv(1)

            rename("a-process")
            with concurrent.futures.ThreadPoolExecutor(4) as pool:
                list(pool.map(ask, range(4)))

        self.wire_all()
        with self.host:
            listener = socket.create_server(("10.0.0.1", 0))
        self.addCleanup(listener.close)
        watch = self.observe("--interval", "60")
        groups = self.observe("--by", "process", "--interval", "60")
        pid = child(run, ns=self.containers[0])
        socks = [listener.accept()[0] for _ in range(4)]
        for sock in socks:
            sock.recv(5, socket.MSG_WAITALL)
            sock.close()
        join([pid])
        records = [one for one in watch.stop().records if one.get("SrcPid") == pid]
        self.assertEqual({(one["SrcProcess"], one.get("SrcThread")) for one in records},
                         {("a-process", f"thread-{i}") for i in range(4)})
        own = [one for one in groups.stop().records if one.get("Pid") == pid]
        self.assertEqual([(one["Process"], one["Flows"]) for one in own], [("a-process", 8)])

    def test_sockets_older_than_the_observer(self):
        self.wire_all()
        with self.host:
            listener = socket.create_server(("10.0.0.1", 0))
            receiver = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
            receiver.bind(("0.0.0.0", 5353))
        go, ready = os.pipe(), os.pipe()

        def ask(name):
            rename(name)
            tcp = socket.create_connection(listener.getsockname())
            udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
            udp.connect(("10.0.0.1", 5353))
            os.write(ready[1], b"x")
            os.read(go[0], 1)
            tcp.sendall(b"hello")
            udp.send(b"hello")
            self.notes.add(tcp)
            self.notes.add(udp)
            tcp.recv(1)

        pids = [child(ask, f"old-{i}", ns=self.containers[0]) for i in range(10)]
        ends = [listener.accept()[0] for _ in pids]
        for _ in pids:
            os.read(ready[0], 1)
        watch = self.observe("--interval", "60")
        os.write(go[1], b"x" * len(pids))
        for end in ends:
            end.recv(5, socket.MSG_WAITALL)
            self.notes.add(end)
            end.close()
        for _ in pids:
            peer = receiver.recvfrom(100)[1]
            self.notes.add(receiver, peer, "10.0.0.1")
        join(pids)
        receiver.close()
        listener.close()
        self.assertEqual(self.check(watch.stop().records), 6 * len(pids))

    def test_of_several_processes_with_a_socket_none_is_named(self):
        """SO_REUSEPORT, without a connection: any of them may get a datagram."""
        if not self.has_io:
            return
        self.wire_all()
        watch = self.observe("--interval", "60")

        def serve(ready, go):
            sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
            sock.bind(("10.0.0.1", 7000))
            # So that it has been used.
            sock.sendto(b"x", ("10.0.0.2", 9))
            os.write(ready, b"x")
            os.read(go, 1)

        ready, go = os.pipe(), os.pipe()
        pids = [child(serve, ready[1], go[0], ns=self.host) for _ in range(3)]
        for _ in pids:
            os.read(ready[0], 1)
        before = self.host.received()
        with self.containers[0]:
            for _ in range(20):
                sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
                sock.sendto(b"hello", ("10.0.0.1", 7000))
                sock.close()
        lab.wait_for(lambda: self.host.received() >= before + 20, "the datagrams")
        records = [one for one in watch.stop().records if one.get("DstPort") == 7000]
        os.write(go[1], b"x" * len(pids))
        join(pids)
        # Two sockets may have had the same port.
        self.assertEqual(sum(one["Packets"] for one in records), 20)
        for record in records:
            self.assertNotIn("DstPid", record)
            self.assertEqual(record["SrcPid"], os.getpid())

    def test_an_open_socket_is_preferred_to_one_that_has_ended(self):
        """A process answers with a connected socket, and ends; then another without."""
        if not self.has_io:
            return
        self.wire_all()
        watch = self.observe("--interval", "1")
        with self.host:
            other = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
            other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            other.bind(("0.0.0.0", 7000))
        with self.containers[0]:
            asker = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
            asker.bind(("10.0.0.2", 7001))
        asker.settimeout(lab.PATIENCE_S)
        self.addCleanup(asker.close)
        self.addCleanup(other.close)

        def serve():
            sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            sock.bind(("10.0.0.1", 7000))
            sock.connect(("10.0.0.2", 7001))
            sock.send(b"hello")
            sock.recv(100)
            time.sleep(2)

        before = child(serve, ns=self.host)
        asker.sendto(b"world", asker.recvfrom(100)[1])
        join([before])
        # Flows of one generation may be of both.
        time.sleep(3)
        asker.sendto(b"hello", ("10.0.0.1", 7000))
        other.sendto(b"world", other.recvfrom(100)[1])
        asker.recv(100)
        self.notes.add(asker, ("10.0.0.1", 7000), "10.0.0.2")
        self.notes.add(other, ("10.0.0.2", 7001), "10.0.0.1")
        records = watch.stop().records
        self.assertEqual(self.check(records, [before]), 4)
        self.assertTrue(any(before in (one.get("SrcPid"), one.get("DstPid"))
                            for one in records))

    def test_a_socket_that_is_handed_over_is_the_last_users(self):
        """By fork(2), unix(7) or execve(2), at any time, and closed before it is listed."""
        if not self.has_io:
            return
        self.wire_all()
        watch = self.observe("--interval", "60")
        exec_of = [sys.executable, "-c",
                   "import os, socket, sys\n"
                   "sock = socket.socket(fileno=int(sys.argv[1]))\n"
                   "for _ in range(20):\n"
                   "    sock.sendto(b'x', ('10.0.0.1', 9))\n"]

        def send(sock, count):
            for _ in range(count):
                sock.sendto(b"x", ("10.0.0.1", 9))

        def take(channel):
            _, (fd,), _, _ = socket.recv_fds(channel, 1, 1)
            send(socket.socket(fileno=fd), 20)

        def hand_over(how, wait, port, told):
            rename("before")
            sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
            sock.bind(("10.0.0.2", port))
            send(sock, 1)
            time.sleep(wait)
            if how == "exec":
                os.write(told, b"%d %d %s\n" % (
                    port, os.getpid(), os.path.basename(sys.executable).encode()))
                sock.set_inheritable(True)
                os.execv(sys.executable, [*exec_of, str(sock.fileno())])
            ours, theirs = socket.socketpair()
            other = child(send, sock, 20) if how == "fork" else child(take, theirs)
            socket.send_fds(ours, [b"x"], [sock.fileno()])
            sock.close()
            join([other])
            os.write(told, b"%d %d -\n" % (port, other))

        told, before = os.pipe(), self.host.received()
        pids = [child(hand_over, self.random.choice(("fork", "exec", "pass")),
                      self.random.choice((0, 0.01, 0.3, 1.2)), 7100 + i, told[1],
                      ns=self.containers[0]) for i in range(30)]
        join(pids)
        os.close(told[1])
        with os.fdopen(told[0]) as lines:
            wanted = {int(port): (int(pid), name)
                      for port, pid, name in (line.split() for line in lines)}
        lab.wait_for(lambda: self.host.received() >= before + 21 * len(pids), "the datagrams")
        found = {one["SrcPort"]: one for one in watch.stop().records
                 if one.get("DstPort") == 9}
        self.assertEqual(set(wanted), set(found))
        for port, (pid, name) in wanted.items():
            self.assertEqual((21, pid), (found[port]["Packets"], found[port]["SrcPid"]))
            self.assertIn(name, ("-", found[port]["SrcProcess"]))

    def test_a_container_that_is_gone_is_not_the_next_one(self):
        """With its addresses and ports. Nobody has looked yet whose namespace was behind its interface."""
        watch = observer.Observer(self.lab, self.host, "-i", "/p0/", "--process", "--interval",
                                  "60").wait_attached()
        with self.host:
            receiver = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        receiver.settimeout(lab.PATIENCE_S)
        receiver.bind(("0.0.0.0", 7000))
        self.addCleanup(receiver.close)

        def send():
            sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
            sock.bind(("10.9.0.2", 7001))
            sock.sendto(b"x", ("10.9.0.1", 7000))
            time.sleep(lab.PATIENCE_S)

        for name in "first", "second":
            pod = self.lab.ns(name)
            self.lab.wire(pod, "eth0", ["10.9.0.2/24"], self.host, "p0", ["10.9.0.1/24"])
            watch.wait_attached((self.host, "p0"))
            pids = [child(send, ns=pod)]
            receiver.recv(1)
            if name == "first":
                talkers.kill(pids)
                self.host.ip("link", "del", "p0")
        records = [one for one in watch.stop().records if one.get("SrcPort") == 7001]
        talkers.kill(pids)
        self.assertEqual([(2, None)], [(one["Packets"], one.get("SrcPid")) for one in records])

    def test_what_is_forwarded_is_not_the_routers(self):
        """A port that a process of the router has, too, on all its addresses."""
        if not self.has_io:
            return
        self.wire_all()
        self.host.sysctl("ipv4/ip_forward", 1)
        for i, container in enumerate(self.containers):
            container.ip("route", "add", "default", "via", f"10.0.{i}.1")
        with self.host:
            router = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
            router.bind(("0.0.0.0", 6000))
            router.sendto(b"x", ("10.0.0.2", 9))
        with self.containers[1]:
            receiver = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
            receiver.bind(("0.0.0.0", 6000))
        watch = self.observe("--interval", "60")

        def send():
            sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
            sock.bind(("0.0.0.0", 6000))
            sock.sendto(b"hello", ("10.0.1.2", 6000))
            self.notes.add(sock, ("10.0.1.2", 6000), "10.0.0.2")

        join([child(send, ns=self.containers[0])])
        self.assertEqual(receiver.recvfrom(100)[1], ("10.0.0.2", 6000))
        self.notes.add(receiver, ("10.0.0.2", 6000), "10.0.1.2")
        records = [one for one in watch.stop().records if one["SrcAddr"] == "10.0.0.2"]
        receiver.close()
        router.close()
        self.assertEqual(self.check(records), 2)


# A middlebox.
STRIP = """table ip strip {{ chain {name} {{ type filter hook prerouting priority 0;
tcp dport {port} tcp flags syn reset tcp option mptcp
}}
}}
"""


class Mptcp(WhoTest):
    """
    Packets have the kernel's sockets of TCP, processes those of MPTCP. At either end, or both, with several
    subflows or fallback to TCP; older than the observer or not, ended or not.
    """
    CONTAINERS = 1

    def wire_all(self):
        super().wire_all()
        for i in (1, 2):
            self.lab.wire(self.host, f"v{i}", [f"10.0.{i}.1/24"],
                          self.containers[0], f"eth{i}", [f"10.0.{i}.2/24"])
            self.host.ip("mptcp", "endpoint", "add", f"10.0.{i}.1", "signal")
        for ns in self.host, self.containers[0]:
            ns.ip("mptcp", "limits", "set", "subflow", "8", "add_addr_accepted", "8")

    def strip(self, port):
        """Have no option of MPTCP come to the port. @return whether nftables can"""
        try:
            self.host.run("nft", "-f", "-", input=STRIP.format(name=f"to-{port}", port=port))
        except RuntimeError as why:
            self.note(why)
            return False
        return True

    def run_end(self, work, turn, ns):
        """@return a process, and where it waits for its turns; it says that each is over"""
        waits, go = os.pipe()

        def run():
            os.close(go)
            sock = work()
            os.write(self.said[1], b"x")
            while os.read(waits, 1) == b"x":
                turn(sock)
                os.write(self.said[1], b"x")

        pid = child(run, ns=ns)
        os.close(waits)
        return pid, self.enterContext(open(go, "wb", 0))

    def turn(self, ends):
        for _, go in ends:
            go.write(b"x")
        self.wait_for_turn(ends)

    def wait_for_turn(self, ends):
        for _ in ends:
            if not select.select([self.said[0]], [], [], lab.PATIENCE_S)[0]:
                self.fail("a process takes no turn")
            os.read(self.said[0], 1)

    @staticmethod
    def end(ends):
        """Those that have not ended."""
        ends = [(pid, go) for pid, go in ends if not go.closed]
        for _, go in ends:
            go.write(b".")
            go.close()
        join([pid for pid, _ in ends])

    def start(self, is_silent=False):
        """
        A connection. @return its port, (process, where it waits) of server and client, whether the server is to be
        known, and how many subflows there are
        """
        kinds = 0, *3 * talkers.kinds_of_tcp()[-1:]
        ours, theirs = self.random.choice(kinds), self.random.choice(kinds)
        answers, has_address, is_stripped = (self.random.random() < p for p in (.6, .6, .3))

        def answer(sock):
            if answers:
                sock.recv(5, socket.MSG_WAITALL)
                sock.sendall(b"world")

        def ask(sock):
            sock.sendall(b"hello")
            if answers:
                sock.recv(5, socket.MSG_WAITALL)

        with self.host:
            listener = talkers.listen(("0.0.0.0", 0), ours)
        port = listener.getsockname()[1]
        is_stripped = is_stripped and self.strip(port)
        ends = [self.run_end(lambda: talkers.accept(listener, has_address), answer, self.host),
                self.run_end(lambda: talkers.connect(("10.0.0.1", port), theirs), ask, self.containers[0])]
        listener.close()
        self.wait_for_turn(ends)
        if not is_silent:
            self.turn(ends)
        count = 3 if ours and theirs and not is_stripped else 1
        lab.wait_for(lambda: is_silent or len(self.host.run("ss", "-tnH", "state", "established", "sport",
                                                            f":{port}").splitlines()) == count, "subflows")
        return port, ends, answers and not is_silent or has_address, count

    def test_each_subflow_has_the_process_of_its_socket(self):
        if not self.has_io:
            return
        self.wire_all()
        self.said = os.pipe()
        for fd in self.said:
            self.addCleanup(os.close, fd)
        half = int(os.environ.get("NETOBS_TEST_SUBFLOWS", "12")) // 2
        talking = [self.start() for _ in range(half)]
        watch = self.observe("--interval", "60")
        silent = [self.start(is_silent=True) for _ in range(half // 3)]
        talking += [self.start() for _ in range(half)] + silent
        wanted, found = {}, collections.defaultdict(set)
        for i, (port, ends, is_known, count) in enumerate(talking):
            if i < 2 * half:
                self.turn(ends)
            exact = count if half <= i < 2 * half else 1
            wanted[port] = *(pid for pid, _ in ends), is_known or i < half, i >= 2 * half, range(exact, count + 1)
            if self.random.random() < .5:
                self.end(ends)
                lab.wait_for(lambda: not any(line.split()[0] != "TIME-WAIT" for ns in (self.host, self.containers[0])
                             for line in ns.run("ss", "-tanH", f"( sport = :{port} or dport = :{port} )").splitlines()),
                             "the end of a connection")
        for record in watch.stop().records:
            end, other = ENDS if record["SrcAddr"].endswith(".1") else ENDS[::-1]
            port = record.get(end + "Port")
            if port not in wanted:
                continue
            server, client, is_known, is_silent, _ = wanted[port]
            address = record[other + "Addr"]
            found[port].add((address, record[other + "Port"]))
            self.assertIn(record.get(end + "Pid"), (server,) if is_known else (server, None), record)
            self.assertIn(record.get(other + "Pid"), (client, None) if is_silent and address != "10.0.0.2" else
                          (client,), record)
        for port, (*_, counts) in wanted.items():
            self.assertIn(len(found[port]), counts, port)
        self.note(f"{sum(map(len, found.values()))} subflows")
        for _, ends, *_ in talking:
            self.end(ends)


class Names(WhoTest):
    CONTAINERS = 1

    def start(self, programs, listener):
        """@return what it is, its whole name, its process, where it waits, its lines, and the server's socket"""
        kind, run, name = programs.choose(*listener.getsockname())
        go, said = os.pipe(), os.pipe()

        def become():
            os.dup2(go[0], 0)
            os.dup2(said[1], 1)
            run()

        pid = child(become, ns=self.containers[0])
        os.close(go[0])
        os.close(said[1])
        sock = self.enterContext(listener.accept()[0])
        sock.settimeout(lab.PATIENCE_S)
        lines = self.enterContext(open(said[0], "rb"))
        return kind, name, pid, self.enterContext(open(go[1], "wb", 0)), lines, sock

    def test_names_that_the_kernel_cuts(self):
        """Of new sockets, and of old ones that their process uses again, or only holds."""
        if not self.has_io:
            return
        self.wire_all()
        programs, wanted = talkers.LongNames(self), {}
        half = int(os.environ.get("NETOBS_TEST_LONG_NAMES", "16")) // 2
        with self.host:
            listener = self.enterContext(socket.create_server(("10.0.0.1", 0)))
        listener.settimeout(lab.PATIENCE_S)
        talking = [self.start(programs, listener) for _ in range(half)]
        watch = self.observe("--interval", "60")
        talking += [self.start(programs, listener) for _ in range(half)]
        for i, (kind, name, pid, go, lines, sock) in enumerate(talking):
            if i >= half or self.random.random() < .6:
                count = 1 + kind.startswith("script,")
                go.write(b"x" * count)
                sock.recv(5 * count, socket.MSG_WAITALL)
                comm = talkers.shown([lines.readline() for _ in range(count + 1)][-1][:-1])
            else:
                sock.sendall(b"hello")
                comm = talkers.name_in(f"/proc/{pid}/comm")
                name = name if kind.startswith("binary") else None
            wanted[sock.getpeername()[1]] = pid, comm, name
        found = {}
        for record in watch.stop().records:
            for end in ENDS:
                port = record.get(end + "Port")
                if port in wanted:
                    found[port] = tuple(record.get(end + name) for name in ("Pid", "Process", "ProcessLongName"))
                    self.assertEqual(wanted[port], found[port])
        self.assertEqual(wanted, found)
        self.note(f"{2 * half} processes")
        talkers.kill([pid for _, _, pid, *_ in talking])


class Twins(WhoTest):
    """Containers with equal addresses, and connections with equal ports, too."""
    CONTAINERS = 2

    def talk(self):
        """Both containers to a process of the host each, at the same address."""
        for i, container in enumerate(self.containers):
            self.lab.wire(self.host, f"v{i}", [], container, "eth0", ["10.9.0.2/24"])
            self.host.address(f"v{i}", "10.9.0.1/24")
            container.ip("neigh", "replace", "10.9.0.1", "lladdr",
                         self.mac_of(self.host, f"v{i}"), "dev", "eth0")
            self.host.ip("neigh", "replace", "10.9.0.2", "lladdr",
                         self.mac_of(container, "eth0"), "dev", f"v{i}")

    @staticmethod
    def mac_of(ns, interface):
        return json.loads(lab.run(lab.IP, "-n", ns.name, "-j", "link", "show",
                                  interface))[0]["address"]

    def run_twins(self, *arguments):
        self.talk()
        watch = self.observe("--interval", "60", *arguments)
        pids = {}

        def serve(i, ready):
            sock = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
            sock.setsockopt(socket.SOL_SOCKET, SO_BINDTODEVICE, f"v{i}".encode())
            sock.bind(("10.9.0.1", 8000))
            sock.listen()
            os.write(ready, b"x")
            other = sock.accept()[0]
            other.recv(5, socket.MSG_WAITALL)
            other.sendall(b"world")
            other.recv(1)

        def ask():
            sock = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
            sock.bind(("10.9.0.2", 8001))
            sock.connect(("10.9.0.1", 8000))
            sock.sendall(b"hello")
            sock.recv(5, socket.MSG_WAITALL)

        ready = os.pipe()
        for i in range(self.CONTAINERS):
            pids["server", i] = child(serve, i, ready[1], ns=self.host)
            os.read(ready[0], 1)
        for i, container in enumerate(self.containers):
            pids["client", i] = child(ask, ns=container)
        join(pids.values())
        return pids, [one for one in watch.stop().records if one["Proto"] == 6]

    def test_each_interface_has_the_process_behind_it(self):
        pids, records = self.run_twins("--per-interface")
        self.assertEqual(len(records), 4)
        for record in records:
            i = int(record["Interfaces"][0][1])
            end = "Src" if record["SrcAddr"] == "10.9.0.2" else "Dst"
            self.assertEqual(record[end + "Pid"], pids["client", i])
            # Sockets of two processes in one namespace have these addresses and ports.
            other = ENDS[end == "Src"]
            self.assertNotIn(other + "Pid", record)

    def test_a_flow_of_both_has_none(self):
        _, records = self.run_twins()
        for record in records:
            for end in ENDS:
                self.assertNotIn(end + "Pid", record)


class Shown(WhoTest):
    """What commands show of processes."""

    def converse(self):
        """A client in a container, which lives on."""
        def serve():
            rename("a-server")
            listener = socket.create_server(("10.0.0.1", 8080))
            os.write(self.ready[1], b"x")
            sock = listener.accept()[0]
            while sock.recv(100):
                sock.sendall(b"world")

        def ask():
            rename("a-client")
            sock = socket.create_connection(("10.0.0.1", 8080))
            while True:
                sock.sendall(b"hello")
                sock.recv(100)
                time.sleep(0.05)

        self.ready = os.pipe()
        pids = [child(serve, ns=self.host)]
        os.read(self.ready[0], 1)
        pids.append(child(ask, ns=self.containers[0]))
        self.addCleanup(talkers.kill, pids)
        return pids

    def run_in_host(self, *arguments):
        if arguments[0] != "env":
            arguments = observer.netobsctl(), *arguments
        done = self.host.run(*arguments)
        return done if isinstance(done, str) else done.stdout

    def test_groups_tables_and_connections(self):
        self.wire_all()
        server, client = self.converse()
        lines = self.run_in_host("flows", "--by", "process", "-o", "json", "--interval", "1",
                                 "-d", "3", "port", "8080").splitlines()
        pids = {line.get("Pid"): line.get("Process") for line in map(json.loads, lines)}
        self.assertEqual((pids.get(server), pids.get(client)), ("a-server", "a-client"))
        table = self.run_in_host("flows", "--process", "-o", "table", "--interval", "1", "-d",
                                 "3", "port", "8080")
        self.assertIn(f"a-client[{client}] → a-server[{server}]", table)
        top = self.run_in_host("top", "--by", "process", "--once", "port", "8080")
        self.assertIn(f"a-client[{client}]", top)
        top = self.run_in_host("env", "COLUMNS=80", observer.netobsctl(), "top", "--process",
                               "--once", "port", "8080")
        self.assertRegex(top, "(?m)^.*PROCESS +CLIENT +SERVICE ")
        self.assertRegex(top, rf"a-client\[{client}\] +\S+ +10.0.0.1:8080/TCP ")
        tcp = json.loads(self.run_in_host("tcp", "--process", "--once", "-o", "json",
                                          "port", "8080").splitlines()[0])
        self.assertEqual((tcp["SrcPid"], tcp["SrcProcess"], tcp["DstPid"], tcp["DstProcess"]),
                         (client, "a-client", server, "a-server"))
        tcp = self.run_in_host("tcp", "--process", "--once", "port", "8080")
        self.assertIn(f"a-client[{client}] → a-server[{server}]", tcp)
        tcp = self.run_in_host("env", "COLUMNS=80", observer.netobsctl(), "tcp", "--process",
                               "--once", "port", "8080")
        self.assertRegex(tcp, r" → 10.0.0.1:8080 .* a-cli")
        self.show_on_a_terminal(client)

    def show_on_a_terminal(self, client):
        terminal = Terminal(self.lab, self.host, 24, 80, "top", "--process", "port", "8080")
        terminal.wait_for(lambda lines: lines[3].startswith("PROCESS") and any(
            line.startswith(f"a-client[{client}]") for line in lines), "the process")
        self.assertEqual(terminal.quit()[0], 0)


if __name__ == "__main__":
    lab.main("TCP sockets that programs follow", lambda: features().get("sessions"))
