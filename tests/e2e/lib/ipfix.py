# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
"""Reads IPFIX messages by the letter of RFC 7011, and receives them."""

import collections
import socket
import struct
import threading

SO_RCVBUFFORCE = 33
TEMPLATES, OPTIONS_TEMPLATES = 2, 3

Message = collections.namedtuple("Message", "time sequence domain sets")
Template = collections.namedtuple("Template", "id scope fields")
# @fields: {element number, or (pen, number): bytes}
Record = collections.namedtuple("Record", "template fields")


def split(stream):
    """The messages that are one after the other."""
    while stream:
        version, length = struct.unpack_from("!HH", stream)
        if version != 10 or not 16 <= length <= len(stream):
            raise AssertionError(f"not a message: {stream[:16].hex()}")
        yield stream[:length]
        stream = stream[length:]


class Session:
    """The templates so far, and the expected sequence number."""

    def __init__(self):
        self.templates = {}
        self.sequence = 0

    def read(self, data):
        """A message, with its templates and records."""
        version, length, time, sequence, domain = struct.unpack_from(
            "!HHIII", data)
        if version != 10 or length != len(data):
            raise AssertionError(f"version {version}, {length} bytes of "
                                 f"{len(data)}")
        found = []
        at = 16
        while at < length:
            kind, size = struct.unpack_from("!HH", data, at)
            if size <= 4 or at + size > length:
                raise AssertionError(f"set {kind} has {size} bytes")
            found += self.read_set(kind, data[at + 4:at + size])
            at += size
        return Message(time, sequence, domain, found)

    def read_set(self, kind, body):
        if kind in (TEMPLATES, OPTIONS_TEMPLATES):
            return list(self.read_templates(kind, body))
        if kind not in self.templates:
            raise AssertionError(f"data for template {kind}, which is not known")
        return list(self.read_records(self.templates[kind], body))

    def read_templates(self, kind, body):
        at = 0
        while at < len(body):
            number, count = struct.unpack_from("!HH", body, at)
            at += 4
            scope = 0
            if kind == OPTIONS_TEMPLATES:
                scope, = struct.unpack_from("!H", body, at)
                at += 2
            fields = []
            for _ in range(count):
                element, size = struct.unpack_from("!HH", body, at)
                at += 4
                if element & 0x8000:
                    pen, = struct.unpack_from("!I", body, at)
                    at += 4
                    element = (pen, element & 0x7fff)
                fields.append((element, size))
            self.templates[number] = Template(number, scope, fields)
            yield self.templates[number]

    @staticmethod
    def read_records(template, body):
        at = 0
        while at < len(body):
            fields = {}
            for element, size in template.fields:
                fields[element] = body[at:at + size]
                at += size
            if at > len(body):
                raise AssertionError(f"template {template.id}: half a record")
            yield Record(template, fields)

    def follow(self, message):
        """Its records, if its sequence number is the expected one."""
        if message.sequence != self.sequence:
            raise AssertionError(f"sequence {message.sequence} instead of "
                                 f"{self.sequence}")
        records = [one for one in message.sets if isinstance(one, Record)]
        self.sequence += len(records)
        return records


def number(value):
    return int.from_bytes(value, "big")


def text(value):
    return value.rstrip(b"\0").decode()


def is_flow(record):
    return 1 in record.fields


class Receiver:
    """Datagrams as they come, at a UDP port of its own."""

    def __init__(self, family=socket.AF_INET, port=0, host=None):
        self.socket = socket.socket(family, socket.SOCK_DGRAM)
        self.socket.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, 16 << 20)
        host = host or ("::1" if family == socket.AF_INET6 else "127.0.0.1")
        self.socket.bind((host, port))
        self.port = self.socket.getsockname()[1]
        self.datagrams = []
        self.peers = set()
        self.thread = threading.Thread(target=self.receive, daemon=True)
        self.thread.start()

    def receive(self):
        while True:
            try:
                data, peer = self.socket.recvfrom(1 << 16)
            except OSError:
                return
            if not data:
                return
            self.peers.add(peer[0])
            self.datagrams.append(data)

    def close(self):
        try:
            self.socket.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
        self.socket.close()
        self.thread.join(10)

    def messages(self):
        session = Session()
        return [session.read(data) for data in list(self.datagrams)]

    def records(self):
        """All, with sequence numbers that follow each other."""
        session = Session()
        return [record for data in list(self.datagrams)
                for record in session.follow(session.read(data))]


def free_port(kind=socket.SOCK_DGRAM):
    with socket.socket(socket.AF_INET, kind) as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def read_file(path):
    """The records of a file of messages, whose sequence begins at 0."""
    session = Session()
    with open(path, "rb") as file:
        return [record for message in split(file.read())
                for record in session.follow(session.read(message))]
