# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
"""TCP connections of which the processes at both ends note each call: what it moved, and when."""

import collections
import contextlib
import os
import random
import select
import socket
import tempfile
import threading
import time

SO_ZEROCOPY, MSG_ZEROCOPY = 60, 0x4000000
PEEKED = 64

# Bytes from offset on, by a call that began and ended then, in ns since 1970.
Call = collections.namedtuple("Call", "offset length begin end")


class Stream:
    """One direction of a connection."""

    def __init__(self):
        self.writes, self.reads = [], []

    def note(self, calls, length, begin):
        offset = calls[-1].offset + calls[-1].length if calls else 0
        if length:
            calls.append(Call(offset, length, begin, time.time_ns()))

    @property
    def written(self):
        return sum(call.length for call in self.writes)


# ---- Ways of writing -----------------------------------------------------------------------


def write(end, stream, data, flags=0):
    while data:
        begin = time.time_ns()
        sent = end.send(data, flags)
        stream.note(stream.writes, sent, begin)
        data = data[sent:]


def by_send(end, stream, chance, size):
    data = memoryview(chance.randbytes(size))
    step = chance.choice((1000, 20_000, size))
    for at in range(0, size, step):
        write(end, stream, data[at:at + step])


def by_single_bytes(end, stream, chance, size):
    end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, chance.choice((0, 1)))
    for _ in range(min(size, 60)):
        write(end, stream, b"x")


def by_zerocopy(end, stream, chance, size):
    end.setsockopt(socket.SOL_SOCKET, SO_ZEROCOPY, 1)
    write(end, stream, memoryview(chance.randbytes(size)), MSG_ZEROCOPY)


def by_sendfile(end, stream, chance, size):
    with tempfile.TemporaryFile() as file:
        file.write(chance.randbytes(size))
        file.flush()
        offset = 0
        while offset < size:
            begin = time.time_ns()
            sent = os.sendfile(end.fileno(), file.fileno(), offset, size - offset)
            stream.note(stream.writes, sent, begin)
            offset += sent


def by_splice(end, stream, chance, size):
    reader, writer = os.pipe()
    data = memoryview(chance.randbytes(size))
    while data:
        put = os.write(writer, data[:65536])
        data = data[put:]
        while put:
            begin = time.time_ns()
            sent = os.splice(reader, end.fileno(), put)
            stream.note(stream.writes, sent, begin)
            put -= sent
    os.close(reader)
    os.close(writer)


WRITERS = (by_send, by_single_bytes, by_zerocopy, by_sendfile, by_splice)


# ---- Ways of reading -----------------------------------------------------------------------


def read(end, stream, size, _chance):
    begin = time.time_ns()
    got = len(end.recv(size))
    stream.note(stream.reads, got, begin)
    return got


def peek_and_read(end, stream, size, chance):
    end.recv(PEEKED, socket.MSG_PEEK)
    return read(end, stream, size, chance)


def read_late(end, stream, size, chance):
    time.sleep(chance.uniform(0, .003))
    return read(end, stream, size, chance)


def read_by_splice(end, stream, size, _chance):
    select.select([end], [], [])
    reader, writer = os.pipe()
    begin = time.time_ns()
    got = os.splice(end.fileno(), writer, size)
    stream.note(stream.reads, got, begin)
    os.close(reader)
    os.close(writer)
    return got


READERS = (read, peek_and_read, read_late, read_by_splice)


# ---- Connections ---------------------------------------------------------------------------


class Talk:
    """What a client and a server say to each other, in turns."""

    def __init__(self, chance):
        self.chances = [random.Random(chance.random()) for _ in range(2)]
        self.streams = Stream(), Stream() # of the client, of the server
        self.client = self.server = None  # addresses
        self.writers = [chance.choice(WRITERS) for _ in range(2)]
        self.readers = [chance.choice(READERS) for _ in range(2)]
        turns = chance.randint(1, 6)
        most = chance.choice((2_000, 100_000, 500_000)) // turns
        self.turns = [(turn % 2, chance.randint(1, most)) for turn in range(turns)]

    def __str__(self):
        return f"{self.client} > {self.server}: {self.turns} by " \
               f"{[one.__name__ for one in self.writers + self.readers]}"

    def expected(self, who, size):
        return min(size, 60) if self.writers[who] is by_single_bytes else size

    def play(self, end, own):
        """All turns of one end."""
        chance = self.chances[own]
        for who, size in self.turns:
            if who == own:
                self.writers[own](end, self.streams[own], chance, size)
                continue
            left = self.expected(who, size)
            while left:
                got = self.readers[own](end, self.streams[who],
                                        min(left, chance.choice((100, 5000, 65536))), chance)
                if not got:
                    raise EOFError(str(self))
                left -= got

    def run(self, listener, connect):
        errors = []

        def serve():
            with contextlib.closing(listener.accept()[0]) as end:
                self.play(end, 1)
                end.shutdown(socket.SHUT_WR)
                end.recv(1)

        def guarded():
            try:
                serve()
            except Exception as error: # pylint: disable=broad-except
                errors.append(error)

        server = threading.Thread(target=guarded)
        server.start()
        with contextlib.closing(connect()) as end:
            self.client, self.server = end.getsockname(), end.getpeername()
            self.play(end, 0)
            end.recv(1)
        server.join(60)
        if errors:
            raise errors[0]
