# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
"""Processes that talk with each other, and note which sockets they use."""

import collections
import concurrent.futures
import functools
import ipaddress
import json
import os
import platform
import re
import shutil
import signal
import socket
import sys
import tempfile
import threading
import traceback
import warnings

from lib import lab
from lib import observer
from lib import ring

PR_SET_NAME = 15
SYS_EXIT = {"x86_64": 60, "aarch64": 93}[platform.machine()]
IPPROTO_MPTCP = 262
PROTOCOLS = {socket.SOCK_STREAM: 6, socket.SOCK_DGRAM: 17}


def child(work, *arguments, ns=None):
    """A process that does this, in a namespace, and ends."""
    pid = os.fork()
    if pid:
        return pid
    status = 1
    warnings.simplefilter("ignore", ResourceWarning)  # it ends, and closes all
    try:
        lab.die_with_parent()
        if ns:
            with ns:
                work(*arguments)
        else:
            work(*arguments)
        status = 0
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(status)


def join(pids):
    for pid in pids:
        status = os.waitpid(pid, 0)[1]
        assert status == 0, f"process {pid} ended with {status}"


def kill(pids):
    for pid in pids:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)


def rename(name):
    """This thread."""
    lab.LIBC.prctl(PR_SET_NAME, name if isinstance(name, bytes) else name.encode(), 0, 0, 0)


def rename_process(name):
    """From any of its threads."""
    with open("/proc/self/comm", "wb") as file:
        file.write(name)


def name_in(path):
    """What the file says, without the newline; names may have any bytes, as U+FFFD if they are no UTF-8."""
    with open(path, "rb") as file:
        return shown(file.read()[:-1])


def shown(name):
    return re.sub("[\udc80-\udcff]", "\ufffd", name.decode(errors="surrogateescape"))


def command():
    """The name of this process."""
    return name_in("/proc/self/comm")


def thread():
    """The name of this thread; None: it is that of the process."""
    name = name_in("/proc/thread-self/comm")
    return name if name != command() else None


def kinds_of_tcp():
    """Protocols of stream sockets that this kernel has."""
    try:
        socket.socket(socket.AF_INET, socket.SOCK_STREAM, IPPROTO_MPTCP).close()
    except OSError:
        return (0,)
    return 0, IPPROTO_MPTCP


def listen(address, protocol):
    sock = socket.socket(family(address[0]), socket.SOCK_STREAM, protocol)
    sock.bind(address)
    sock.listen(1000)
    return sock


def accept(listener, has_address=True):
    """accept(2), which asks for the address of the peer or not."""
    if has_address:
        return listener.accept()[0]
    return socket.socket(fileno=lab.check_errno(lab.LIBC.accept(listener.fileno(), None, None), "accept"))


def connect(address, protocol):
    sock = socket.socket(family(address[0]), socket.SOCK_STREAM, protocol)
    sock.connect(address)
    return sock


def connect_to_itself(address, kind=socket.SOCK_STREAM, port=0):
    """A socket both ends of which are equal. TCP opens such a connection from both sides at once."""
    sock = socket.socket(family(address), kind)
    sock.settimeout(lab.PATIENCE_S)
    sock.bind((address, port))
    sock.connect(sock.getsockname())
    return sock


# ---- Threads of a process ---------------------------------------------------------------

def nothing():
    """Between a question and its answer."""


def work_in_main(names, work):
    rename(names[0])
    work()


def work_in_thread(names, work):
    rename(names[0])
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        pool.submit(work_in_main, names[1:], work).result()


def work_after_main(names, work):
    """In a thread that outlives the first one."""
    def run():
        lab.wait_for(lambda: " Z " in name_in("/proc/self/stat"), "the end of the first thread")
        work_in_main(names[1:], work)
        os._exit(0)

    def report():
        try:
            run()
        except BaseException:
            traceback.print_exc()
            os._exit(1)

    rename(names[0])
    threading.Thread(target=report).start()
    lab.LIBC.syscall(SYS_EXIT, 0)


def work_in_fork(names, work):
    """In a process that a thread makes, and that has the name of that thread."""
    work_in_thread(names, lambda: join([child(work)]))


WAYS_TO_WORK = (work_in_main, work_in_thread, work_after_main, work_in_fork)
NOBODY = 65534
PARTS_OF_NAMES = [bytes([byte]) for byte in b"abcXYZ019 [](){}\"'\\,;:=%-_./\xff\xc3"] + \
    [character.encode() for character in "\u00e4\u20ac\U0001f600"]


