# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
# Needs: nftables
"""Runs `netobsctl trace`, and has a client, a router and a server for it to trace."""

import collections
import os
import random
import re
import signal
import socket
import time

from lib import lab
from lib import observer
from lib import talks
from lib import traffic

CLIENT, ROUTER_IN, ROUTER_OUT, SERVER = "192.0.2.1", "192.0.2.254", "198.51.100.254", "198.51.100.1"
CLIENT6, SERVER6 = "2001:db8:1::1", "2001:db8:2::1"
INNER_ROUTER, INNER_SERVER = "203.0.113.254", "203.0.113.1"
# Of this process: other tests that run meanwhile have other ports.
PORT = 10_000 + os.getpid() % 600 * 32
OUTER_PORT = PORT + 31
ROOM = 65_536 # for connections; as many again may be undecided, which are of other tests
NAT = """
table ip traced {{
    chain pre {{
        type nat hook prerouting priority -100
        meta l4proto {{ tcp, udp }} th dport {outer} dnat to {server}:{port}
    }}
    chain post {{
        type nat hook postrouting priority 100
        oifname "{interface}" masquerade
    }}
}}
"""
# A connection that begins while the ring is full has no room either.
MISSED = re.compile(r"(?:netobsctl trace: \d+ connections were not traced for want of room [^\n]*\n)?"
                    r"netobsctl trace: events that are missing: 0 beyond --max-events, "
                    r"0 beyond --max-rate, (\d+) without room in the ring or in an interrupt\n")
PARTS = [f"{name}Ns" for name in (
    "Write", "Tcp", "Recovery", "Qdisc", "Device", "Network", "Forward", "Stack", "Gap", "Reader")]


class Reached:
    """A server, which the client knows as `address`."""

    def connect(self):
        with self.client:
            end = socket.create_connection(self.address, timeout=60)
        end.settimeout(None) # splice() is to wait
        return end


class Network(Reached):
    """Client, router and server."""

    family = socket.AF_INET

    def __init__(self, where, is_translated, has_tunnel):
        self.client, self.router, self.server = (where.ns(tag) for tag in "crs")
        where.wire(self.client, "c0", [f"{CLIENT}/24"], self.router, "rc", [f"{ROUTER_IN}/24"])
        where.wire(self.router, "rs", [f"{ROUTER_OUT}/24"], self.server, "s0", [f"{SERVER}/24"])
        self.client.ip("route", "add", "default", "via", ROUTER_IN)
        self.router.sysctl("ipv4/ip_forward", 1)
        inner, interface = SERVER, "rs"
        if has_tunnel:
            inner, interface = INNER_SERVER, "vx"
            self.tunnel(self.router, "rs", INNER_ROUTER, ROUTER_OUT, SERVER)
            self.tunnel(self.server, "s0", INNER_SERVER, SERVER, ROUTER_OUT)
        self.server.ip("route", "add", "default", "via", INNER_ROUTER if has_tunnel else ROUTER_OUT)
        self.address = inner, PORT
        if is_translated:
            self.router.run("nft", "-f", "-", input=NAT.format(
                outer=OUTER_PORT, server=inner, port=PORT, interface=interface))
            self.address = ROUTER_IN, OUTER_PORT
        with self.server:
            self.listener = socket.create_server((inner, PORT), backlog=64)
        where.defer(self.listener.close)

    @staticmethod
    def tunnel(ns, below, inner, local, remote):
        ns.ip("link", "add", "vx", "type", "vxlan", "id", "77", "local", local, "remote", remote,
              "dstport", "4789", "dev", below)
        ns.address("vx", f"{inner}/24")
        ns.up("vx")


