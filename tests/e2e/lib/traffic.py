# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
# Needs: iputils-ping
"""Real traffic of the kernel's own making between two namespaces."""

import contextlib
import fcntl
import json
import os
import socket
import struct
import subprocess
import threading

from lib import lab

UDP_SEGMENT = 103
TUNSETIFF = 0x400454ca
IFF_TUN, IFF_NO_PI, IFF_VNET_HDR = 0x1, 0x1000, 0x4000


def family(address):
    return socket.AF_INET6 if ":" in address else socket.AF_INET


def make_socket(ns, kind, address, port=0):
    """A socket that lives in @ns, bound there."""
    with ns:
        made = socket.socket(family(address), kind)
    made.settimeout(lab.PATIENCE_S)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    made.bind((address, port))
    return made


def tcp(client, source, server, dest, octets, port=5001, answer=0):
    """One connection: @octets to the server, @answer back, both sides close."""
    with make_socket(server, socket.SOCK_STREAM, dest, port) as listener, \
            make_socket(client, socket.SOCK_STREAM, source) as sender:
        listener.listen()
        sender.connect((dest, port))
        receiver, _ = listener.accept()
        with receiver:
            receiver.settimeout(lab.PATIENCE_S)
            _stream(sender, receiver, octets)
            _stream(receiver, sender, answer)


def receive(end, size):
    """Read so many bytes."""
    while size:
        got = len(end.recv(min(size, 1 << 16)))
        if not got:
            raise EOFError
        size -= got


def send(sender, receiver, size):
    """Over a connection, so many bytes."""
    sender.sendall(bytes(size))
    receive(receiver, size)


@contextlib.contextmanager
def awake():
    """
    Be the only task of a CPU, which must not sleep: what a timer or a softirq sends or drops for this thread interrupts
    no process 1 there, for which some hosts run no tracing program. The CPU has no backlog of it at the end.
    """
    cpus = os.sched_getaffinity(0)
    cpu = max(cpus)
    try:
        os.sched_setaffinity(0, {cpu})
        lab.run_first()
        yield
        for _ in range(lab.LINKS):
            before = lab.backlogs()
            while not lab.is_processed(cpu, before):
                pass
    finally:
        lab.run_as_others()
        os.sched_setaffinity(0, cpus)


def send_awake(sender, receiver, size):
    """Over a connection, so many bytes, which a queue may drop when a timer runs it."""
    rest, got = memoryview(bytes(size)), 0
    for end in (sender, receiver):
        end.setblocking(False)
    with awake():
        while got < size:
            with contextlib.suppress(BlockingIOError):
                rest = rest[sender.send(rest):]
            with contextlib.suppress(BlockingIOError):
                got += len(receiver.recv(size))


def exchange(client, server, sizes):
    """Over a connection: requests and answers of these sizes, in turn."""
    for size in sizes:
        send(client, server, size)
        send(server, client, size)


def connected(client, source, server, dest, port):
    """The sockets of a connection: the client's, and the server's."""
    sender = make_socket(client, socket.SOCK_STREAM, source)
    with make_socket(server, socket.SOCK_STREAM, dest, port) as listener:
        listener.listen()
        sender.connect((dest, port))
        receiver, _ = listener.accept()
    receiver.settimeout(lab.PATIENCE_S)
    return sender, receiver


def _stream(sender, receiver, octets):
    """Send @octets and end of file, while the other side reads."""
    def send():
        sender.sendall(bytes(octets))
        sender.shutdown(socket.SHUT_WR)
    thread = threading.Thread(target=send, daemon=True)
    thread.start()
    got = 0
    while chunk := receiver.recv(1 << 16):
        got += len(chunk)
    thread.join()
    if got != octets:
        raise RuntimeError(f"{octets} sent, {got} arrived")


def udp(client, source, server, dest, sizes, port=5002, sport=0, segment=0,
        tos=0):
    """Datagrams of @sizes, and their reader; @segment: GSO of that size."""
    with make_socket(server, socket.SOCK_DGRAM, dest, port) as receiver, \
            make_socket(client, socket.SOCK_DGRAM, source, sport) as sender:
        if segment:
            sender.setsockopt(socket.IPPROTO_UDP, UDP_SEGMENT, segment)
        if tos:
            sender.setsockopt(socket.IPPROTO_IP, socket.IP_TOS, tos)
        for size in sizes:
            sender.sendto(bytes(size), (dest, port))
            while size > 0:
                size -= len(receiver.recv(1 << 16)) or 1


def throw(ns, there, count=1, data=b"", source=None):
    """Datagrams to an address and port, whatever becomes of them."""
    with ns, socket.socket(family(there[0]), socket.SOCK_DGRAM) as sender:
        if source:
            sender.bind(source)
        for _ in range(count):
            sender.sendto(data, there)


def udp_refused(client, source, dest, port=5003):
    """To a port without a listener: an ICMP error comes back."""
    with make_socket(client, socket.SOCK_DGRAM, source) as sender:
        sender.connect((dest, port))
        sender.send(b"anybody?")
        with contextlib.suppress(ConnectionRefusedError):
            sender.recv(1)


def ping(client, dest, count=5, size=56, *more):
    client.run("ping", "-q", "-n", "-i", "0.01", "-W", "60", "-c", count, "-s",
               size, *more, dest)


class Tun:
    """A tun device: what the kernel sends is read, what is written arrives."""

    def __init__(self, where, ns, name, flags=IFF_TUN | IFF_NO_PI):
        with ns:
            self.fd = os.open("/dev/net/tun", os.O_RDWR)
            fcntl.ioctl(self.fd, TUNSETIFF,
                        struct.pack("16sH22x", name.encode(), flags))
        where.defer(os.close, self.fd)
        ns.ip("link", "set", name, "up")

    def read(self):
        return os.read(self.fd, 1 << 16)

    def write(self, packet):
        os.write(self.fd, packet)


def two_cpus():
    """That contend as senders, for flowgen; one if there is only one."""
    return ",".join(str(cpu) for cpu in sorted(os.sched_getaffinity(0))[:2])


def start_flood(where, ns, interface, *arguments, **options):
    return where.spawn(lab.tool("flowgen"), "--interface", interface,
                       *arguments, ns=ns, stdout=subprocess.PIPE, **options)


def begin_flood(where, ns, interface, *arguments, **options):
    """start_flood(), of which packets are sent, however busy this host is."""
    def sent():
        return ns.counters(interface)["tx"]["packets"]

    before = sent()
    process = start_flood(where, ns, interface, *arguments, **options)
    lab.wait_for(lambda: sent() > before + 100, "the flood")
    return process


def flood(where, ns, interface, *arguments):
    """Run flowgen to its end; returns the packets that it sent."""
    process = start_flood(where, ns, interface, *arguments)
    out, _ = process.communicate(timeout=100)
    if process.returncode:
        raise RuntimeError("flowgen failed")
    return json.loads(out)
