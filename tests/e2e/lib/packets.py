# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
# Needs: tcpdump
"""Runs `netobsctl capture`, and tcpdump beside it, and reads their files."""

import collections
import json
import os
import re
import signal
import struct
import subprocess

from lib import lab
from lib import observer
from lib import tcpdump

CAPTURING = re.compile(r"capturing at \d+ interface")
SECTION, INTERFACE, STATISTICS, PACKET = 0x0a0d0d0a, 1, 5, 6
NAMES = {2: "name", 3: "description"}
COUNTS = {4: "received", 5: "dropped", 7: "os_dropped", 8: "delivered"}

Packet = collections.namedtuple("Packet", "ns data length interface out comment process",
                                defaults=("", None))
Interface = collections.namedtuple("Interface", "link snap options")
Contents = collections.namedtuple("Contents", "packets interfaces stats")


def read(path):
    with open(path, "rb") as file:
        return parse(file.read())


def parse(data):
    """What is in a capture file of this machine's byte order; whole to its end."""
    magic = struct.unpack_from("<I", data)[0]
    return _pcapng(data) if magic == SECTION else _pcap(data, magic)


def _pcap(data, magic):
    unit = {0xa1b23c4d: 1, 0xa1b2c3d4: 1000}[magic]
    snap, link = struct.unpack_from("<II", data, 16)
    packets, at = [], 24
    while at < len(data):
        seconds, rest, kept, length = struct.unpack_from("<IIII", data, at)
        at += 16 + kept
        if at > len(data):
            raise ValueError("the file ends within a packet")
        packets.append(Packet(seconds * 10 ** 9 + rest * unit, data[at - kept:at],
                              length, 0, None))
    return Contents(packets, [Interface(link, snap, {})], {})


def _options(data):
    """Join packets that were recorded twice."""
    options, at = {}, 0
    while at + 4 <= len(data):
        code, length = struct.unpack_from("<HH", data, at)
        value = data[at + 4:at + 4 + length]
        options[code] = options[code] + b"; " + value if code in options else value
        at += 4 + (length + 3) // 4 * 4
    return options


def _blocks(data):
    at = 0
    while at < len(data):
        kind, length = struct.unpack_from("<II", data, at)
        if at + length > len(data):
            raise ValueError("the file ends within a block")
        if struct.unpack_from("<I", data, at + length - 4)[0] != length:
            raise ValueError("a block has two lengths")
        yield kind, data[at + 8:at + length - 4]
        at += length


def _packet(body):
    number, high, low, kept, length = struct.unpack_from("<IIIII", body)
    options = _options(body[20 + (kept + 3) // 4 * 4:])
    flags = struct.unpack("<I", options[2])[0]
    return Packet(high << 32 | low, body[20:20 + kept], length, number,
                  {1: False, 2: True}[flags & 3], options.get(1, b"").decode(),
                  options.get(8))


def _pcapng(data):
    packets, interfaces, stats = [], [], {}
    for kind, body in _blocks(data):
        if kind == INTERFACE:
            link, _, snap = struct.unpack_from("<HHI", body)
            options = _options(body[8:])
            if options[9] != b"\x09":
                raise ValueError("times are not in nanoseconds")
            texts = {name: options[code].decode() for code, name in NAMES.items()
                     if code in options}
            if 11 in options:
                texts["filter"] = options[11]
            interfaces.append(Interface(link, snap, texts))
        elif kind == PACKET:
            packets.append(_packet(body))
        elif kind == STATISTICS:
            options = _options(body[12:])
            stats[struct.unpack_from("<I", body)[0]] = {
                name: struct.unpack("<Q", options[code])[0]
                for code, name in COUNTS.items()}
    return Contents(packets, interfaces, stats)


class Capture:
    """netobsctl capture, in the background."""

    started = 0

    def __init__(self, where, ns, *arguments, release=False, **options):
        Capture.started += 1
        self.err = where.path(f"capture-{Capture.started}")
        with open(self.err, "wb") as err:
            self.process = where.spawn(
                observer.netobsctl(release), "capture", "-v", "--stats",
                *arguments, ns=ns, stderr=err, **options)

    def messages(self):
        return lab.read(self.err)

    def wait_attached(self):
        def ready():
            if self.process.poll() is not None:
                raise RuntimeError(f"netobsctl ended: {self.messages()}")
            return CAPTURING.search(self.messages())
        lab.wait_for(ready, "netobsctl to attach", 120)
        return self

    def wait_listening(self):
        """Until it listens; the port, or the path of the socket."""
        def where():
            if self.process.poll() is not None:
                raise RuntimeError(f"netobsctl ended: {self.messages()}")
            return re.search(r"listening on \S*:(\S+)$", self.messages(), re.M)
        found = lab.wait_for(where, "netobsctl to listen")[1]
        return int(found) if found.isdigit() else found

    def stop(self, code=0):
        """End it; returns its --stats line, after a check of the identity."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)
        return self.finish(code)

    def finish(self, code=0):
        self.process.wait(timeout=60)
        errors = self.messages()
        observer.check_sanitizer(errors)
        if self.process.returncode != code:
            raise AssertionError(f"exit {self.process.returncode}, expected "
                                 f"{code}: {errors}")
        stats = json.loads(next(line for line in errors.splitlines()
                                if line.startswith('{"matched"')))
        if stats["matched"] != sum(stats[name] for name in (
                "captured", "unwritten", "limited", "lost")):
            raise AssertionError(f"the identity does not hold: {stats}")
        return stats


class Tcpdump:
    """The truth beside it."""

    def __init__(self, where, ns, interface, path, *arguments):
        self.path = path
        self.process = where.spawn(
            "tcpdump", "-Z", "root", "-U", "--immediate-mode", "-B", "65536",
            "--time-stamp-precision=nano", "-i", interface, "-w", path, *arguments,
            ns=ns, stderr=subprocess.PIPE, text=True)
        while "listening on" not in self.process.stderr.readline():
            if self.process.poll() is not None:
                raise RuntimeError("tcpdump ended")

    def stop(self):
        tcpdump.await_rest(self.process)
        self.process.terminate()
        _, errors = self.process.communicate()
        if "\n0 packets dropped by kernel" not in errors:
            raise RuntimeError(f"tcpdump lost packets: {errors}")
        return read(self.path)


def refuse(where, *arguments, ns=None, **options):
    """netobsctl capture to its end: (exit code, messages)."""
    done = where.spawn(observer.netobsctl(), "capture", *arguments, ns=ns,
                       stdout=options.pop("stdout", subprocess.PIPE),
                       stderr=subprocess.PIPE, **options)
    _, errors = done.communicate(timeout=60)
    errors = errors.decode()
    observer.check_sanitizer(errors)
    return done.returncode, errors


def mode(path):
    return os.stat(path).st_mode & 0o777