def random_name(random):
    """1 to 20 characters, of which the kernel keeps 15 bytes."""
    return b"".join(random.choices(PARTS_OF_NAMES, k=random.randint(1, 20)))


# Sends on a connection, which it may have from an earlier program, once it may; says its name; lives on.
NAMED = """\
import json, os, socket, sys
address, port, fd, *then = sys.argv[1:]
if "NAME" in os.environ:
    with open("/proc/self/comm", "wb") as file:
        file.write(os.environb[b"NAME"])
sock = socket.socket(fileno=int(fd)) if int(fd) else socket.create_connection((address, port))
sock.set_inheritable(True)
os.write(1, b"%d\\n" % sock.getsockname()[1])
os.read(0, 1)
sock.sendall(b"hello")
if then:
    os.execv(then[0], [*then, address, port, str(sock.fileno())])
with open("/proc/self/comm", "rb") as file:
    os.write(1, file.read())
os.read(0, 1)
"""


class LongNames:
    """Programs with random names of 14 to 70 bytes, in a directory."""
    KINDS = "binary", "binary, other argument", "script", "link", "renamed", "script, then binary"

    def __init__(self, test):
        self.random = test.random
        self.home = test.enterContext(tempfile.TemporaryDirectory()).encode() + b"/"
        self.python, self.code = self.home + b"python", self.home + b"code"
        shutil.copy(os.path.realpath(sys.executable), self.python)
        self.write(self.code, NAMED)

    @staticmethod
    def write(path, text):
        with open(path, "w", encoding="ascii") as file:
            file.write(text)
        os.chmod(path, 0o755)

    def name(self):
        parts = [part for part in PARTS_OF_NAMES if part != b"/"]
        return b"".join(self.random.choices(parts, k=70))[:self.random.randint(14, 70)]

    def make(self, name, kind):
        """@return the arguments of a new program, the path of it first"""
        path = self.home + name
        if kind == "script":
            self.write(path, f"#!{sys.executable} -I\n{NAMED}")
            return [path]
        (os.symlink if kind == "link" else os.link)(self.python, path)
        return [path, b"-I", self.code]

    def choose(self, address, port):
        """@return kind, a function that runs such a program, and its whole name; None: the kernel has it, or none"""
        kind, name = self.random.choice(self.KINDS), self.name()
        variables, then, last = dict(os.environb), [], name
        if kind == "renamed":
            variables[b"NAME"], last = name, b""
            name = b"%016d" % self.random.randrange(10**9)
        if kind == "script, then binary":
            last = name[:60] + b".real"
            then = self.make(last, "binary")
        path, *arguments = self.make(name, kind.split(",", maxsplit=1)[0])
        first = name[:15] + b"-argument" if kind == "binary, other argument" else path
        line = [first, *arguments, address.encode(), b"%d" % port, b"0", *then]
        return kind, functools.partial(os.execve, path, line, variables), \
            shown(last) if 16 <= len(last) <= 63 else None


def plain(address):
    """An IPv4 address as itself, also of a socket of IPv6."""
    parsed = ipaddress.ip_address(address.split("%")[0])
    return str(getattr(parsed, "ipv4_mapped", None) or parsed)


class Notes:
    """What processes note of the sockets that they use: lines shorter than PIPE_BUF."""

    def __init__(self):
        self.file = tempfile.TemporaryFile("a+", encoding="utf-8")

    def add(self, sock, peer=None, local=None, worker=False):
        """
        @peer, @local: of a socket that is not connected, or not bound to an address. @worker: of io_uring, which
        used it last for this thread.
        """
        host, port = (peer or sock.getpeername())[:2]
        here = sock.getsockname()
        line = [PROTOCOLS[sock.type], plain(local or here[0]), here[1], plain(host), port,
                os.getpid(), command(), os.getuid(),
                f"iou-wrk-{threading.get_native_id()}" if worker else thread(),
                None if worker else threading.get_native_id()]
        os.write(self.file.fileno(), (json.dumps(line) + "\n").encode())

    def lines(self):
        self.file.seek(0)
        return [json.loads(line) for line in self.file]

    def read(self):
        """(protocol, address, port, peer's address, its port) -> (pid, command, user)"""
        return {tuple(line[:5]): tuple(line[5:8]) for line in self.lines()}

    def threads(self):
        """(protocol, address, port, peer's address, its port) -> name, or None. Of TCP."""
        return {tuple(line[:5]): line[8] for line in self.lines()
                if line[0] == socket.IPPROTO_TCP}

    def thread_ids(self):
        """The same of their numbers. None: it is a worker's."""
        return {tuple(line[:5]): line[9] for line in self.lines()}

    def users(self):
        """(protocol, address, port, peer's address, its port) -> {pid}

        Of a TCP connection, the last one. The kernel may give a port of UDP to several, one soon
        after the other.
        """
        ports = collections.defaultdict(set)
        for protocol, _, port, _, _, pid, *_ in self.lines():
            ports[protocol, port].add(pid)
        return {key: {user[0]} if key[0] == socket.IPPROTO_TCP else ports[key[0], key[2]]
                for key, user in self.read().items()}


