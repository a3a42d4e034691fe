#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
# Needs: openssl tshark
"""Beyond this host, readers of netobsctl capture need TLS and a certificate."""

import contextlib
import os
import shutil
import socket
import ssl
import subprocess
import threading
import time

from lib import bpf
from lib import certs
from lib import lab
from lib import packets
from lib import traffic

SERVER = "192.0.2.1"
USAGE = 2
OTHER_USER = 65534
HELLO = bytes.fromhex("16030100c8010000c40303")  # a TLS handshake, and no more of it


class TlsTest(lab.WiredTest):
    def setUp(self):
        super().setUp()
        self.certs = certs.Certificates(self.lab.path("certs"))
        self.certs.sign("server", f"IP:{SERVER}")
        self.certs.sign("client", "DNS:client.test")

    def files(self, name="server", authorities="ca"):
        return ("--tls-cert", self.certs.path(f"{name}.pem"), "--tls-key",
                self.certs.path(f"{name}.key"), "--tls-ca",
                self.certs.path(f"{authorities}.pem"))

    def listen(self, *arguments, where=f"{SERVER}:0", **options):
        """Not the connections themselves: the flood is UDP."""
        capture = packets.Capture(
            self.lab, self.a, "-i", "eth0", "--direction", "egress", "--listen",
            where, "--listen-any", *self.files(), *arguments, "udp", **options)
        return capture, capture.wait_listening()

    def flood(self, count, *arguments):
        return traffic.flood(self.lab, self.a, "eth0", "--packets", count, "--mac",
                             "02:00:00:00:00:ff", *arguments)["packets"]

    def connect(self, port):
        with self.b:
            one = socket.socket()
        one.settimeout(lab.PATIENCE_S)
        one.connect((SERVER, port))
        return one

    def wait_attached(self, attached=True):
        lab.wait_for(lambda: bool(bpf.attached(self.a, "eth0")) is attached,
                     f"programs: {attached}")


class Reader:
    """Takes all that comes over TLS, until the other side ends it."""

    def __init__(self, test, port, name="client", where=None, most=None):
        context = ssl.create_default_context(cafile=test.certs.path("ca.pem"))
        if most:
            context.maximum_version = most
        if name:
            own = where or test.certs
            context.load_cert_chain(own.path(f"{name}.pem"), own.path(f"{name}.key"))
        self.socket = context.wrap_socket(test.connect(port), server_hostname=SERVER)
        self.data = bytearray()
        self.thread = threading.Thread(target=self.read, daemon=True)

    def start(self):
        self.thread.start()
        return self

    def read(self):
        while chunk := self.socket.recv(1 << 16):
            self.data += chunk

    def leave(self):
        """Before another one has its descriptor: the thread may be late."""
        self.socket.shutdown(socket.SHUT_RDWR)
        self.thread.join()
        self.socket.close()

    def contents(self):
        self.thread.join()
        self.socket.close()
        return packets.parse(bytes(self.data))


class Certificates(TlsTest):
    def check_refused(self, capture, port, word, *arguments, **options):
        """With TLS 1.3, a client learns of it when it reads."""
        with self.assertRaises((ssl.SSLError, ConnectionResetError)):
            reader = Reader(self, port, *arguments, **options)
            self.addCleanup(reader.socket.close)
            reader.read()
            self.fail(f"{len(reader.data)} bytes came")
        lab.wait_for(lambda: word in capture.messages(), word)

    def test_right_one(self):
        capture, port = self.listen()
        for version in ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3:
            reader = Reader(self, port, most=version).start()
            self.wait_attached()
            self.flood(100)
            lab.wait_for(lambda r=reader: len(r.data) > 100 * 60, "the packets")
            reader.leave()
            self.wait_attached(False)
        reader = Reader(self, port).start()
        self.wait_attached()
        self.flood(100)
        time.sleep(0.2)
        stats = capture.stop()
        self.assertEqual((300, 0), (stats["captured"], stats["refused"]))
        self.assertEqual(100, len(reader.contents().packets))

    def test_others_are_refused(self):
        capture, port = self.listen()
        other = certs.Certificates(self.lab.path("other"))
        other.sign("client", "DNS:client.test")
        self.certs.sign("expired", "DNS:client.test", days=0)
        self.check_refused(capture, port, "did not return a certificate", None)
        self.check_refused(capture, port, "certificate of this client is not from a "
                           "trusted authority", where=other)
        self.check_refused(capture, port, "certificate of this client has expired",
                           "expired")
        with self.assertRaises(ssl.SSLError):
            Reader(self, port, most=ssl.TLSVersion.TLSv1_1)
        plain = self.connect(port)
        plain.send(b"GET / HTTP/1.1\r\n\r\n")
        with contextlib.suppress(ConnectionResetError):
            self.assertNotIn(b"\n\r\r\n", plain.recv(100))  # a section header
        plain.close()
        lab.wait_for(lambda: "http request" in capture.messages(), "that to be logged")
        self.assertNotIn("capturing at", capture.messages())
        stats = capture.stop()
        self.assertEqual((0, 5), (stats["matched"], stats["refused"]))

    def test_renewed_one(self):
        capture, port = self.listen()
        renewed = certs.Certificates(self.lab.path("renewed"))
        renewed.sign("client", "DNS:client.test")
        self.check_refused(capture, port, "authority", where=renewed)
        with open(renewed.path("ca.pem"), encoding="ascii") as file:
            authority = file.read()
        with open(self.certs.path("ca.pem"), "a", encoding="ascii") as file:
            file.write(authority)
        reader = Reader(self, port, where=renewed).start()
        self.wait_attached()
        capture.stop()
        self.assertEqual([], reader.contents().packets)

    def connect_reader(self, capture, port):
        """With the files as they were read first."""
        reader = Reader(self, port).start()
        self.wait_attached()
        reader.leave()
        self.wait_attached(False)
        return capture.messages().count("warning: ")

    def test_files_that_cannot_be_read_again(self):
        """Readers are served with the earlier ones, and the log has it once."""
        capture, port = self.listen()
        self.assertEqual(0, self.connect_reader(capture, port))
        with open(self.certs.path("server.pem"), "w", encoding="ascii") as file:
            file.write("half a certificate")
        for _ in range(2):
            self.assertEqual(1, self.connect_reader(capture, port))
        self.assertIn("--tls-cert: ", capture.messages())
        capture.stop()

    def test_files_that_only_privileges_can_read(self):
        """They are given up, which is said before a renewed file is missed."""
        os.chown(self.certs.path("server.key"), OTHER_USER, OTHER_USER)
        os.chmod(self.certs.path("server.key"), 0o600)
        capture, port = self.listen()
        self.assertIn("server.key: Permission denied", capture.messages())
        self.assertEqual(1, self.connect_reader(capture, port))
        capture.stop()

    def test_openssl_and_tshark(self):
        capture, port = self.listen()
        out = self.lab.path("tshark.txt")
        with open(out, "wb") as file:
            client = self.lab.spawn(
                "openssl", "s_client", "-quiet", "-connect", f"{SERVER}:{port}",
                "-CAfile", self.certs.path("ca.pem"), "-verify_return_error", "-cert",
                self.certs.path("client.pem"), "-key", self.certs.path("client.key"),
                ns=self.b, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL)
            tshark = self.lab.spawn("tshark", "-l", "-n", "-r", "-",
                                    stdin=client.stdout, stdout=file,
                                    stderr=subprocess.DEVNULL)
        self.wait_attached()
        self.flood(20)
        self.assertEqual(20, capture.stop()["captured"])
        client.wait()
        client.stdout.close()
        tshark.wait()
        with open(out, encoding="utf-8") as file:
            self.assertEqual(20, len(file.read().splitlines()))


