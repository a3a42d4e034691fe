# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
"""What tests of the ipfix sink share: a feed, and collectors that can be stopped."""

import collections
import socket
import ssl
import threading

from lib import certs
from lib import ipfix
from lib import lab
from lib.sinkfeed import Feed


def numbers(records):
    """Which of sinkfeed's records these are: record n has n + 1 octets."""
    return collections.Counter(ipfix.number(record.fields[1]) - 1
                               for record in records if ipfix.is_flow(record))


class Certificates(certs.Certificates):
    """The certificates of collectors and of a client."""

    def __init__(self, directory):
        super().__init__(directory)
        own = ("DNS:localhost", "IP:127.0.0.1")
        self.sign("server", *own)
        self.sign("other", "DNS:other.test")
        self.sign("expired", *own, days=0)
        self.sign("client", "DNS:client.test")

    def server(self, name):
        """For a server that wants a certificate of the client as well."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.path(f"{name}.pem"),
                                self.path(f"{name}.key"))
        context.load_verify_locations(self.path("ca.pem"))
        context.verify_mode = ssl.CERT_REQUIRED
        return context


class Stream(bytearray):
    """What a connection brought. Its sequence must begin at 0."""

    def __init__(self):
        super().__init__()
        self.at = 0
        self.session = ipfix.Session()
        self.found = collections.Counter()

    def numbers(self):
        """Messages that have come since the last call are read now."""
        while self.at + 16 <= len(self):
            end = self.at + int.from_bytes(self[self.at + 2:self.at + 4], "big")
            if end > len(self):
                break
            message = self.session.read(bytes(self[self.at:end]))
            self.found.update(numbers(self.session.follow(message)))
            self.at = end
        return self.found


class Server:
    """A collector over TCP or TLS: all connections, and the data of each."""

    stream = Stream

    def __init__(self, ns, port=0, context=None, reads=True, buffer=None):
        """@buffer: of its receive buffers, which the kernel doubles."""
        self.context = context
        self.reads = threading.Event()
        if reads:
            self.reads.set()
        self.streams, self.sockets, self.readers = [], [], []
        with ns:
            self.listener = socket.socket()
        self.listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if buffer:
            self.set_buffer(buffer)
        self.listener.bind(("127.0.0.1", port))
        self.listener.listen()
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def set_buffer(self, size):
        """Of the connections that are made from now on."""
        self.listener.setsockopt(socket.SOL_SOCKET, ipfix.SO_RCVBUFFORCE, size)

    def accept(self):
        while True:
            try:
                peer, _ = self.listener.accept()
            except OSError:
                return
            self.readers.append(threading.Thread(target=self.serve, args=(peer,),
                                                 daemon=True))
            self.readers[-1].start()

    def serve(self, peer):
        try:
            if self.context:
                peer = self.context.wrap_socket(peer, server_side=True)
            self.sockets.append(peer)
            self.streams.append(self.stream())
            self.handle(peer, self.streams[-1])
        except OSError:
            pass
        peer.close()

    def handle(self, peer, stream):
        while self.reads.wait():
            data = peer.recv(1 << 16)
            if not data:
                break
            stream += data

    def read_all(self):
        """The other end of all connections has closed them: read what is in their buffers."""
        for reader in list(self.readers):
            reader.join(60)
            assert not reader.is_alive(), "a connection does not end"

    def stop(self):
        """As if it was killed: connections end, and the port is closed."""
        for end in (self.listener, *self.sockets):
            try:
                end.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
            end.close()

    def numbers(self):
        return sum((stream.numbers() for stream in list(self.streams)),
                   collections.Counter())


class IpfixTest(lab.LabTest):
    def setUp(self):
        super().setUp()
        self.ns = self.lab.ns("c")
        self.port = ipfix.free_port()

    def feed(self, spec, *arguments):
        self.fed = Feed(self.lab, spec, *arguments, ns=self.ns)
        self.process = self.fed.process

    def log(self):
        return self.fed.lines

    def end(self, code=0):
        """What became of all records."""
        result = self.fed.finish(code)
        self.longest_ms = result["longest_cpu_us"] / 1000
        return result["stats"]

    def cut(self, protocol, verdict):
        """What is sent to the port, until heal()."""
        self.ns.run("nft", "add table inet away; add chain inet away in { type filter hook input priority 0; }; "
                    f"add rule inet away in {protocol} dport {self.port} {verdict}")

    def heal(self):
        self.ns.run("nft", "delete table inet away")

    def receiver(self, family=socket.AF_INET):
        with self.ns:
            receiver = ipfix.Receiver(family, self.port)
        self.addCleanup(receiver.close)
        return receiver

    def server(self, **options):
        server = Server(self.ns, **options)
        self.addCleanup(server.stop)
        return server

    def assert_once(self, *words):
        """So many lines in the log, each with its words."""
        lines = self.log()
        self.assertEqual(len(words), len(lines), lines)
        for line, word in zip(lines, words):
            self.assertIn(word, line)