# ---- Programs that talk -----------------------------------------------------------------

def family(address):
    return socket.AF_INET6 if ":" in address else socket.AF_INET


def serve_one(sock, notes):
    """Answer on a connection, or on a socket of UDP."""
    if sock.type == socket.SOCK_STREAM:
        sock.recv(5, socket.MSG_WAITALL)
        sock.sendall(b"world")
        notes.add(sock)
        sock.recv(1)
        sock.close()
        return
    peer = sock.recvfrom(100)[1]
    sock.sendto(b"world", peer)
    notes.add(sock, peer)


def serve_by_fork(sock, notes):
    join([child(serve_one, sock, notes)])


def serve_passed(sock, notes):
    """By a process that gets the descriptor."""
    ours, theirs = socket.socketpair(socket.AF_UNIX)

    def take():
        fds = socket.recv_fds(theirs, 1, 1)[1]
        serve_one(socket.socket(fileno=fds[0]), notes)

    pid = child(take)
    socket.send_fds(ours, [b"x"], [sock.fileno()])
    sock.close()
    join([pid])


def serve_next(listener, notes, work, has_address):
    sock = accept(listener, has_address)
    work(sock, notes)
    sock.close()


def serve_tcp(listener, notes, works):
    """Two of three connections; processes that have the listener, too, accept the others."""
    for i, work in enumerate(works):
        if i % 3 == 2:
            join([child(serve_next, listener, notes, serve_one, i % 2)])
        else:
            serve_next(listener, notes, work, i % 2)


def serve_udp(sock, notes, count, ready):
    """The process has used the socket, so that it is known, once @ready can be read."""
    if count:
        sock.sendto(b"x", (sock.getsockname()[0], 9))
    os.close(ready)
    for _ in range(count):
        serve_one(sock, notes)


def ask_tcp(address, port, notes, between, protocol=0, user=0):
    os.setresuid(user, user, 0)
    sock = connect((address, port), protocol)
    sock.sendall(b"hello")
    between()
    sock.recv(5, socket.MSG_WAITALL)
    notes.add(sock)
    sock.close()
    os.setresuid(0, 0, 0) # to leave the namespace


def ask_by_ring(address, port, notes, between, by_worker):
    """By io_uring, of which a worker sends last, or this thread does all."""
    sock, io = socket.create_connection((address, port)), ring.Ring()
    io.send(sock, b"hello", not by_worker)
    between()
    received = 0
    while received < 5:
        received += len(io.recv(sock, 5 - received))
    if by_worker:
        io.send(sock, b"!", True)
    notes.add(sock, worker=by_worker)
    sock.close()


def ask_and_exec(address, port, notes, _between):
    """The program that uses the socket in the end has another name."""
    sock = socket.create_connection((address, port))
    for fd in (sock, notes.file):
        os.set_inheritable(fd.fileno(), True)
    here, peer = sock.getsockname(), sock.getpeername()
    line = json.dumps([6, here[0], here[1], peer[0], peer[1]])[:-1]
    os.execv("/bin/bash", ["bash", "-c", "printf hello >&$0; read -N 5 -u $0 answer; "
                           "printf '%s, %d, \"bash\", 0, null, %d]\\n' \"$2\" $$ $$ >&$1",
                           str(sock.fileno()), str(notes.file.fileno()), line])


def ask_udp(address, port, notes, local, is_connected):
    sock = socket.socket(family(address), socket.SOCK_DGRAM)
    sock.settimeout(lab.PATIENCE_S)
    if is_connected:
        sock.connect((address, port))
        sock.send(b"hello")
    else:
        sock.sendto(b"hello", (address, port))
    sock.recv(100)
    notes.add(sock, (address, port), local)
    sock.close()


def ask_itself(address, kind, notes, between):
    with connect_to_itself(address, kind) as sock:
        sock.send(b"hello")
        between()
        sock.recv(5)
        notes.add(sock)