class Attacks(TlsTest):
    def test_garbage_and_half_open_connections(self):
        """They change nothing: the capture is complete, and others may still connect."""
        capture, port = self.listen(release=True)
        reader = Reader(self, port).start()
        self.wait_attached()
        sent = [0]

        def send():
            sent[0] = self.flood(lab.sized(40_000), "--rate", "4000")
        sender = threading.Thread(target=send)
        sender.start()
        silent = []
        started = time.monotonic()
        for number in range(lab.sized(10_000)):
            one = self.connect(port)
            one.send((b"", HELLO, os.urandom(300), b"GET / HTTP/1.1\r\n")[number % 4])
            silent.append(one)
            if len(silent) > 200:
                silent.pop(0).close()
        self.note(f"{time.monotonic() - started:.1f} s")
        late = Reader(self, port).start()
        lab.wait_for(lambda: late.data, "a file for another reader")
        sender.join()
        for one in silent:
            one.close()
        time.sleep(0.5)
        stats = capture.stop()
        self.note(f"{stats}")
        self.assertEqual((sent[0], sent[0], 0, 0), tuple(
            stats[name] for name in ("matched", "captured", "lost", "missed")))
        self.assertEqual(sent[0], len(reader.contents().packets))
        self.assertTrue(late.contents().interfaces)

    def test_silent_ones_are_dropped(self):
        capture, port = self.listen()
        silent = [self.connect(port) for _ in range(10)]
        silent[0].send(HELLO)
        for one in silent:
            self.assertEqual(b"", one.recv(1))
            one.close()
        lab.wait_for(lambda: "timed out" in capture.messages(), "that to be logged")
        self.assertNotIn("capturing at", capture.messages())
        self.assertEqual(10, capture.stop()["refused"])


class BadInput(TlsTest):
    def test_messages(self):
        self.certs.sign("other", f"IP:{SERVER}")
        key = self.certs.path("client.key")
        locked = self.certs.path("locked.key")
        lab.run("openssl", "ec", "-in", key, "-aes128", "-passout", "pass:x", "-out",
                locked)
        shutil.copy(self.certs.path("client.pem"), self.certs.path("locked.pem"))
        where = ("--listen", f"{SERVER}:0")
        for code, word, *arguments in (
                (USAGE, "--listen-any", *where),
                (USAGE, "--tls-ca", *where, "--listen-any"),
                (USAGE, "need each other", *where, "--listen-any", *self.files()[:4]),
                (USAGE, "needs --listen", *self.files()),
                (USAGE, "unix sockets", "--listen", "unix:x", *self.files()),
                (1, "--tls-cert: ", *where, "--listen-any", *self.files("nosuch")),
                (1, "No such file", *where, "--listen-any", *self.files("nosuch")),
                (1, "--tls-ca: ", *where, "--listen-any",
                 *self.files(authorities="nosuch")),
                (1, "there is no certificate in it", *where, "--listen-any",
                 *self.files()[:4], "--tls-ca", key),
                (1, "is not for the certificate", *where, "--listen-any",
                 "--tls-key", key, *self.files()[:2], *self.files()[4:]),
                (1, "passphrase", *where, "--listen-any", *self.files("locked"))):
            got, errors = packets.refuse(self.lab, "-i", "eth0", *arguments, ns=self.a)
            self.assertEqual(code, got, errors)
            self.assertIn(word, errors)
            self.note(errors.splitlines()[0])


if __name__ == "__main__":
    lab.main(at_once=3)
