# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
"""Two namespaces with a link between them that delays and loses, and TCP over it."""

import json
import os
import signal
import subprocess
import sys

from lib import bpf
from lib import lab
from lib import observer

CHAT = os.path.join(os.path.dirname(__file__), "chat.py")
ADDRESSES = {4: ("192.0.2.1", "192.0.2.2"), 6: ("2001:db8::1", "2001:db8::2")}
NETS = {4: 24, 6: 64}
PORT = 7000


def serve(where, ns, address, port=PORT, think_ms=0):
    """A server that answers requests other than bulk transfers."""
    server = where.spawn(sys.executable, CHAT, "serve", address, port, think_ms, ns=ns, stdout=subprocess.PIPE,
                         text=True, enter=lab.run_first)
    if server.stdout.readline() != "ready\n":
        raise RuntimeError("the server did not start")


def ask(where, ns, kind, address, seconds, port=PORT, under=()):
    """@return a client, for said(). @under: a command that runs it"""
    return where.spawn(*under, sys.executable, CHAT, kind, address, port, seconds, ns=ns,
                       stdout=subprocess.PIPE, text=True, enter=lab.run_first)


def said(client):
    """What it and its kernel measured, at its end: see chat.py."""
    out, _ = client.communicate(timeout=120)
    if client.returncode:
        raise RuntimeError(f"the client ended with {client.returncode}")
    return json.loads(out)


class Link:
    """Namespaces a and b, each with an interface eth0 that leads to the other."""

    def __init__(self, where, delay_us, loss_ppm=0, seed=0, late_ppm=0):
        self.lab = where
        self.a, self.b = (where.ns(tag, ipv6=True) for tag in "ab")
        self.dropped = where.path(f"dropped-{self.a.name}")  # frames, as pcap
        relay = where.spawn(lab.tool("relay"), "-d", delay_us // 2, "-l", loss_ppm,
                            "-r", late_ppm, "-s", seed, "-w", self.dropped, self.a.name, self.b.name,
                            "eth0", stdout=subprocess.PIPE, text=True,
                            enter=lab.run_first)
        if relay.stdout.readline() != "ready\n":
            raise RuntimeError("the relay did not start")
        for side, ns in enumerate((self.a, self.b)):
            mac = where.mac()
            ns.ip("link", "set", "eth0", "address", mac)
            ns.address("eth0", *(f"{ADDRESSES[family][side]}/{NETS[family]}"
                                 for family in ADDRESSES))
            peer = self.b if ns is self.a else self.a
            peer.mac = mac
        for side, ns in enumerate((self.a, self.b)):
            ns.neighbour("eth0", ns.mac, *(ADDRESSES[family][1 - side]
                                           for family in ADDRESSES))

    def configure(self, timestamps, gso):
        """Of connections from now on."""
        for ns in self.a, self.b:
            ns.sysctl("ipv4/tcp_timestamps", int(timestamps))
            ns.offload("eth0", "gso", on=gso)

    def serve(self, family=4, think_ms=0, port=PORT):
        """In b."""
        serve(self.lab, self.b, ADDRESSES[family][1], port, think_ms)

    def talk(self, kind, seconds, family=4, port=PORT, under=()):
        """What a client in a said."""
        return said(ask(self.lab, self.a, kind, ADDRESSES[family][1], seconds, port, under))


class LinkTest(lab.LabTest):
    def start(self, link, *arguments, at=None):
        """netobsctl in a; it ends with finish()."""
        process = self.lab.spawn(observer.netobsctl(), *arguments, "-i", "eth0", "-o",
                                 "json", ns=at or link.a, stdout=subprocess.PIPE,
                                 stderr=subprocess.PIPE, text=True)
        lab.wait_for(lambda: bpf.attached(at or link.a, "eth0") == 2, "netobsctl")
        return process

    def finish(self, process):
        process.send_signal(signal.SIGINT)
        out, errors = process.communicate(timeout=lab.PATIENCE_S)
        observer.check_sanitizer(errors)
        self.assertEqual(0, process.returncode, errors)
        return [json.loads(line) for line in out.splitlines()]