class Network6(Reached):
    """With addresses of both families, without NAT and tunnels; the server listens at one of IPv6, or at all."""

    def __init__(self, where, address=SERVER6, listens=SERVER6):
        self.client, self.router, self.server = (where.ns(tag, ipv6=True) for tag in "crs")
        for ns, name, ends, routers in (
                (self.client, "c0", (CLIENT, CLIENT6), (ROUTER_IN, "2001:db8:1::fe")),
                (self.server, "s0", (SERVER, SERVER6), (ROUTER_OUT, "2001:db8:2::fe"))):
            where.wire(ns, name, [f"{ends[0]}/24", f"{ends[1]}/64"],
                       self.router, f"r{name}", [f"{routers[0]}/24", f"{routers[1]}/64"])
            for router in routers:
                ns.ip("route", "add", "default", "via", router)
        self.router.sysctl("ipv4/ip_forward", 1)
        self.router.sysctl("ipv6/conf/all/forwarding", 1)
        self.family = traffic.family(address)
        self.address = address, PORT
        with self.server:
            self.listener = socket.create_server((listens, PORT), family=socket.AF_INET6, backlog=64,
                                                 dualstack_ipv6=listens == "::")
        where.defer(self.listener.close)


def whole(turn):
    """A record of a turn with the members that are absent as they are equal to others, without those that are 0 for
    that reason, and with the zeros at the end of lists."""
    passed = "UplinkIfIndex" in turn
    same = {"OneOf": 1, "OutBytes": turn.get("SentBytes"), "SegmentBytes": turn.get("InBytes"),
            "Tid": turn.get("Pid"), "ReaderTid": turn.get("ReaderPid"),
            "LargestOut": turn.get("Sends") and turn["Bytes"], "LargestIn": turn.get("Reads") and turn["Bytes"],
            "UplinkNetnsInode": passed and turn.get("NetnsInode")}
    for name in "SrcAddr", "DstAddr", "SrcPort", "DstPort":
        same[f"Wire{name}"] = passed and turn[name]
    found = {name: value for name, value in (same | turn).items() if value or name not in same}
    lengths = {"PartsNs": 10, "LimitsNs": 7, "ThreadsNs": 12}
    return found | {name: found[name] + [0] * (lengths[name] - len(found[name])) for name in lengths if name in found}


class Tracer:
    """A `netobsctl trace`, which is known to trace."""

    MARKER, started = "marker", 0

    def __init__(self, test, port, *options, also="", spaces=()):
        """@also: what it traces as well, "or udp". @spaces: that count as the host; none: all."""
        Tracer.started += 1
        marker = test.lab.ns(Tracer.MARKER)
        for ns in (*spaces, marker) if spaces else ():
            options = *options, "--netns", ns.name
        self.path = test.lab.path(f"trace-{Tracer.started}")
        self.errors = f"{self.path}-errors"
        with open(self.path, "wb") as out, open(self.errors, "wb") as errors:
            self.process = test.lab.spawn(
                observer.netobsctl(), "trace", "-o", "json", "--max-connections", ROOM, *options,
                f"tcp port {port} {also}", stdout=out, stderr=errors)
        self.lab, self.missed = test.lab, 0
        self.wait_until_ready(marker, port)

    def wait_until_ready(self, marker, port):
        """No message says so: until it has seen a connection that it is to trace."""
        with marker:
            listener = socket.create_server(("127.0.0.1", port))

        def is_seen():
            with marker, socket.create_connection(listener.getsockname()) as client:
                listener.accept()[0].close()
                client.send(b"x")
            end = time.monotonic() + 1
            while time.monotonic() < end and not os.path.getsize(self.path):
                if self.process.poll() is not None:
                    raise RuntimeError(self.messages())
                time.sleep(.01)
            return os.path.getsize(self.path)
        with listener:
            lab.wait_for(is_seen, "the tracer", observer.LOAD_S)

    def messages(self):
        return lab.read(self.errors)

    def stop(self):
        """
        What it has traced, which is all. Of the whole host, points may be missing on which an interrupt
        came as a program began, or for which the ring had no room; tests look at each byte of their own.
        """
        records, messages = self.end()
        said = "".join(line for line in messages.splitlines(True) if "no tracepoints for" not in line)
        missed = MISSED.fullmatch(said)
        if said and not missed:
            raise AssertionError(said)
        self.missed = int(missed[1]) if missed else 0
        return records

    def end(self):
        """Its records, once the lab's packets have arrived, and its messages."""
        lab.await_quiet(*self.lab.namespaces)
        self.process.send_signal(signal.SIGINT)
        code = self.process.wait(timeout=observer.LOAD_S)
        observer.check_sanitizer(self.messages())
        if code:
            raise AssertionError(f"exit {code}: {self.messages()}")
        return self.own(lab.json_lines(self.path)), self.messages()

    def own(self, records):
        """Those of the lab's connections but for markers; other tests may use the port as well."""
        inodes = {ns.inode for ns in self.lab.namespaces if not ns.name.endswith(Tracer.MARKER)}
        connections = {one["Connection"] for one in records
                       for step in one.get("Steps", [one]) if step.get("NetnsInode") in inodes
                       and one["SrcAddr"] != "127.0.0.1"}
        return [whole(one) if one["type"] == "turn" else one
                for one in records if one["Connection"] in connections]


