# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
# Needs: ethtool iproute2
"""Namespaces, links and processes, taken away again whatever happens."""

import atexit
import contextlib
import ctypes
import fcntl
import functools
import json
import os
import random
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time
import unittest

from lib import at_once as cases

PREFIX = "nobs-"
ABSENT = 77 # the exit status of a test whose subject this kernel does not have
CLONE_NEWNET = 0x40000000
PR_SET_PDEATHSIG = 1
SIOCGIFFLAGS, SIOCSIFFLAGS = 0x8913, 0x8914
IFF_UP = 1
PATIENCE_S = 180 # of a wait for what a busy machine does late, and for no promise
NOT_ACKNOWLEDGED = "broadcast", "multicast", "anycast" # routes
LINKS = 4 # that a packet passes, each by the backlog of a CPU
BACKLOG = 1000 # packets of a CPU, at most: net.core.netdev_max_backlog
LIBC = ctypes.CDLL(None, use_errno=True)
IP = shutil.which("ip") or "/sbin/ip"


def run(*command, check=True, **options):
    """Run a command to its end; returns its output, and shows it if the command fails."""
    done = subprocess.run([str(part) for part in command], text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          **options)
    if check and done.returncode:
        raise RuntimeError(f"{' '.join(map(str, command))}: exit "
                           f"{done.returncode}: {done.stderr.strip()}")
    return done.stdout


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def write(path, text):
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


def json_lines(path, is_whole=True):
    """The values of a file. @is_whole: no part of its last line is still to be written."""
    with open(path, encoding="utf-8") as file:
        return [json.loads(line) for line in file if is_whole or line.endswith("\n")]


def status_of(pid):
    """{name: text} of /proc/PID/status; of sizes, in KiB, the number."""
    lines = (line.split(":", 1) for line in read(f"/proc/{pid}/status").splitlines())
    return {name: value.strip().removesuffix(" kB") for name, value in lines}


def command_of(pid):
    """The name that the kernel has for a process; none if it has ended, or the name is no text."""
    with contextlib.suppress(OSError, UnicodeDecodeError):
        return read(f"/proc/{pid}/comm").rstrip("\n")
    return ""


def wait_for(condition, what, seconds=PATIENCE_S):
    """Poll until @condition is true, however slow the machine; return that."""
    end = time.monotonic() + seconds
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > end:
            raise TimeoutError(f"waited {seconds} s in vain for {what}")
        time.sleep(0.01)


def await_closed(*namespaces):
    """Until the kernel has closed all TCP connections there: the last packets may come late."""
    wait_for(lambda: not any(ns.run("ss", "-tnH", "state", "connected", "exclude", "time-wait")
                             for ns in namespaces), "connections to be closed")


def await_quiet(*namespaces):
    """Until no packet is on its way there: all TCP bytes are acknowledged, and no CPU has a backlog."""
    def is_acknowledged():
        return not any(line.split()[2] != "0" for ns in namespaces if ns.is_there()
                       for line in ns.run("ss", "-tnH").splitlines())

    wait_for(is_acknowledged, "acknowledgements")
    for _ in range(LINKS):
        before = backlogs()
        wait_for(lambda: all(is_processed(cpu, before) for cpu in before), "packets that CPUs have not processed")


def backlogs():
    """{CPU: (packets that it has processed, those that wait)}"""
    with open("/proc/net/softnet_stat", encoding="ascii") as file:
        lines = [[int(word, 16) for word in line.split()] for line in file]
    return {line[12]: (line[0], line[11]) for line in lines}


def is_processed(cpu, before):
    """Whether a CPU has done all packets that waited when backlogs() said @before."""
    done, left = backlogs()[cpu]
    return not left or (done - before[cpu][0]) & 0xffffffff > BACKLOG


def sized(amount):
    """So much traffic; less where an emulated machine would take minutes."""
    return amount // int(os.environ.get("NETOBS_TEST_SHRINK", "1"))


def least(measure, limit, tries=5):
    """The least of several measured times, of which the first below @limit is the last.

    Interrupts, and time that a hypervisor gives to others, count as the thread's own.
    What takes long for its own reasons does so each time.
    """
    times = []
    while len(times) < tries and min(times, default=limit) >= limit:
        times.append(measure())
    return min(times)


def fewest(look):
    """The smallest of some looks: without what belongs to a request that is being answered."""
    def later():
        time.sleep(0.05)
        return look()
    return min((later() for _ in range(10)), key=len)


