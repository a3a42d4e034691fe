# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
# Needs: tshark
"""Readers that connect to netobsctl capture: each gets a file of its own."""

import os
import re
import socket
import stat
import subprocess
import threading
import time

from lib import bpf
from lib import lab
from lib import packets
from lib import traffic

USAGE = 2
CAP_SYS_RESOURCE = 1 << 24
CAPABILITIES = {"CapInh": 0, "CapBnd": 1 << 12 | 1 << 38 | 1 << 39,
                "CapEff": 1 << 12 | 1 << 38 | 1 << 39,
                "CapPrm": 1 << 12 | 1 << 38 | 1 << 39}


class Reader:
    """Takes all that comes, until the other side ends it."""

    def __init__(self, ns, where):
        family = socket.AF_INET if isinstance(where, int) else socket.AF_UNIX
        with ns:
            self.socket = socket.socket(family, socket.SOCK_STREAM)
        self.socket.settimeout(lab.PATIENCE_S)
        self.socket.connect(("127.0.0.1", where) if isinstance(where, int) else where)
        self.data = bytearray()
        self.thread = None

    def start(self):
        self.thread = threading.Thread(target=self.read, daemon=True)
        self.thread.start()
        return self

    def read(self):
        while chunk := self.socket.recv(1 << 16):
            self.data += chunk

    def contents(self):
        self.thread.join()
        self.socket.close()
        return packets.parse(bytes(self.data))


