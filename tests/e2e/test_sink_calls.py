# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
"""No call of a sink takes long, however much waits, and whatever the other side sends.

NETOBS_TEST_BACKLOG=N has N records wait, instead of 3 million.
"""

import contextlib
import json
import os
import socket
import subprocess
import tempfile
import threading

from lib import lab

LIMIT_US = 20000  # of the thread's own time: others may have the processor meanwhile


OK = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
ITEM = b'{"create":{"status":201,"_index":"i","_id":"0123456789","result":"created"}},'
SETTINGS = b"\0\0\0\4\0\0\0\0\0"

# What a peer sends, once and then without an end, as fast as it is read.
FLOODS = {
    "zeros": (b"", b"\0" * 1000),
    "body": (OK + b"\r\n", b"x" * 1000),
    "body of an error": (b"HTTP/1.1 500 Error\r\n\r\n", b"x" * 1000),
    "items": (OK + b'\r\n{"errors":true,"items":[', ITEM),
    "other JSON": (OK + b'\r\n{"errors":true,"x":[', b'[{"y":"z"}],'),
    "small chunks": (OK + b"Transfer-Encoding: chunked\r\n\r\n", b"1\r\nx\r\n"),
    "trailers": (OK + b"Transfer-Encoding: chunked\r\n\r\n0\r\n", b"X: y\r\n"),
    "headers": (OK, b"X: y\r\n"),
    "interim answers": (b"", b"HTTP/1.1 102 Processing\r\n\r\n"),
    "PING": (SETTINGS, b"\0\0\x08\6\0\0\0\0\0" + bytes(8)),
    "SETTINGS": (b"", SETTINGS),
    "DATA": (SETTINGS, b"\0\x10\0\0\0\0\0\0\1" + bytes(4096)),
}
HTTP = ("zeros", "body", "body of an error", "items", "other JSON", "small chunks", "trailers",
        "headers", "interim answers")
# Kinds of sinks that listen to their other side.
FLOODED = {
    "json:tcp://127.0.0.1:{}?": ("zeros",),
    "ipfix:tcp://127.0.0.1:{}?": ("zeros",),
    "kafka://127.0.0.1:{}/flows?": ("zeros",),
    "grpc://127.0.0.1:{}?": ("zeros", "PING", "SETTINGS", "DATA"),
    "http://127.0.0.1:{}/?requests=4&batch_delay=0&batch_records=1&": HTTP,
    "http://127.0.0.1:{}/_bulk?encoding=bulk&requests=4&batch_delay=0&batch_records=1&": HTTP,
}


class Flooder:
    """A peer that sends and never ends an answer, to each that connects."""

    def __init__(self, flood):
        self.first, rest = flood
        self.rest = rest * (1 + (1 << 16) // len(rest))
        self.sent = 0
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.clients = []
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        with contextlib.suppress(OSError): # until it is closed
            while True:
                client = self.listener.accept()[0]
                self.clients.append(client)
                threading.Thread(target=self.read, args=(client,), daemon=True).start()
                threading.Thread(target=self.send, args=(client,), daemon=True).start()

    @staticmethod
    def read(client):
        with contextlib.suppress(OSError):
            while client.recv(1 << 16):
                pass

    def send(self, client):
        with contextlib.suppress(OSError):
            client.sendall(self.first)
            while True:
                client.sendall(self.rest)
                self.sent += len(self.rest)

    def close(self):
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        for client in self.clients:
            with contextlib.suppress(OSError):
                client.shutdown(socket.SHUT_RDWR)
            client.close()


def backlog():
    return int(os.environ.get("NETOBS_TEST_BACKLOG", "3000000"))


class Calls(lab.LabTest):
    def feed(self, spec, *options):
        """The longest call, in us, and the sink's statistics."""
        tool = os.path.join(os.environ["NETOBS_RELEASE"], "tools", "sinkfeed")
        done = subprocess.run([tool, spec, "--times", *map(str, options)],
                              stdout=subprocess.PIPE, text=True, check=False)
        report = json.loads(done.stdout)
        self.note(f"{spec.split('?')[0]}: longest call "
                  f"{report['longest_cpu_us'] / 1000:.1f} ms of its thread, "
                  f"{report['longest_us'] / 1000:.1f} ms of the clock; opened in "
                  f"{report['open_seconds'] * 1000:.0f} ms")
        return report["longest_cpu_us"], report["stats"]

    def longest_call(self, target):
        """Of a backlog: while it is written to a disk, and while it is read from it."""
        with tempfile.TemporaryDirectory(dir=self.lab.dir) as directory:
            spool = f"spool=disk:{directory}&spool.max_bytes=4G"
            away = f"json:unix:{self.lab.path('nobody')}?{spool}"
            written, stats = self.feed(away, "--records", backlog(), "--rate", 1e9,
                                       "--drain", 0)
            self.assertEqual(backlog(), stats["pending"]["records"])
            read, stats = self.feed(f"{target}?{spool}", "--records", 0, "--drain",
                                    600)
            self.assertEqual(backlog(), stats["delivered"]["records"])
            self.assertEqual(backlog(), stats["recovered"]["records"])
        return max(written, read)

    def test_backlog(self):
        """It comes in, and goes out, from the disk to readers that take all."""
        for target in ("null", "json:/dev/null", f"json:{self.lab.path('out')}"):
            longest = lab.least(lambda: self.longest_call(target), LIMIT_US)
            self.assertLess(longest, LIMIT_US)

    def flooded_call(self, spec, flood):
        with contextlib.closing(Flooder(FLOODS[flood])) as peer:
            longest, _ = self.feed(spec.format(peer.port) + "spool.max_age=1h", "--rate",
                                   50, "--seconds", 1, "--drain", 0.5)
            self.note(f"of {peer.sent >> 10} KiB or more of {flood}")
        return longest

    def test_floods(self):
        """A peer that sends without an end keeps no caller."""
        for spec, floods in FLOODED.items():
            for flood in floods:
                with self.subTest(spec=spec, flood=flood):
                    longest = lab.least(lambda spec=spec, flood=flood: self.flooded_call(
                        spec, flood), LIMIT_US)
                    self.assertLess(longest, LIMIT_US)


if __name__ == "__main__":
    lab.main(at_once=2)
