# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
"""
The ends of a TCP connection, and what they and their kernel measure:

    chat.py serve ADDRESS PORT THINK_MS [BYTES]
    chat.py pingpong|rest|bulk|PAUSE_MS ADDRESS PORT SECONDS [BYTES]

BYTES is the size of requests and answers.

A client prints one line of JSON: its port, the smoothed round-trip times that TCP_INFO had
meanwhile, the least one and the retransmitted segments at the end, how long answers took, and how
long the server took for each, which the answer says: from when its kernel received the request,
since a process takes time to wake up. All in microseconds. A client pauses between its requests, in
"rest" for long, or for PAUSE_MS.
"""

import fcntl
import json
import socket
import struct
import sys
import termios
import threading
import time

REQUEST = b"?" * int(dict(enumerate(sys.argv)).get(5, "200"))
BULK = b"x" * 16384
PAUSE_S, REST_S = 0.005, 0.4
LOOK_S = 0.02
PACE = 4_000_000  # bytes per second, so that queues are short
SO_MAX_PACING_RATE, SO_TIMESTAMPNS = 47, 35
TIMESPEC = struct.Struct("=qq")
# linux/tcp.h, struct tcp_info
RTT, TOTAL_RETRANS, MIN_RTT = 68, 100, 148
PATIENCE_S = 60


def receive(connection):
    """Data, and when the kernel received it, in ns of CLOCK_REALTIME."""
    data, notes, _, _ = connection.recvmsg(1 << 16, socket.CMSG_SPACE(TIMESPEC.size))
    for _, kind, note in notes:
        if kind == SO_TIMESTAMPNS:
            seconds, ns = TIMESPEC.unpack(note)
            return data, seconds * 10**9 + ns
    return data, time.time_ns()


def answer(connection, think_s):
    """Bulk is read, and each request gets an answer of its size."""
    pending = 0
    connection.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
    with connection: # its end acknowledges that of the client, without delay
        while True:
            data, begin = receive(connection)
            if not data:
                break
            pending += data.count(REQUEST[:1])
            while pending >= len(REQUEST):
                pending -= len(REQUEST)
                time.sleep(think_s)
                took = b"%d" % (time.time_ns() - begin)
                connection.sendall(took.ljust(len(REQUEST)))


def serve(address, port, think_ms):
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    server = socket.create_server((address, port), family=family)
    print("ready", flush=True)
    while True:
        connection, _ = server.accept()
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        threading.Thread(target=answer, args=(connection, think_ms / 1000),
                         daemon=True).start()


class Info:
    """What the kernel knows of a connection."""

    def __init__(self, connection):
        self.connection = connection
        self.rtts = []

    def read(self, offset):
        info = self.connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 256)
        return struct.unpack_from("=I", info, offset)[0]

    def unacknowledged(self):
        """In bytes."""
        return struct.unpack("=i", fcntl.ioctl(self.connection, termios.TIOCOUTQ, bytes(4)))[0]

    def look(self):
        self.rtts.append(self.read(RTT))


def ask(connection):
    """How long the server took."""
    connection.sendall(REQUEST)
    answer = b""
    while len(answer) < len(REQUEST):
        answer += connection.recv(len(REQUEST) - len(answer))
    return int(answer) / 1e3


def pingpong(connection, info, end, pause_s=PAUSE_S):
    times, thoughts = [], []
    while time.monotonic() < end:
        begin = time.monotonic()
        thoughts.append(ask(connection))
        times.append((time.monotonic() - begin) * 1e6)
        info.look()
        time.sleep(pause_s)
    return times, thoughts


def rest(connection, info, end):
    return pingpong(connection, info, end, REST_S)


def bulk(connection, info, end):
    connection.setsockopt(socket.SOL_SOCKET, SO_MAX_PACING_RATE, PACE)
    next_look = time.monotonic() + 10 * LOOK_S
    while (now := time.monotonic()) < end:
        connection.sendall(BULK)
        if now >= next_look:
            info.look()
            next_look = now + LOOK_S
    return [], []


def client(kind, address, port, seconds):
    with socket.create_connection((address, port), PATIENCE_S) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        info = Info(connection)
        # netobs times no segment for a millisecond after the SYN, but the kernel does.
        time.sleep(PAUSE_S)
        talk = {"pingpong": pingpong, "rest": rest, "bulk": bulk}.get(kind)
        end = time.monotonic() + seconds
        times, thoughts = talk(connection, info, end) if talk else \
            pingpong(connection, info, end, float(kind) / 1000)
        # What is under way is acknowledged meanwhile, unless it is lost.
        time.sleep(max(0.5, 4 * info.read(RTT) / 1e6))
        while info.unacknowledged():
            time.sleep(PAUSE_S)
        print(json.dumps({"port": connection.getsockname()[1], "rtts": info.rtts,
                          "min": info.read(MIN_RTT), "times": times, "thoughts": thoughts,
                          "retransmits": info.read(TOTAL_RETRANS)}), flush=True)


def main():
    role, address, port, number = sys.argv[1:5]
    if role == "serve":
        serve(address, int(port), float(number))
    else:
        client(role, address, int(port), float(number))


if __name__ == "__main__":
    main()