class Listen(lab.WiredTest):
    def listen(self, *arguments, where="127.0.0.1:0", **options):
        capture = packets.Capture(self.lab, self.a, "-i", "eth0", "--direction",
                                  "egress", "--listen", where, *arguments, **options)
        return capture, capture.wait_listening()

    def flood(self, count, *arguments):
        return traffic.flood(self.lab, self.a, "eth0", "--packets", count, "--mac",
                             "02:00:00:00:00:ff", *arguments)["packets"]

    def wait_attached(self, attached=True):
        lab.wait_for(lambda: bool(bpf.attached(self.a, "eth0")) is attached,
                     f"programs: {attached}")

    def test_attached_while_anybody_is_connected(self):
        capture, port = self.listen()
        self.assertEqual(0, bpf.attached(self.a, "eth0"))
        for _ in range(3):
            first = Reader(self.a, port).start()
            self.wait_attached()
            second = Reader(self.a, port).start()
            self.flood(10)
            first.socket.shutdown(socket.SHUT_RDWR)
            first.thread.join()
            self.flood(10)
            lab.wait_for(lambda reader=second: len(reader.data) > 20 * 60, "packets")
            self.assertTrue(bpf.attached(self.a, "eth0"))
            second.socket.shutdown(socket.SHUT_RDWR)
            second.thread.join()
            self.wait_attached(False)
        self.assertEqual(60, capture.stop()["matched"])

    def test_count(self):
        capture, port = self.listen("-c", "42")
        reader = Reader(self.a, port).start()
        self.wait_attached()
        self.flood(1000)
        self.assertEqual(42, capture.finish()["captured"])
        self.assertEqual(42, len(reader.contents().packets))

    def test_an_interface_that_is_gone_for_a_moment(self):
        capture, port = self.listen()
        self.a.ip("link", "set", "eth0", "down")
        self.a.ip("link", "set", "eth0", "name", "gone0")
        first = Reader(self.a, port).start()
        first.thread.join()
        first.socket.close()
        if first.data:
            self.assertEqual([], packets.parse(bytes(first.data)).packets)
        self.assertIn("eth0", capture.messages())
        self.a.ip("link", "set", "gone0", "name", "eth0")
        self.a.ip("link", "set", "eth0", "up")
        reader = Reader(self.a, port).start()
        self.wait_attached()
        self.flood(10)
        capture.stop()
        self.assertGreaterEqual(len(reader.contents().packets), 10)

    def test_each_reader_has_a_whole_file(self):
        capture, port = self.listen()
        first = Reader(self.a, port).start()
        self.wait_attached()
        self.flood(100)
        # What has gone to the first reader is not the second one's.
        lab.wait_for(lambda: len(first.data) > 100 * 60, "the first packets")
        second = Reader(self.a, port).start()
        lab.wait_for(lambda: second.data, "the beginning of the second file")
        self.flood(50)
        time.sleep(0.2)
        stats = capture.stop()
        self.assertEqual((150, 0), (stats["captured"], stats["missed"]))
        for reader, count in ((first, 150), (second, 50)):
            contents = reader.contents()
            self.assertEqual(count, len(contents.packets))
            self.assertEqual({"received": count, "dropped": 0, "os_dropped": 0,
                              "delivered": count}, contents.stats[0])

    def test_a_slow_reader_loses_its_own_packets(self):
        capture, port = self.listen("-B", "64M")
        fast = Reader(self.a, port).start()
        self.wait_attached()
        slow = Reader(self.a, port)
        lab.wait_for(lambda: slow.socket.recv(4, socket.MSG_PEEK), "its file")
        # More than its queue and the sockets take.
        count = self.flood(30_000, "--payload", "1000", "--rate", "20000")
        lab.wait_for(lambda: self.is_at_rest(fast), "the fast reader")
        slow.start()
        lab.wait_for(lambda: self.is_at_rest(slow), "the slow reader")
        stats = capture.stop()
        self.assertEqual(count, stats["matched"])
        ours, theirs = fast.contents(), slow.contents()
        missed = []
        for contents in ours, theirs:
            missed.append(stats["captured"] - len(contents.packets))
            self.assertEqual({"received": count, "os_dropped": stats["lost"],
                              "dropped": missed[-1] + stats["lost"],
                              "delivered": len(contents.packets)}, contents.stats[0])
        self.assertEqual(sum(missed), stats["missed"])
        self.assertLess(missed[0], missed[1])
        self.note(f"{stats}, the slow reader has {len(theirs.packets)}")

    @staticmethod
    def is_at_rest(reader):
        before = len(reader.data)
        time.sleep(0.3)
        return before and len(reader.data) == before

    def test_tshark_reads_live(self):
        capture, port = self.listen()
        out = self.lab.path("tshark.txt")
        with open(out, "wb") as file:
            tshark = self.lab.spawn("tshark", "-l", "-n", "-i",
                                    f"TCP@127.0.0.1:{port}", "-T", "fields", "-e",
                                    "frame.interface_name", "-e", "ip.dst", "-e",
                                    "frame.packet_flags_direction",
                                    ns=self.a, stdout=file, stderr=subprocess.DEVNULL)
        self.wait_attached()
        time.sleep(1)
        self.flood(20)

        def lines():
            return len(lab.read(out).splitlines()) >= 20
        lab.wait_for(lines, "tshark to show them")
        with open(out, encoding="utf-8") as file:
            self.note(file.readline().strip())
        tshark.terminate()
        tshark.wait()
        self.wait_attached(False)
        self.assertEqual(20, capture.stop()["matched"])

    def test_garbage_and_half_open_connections(self):
        capture, port = self.listen(release=True)
        reader = Reader(self.a, port).start()
        self.wait_attached()
        silent = [Reader(self.a, port) for _ in range(40)]
        for number in range(lab.sized(10_000)):
            with self.a:
                one = socket.create_connection(("127.0.0.1", port))
            one.send(b"GET / HTTP/1.1\r\n" + os.urandom(number % 1000))
            one.close()
        self.flood(100)
        lab.wait_for(lambda: len(reader.data) > 100 * 60, "the packets")
        for one in silent:
            one.socket.close()
        self.assertEqual(100, capture.stop()["captured"])
        self.assertEqual(100, len(reader.contents().packets))

    def test_connections_that_are_gone_attach_nothing(self):
        capture, port = self.listen("-vv")
        capture.process.send_signal(lab.signal.SIGSTOP)
        for _ in range(50):
            with self.a:
                socket.create_connection(("127.0.0.1", port)).close()
        capture.process.send_signal(lab.signal.SIGCONT)
        time.sleep(0.5)
        self.assertNotIn("capturing at", capture.messages())
        self.assertEqual(0, capture.stop()["matched"])

    def test_unix_sockets(self):
        path = self.lab.path("packets.sock")
        for _ in range(2):  # one that a killed process has left is replaced
            capture, where = self.listen(where=f"unix:{path}")
            self.assertEqual(path, where)
            self.assertEqual(0o600, stat.S_IMODE(os.stat(path).st_mode))
            reader = Reader(self.a, path).start()
            self.wait_attached()
            code, errors = packets.refuse(self.lab, "-i", "eth0", "--listen",
                                          f"unix:{path}", ns=self.a)
            self.assertEqual(1, code)
            self.assertIn("Address already in use", errors)
            self.flood(10)
            lab.wait_for(lambda r=reader: len(r.data) > 10 * 60, "the packets")
            capture.process.kill()
            capture.process.wait()
            lab.wait_for(lambda: not bpf.attached(self.a, "eth0"), "the links to go")
        self.listen(where=f"unix:{path}")[0].stop()
        self.assertFalse(os.path.exists(path))

    def test_privileges_are_dropped(self):
        capture, _ = self.listen()
        status = lab.status_of(capture.process.pid)
        for name, least in CAPABILITIES.items():
            self.assertEqual(least, int(status[name], 16), name)
        self.assertEqual("1", status["NoNewPrivs"])
        # For threads that wait for the kernel, instead of CAP_SYS_NICE.
        own = int(lab.status_of("self")["CapEff"], 16)
        limits = lab.read(f"/proc/{capture.process.pid}/limits")
        limit = re.search(r"^Max realtime priority +(\d+)", limits, re.M)[1]
        if own & CAP_SYS_RESOURCE:
            self.assertEqual("1", limit)
        else:
            self.note("without CAP_SYS_RESOURCE, no limit can be raised")
        capture.stop()

    def test_messages(self):
        with self.a:
            taken = socket.create_server(("127.0.0.1", 0))
        port = taken.getsockname()[1]
        path = self.lab.path("x.pcapng")
        for code, word, *arguments in (
                (1, "Address already in use", f"127.0.0.1:{port}"),
                (1, "No such file", "unix:/nosuch/socket"),
                (USAGE, "loopback", "0.0.0.0:9990"),
                (USAGE, "ssh HOST netobsctl capture", "192.0.2.1:9990"),
                (USAGE, "loopback", "[::]:9990"),
                (USAGE, "ADDRESS:PORT", "9990"),
                (USAGE, "ADDRESS:PORT", "127.0.0.1:port"),
                (USAGE, "ADDRESS:PORT", "127.0.0.1:65536"),
                (USAGE, "too long", "unix:" + "x" * 200),
                (USAGE, "path is missing", "unix:"),
                (USAGE, "-w", "127.0.0.1:0", "-w", path)):
            got, errors = packets.refuse(self.lab, "-i", "eth0", "--listen",
                                         *arguments, ns=self.a)
            self.assertEqual(code, got, errors)
            self.assertIn(word, errors)
        taken.close()


if __name__ == "__main__":
    lab.main(at_once=3)
