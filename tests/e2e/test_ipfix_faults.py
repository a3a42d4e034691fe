#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
"""IPFIX while the collector is away, slow, or somebody else."""

import collections
import json
import os
import socket
import ssl
import subprocess
import threading
import time

import collectors
import ipfix
import lab


def numbers(records):
    """Which of sinkfeed's records these are: record n has n + 1 octets."""
    return collections.Counter(ipfix.number(record.fields[1]) - 1
                               for record in records if ipfix.is_flow(record))


class Certificates:
    """An authority, and what it has signed."""

    def __init__(self, where):
        self.where = where
        self.key("ca")
        self.openssl("req", "-x509", "-new", "-key", self.path("ca.key"),
                     "-subj", "/CN=authority", "-days", 2, "-out",
                     self.path("ca.pem"))
        self.sign("server", 2, "DNS:localhost,IP:127.0.0.1")
        self.sign("other", 2, "DNS:other.test")
        self.sign("expired", -1, "DNS:localhost,IP:127.0.0.1")
        self.sign("client", 2, "DNS:client.test")

    def path(self, name):
        return self.where.path(name)

    @staticmethod
    def openssl(*arguments):
        lab.run("openssl", *arguments)

    def key(self, name):
        self.openssl("ecparam", "-name", "prime256v1", "-genkey", "-noout",
                     "-out", self.path(f"{name}.key"))

    def sign(self, name, days, alternatives):
        self.key(name)
        self.openssl("req", "-new", "-key", self.path(f"{name}.key"), "-subj",
                     f"/CN={name}", "-out", self.path(f"{name}.csr"))
        with open(self.path(f"{name}.ext"), "w", encoding="ascii") as file:
            file.write(f"subjectAltName={alternatives}\n")
        self.openssl("x509", "-req", "-in", self.path(f"{name}.csr"), "-CA",
                     self.path("ca.pem"), "-CAkey", self.path("ca.key"),
                     "-CAcreateserial", "-days", days, "-extfile",
                     self.path(f"{name}.ext"), "-out", self.path(f"{name}.pem"))

    def server(self, name):
        """For a server that wants a certificate of the client as well."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.path(f"{name}.pem"),
                                self.path(f"{name}.key"))
        context.load_verify_locations(self.path("ca.pem"))
        context.verify_mode = ssl.CERT_REQUIRED
        return context


class Server:
    """A collector over TCP or TLS: all connections, and what each brought."""

    def __init__(self, ns, port=0, context=None, reads=True):
        self.context = context
        self.reads = threading.Event()
        if reads:
            self.reads.set()
        self.streams, self.sockets = [], []
        with ns:
            self.listener = socket.socket()
        self.listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.listener.bind(("127.0.0.1", port))
        self.listener.listen()
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                peer, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self.serve, args=(peer,),
                             daemon=True).start()

    def serve(self, peer):
        try:
            if self.context:
                peer = self.context.wrap_socket(peer, server_side=True)
            self.sockets.append(peer)
            self.streams.append(bytearray())
            stream = self.streams[-1]
            while self.reads.wait():
                data = peer.recv(1 << 16)
                if not data:
                    break
                stream += data
        except OSError:
            pass
        peer.close()

    def stop(self):
        """As if it was killed: connections end, nobody listens."""
        for end in (self.listener, *self.sockets):
            try:
                end.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
            end.close()

    def sessions(self):
        """The records of each connection, whose sequence must begin at 0."""
        for stream in list(self.streams):
            session = ipfix.Session()
            records = []
            data = bytes(stream)
            while len(data) >= 16 and int.from_bytes(data[2:4], "big") <= \
                    len(data):
                size = int.from_bytes(data[2:4], "big")
                records += session.follow(session.read(data[:size]))
                data = data[size:]
            yield records

    def numbers(self):
        return sum(map(numbers, self.sessions()), collections.Counter())


class Faults(lab.LabTest):
    def setUp(self):
        super().setUp()
        self.ns = self.lab.ns("c")
        self.port = ipfix.free_port()
        self.messages = self.lab.path("messages")

    def feed(self, spec, *arguments):
        with open(self.messages, "wb") as err:
            self.process = self.lab.spawn(
                os.path.join(os.path.dirname(os.environ["NETOBSCTL_RELEASE"]),
                             "tools", "sinkfeed"),
                spec, *arguments, ns=self.ns, stdout=subprocess.PIPE, stderr=err,
                text=True)

    def log(self):
        with open(self.messages, encoding="utf-8") as file:
            return file.read().splitlines()

    def end(self, code=0):
        """What became of all records."""
        out, _ = self.process.communicate(timeout=100)
        self.assertEqual(code, self.process.returncode, self.log())
        return json.loads(out)["stats"]

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

    # ---- UDP ------------------------------------------------------------------

    def test_udp_collector_that_comes_late_gets_all_once(self):
        self.check_late("127.0.0.1", socket.AF_INET)

    def test_udp_collector_at_ipv6_that_comes_late_gets_all_once(self):
        self.check_late("[::1]", socket.AF_INET6)

    def check_late(self, host, family):
        self.feed(f"ipfix:udp://{host}:{self.port}", "--rate", 1000, "--records",
                  4000)
        time.sleep(1.5)
        receiver = self.receiver(family)
        stats = self.end()
        self.assertEqual(4000, stats["delivered"]["records"])
        lab.wait_for(lambda: len(numbers(receiver.records())) == 4000,
                     "the records", 10)
        self.assertEqual({1}, set(numbers(receiver.records()).values()))
        self.assertGreater(stats["counters"]["refused_messages"], 0)
        self.assert_once("Connection refused", "again")

    def test_udp_collector_that_is_refused_for_a_while_misses_nothing(self):
        receiver = self.receiver()
        self.feed(f"ipfix:udp://127.0.0.1:{self.port}", "--rate", 2000,
                  "--records", 12000)
        lab.wait_for(lambda: len(numbers(receiver.records())) > 1000, "records")
        self.ns.run("nft", "add", "table", "inet", "away")
        self.ns.run("nft", "add", "chain", "inet", "away", "in",
                    "{ type filter hook input priority 0; }")
        self.ns.run("nft", "add", "rule", "inet", "away", "in", "udp", "dport",
                    self.port, "reject")
        lab.wait_for(self.log, "a word about it", 10)
        time.sleep(1.5)
        self.ns.run("nft", "delete", "table", "inet", "away")
        stats = self.end()
        self.assertEqual(12000, stats["delivered"]["records"])
        lab.wait_for(lambda: len(numbers(receiver.records())) == 12000,
                     "the records", 10)
        # The sequence goes on where it was: nothing seems to be missing.
        self.assertEqual({1}, set(numbers(receiver.records()).values()))
        self.assert_once("Connection refused", "again")
        self.note(f"{stats['counters']}")

    def test_nfcapd_that_is_killed_and_started_again(self):
        first = collectors.NfCapd(self.lab, self.ns, self.port)
        self.feed(f"ipfix:udp://127.0.0.1:{self.port}", "--rate", 500, "--records",
                  3000)
        time.sleep(1.5)
        before = first.rows()
        lab.wait_for(self.log, "a word about it", 10)
        second = collectors.NfCapd(self.lab, self.ns, self.port)
        stats = self.end()
        after = second.rows()
        self.assertEqual(3000, stats["delivered"]["records"])
        self.assertTrue(before and after)
        # What the first one had not read yet went away with it.
        self.assertLessEqual(len(before) + len(after), 3000)
        self.assertEqual(3000, max(row["octets"] for row in after))
        self.assert_once("Connection refused", "again")
        self.note(f"{len(before)} + {len(after)} of 3000")

    def test_udp_path_that_is_narrower_than_the_message(self):
        with self.ns:
            self.ns.ip("link", "set", "lo", "mtu", 1280)
        receiver = self.receiver()
        self.feed(f"ipfix:udp://127.0.0.1:{self.port}?mtu=9000", "--records", 500)
        self.end()
        lab.wait_for(lambda: len(numbers(receiver.records())) == 500, "records")
        self.assertLessEqual(max(map(len, receiver.datagrams)), 1252)

    def test_name_that_does_not_resolve_is_told_once(self):
        for transport in ("udp", "tcp"):
            self.feed(f"ipfix:{transport}://no.such.name.invalid:4739",
                      "--rate", 100, "--seconds", 3, "--drain", 0.1)
            stats = self.end(code=1)
            self.assertEqual(0, stats["delivered"]["records"])
            self.assertGreater(stats["pending"]["records"], 100)
            self.assertEqual(1, len(self.log()), self.log())
            self.assertIn("no.such.name.invalid", self.log()[0])

    # ---- TCP ------------------------------------------------------------------

    def test_tcp_collector_that_comes_late_gets_all(self):
        self.feed(f"ipfix:tcp://127.0.0.1:{self.port}", "--rate", 1000,
                  "--records", 3000)
        time.sleep(1.5)
        server = self.server(port=self.port)
        stats = self.end()
        self.assertEqual(3000, stats["delivered"]["records"])
        lab.wait_for(lambda: len(server.numbers()) == 3000, "the records", 10)
        self.assertEqual({1}, set(server.numbers().values()))
        self.assert_once("Connection refused", "again")

    def test_tcp_collector_that_is_killed_misses_nothing(self):
        first = self.server(port=self.port)
        self.feed(f"ipfix:tcp://127.0.0.1:{self.port}", "--rate", 2000,
                  "--records", 10000)
        lab.wait_for(lambda: len(first.numbers()) > 2000, "records")
        first.stop()
        lab.wait_for(self.log, "a word about it", 10)
        second = self.server(port=self.port)
        stats = self.end()
        self.assertEqual(10000, stats["delivered"]["records"])
        # A session of its own, with templates and a sequence from 0.
        lab.wait_for(lambda: max(second.numbers(), default=0) == 9999,
                     "the records", 10)
        self.assertEqual(2, stats["counters"]["sessions"])
        got = first.numbers() + second.numbers()
        missing = [n for n in range(10000) if n not in got]
        # What the first one's kernel had confirmed, and it had not read.
        self.assertLess(len(missing), 2000, missing)
        self.assertEqual(list(range(len(missing))),
                         [n - missing[0] for n in missing])
        self.assertEqual({1}, set(second.numbers().values()))
        self.note(f"{len(missing)} were lost inside the collector")

    def test_tcp_collector_that_does_not_read_stops_nobody(self):
        server = self.server(port=self.port, reads=False)
        spec = f"ipfix:tcp://127.0.0.1:{self.port}"
        # If somebody waited for it, this would have no end.
        self.feed(spec, "--rate", 1_000_000, "--records", 200_000, "--drain", 0.1)
        stats = self.end(code=1)
        self.assertGreater(stats["pending"]["records"], 0)
        connections = len(server.streams)
        self.feed(spec, "--records", 150_000)
        lab.wait_for(lambda: len(server.streams) > connections, "a connection")
        server.reads.set()
        stats = self.end()
        lost = sum(reason["records"] for reason in stats["dropped"].values())
        self.assertEqual(150_000, stats["delivered"]["records"] + lost)

    # ---- TLS ------------------------------------------------------------------

    def tls_spec(self, certificates, more=""):
        path = certificates.path
        return (f"ipfix:tls://127.0.0.1:{self.port}?ca={path('ca.pem')}&cert="
                f"{path('client.pem')}&key_file={path('client.key')}{more}")

    def test_tls_with_certificates_on_both_sides(self):
        certificates = Certificates(self.lab)
        server = self.server(port=self.port,
                             context=certificates.server("server"))
        self.feed(self.tls_spec(certificates), "--records", 20000)
        stats = self.end()
        self.assertEqual(20000, stats["delivered"]["records"])
        lab.wait_for(lambda: len(server.numbers()) == 20000, "the records", 10)
        self.assertEqual({1}, set(server.numbers().values()))
        self.assertEqual([], self.log())

    def test_tls_server_with_a_wrong_certificate_gets_nothing(self):
        certificates = Certificates(self.lab)
        for name, words in (("other", "127.0.0.1"), ("expired", "expired")):
            bad = self.server(port=self.port, context=certificates.server(name))
            self.feed(self.tls_spec(certificates), "--rate", 500, "--records",
                      3000)
            lab.wait_for(self.log, "a word about it", 20)
            time.sleep(1.5)
            self.assertEqual(1, len(self.log()), self.log())
            self.assertIn(words, self.log()[0])
            bad.stop()
            good = self.server(port=self.port,
                               context=certificates.server("server"))
            stats = self.end()
            self.assertEqual(3000, stats["delivered"]["records"])
            lab.wait_for(lambda s=good: len(s.numbers()) == 3000, "records", 10)
            self.assertEqual(collections.Counter(), bad.numbers())
            self.note(self.log()[0])
            good.stop()

    def test_tls_name_may_be_another_than_the_hosts(self):
        certificates = Certificates(self.lab)
        server = self.server(port=self.port,
                             context=certificates.server("other"))
        self.feed(self.tls_spec(certificates, "&server_name=other.test"),
                  "--records", 1000)
        self.end()
        lab.wait_for(lambda: len(server.numbers()) == 1000, "the records", 10)

    # ---- Files ----------------------------------------------------------------

    def files(self):
        """What is in the files, by their names; each is whole and stands alone."""
        found = {}
        for name in sorted(os.listdir(self.lab.dir)):
            if not name.startswith("flows"):
                continue
            with open(self.lab.path(name), "rb") as file:
                session = ipfix.Session()
                found[name] = sum((numbers(session.follow(session.read(message)))
                                   for message in ipfix.split(file.read())),
                                  collections.Counter())
        return found

    def test_files_that_rotate_have_all_and_stand_alone(self):
        path = self.lab.path("flows.ipfix")
        self.feed(f"ipfix:file:{path}?rotate.bytes=64K", "--records", 10000)
        self.end()
        files = self.files()
        self.assertGreater(len(files), 5)
        for name in files:
            self.assertRegex(name, r"^flows-\d{8}T\d{6}Z(_\d{3})?\.ipfix$")
        self.assertEqual(collections.Counter(range(10000)),
                         sum(files.values(), collections.Counter()))

    def test_disk_that_is_full_costs_nothing(self):
        lab.run("mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", self.mount())
        path = os.path.join(self.mount(), "flows.ipfix")
        self.feed(f"ipfix:file:{path}", "--records", 10000)
        lab.wait_for(self.log, "a word about it", 20)
        lab.run("mount", "-o", "remount,size=64m", self.mount())
        self.end()
        with open(path, "rb") as file:
            session = ipfix.Session()
            got = sum((numbers(session.follow(session.read(message)))
                       for message in ipfix.split(file.read())),
                      collections.Counter())
        self.assertEqual(collections.Counter(range(10000)), got)
        self.assert_once("No space left", "again")

    def mount(self):
        path = self.lab.path("disk")
        if not os.path.isdir(path):
            os.mkdir(path)
            self.lab.defer(lab.run, "umount", path)
        return path

    def test_file_that_a_crash_has_left_is_cut_and_finished(self):
        path = self.lab.path("flows.ipfix")
        spec = f"ipfix:file:{path}?rotate.interval=1h"
        self.feed(spec, "--rate", 10000)
        part = lab.wait_for(lambda: [name for name in os.listdir(self.lab.dir)
                                     if name.endswith(".part")
                                     and os.path.getsize(self.lab.path(name)) >
                                     200_000], "a large file")[0]
        self.process.kill()
        self.process.wait()
        with open(self.lab.path(part), "ab") as file:
            file.write(b"\0\x0a\x01\0half a message")
        self.feed(spec, "--records", 100)
        self.end()
        files = self.files()
        self.assertEqual(2, len(files))
        for name in files:
            self.assertRegex(name, r"\.ipfix$")
        crashed = files[part.removesuffix(".part")]
        self.assertEqual(collections.Counter(range(len(crashed))), crashed)
        self.assertGreater(len(crashed), 1000)


if __name__ == "__main__":
    lab.main()