def is_shrunk():
    """Whether this machine is one of these."""
    return int(os.environ.get("NETOBS_TEST_SHRINK", "1")) > 1


def die_with_parent():
    LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


def run_first(tid=0):
    """For spawn(): run a process with priority over other tests, whose load would disturb it. @tid: 0: this thread"""
    os.sched_setscheduler(tid, os.SCHED_RR, os.sched_param(1))


def run_as_others(tid=0):
    """The end of run_first()."""
    os.sched_setscheduler(tid, os.SCHED_OTHER, os.sched_param(0))


def check_errno(result, what):
    if result < 0:
        error = ctypes.get_errno()
        raise OSError(error, f"{what}: {os.strerror(error)}")
    return result


def acknowledged_route(line):
    """Commands of ip(8). The kernel's metric 0 of IPv6 cannot be asked for: there, another route takes the place."""
    words = line.split(" pref ")[0]
    yield f"route replace {words.replace(' metric 0', '')} quickack 1\n"
    if " metric 0" in words:
        yield f"route del {words}\n"


class Namespace:
    """A network namespace; `with ns:` puts this thread into it."""

    def __init__(self, name):
        self.name = name
        self.outside = []
        self.files = []
        run(IP, "netns", "add", name)
        self.inode = os.stat(f"/run/netns/{name}").st_ino
        # No address configuration of its own: a test sees only packets that it sent.
        self.sysctl("ipv6/conf/default/accept_dad", 0)
        self.sysctl("ipv6/conf/default/router_solicitations", 0)
        self.sysctl("ipv6/conf/default/disable_ipv6", 1)
        self.up("lo")

    def __enter__(self):
        self.outside.append(os.open("/proc/self/ns/net", os.O_RDONLY))
        self._enter(f"/run/netns/{self.name}")
        return self

    def __exit__(self, *_):
        fd = self.outside.pop()
        check_errno(LIBC.setns(fd, CLONE_NEWNET), "setns")
        os.close(fd)

    @staticmethod
    def _enter(path):
        fd = os.open(path, os.O_RDONLY)
        check_errno(LIBC.setns(fd, CLONE_NEWNET), "setns")
        os.close(fd)

    def is_there(self):
        """By its name."""
        return os.path.exists(f"/run/netns/{self.name}")

    def command(self, *command):
        return [IP, "netns", "exec", self.name, *map(str, command)]

    def ip(self, *arguments):
        return run(IP, "-n", self.name, *arguments)

    def up(self, *interfaces):
        with self, socket.socket() as any_socket:
            for name in interfaces:
                request = struct.pack("16sH22x", name.encode(), 0)
                flags, = struct.unpack_from("H", fcntl.ioctl(any_socket, SIOCGIFFLAGS, request), 16)
                fcntl.ioctl(any_socket, SIOCSIFFLAGS,
                            struct.pack("16sH22x", name.encode(), flags | IFF_UP))

    def tc(self, *arguments, check=True):
        return run("tc", "-n", self.name, *arguments, check=check)

    def run(self, *command, **options):
        return run(*self.command(*command), **options)

    def sysctl(self, key, value):
        with self, open(f"/proc/sys/net/{key}", "w", encoding="ascii") as file:
            file.write(str(value))

    def hosts(self, *lines):
        """What processes in it find in /etc/hosts."""
        directory = f"/etc/netns/{self.name}"
        os.makedirs(directory)
        self.files.append(directory)
        with open(f"{directory}/hosts", "w", encoding="ascii") as file:
            file.write("\n".join(lines) + "\n")

    def ifindex(self, interface):
        with self:
            return socket.if_nametoindex(interface)

    def counters(self, interface):
        """The kernel's rx and tx counters: {"rx": {...}, "tx": {...}}."""
        text = self.ip("-s", "-j", "link", "show", "dev", interface)
        return json.loads(text)[0]["stats64"]

    def acknowledge_at_once(self):
        """
        On routes that there are by now: so no timer sends the ACK that ends a connection.
        Some hosts run no tracing program while their process 1 is the task that it interrupts.
        """
        for family in "-4", "-6":
            lines = self.ip(family, "route", "show", "table", "all").splitlines()
            self.run(IP, family, "-batch", "-", input="".join(
                command for line in lines if line.split()[0] not in NOT_ACKNOWLEDGED
                for command in acknowledged_route(line)))

    def snmp(self, protocol, name, file="snmp"):
        """A counter of /proc/net/snmp, or netstat; 0 if there is none."""
        with self, open(f"/proc/thread-self/net/{file}", encoding="ascii") as text:
            names, values = (line.split() for line in text if line.startswith(f"{protocol}: "))
        return int(values[names.index(name)]) if name in names else 0

    def received(self):
        """Packets that IPv4 has received but for ICMP, behind all programs on the way in."""
        return self.snmp("Ip", "InReceives") - self.snmp("Icmp", "InMsgs")

    def dropped(self):
        """Packets that its interfaces dropped, in either direction."""
        links = json.loads(self.ip("-s", "-j", "link", "show"))
        return sum(link["stats64"][way]["dropped"] for link in links
                   for way in ("rx", "tx"))

    def offload(self, interface, *features, on):
        state = "on" if on else "off"
        self.run("ethtool", "-K", interface,
                 *(word for name in features for word in (name, state)))

    def has_offload(self, interface, feature):
        shown = self.run("ethtool", "-k", interface)
        return f"{feature}: on" in shown

    def address(self, interface, *addresses):
        for address in addresses:
            nodad = ["nodad"] if ":" in address else []
            self.ip("addr", "add", address, "dev", interface, *nodad)

    def neighbour(self, interface, mac, *addresses):
        """A permanent entry, so that no ARP or ND disturbs the counts."""
        for address in addresses:
            self.ip("neigh", "replace", address, "lladdr", mac, "dev",
                    interface, "nud", "permanent")

    @contextlib.contextmanager
    def packet_socket(self, interface):
        """A raw socket. Its frames pass tc egress as all others do."""
        with self:
            raw = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
        try:
            with self:
                raw.bind((interface, 0))
            yield raw
        finally:
            raw.close()

    def send_frames(self, interface, frames):
        with self.packet_socket(interface) as raw:
            for frame in frames:
                raw.send(frame)