def wait_until(process, talk):
    """Talk until the command has ended, by itself."""
    def is_over():
        talk()
        return process.poll() is not None
    lab.wait_for(is_over, "the end")
    if process.returncode:
        raise AssertionError(f"exit {process.returncode}")


def by_stream(records):
    """Records of each direction, by the ends that its socket has."""
    ends, found = {}, collections.defaultdict(list)
    for one in records:
        key = one["Connection"], one["Direction"]
        if one["Point"] in ("send", "sent", "queue") and key not in ends:
            ends[key] = (one["SrcAddr"], one["SrcPort"]), (one["DstAddr"], one["DstPort"])
        found[key].append(one)
    return {ends[key]: found[key] for key in ends}


def union(ranges):
    """Disjoint ranges in order; their bytes; and how many bytes were in several."""
    joined, total = [], 0
    for begin, end in sorted(ranges):
        total += end - begin
        if joined and begin <= joined[-1][1]:
            joined[-1][1] = max(joined[-1][1], end)
        else:
            joined.append([begin, end])
    covered = sum(end - begin for begin, end in joined)
    return [tuple(one) for one in joined], total - covered


def by_connection(records):
    found = collections.defaultdict(list)
    for one in records:
        found[one["Connection"]].append(one)
    return found


def bytes_of(journeys, direction):
    """union() of the journeys of a direction."""
    return union((one["Offset"], one["Offset"] + one["Bytes"]) for one in journeys
                 if one["Direction"] == direction)


def has_send():
    """Linux 6.16: before, a call that writes is known at its end only."""
    with open("/sys/kernel/btf/vmlinux", "rb") as file:
        return b"btf_trace_tcp_sendmsg_locked" in file.read()


def has_all():
    found = observer.features()
    return found["trace"] and found["trace_sockets"] and has_send()


class Trace(lab.LabTest):
    """Before Linux 6.3, sockets that are written and can be read are not seen."""

    def setUp(self):
        super().setUp()
        self.has_sockets = observer.features()["trace_sockets"]

    def talk(self, network, number):
        with network.listener:
            for _ in range(number):
                one = talks.Talk(random.Random(self.random.random()))
                one.run(network.listener, network.connect)
                yield one

    def network(self):
        chosen = [self.random.random() < .5 for _ in range(2)]
        return Network(self.lab, *chosen), f"seed {self.seed}, NAT and tunnel {chosen}"


class Host(Trace):
    """Connections between processes of one host."""

    def setUp(self):
        super().setUp()
        self.where = f"seed {self.seed}"
        self.host = self.lab.ns("h")
        self.host.address("lo", f"{CLIENT}/32")
        self.port = PORT
        self.listener = self.listen()

    def listen(self, port=None, **options):
        with self.host:
            listener = socket.create_server((CLIENT, port or self.port), backlog=512, **options)
        self.addCleanup(listener.close)
        return listener

    def connect(self, listener=None, **options):
        with self.host:
            return socket.create_connection(listener.getsockname() if listener else (CLIENT, self.port),
                                            timeout=60, **options)

    def pair(self, listener=None, **options):
        """The sockets of a connection: the client's, and the server's."""
        client = self.connect(listener, **options)
        server = (listener or self.listener).accept()[0]
        self.addCleanup(client.close)
        self.addCleanup(server.close)
        return client, server

    def close(self, *pairs):
        for end in (end for pair in pairs for end in pair):
            end.close()
