# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
"""
Collectors that stop reading, and end, at any time, over TCP and TLS. Before one ends, it reads what
its kernel has acknowledged, so that nothing may be missing.
"""

import collections
import contextlib
import os
import random
import socket
import struct
import time

from lib import ipfix_lab
from lib import lab

KILLS = int(os.environ.get("NETOBS_IPFIX_KILLS", "6"))
RATE = 4000 if KILLS < 20 else 1000
# Each costs up to 3 s until there is a connection again, and has it for 3 s at most.
SECONDS = 10 * KILLS
BUFFERS = (8 << 10, 64 << 10, 2 << 20)


def reset(peer):
    """As the kernel does where a process ends with something unread."""
    peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


class Erratic(ipfix_lab.Server):
    """Reads some of each connection, does something to it, and ends it."""

    def __init__(self, ns, seed, kills, **options):
        self.ns = ns
        ns.run("nft", "add", "table", "inet", "gate")
        ns.run("nft", "add", "chain", "inet", "gate", "in",
               "{ type filter hook input priority 0; }")
        self.random = random.Random(seed)
        self.kills = kills
        self.deeds = collections.Counter()
        super().__init__(ns, buffer=BUFFERS[0], **options)

    def read_some(self, peer, stream, limit):
        end = time.monotonic() + 1
        peer.settimeout(0.3)
        before = len(stream)
        while len(stream) - before < limit and time.monotonic() < end:
            try:
                data = peer.recv(self.random.choice((100, 5000, 1 << 16)))
            except TimeoutError:
                continue
            if not data:
                break
            stream += data

    def read_acknowledged(self, peer, stream):
        """While nothing more arrives."""
        self.ns.run("nft", "add", "rule", "inet", "gate", "in", "tcp", "dport", self.port,
                    "drop")
        peer.settimeout(0)
        with contextlib.suppress(OSError):
            while data := peer.recv(1 << 16):
                stream += data

    def handle(self, peer, stream):
        if self.kills <= 0:
            peer.settimeout(None)
            super().handle(peer, stream)
            return
        self.kills -= 1
        self.set_buffer(self.random.choice(BUFFERS))
        deed = self.random.choice(("stop", "reset", "half", "pause", "close"))
        self.deeds[deed] += 1
        self.read_some(peer, stream, self.random.choice(
            (0, 1000, 50_000, 1_000_000, 10_000_000)))
        if deed == "half":
            os.set_blocking(peer.fileno(), True)
            socket.socket.shutdown(peer, socket.SHUT_WR)
            if not self.context:
                self.read_some(peer, stream, 50_000)
        if deed in ("stop", "pause"):
            time.sleep(self.random.random())
        if deed == "pause":
            self.read_some(peer, stream, 500_000)
        self.read_acknowledged(peer, stream)
        if deed != "close":
            reset(peer)
        peer.close()
        self.ns.run("nft", "flush", "chain", "inet", "gate", "in")


class KillsTest(ipfix_lab.IpfixTest):
    """@kind: what specs begin with; @erratic: the collector that is killed."""

    kind = "ipfix"
    erratic = Erratic

    def spec(self, certificates=None, more=""):
        if not certificates:
            return f"{self.kind}:tcp://127.0.0.1:{self.port}?{more}".rstrip("?&")
        path = certificates.path
        return (f"{self.kind}:tls://127.0.0.1:{self.port}?ca={path('ca.pem')}&cert="
                f"{path('client.pem')}&key_file={path('client.key')}&{more}"
                ).rstrip("&")

    def check_kills(self, certificates=None):
        context = certificates and certificates.server("server")
        server = self.erratic(self.ns, self.seed, KILLS, port=self.port, context=context)
        self.addCleanup(server.stop)
        self.feed(self.spec(certificates, "spool.max_bytes=4G"), "--rate", RATE)
        lab.wait_for(lambda: server.kills <= 0, "the kills", SECONDS)
        self.process.terminate()
        stats = self.end()
        server.read_all()
        taken = stats["taken"]["records"]
        self.assertEqual(taken, stats["delivered"]["records"])
        got = server.numbers()
        missing = [n for n in range(taken) if n not in got]
        self.note(f"{sum(server.deeds.values())} kills {dict(server.deeds)}, "
                  f"{taken} records, {len(missing)} missing, "
                  f"{sum(got.values()) - len(got)} twice, "
                  f"{stats['counters']}")
        self.assertEqual(KILLS, sum(server.deeds.values()))
        return missing