class Lab:
    """All that one test makes in the system. close() is safe to repeat."""

    alive = []

    def __init__(self):
        self.namespaces = []
        self.processes = []
        self.undo = []
        self.macs = 0
        self.dir = tempfile.mkdtemp(prefix=f"{PREFIX}{os.getpid()}-")
        os.chmod(self.dir, 0o755)
        Lab.alive.append(self)

    def path(self, name):
        return os.path.join(self.dir, name)

    def ns(self, tag, ipv6=False):
        ns = Namespace(f"{PREFIX}{os.getpid()}-{len(self.namespaces)}{tag}")
        self.namespaces.append(ns)
        if ipv6:
            ns.sysctl("ipv6/conf/default/disable_ipv6", 0)
        return ns

    def mac(self):
        self.macs += 1
        return f"02:00:00:00:{self.macs >> 8:02x}:{self.macs & 255:02x}"

    def veth(self, ns_a, name_a, ns_b, name_b, offload=True, index_b=None):
        """Two joined interfaces, up; returns their MAC addresses."""
        mac_a, mac_b = self.mac(), self.mac()
        index = ["index", str(index_b)] if index_b else []
        run(IP, "link", "add", name_b, "netns", ns_b.name, *index, "address",
            mac_b, "type", "veth", "peer", "name", name_a, "netns", ns_a.name,
            "address", mac_a)
        for ns, name in ((ns_a, name_a), (ns_b, name_b)):
            ns.up(name)
            if not offload:
                ns.offload(name, "tso", "gso", "gro", on=False)
        return mac_a, mac_b

    def wire(self, ns_a, name_a, nets_a, ns_b, name_b, nets_b, **options):
        """A veth pair with addresses, each end knowing the other's MAC."""
        mac_a, mac_b = self.veth(ns_a, name_a, ns_b, name_b, **options)
        ns_a.address(name_a, *nets_a)
        ns_b.address(name_b, *nets_b)
        ns_a.neighbour(name_a, mac_b, *(net.split("/")[0] for net in nets_b))
        ns_b.neighbour(name_b, mac_a, *(net.split("/")[0] for net in nets_a))
        return mac_a, mac_b

    def spawn(self, *command, ns=None, enter=None, **options):
        """Start a process that ends with us; it calls @enter first."""
        def prepare():
            die_with_parent()
            # A background job of a shell ignores some of these, and so would the process.
            for number in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT):
                signal.signal(number, signal.SIG_DFL)
            if enter:
                enter()
        command = [str(part) for part in command]
        if ns:
            command = ns.command(*command)
        process = subprocess.Popen(command, preexec_fn=prepare, **options)
        self.processes.append(process)
        return process

    def small_disk(self, path, size, *options):
        """A file system at @path that is full soon."""
        os.makedirs(path, exist_ok=True)
        run("mount", "-t", "tmpfs", "-o", ",".join((f"size={size}", *options)), "none", path)
        self.defer(run, "umount", "-l", path)
        return path

    def unname(self, ns):
        """Have a process keep a namespace, and no name, as containers do; @return the process."""
        process = self.spawn("sleep", "inf", ns=ns)
        wait_for(lambda: os.stat(f"/proc/{process.pid}/ns/net").st_ino == ns.inode,
                 f"a process in {ns.name}")
        run(IP, "netns", "del", ns.name)
        return process

    def defer(self, action, *arguments):
        """Undo something at the end, last things first."""
        self.undo.append((action, arguments))

    def close(self):
        if self not in Lab.alive:
            return
        Lab.alive.remove(self)
        for process in self.processes:
            if process.poll() is None:
                process.kill()
                process.wait()
            for pipe in (process.stdin, process.stdout, process.stderr):
                if pipe:
                    pipe.close()
        for action, arguments in reversed(self.undo):
            with contextlib.suppress(Exception):
                action(*arguments)
        for ns in self.namespaces:
            subprocess.run([IP, "netns", "del", ns.name], check=False,
                           stderr=subprocess.DEVNULL)
            for path in ns.files:
                shutil.rmtree(path, ignore_errors=True)
        shutil.rmtree(self.dir, ignore_errors=True)


