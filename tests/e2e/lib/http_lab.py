# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
"""HTTP servers that take records, and misbehave at random."""

import collections
import contextlib
import gzip
import http.server
import json
import random
import socket
import struct
import subprocess
import threading
import time

from lib import ipfix_lab

# What a server does with a request, each once; most cost up to 3 s.
MISDEEDS = ("chunked", "close", "silent_close", "429", "500", "502", "503", "504", "401",
            "reset_first", "reset_last", "half", "slow")
TOO_MANY = 500  # records: 413
POISON = 997    # every such record is refused: 400


class Answer:
    """A status with its body and headers."""

    def __init__(self, status, body=b"", **headers):
        self.status, self.body, self.headers = status, body, headers


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    timeout = 30

    def log_message(self, *_):
        pass

    def read_records(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.lab.heads.add(body[:4])
        encoding = self.headers.get("Content-Encoding")
        if encoding == "gzip":
            body = gzip.decompress(body)
        elif encoding == "zstd":
            body = subprocess.run(["zstd", "-dc"], input=body, check=True,
                                  stdout=subprocess.PIPE).stdout
        return self.server.lab.decode(body)

    def send(self, answer):
        self.send_response(answer.status)
        for name, value in answer.headers.items():
            self.send_header(name.replace("_", "-"), value)
        if answer.status != 204:
            self.send_header("Content-Length", str(len(answer.body)))
        self.end_headers()
        self.wfile.write(answer.body)

    def send_chunked(self, answer):
        self.send_response(answer.status)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for at in range(0, len(answer.body), 100):
            piece = answer.body[at:at + 100]
            self.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece))
        self.wfile.write(b"0\r\n\r\n")

    def send_slowly(self, answer):
        """All but the last byte, which comes later."""
        self.send_response(answer.status)
        self.send_header("Content-Length", str(len(answer.body) + 1))
        self.end_headers()
        self.wfile.write(answer.body)
        time.sleep(0.2)
        self.wfile.write(b"\n")

    def reset(self):
        """The connection, with the data that the kernel has for it."""
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER,
                                   struct.pack("ii", 1, 0))
        self.close_connection = True
        self.connection.close()

    def do_POST(self):
        collector = self.server.lab
        collector.requests.append((self.path, dict(self.headers)))
        deed = collector.next_deed()
        try:
            if deed == "reset_first":
                self.rfile.read(100)
                self.reset()
                return
            with collector.note_open():
                self.answer(collector, deed, self.read_records())
        except (OSError, ValueError):  # of a connection that was closed
            self.close_connection = True

    def answer(self, collector, deed, records):
        if deed.isdigit():
            self.send(collector.refusal(deed))
            return
        # Half an answer says nothing, unless it has the status of each item.
        is_cut = deed in ("reset_last", "slow") or (deed == "half" and
                                                    collector.encoding != "bulk")
        answer = collector.take(records, is_cut)
        time.sleep(collector.delay_s)
        answer.body += collector.padding
        if deed == "reset_last":
            self.reset()
        elif deed == "half":
            self.send_response(answer.status)
            self.send_header("Content-Length", str(len(answer.body) + 1000))
            self.end_headers()
            self.wfile.write(answer.body)
            self.close_connection = True
        elif deed == "slow":
            time.sleep(collector.slow_s)
            self.reset()
        elif deed == "late_end":
            self.send_slowly(answer)
        elif deed == "chunked" and answer.status == 200:
            self.send_chunked(answer)
        else:
            if deed == "close":
                answer.headers["Connection"] = "close"
            self.send(answer)
            self.close_connection |= deed in ("close", "silent_close")


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def handle_error(self, *_):
        pass


