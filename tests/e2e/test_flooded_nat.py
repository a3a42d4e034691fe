#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
# Needs: conntrack nftables
# Label: measure
# Alone: the flood takes what the CPUs have, and the kernel's table of connections is one for all namespaces.
"""A flood of connections from addresses that do not exist pushes out no conversation.

Half of it gets answers, as of a server that is attacked. NETOBS_TEST_FLOOD is the number of
connections, of more than the table has places for.
"""

import json
import os
import re
import socket
import struct
import threading

from lib import lab
from lib import nat
from lib import observer
from lib import traffic
from lib.service import launch, status_of

PLACES = 262144
FLOOD = int(os.environ.get("NETOBS_TEST_FLOOD", "300000"))
RATE = 25000
REAL = 200
INTERVAL_S = 1
PORT, OPEN, CLOSED = 8080, range(9000, 9010), range(10000, 11000)
SILENT = f"""
table inet silent {{
	chain silence {{
		type filter hook input priority 0;
		tcp dport {CLOSED.start}-{CLOSED.stop - 1} drop
	}}
}}
"""


def sum_words(data):
    return sum(struct.unpack(f"!{len(data) // 2}H", data))


def fold(total):
    while total >> 16:
        total = (total & 0xffff) + (total >> 16)
    return ~total & 0xffff


def write_frames(path, macs, server, rng):
    """The first packets of FLOOD connections, each of an address of its own."""
    ends = socket.inet_aton(server)
    ethernet = macs + b"\x08\x00"
    ip = struct.pack("!BBHHHBBH", 0x45, 0, 40, 0, 0, 64, 6, 0)
    with open(path, "wb") as file:
        for number in range(FLOOD):
            source = struct.pack("!I", (100 << 24 | 64 << 16) + number)
            port = rng.choice(OPEN if number % 2 else CLOSED)
            tcp = struct.pack("!HHIIBBHHH", rng.randrange(1024, 65536), port, number, 0, 5 << 4, 2,
                              65535, 0, 0)
            whole = fold(sum_words(ip + source + ends))
            sums = fold(sum_words(source + ends + tcp) + 6 + len(tcp))
            file.write(ethernet + ip[:10] + struct.pack("!H", whole) + source + ends + tcp[:16] +
                       struct.pack("!HH", sums, 0))


class Conversation(threading.Thread):
    """A connection that says something each second until it is to stop."""

    def __init__(self, test):
        super().__init__(daemon=True)
        with test.client:
            self.sock = socket.create_connection((test.SERVER, PORT), timeout=lab.PATIENCE_S)
        self.port = self.sock.getsockname()[1]
        self.is_over, self.error = threading.Event(), None
        self.say()
        self.start()

    def say(self):
        self.sock.sendall(b"x")
        if self.sock.recv(1) != b"x":
            raise ConnectionError("no answer")

    def run(self):
        try:
            while not self.is_over.wait(1):
                self.say()
        except OSError as error:
            self.error = error

    def stop(self):
        self.is_over.set()
        self.join(lab.PATIENCE_S)
        self.sock.close()


def echo(listener):
    """Answer each connection's bytes, until the listener ends."""
    def answer(sock):
        with sock:
            while data := sock.recv(100):
                sock.sendall(data)

    while True:
        try:
            sock, _ = listener.accept()
        except OSError:
            return
        threading.Thread(target=answer, args=(sock,), daemon=True).start()