def close_all():
    for lab in list(Lab.alive):
        lab.close()


def is_stale(name):
    """Named by a test run that is no more, killed so hard that it left it."""
    pid = name.removeprefix(PREFIX).split("-")[0]
    return name.startswith(PREFIX) and pid.isdigit() and \
        not os.path.exists(f"/proc/{pid}")


def stale(directory):
    names = os.listdir(directory) if os.path.isdir(directory) else []
    return [os.path.join(directory, name) for name in names if is_stale(name)]


def remove_stale():
    for path in stale("/run/netns"):
        run(IP, "netns", "del", os.path.basename(path), check=False)
    for path in stale(tempfile.gettempdir()):
        run("umount", os.path.join(path, "bpffs"), check=False)
        shutil.rmtree(path, ignore_errors=True)
    for path in stale("/sys/fs/cgroup/memory") + stale("/sys/fs/cgroup/cpu") + stale("/sys/fs/cgroup"):
        with contextlib.suppress(OSError):
            os.rmdir(path)


def interrupt(_signal, _frame):
    # unittest goes on after SystemExit, but not after this.
    raise KeyboardInterrupt


def tool(name):
    return os.path.join(os.environ["NETOBS_TOOLS"], name)


class LabTest(unittest.TestCase):
    """A test with a lab of its own, which prints its findings."""

    maxDiff = None

    @functools.cached_property
    def seed(self):
        """Of what is random in the test; NETOBS_TEST_SEED=SEED repeats it."""
        seed = int(os.environ.get("NETOBS_TEST_SEED") or random.randrange(1 << 32))
        self.note(f"NETOBS_TEST_SEED={seed}")
        return seed

    @functools.cached_property
    def random(self):
        return random.Random(self.seed)

    def setUp(self):
        self.lab = Lab()
        self.addCleanup(self.lab.close)

    def note(self, text):
        print(f"    {self._testMethodName}: {text}", flush=True)


class WiredTest(LabTest):
    """Two namespaces, a and b, with a wire between them."""

    def setUp(self):
        super().setUp()
        self.a, self.b = self.lab.ns("a"), self.lab.ns("b")
        self.lab.wire(self.a, "eth0", ["192.0.2.1/24"], self.b, "eth0",
                      ["192.0.2.2/24"])


def main(subject="", is_there=lambda: True, at_once=1, first=()):
    """
    Run the module's tests; not where the kernel lacks their subject. @at_once: so
    many, if none is named; the long ones, @first, have such a name's beginning.
    """
    if os.geteuid():
        sys.exit("these tests make network namespaces: run them as root")
    if not is_there():
        print(f"this kernel has no {subject}")
        sys.exit(ABSENT)
    if "NETOBSCTL" not in os.environ:
        sys.exit("NETOBSCTL must name the netobsctl to test")
    signal.signal(signal.SIGTERM, interrupt)
    if at_once > 1 and not any("test_" in name for name in sys.argv[1:]):
        cases.run(at_once, tuple(first), die_with_parent)
        return
    atexit.register(close_all)
    remove_stale()
    unittest.main(module="__main__", verbosity=2)
