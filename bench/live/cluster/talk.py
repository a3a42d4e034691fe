#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
"""
Traffic among namespaces that stand for nodes, all of it real sockets in this process, at a rate of flows. Of each
node's agent, an exchange is two flows: one that leaves and one that arrives; of both agents, four. Most exchanges are
a datagram and its answer, the others a short connection of TCP; besides, one stream from each node to the next.

Reads {"nodes": [{"netns": PATH, "address": ..}, ..], "flows_per_minute": .., "seconds": ..} from its input, and
prints a line of JSON with what it did.
"""

import ctypes
import itertools
import json
import os
import resource
import socket
import sys
import time

CLONE_NEWNET = 0x40000000
LIBC = ctypes.CDLL(None, use_errno=True)
FLOWS = 4 # of an exchange
TICK_SECONDS = 0.01
PATIENCE_SECONDS = 1
BATCH = 200 # exchanges at a time at most: their datagrams find room in the sockets
CLIENTS, FIRST_PORT = 16, 40000 # sockets of a node that ask
UDP_PORTS, WEB_PORT, STREAM_PORT = (53, 8125), 80, 9092
CONNECTIONS = 0.1 # part of the exchanges
REQUEST, ANSWER = bytes(60), bytes(200)
WEB_REQUEST, WEB_ANSWER = bytes(200), bytes(8000)
STREAM_PART = bytes(8000)


class Node:
    """All sockets are of its namespace."""

    def __init__(self, netns, address):
        self.fd, self.address = os.open(netns, os.O_RDONLY), address
        self.enter()
        self.clients = [self.datagrams(FIRST_PORT + i) for i in range(CLIENTS)]
        self.services = [self.datagrams(port) for port in UDP_PORTS]
        self.web = self.listen(WEB_PORT)
        self.streams = self.listen(STREAM_PORT)

    def enter(self):
        """This process makes sockets there from now on."""
        if LIBC.setns(self.fd, CLONE_NEWNET):
            raise OSError(ctypes.get_errno(), "setns")

    def datagrams(self, port):
        made = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        made.settimeout(PATIENCE_SECONDS)
        made.bind((self.address, port))
        return made

    def listen(self, port):
        made = socket.create_server((self.address, port), backlog=1000)
        made.settimeout(PATIENCE_SECONDS)
        return made


def receive(sock, octets):
    sock.settimeout(PATIENCE_SECONDS)
    while octets > 0:
        part = sock.recv(1 << 16)
        if not part:
            raise ConnectionError("the other end has closed")
        octets -= len(part)


class Talk:
    """What it has done so far: numbers, by name."""

    def __init__(self, nodes):
        self.nodes = nodes
        self.done = {name: 0 for name in ("datagrams", "lost", "connections", "parts")}
        self.edges = set()
        # Neighbours in this order differ in all: the same tuple comes again as late as possible.
        self.pairs = itertools.cycle([
            (nodes[i], nodes[(i + far) % len(nodes)], client, service)
            for service in range(len(UDP_PORTS)) for client in range(CLIENTS)
            for far in range(1, len(nodes)) for i in range(len(nodes))])
        self.lines = itertools.cycle([self.open_stream(node, nodes[(i + 1) % len(nodes)])
                                      for i, node in enumerate(nodes)])
        self.web_clients = itertools.cycle(nodes)

    def open_stream(self, client, server):
        client.enter()
        sock = socket.create_connection((server.address, STREAM_PORT))
        self.edges.add((client.address, server.address, STREAM_PORT))
        return sock, server.streams.accept()[0]

    def take_datagram(self, sock):
        """@return who sent it; None: it is lost"""
        try:
            return sock.recvfrom(1000)[1]
        except TimeoutError:
            self.done["lost"] += 1
            return None

    def exchange_datagrams(self, number):
        asked = [next(self.pairs) for _ in range(number)]
        for client, server, i, j in asked:
            client.clients[i].sendto(REQUEST, (server.address, UDP_PORTS[j]))
        self.done["datagrams"] += number
        answered = []
        for client, server, i, j in asked:
            self.edges.add((client.address, server.address, UDP_PORTS[j]))
            if peer := self.take_datagram(server.services[j]):
                server.services[j].sendto(ANSWER, peer)
                answered.append(client.clients[i])
        self.done["datagrams"] += len(answered)
        for sock in answered:
            self.take_datagram(sock)

    def connect(self, number):
        """So many of one client, one after the other."""
        client = next(self.web_clients)
        client.enter()
        at = self.nodes.index(client)
        for i in range(number):
            server = self.nodes[(at + 1 + (self.done["connections"] + i) %
                                 (len(self.nodes) - 1)) % len(self.nodes)]
            with socket.socket() as sock:
                sock.connect((server.address, WEB_PORT))
                sock.send(WEB_REQUEST)
                with server.web.accept()[0] as end:
                    receive(end, len(WEB_REQUEST))
                    end.sendall(WEB_ANSWER)
                    receive(sock, len(WEB_ANSWER))
            self.edges.add((client.address, server.address, WEB_PORT))
        self.done["connections"] += number

    def stream(self):
        sock, end = next(self.lines)
        sock.sendall(STREAM_PART)
        receive(end, len(STREAM_PART))
        self.done["parts"] += 1

    def run(self, exchanges_per_second, seconds):
        """@return the seconds that it took; more than @seconds only for the last tick"""
        start = time.monotonic()
        exchanges = connections = 0
        while (now := time.monotonic() - start) < seconds:
            due = exchanges_per_second * now
            number = min(BATCH, int(due * (1 - CONNECTIONS)) - exchanges)
            self.exchange_datagrams(number)
            exchanges += number
            number = min(BATCH, int(due * CONNECTIONS) - connections)
            self.connect(number)
            connections += number
            self.stream()
            time.sleep(max(0, start + now + TICK_SECONDS - time.monotonic()))
        return time.monotonic() - start


def main():
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    wanted = json.load(sys.stdin)
    talk = Talk([Node(**node) for node in wanted["nodes"]])
    seconds = talk.run(wanted["flows_per_minute"] / 60 / FLOWS, wanted["seconds"])
    print(json.dumps({**talk.done, "edges": len(talk.edges), "seconds": seconds,
                      "cpu_seconds": time.process_time()}))


if __name__ == "__main__":
    main()