class TalkTest(lab.LabTest):
    """A host and containers. Who talks with whom, and how, is random."""
    CONTAINERS = 3
    HAS_ODD_NAMES = False  # of any bytes, and that change while a socket is used
    kinds_of_tcp = (0,)  # protocols

    def setUp(self):
        super().setUp()
        self.has_io = observer.features()["session_io"]
        self.has_ring = ring.is_there()
        self.notes = Notes()
        self.pids = []  # of servers
        self.addCleanup(self.notes.file.close)
        self.host = self.lab.ns("h", ipv6=True)
        self.containers = [self.lab.ns(f"c{i}", ipv6=True) for i in range(self.CONTAINERS)]

    def wire_all(self):
        """Connections end in the calls of their processes, and none has the ports of another."""
        for i, container in enumerate(self.containers):
            self.lab.wire(self.host, f"v{i}", [f"10.0.{i}.1/24", f"2001:db8:{i}::1/64"],
                          container, "eth0", [f"10.0.{i}.2/24", f"2001:db8:{i}::2/64"])
        for ns in self.host, *self.containers:
            ns.acknowledge_at_once()
            ns.sysctl("ipv4/tcp_tw_reuse", 0)

    def servers(self, tcp_count, udp_count):
        """Address and port, and address, port and how to ask, of each question to come."""
        questions = []
        hosts = [(None, "127.0.0.1"), (None, "::1"), (self.host, "10.0.0.1"),
                 (self.host, "2001:db8:0::1")]
        for i, container in enumerate(self.containers):
            hosts += [(container, f"10.0.{i}.2"), (container, f"2001:db8:{i}::2")]
        for ns, address in hosts:
            with ns or self.host:
                listener = listen((address, 0), self.random.choice(self.kinds_of_tcp))
                sock = socket.socket(family(address), socket.SOCK_DGRAM)
                sock.bind((address, 0))
            works = [self.random.choice((serve_one, serve_by_fork, serve_passed))
                     for _ in range(tcp_count)]
            if not self.has_io:
                works = [serve_one] * tcp_count
            self.pids.append(child(serve_tcp, listener, self.notes, works,
                                   ns=ns or self.host))
            used, ready = os.pipe()
            self.pids.append(child(serve_udp, sock, self.notes, udp_count, ready,
                                   ns=ns or self.host))
            os.close(ready)
            os.read(used, 1)
            os.close(used)
            questions += [(ns, address, listener.getsockname()[1], "tcp")] * tcp_count
            questions += [(ns, address, sock.getsockname()[1], "udp")] * udp_count
            listener.close()
            sock.close()
        questions += [(self.host, address, 0, kind) for ns, address in hosts if not ns or ns is self.host
                      for kind in PROTOCOLS for _ in range(tcp_count // 5)]
        self.random.shuffle(questions)
        return questions

    def ask(self, ns, address, port, kind, name):
        """From the host, or to it from a container."""
        i = self.random.randrange(self.CONTAINERS)
        if ns is self.host:
            asker = self.containers[0]
            local = "10.0.0.2" if "." in address else "2001:db8:0::2"
        else:
            asker = self.host
            local = address if ns is None else address[:-1] + "1"
        names = [name, f"{name}-thread"]
        way, between = self.random.choice(WAYS_TO_WORK), nothing
        if self.HAS_ODD_NAMES and self.has_io:
            names = [random_name(self.random) for _ in names]
            if self.random.random() < .3:
                between = functools.partial(rename_process, random_name(self.random))
        if kind in PROTOCOLS:
            asker, work = self.host, (ask_itself, address, kind, self.notes, between)
        elif kind == "udp":
            work = ask_udp, address, port, self.notes, local, i % 2
        else:
            may_change_user = way is work_in_main and between is nothing
            work = functools.partial(ask_tcp, protocol=self.random.choice(self.kinds_of_tcp),
                                     user=self.random.choice((0, NOBODY)) if may_change_user else 0)
            if self.has_io and i == 0:
                work = ask_and_exec
            if self.has_io and self.has_ring and self.random.random() < .3:
                work = functools.partial(ask_by_ring, by_worker=self.random.random() < .5)
            work = work, address, port, self.notes, between
        return child(way, names, functools.partial(*work), ns=asker)

    def talk_at_random(self):
        """@return how many questions were asked and answered"""
        askers = []
        count = int(os.environ.get("NETOBS_TEST_QUESTIONS", "15"))
        questions = self.servers(lab.sized(count), lab.sized(10) if self.has_io else 0)
        for i, question in enumerate(questions):
            askers.append(self.ask(*question, f"asker-{i}"))
            if len(askers) > 8:
                join([askers.pop(0)])
        join(askers + self.pids)
        return len(questions)