class FloodedNat(nat.RandomNatTest):
    def setUp(self):
        super().setUp()
        self.control, self.found = self.lab.path("control.sock"), set()
        self.rules(nat.BASE + "add rule inet nat post oifname rs masquerade\n")
        self.server.run("nft", "-f", "-", input=SILENT)
        self.server.sysctl("ipv4/tcp_synack_retries", 0)
        for name in "syn_sent", "syn_recv": # none ends by its timeout, however long the flood takes
            self.router.sysctl(f"netfilter/nf_conntrack_tcp_timeout_{name}", 600)
        # Answers to the addresses that do not exist go where these come from, and end there.
        self.router.ip("route", "add", "100.64.0.0/10", "via", self.CLIENT)
        self.client.ip("route", "add", "blackhole", "100.64.0.0/10")
        self.router.sysctl("ipv4/conf/all/rp_filter", 0)
        self.router.sysctl("ipv4/conf/rc/rp_filter", 0)
        for port in (PORT, *OPEN):
            with self.server:
                listener = socket.create_server(("0.0.0.0", port), backlog=1000)
            self.addCleanup(listener.close)
            if port == PORT:
                threading.Thread(target=echo, args=(listener,), daemon=True).start()

    def start_service(self):
        self.service = launch(self, self.router, (
            "[capture]", "nat = yes", "[flows]", f"interval = {INTERVAL_S}s", "[control]",
            f"path = {self.control}", '[sink "a"]', f"output = json:{self.lab.path('records')}",
            "records = session"), release=True)

    def start_flood(self):
        frames = self.lab.path("frames")
        macs = b"".join(bytes.fromhex(json.loads(
            ns.ip("-j", "link", "show", "dev", name))[0]["address"].replace(":", ""))
            for ns, name in ((self.router, "rc"), (self.client, "eth0")))
        write_frames(frames, macs, self.SERVER, self.random)
        return traffic.begin_flood(
            self.lab, self.client, "eth0", "--frames", frames, "--frame-size", "54",
            "--packets", FLOOD, "--rate", RATE, "--cpus", traffic.two_cpus())

    def status(self):
        return status_of(self.control)["mappings"]

    def look_up(self, conversations):
        """Each is active, once a packet of it was reported, and is there from then on."""
        text = self.router.run(observer.netobsctl(release=True), "map", "-o", "json", "-s",
                               self.control, "lookup", f"{self.SERVER}:{PORT}/tcp")
        found = [json.loads(line) for line in text.splitlines()]
        self.assertEqual([], [one.error for one in conversations if one.error])
        self.assertEqual({"active"}, {one["State"] for one in found})
        ports = {one["SrcPort"] for one in found}
        self.assertEqual(set(), self.found - ports)
        self.found |= ports
        return ports == {one.port for one in conversations}

    def memory(self):
        return int(lab.status_of(self.service.pid)["VmRSS"]) << 10

    def dropped_by_conntrack(self):
        """First packets that the kernel had no entry for."""
        return sum(map(int, re.findall(r" (?:drop|insert_failed)=(\d+)",
                                       self.router.run("conntrack", "-S"))))

    def test_no_conversation_is_pushed_out(self):
        self.start_service()
        before = self.memory()
        conversations = []
        def stop():
            for one in conversations:
                one.stop()
        self.addCleanup(stop)
        conversations += [Conversation(self) for _ in range(REAL // 2)]
        lab.wait_for(lambda: self.status()["active"] >= REAL // 2, "the mappings")
        flood = self.start_flood()
        # While it goes on, others begin, and all are found.
        looks = 0
        while len(conversations) < REAL or flood.poll() is None:
            conversations += [Conversation(self) for _ in range(10)
                              if len(conversations) < REAL]
            looks += flood.poll() is None
            lab.wait_for(lambda: self.look_up(conversations), "the mappings")
        out, _ = flood.communicate(timeout=300)
        sent = json.loads(out)
        self.assertEqual(FLOOD, sent["packets"])
        self.assertTrue(self.look_up(conversations))
        status = lab.wait_for(self.accounted, "all reports")
        self.note(f"{sent['packets']} packets in {sent['seconds']} s, {looks} looks meanwhile: "
                  f"{status}; "
                  f"{observer.in_mib({'before': before, 'after': self.memory()})}")
        self.assertLessEqual(status["active"], PLACES)
        self.assertEqual(status["begun"],
                         status["active"] + status["ended"] + status["forgotten"])
        self.assertEqual(0, status["refused"])
        # None makes room before all places are taken. Others may have ended since.
        self.assertLessEqual(status["forgotten"], max(0, status["begun"] - PLACES))

    def accounted(self):
        """
        The numbers, once they have all connections. On a busy host, reports may be lost, and a full table of
        the kernel drops packets.
        """
        status = self.status()
        known = status["begun"] + status["lost_reports"] + self.dropped_by_conntrack()
        return status if known >= FLOOD + REAL else None


if __name__ == "__main__":
    lab.main()