class Collector:
    """Which records were accepted, refused, or taken without an answer."""

    def __init__(self, ns, port=0, context=None, seed=None, encoding="json",
                 slow_s=11):
        self.random = random.Random(seed)
        self.plan = []
        if seed is not None:
            self.plan = [*MISDEEDS, *(["ok"] * len(MISDEEDS))]
            self.random.shuffle(self.plan)
        self.encoding = encoding
        self.slow_s = slow_s
        self.deeds = collections.Counter()
        self.accepted, self.unanswered = collections.Counter(), collections.Counter()
        self.refused = collections.Counter()
        self.requests, self.lines = [], []
        self.heads = set()  # what bodies begin with
        self.too_many, self.poison = 10**9, 10**9
        self.deed = None  # one outcome for all requests; None: chosen per request
        self.padding = b""  # behind each answer
        self.delay_s = 0  # of each answer, once records have been taken
        self.n_open = self.most_open = 0  # requests that are being answered
        self.lock = threading.Lock()
        with ns:
            self.server = Server(("127.0.0.1", port), Handler)
        self.server.lab = self
        self.port = self.server.server_address[1]
        if context:
            self.server.socket = context.wrap_socket(
                self.server.socket, server_side=True,
                do_handshake_on_connect=False)
        threading.Thread(target=self.server.serve_forever, args=(0.05,),
                         daemon=True).start()

    def stop(self):
        self.server.shutdown()
        self.server.server_close()

    def next_deed(self):
        with self.lock:
            if self.deed:
                return self.deed
            deed = self.plan.pop() if self.plan else "ok"
            self.deeds[deed] += 1
            return deed

    @contextlib.contextmanager
    def note_open(self):
        with self.lock:
            self.n_open += 1
            self.most_open = max(self.most_open, self.n_open)
        try:
            yield
        finally:
            with self.lock:
                self.n_open -= 1

    # ---- Bodies -------------------------------------------------------------------

    def decode(self, body):
        if self.encoding == "array":
            return json.loads(body)
        if self.encoding == "loki":
            return [json.loads(line) for stream in json.loads(body)["streams"]
                    for _, line in stream["values"]]
        assert body.endswith(b"\n")
        lines = [json.loads(line) for line in body.splitlines()]
        if self.encoding != "bulk":
            return lines
        assert all(line == {"create": {}} for line in lines[::2])
        return lines[1::2]

    # ---- Outcomes -----------------------------------------------------------------

    def is_bad(self, n):
        return n % self.poison == self.poison - 1

    def refusal(self, status):
        if status == "429":
            return Answer(429, b'{"error":"later"}', Retry_After="1")
        body = b"<html>no</html>"
        if self.encoding == "bulk":  # items that belong to no record
            body = b'{"errors":true,"items":[{"create":{"status":400}}]}'
        return Answer(int(status), body)

    def take(self, records, is_unanswered):
        with self.lock:
            numbers = [record["Bytes"] - 1 for record in records]
            if len(numbers) > self.too_many:
                return Answer(413, b"too large")
            if self.encoding == "bulk":
                return self.take_items(numbers, is_unanswered)
            bad = list(filter(self.is_bad, numbers))
            if bad:
                if len(numbers) == 1:
                    self.refused.update(bad)
                return Answer(400, b'{"error":"poison \x01"}')
            self.keep(records, numbers, is_unanswered)
            return Answer(200, b"Ok.")

    def keep(self, records, numbers, is_unanswered):
        (self.unanswered if is_unanswered else self.accepted).update(numbers)
        self.lines += records

    def take_items(self, numbers, is_unanswered):
        items, kept = [], []
        for n in numbers:
            status = 201
            if self.is_bad(n):
                status = 400
                self.refused[n] += 1
            elif self.plan and self.random.random() < 0.05:
                status = self.random.choice((429, 503))
            else:
                kept.append(n)
            items.append({"create": {"_index": "flows", "status": status}})
            if status >= 400:
                items[-1]["create"]["error"] = {"type": "x", "reason": 'a "b" {['}
        self.keep([], kept, is_unanswered)
        body = {"took": 1, "errors": len(kept) < len(numbers), "items": items}
        return Answer(200, json.dumps(body).encode())


class HttpTest(ipfix_lab.IpfixTest):
    """Feeds of records to a collector."""

    scheme, make = "http", Collector

    def collector(self, **options):
        collector = self.make(self.ns, port=self.port, **options)
        self.addCleanup(collector.stop)
        return collector

    def spec(self, more="", path="/"):
        return f"{self.scheme}://127.0.0.1:{self.port}{path}?{more}".rstrip("?&")

    def check(self, collector, stats, poison=()):
        """Each record was accepted once, beside those that had no answer."""
        taken = stats["taken"]["records"]
        dropped = {reason: count["records"]
                   for reason, count in stats["dropped"].items()
                   if count["records"]}
        self.assertEqual({"refused": len(poison)} if poison else {}, dropped)
        self.assertEqual(taken, stats["delivered"]["records"] + len(poison))
        self.assertEqual(set(range(taken)) - set(poison), set(collector.accepted))
        self.assertEqual({1}, set(collector.accepted.values()))
        self.assertLessEqual(set(poison), set(collector.refused))


class FaultsTest(HttpTest):
    """What every kind of server goes through."""

    def check_erratic(self, more="", **options):
        collector = self.collector(seed=self.seed, **options)
        collector.too_many, collector.poison = TOO_MANY, POISON
        self.feed(self.spec(f"timeout=10&requests=4&{more}"),
                  "--rate", 1000, "--records", 10_000, "--drain", 100)
        stats = self.end()
        self.note(f"{dict(collector.deeds)}, {stats['counters']}, "
                  f"{sum(collector.unanswered.values())} without an answer")
        self.check(collector, stats, range(POISON - 1, 10_000, POISON))
        return collector, stats

    def test_server_that_misbehaves_at_random_misses_nothing(self):
        self.check_erratic()

    def test_tls_server_that_misbehaves_at_random_misses_nothing(self):
        certificates = ipfix_lab.Certificates(self.lab.path("certs"))
        self.scheme = f"{self.scheme}s"
        path = certificates.path
        self.check_erratic(f"ca={path('ca.pem')}&cert={path('client.pem')}&"
                           f"key_file={path('client.key')}&compress=gzip",
                           context=certificates.server("server"))

    def test_records_wait_on_disk_for_a_server_that_comes_later(self):
        more = f"spool=disk:{self.lab.path('spool')}"
        self.feed(self.spec(more), "--records", 5000, "--drain", 0.1)
        self.end(code=1)
        collector = self.collector()
        self.feed(self.spec(more), "--records", 5000, "--first", 5000)
        stats = self.end()
        self.assertEqual(5000, stats["recovered"]["records"])
        self.assertEqual({n: 1 for n in range(10_000)}, collector.accepted)
