# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
"""
A process that asks servers, as each line of its input says, in JSON:

    {"netns": PATH, "proto": "tcp"|"udp", "asked": [ADDRESS, PORT], "bind": [ADDRESS, PORT] or null,
     "way": "connect"|"send", "reset": true or false}

and prints a line for each: its own address, and the server's; the answer has both, as the server sees
them. Instead of "way", it may have "socket": NAME and "steps", for a socket of UDP that stays until it is
closed; then the line has a list, of what was asked:

    ["connect", ADDRESS, PORT], ["dissolve"], ["ask"], ["ask", ADDRESS, PORT], ["close"]

With "shared": true, others may have its port. Answers is such a server, for tests.
"""

import ctypes
import json
import os
import select
import selectors
import socket
import struct
import sys
import threading

CLONE_NEWNET = 0x40000000
PATIENCE_S = 60


def family_of(address):
    return socket.AF_INET6 if ":" in address else socket.AF_INET


def enter(path):
    libc = ctypes.CDLL(None, use_errno=True)
    fd = os.open(path, os.O_RDONLY)
    if libc.setns(fd, CLONE_NEWNET):
        raise OSError(ctypes.get_errno(), "setns")
    os.close(fd)


def talk(sock, wanted):
    asked = tuple(wanted["asked"])
    if wanted["way"] == "connect":
        sock.connect(asked)
        sock.send(b"question")
        answer = sock.recv(100)
        return sock.getsockname(), answer
    sock.sendto(b"question", asked)
    answer, _ = sock.recvfrom(100)
    return sock.getsockname(), answer


KEPT = {}


def dissolve(sock):
    """connect(2) with AF_UNSPEC."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.connect(sock.fileno(), struct.pack("H14x", socket.AF_UNSPEC), 16):
        raise OSError(ctypes.get_errno(), "connect")


def ask_there(sock, *there):
    if there:
        sock.sendto(b"question", there)
    else:
        sock.send(b"question")
    # Of sockets that share a port, another one may get the answer.
    there, _, _ = select.select(KEPT.values(), (), (), PATIENCE_S)
    seen, remote = json.loads(there[0].recv(100))
    return {"local": seen, "remote": remote}


def take_steps(wanted):
    sock = KEPT.get(wanted["socket"])
    if not sock:
        sock = KEPT[wanted["socket"]] = socket.socket(wanted["family"], socket.SOCK_DGRAM)
        sock.settimeout(PATIENCE_S)
        if wanted["shared"]:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if wanted["bind"]:
            sock.bind(tuple(wanted["bind"]))
    asked = []
    for verb, *there in wanted["steps"]:
        if verb == "ask":
            asked.append(ask_there(sock, *there))
        elif verb == "connect":
            sock.connect(tuple(there))
        elif verb == "dissolve":
            dissolve(sock)
        else:
            KEPT.pop(wanted["socket"]).close()
    return asked


def ask(wanted):
    if "steps" in wanted:
        return take_steps(wanted)
    kind = socket.SOCK_STREAM if wanted["proto"] == "tcp" else socket.SOCK_DGRAM
    with socket.socket(family_of(wanted["asked"][0]), kind) as sock:
        sock.settimeout(PATIENCE_S)
        if wanted["bind"]:
            if wanted["proto"] == "tcp": # of UDP, others could have it at the same time
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            sock.bind(tuple(wanted["bind"]))
        if wanted["reset"]:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        local, answer = talk(sock, wanted)
        seen, remote = json.loads(answer)
        # A socket that sends from any address has none of its own.
        return {"local": seen if local[0] in ("0.0.0.0", "::") else local[:2], "remote": remote}


def main():
    entered = None
    for line in sys.stdin:
        wanted = json.loads(line)
        if wanted["netns"] != entered:
            enter(wanted["netns"])
            entered = wanted["netns"]
        print(json.dumps(ask(wanted)), flush=True)


class Answers:
    """Servers of a namespace at several addresses, which answer with their own; in a thread."""

    def __init__(self, ns):
        self.ns = ns
        self.selector = selectors.DefaultSelector()
        self.is_over = False
        self.thread = threading.Thread(target=self.run)

    def listen(self, proto, address, port):
        with self.ns:
            sock = socket.socket(family_of(address), socket.SOCK_STREAM if proto == "tcp" else
                                 socket.SOCK_DGRAM)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.bind((address, port))
        if proto == "tcp":
            sock.listen(1000)
        self.selector.register(sock, selectors.EVENT_READ,
                               self.accept if proto == "tcp" else self.answer)

    def start(self):
        self.thread.start()
        return self

    def accept(self, listener):
        connection, _ = listener.accept()
        self.selector.register(connection, selectors.EVENT_READ, self.reply)

    def reply(self, connection):
        try:
            if connection.recv(100):
                connection.send(self.ends(connection, connection.getpeername()))
                return
        except ConnectionError:
            pass
        self.selector.unregister(connection)
        connection.close()

    @staticmethod
    def answer(sock):
        _, peer = sock.recvfrom(100)
        sock.sendto(Answers.ends(sock, peer), peer)

    @staticmethod
    def ends(sock, peer):
        return json.dumps([peer[:2], sock.getsockname()[:2]]).encode()

    def run(self):
        while not self.is_over:
            for key, _ in self.selector.select(0.1):
                key.data(key.fileobj)

    def close(self):
        self.is_over = True
        if self.thread.is_alive():
            self.thread.join()
        for key in list(self.selector.get_map().values()):
            key.fileobj.close()
        self.selector.close()


if __name__ == "__main__":
    main()
