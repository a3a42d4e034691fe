# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
# Needs: python3-grpcio
"""Collectors that speak gRPC, and sinks that are fed for them."""

import collections
import importlib.util
import os
import signal
import struct
import subprocess
import sys
import time

from lib import flow_proto
from lib import lab
from lib import netobs_proto
from lib.sinkfeed import Feed

SERVER = os.path.join(os.path.dirname(os.path.abspath(__file__)),
                      "grpc_server.py")


class Collector:
    """grpc_server.py, which may be killed and started again at its port."""

    def __init__(self, where, *options, ns=None, address="127.0.0.1", name="collected"):
        if not importlib.util.find_spec("grpc"):
            raise RuntimeError(
                f"{sys.executable} has no grpc (Debian: python3-grpcio)")
        self.lab = where
        self.flow = flow_proto.load(where)
        self.options = options
        self.ns = ns
        self.address = address
        self.port = 0
        self.out = where.path(name)
        self.set_mode("ok")
        self.process = None

    def set_mode(self, *words):
        path = self.lab.path("mode")
        lab.write(f"{path}.new", " ".join(map(str, words)))
        os.rename(f"{path}.new", path)

    def start(self):
        self.process = self.lab.spawn(
            sys.executable, SERVER, self.out, self.lab.path("mode"),
            "--proto", self.lab.dir, "--address",
            f"{self.address}:{self.port}", *self.options, ns=self.ns,
            env=dict(os.environ, GRPC_VERBOSITY="NONE"),
            stdout=subprocess.PIPE, text=True)
        line = self.process.stdout.readline()
        if not line.strip().isdigit():
            raise RuntimeError("the collector did not start")
        self.port = int(line)
        return self

    def end(self, number=signal.SIGKILL):
        self.process.send_signal(number)
        self.process.wait()

    def spec(self, *options, host=None):
        text = "&".join(options)
        return f"grpc://{host or self.address}:{self.port}" + \
            (f"?{text}" if text else "")

    def messages(self, service=""):
        """The accepted messages, as bytes."""
        found = []
        if not os.path.exists(self.out + service):
            return found
        with open(self.out + service, "rb") as file:
            data = file.read()
        at = 0
        while at + 4 <= len(data):
            size, = struct.unpack_from(">I", data, at)
            found.append(data[at + 4:at + 4 + size])
            at += 4 + size
        return found

    def records(self):
        return [record for message in self.messages()
                for record in self.flow.Records.FromString(message).entries]

    def others(self):
        """Sessions and alerts, as JSON has them."""
        schema = netobs_proto.load(self.lab)
        return [netobs_proto.decoded(record) for message in self.messages(".netobs")
                for record in schema.Records.FromString(message).entries]

    def has_any(self):
        return os.path.exists(self.out) and os.path.getsize(self.out)


class GrpcTest(lab.LabTest):
    RATE = 5000 # records a second

    def feed(self, collector, *options, rate=None, seconds=3, drain=lab.PATIENCE_S, host=None, ns=None):
        return Feed(self.lab, collector.spec(*options, host=host), "--rate", rate or self.RATE,
                    "--seconds", seconds, "--drain", drain, ns=ns, release=False)

    def numbers(self, collector):
        """How often each record came."""
        return collections.Counter(record.l3_bytes - 1
                                   for record in collector.records())

    def check_all_came(self, collector, result, but=()):
        """Each at least once, and those in @but never. Returns how many came again."""
        came = self.numbers(collector)
        self.assertEqual(set(range(result["written"])) - set(but), set(came))
        stats = result["stats"]
        self.assertEqual(result["written"] - len(but),
                         stats["delivered"]["records"])
        self.assertEqual(len(but), stats["dropped"]["refused"]["records"])
        self.assertEqual(0, stats["pending"]["records"])
        again = sum(came.values()) - len(came)
        self.note(f"{result['written']} records, {again} came again, "
                  f"{stats['counters']}")
        return again

    def check_recovers(self, collector, end_fault):
        """Records come again after the fault, without a limit but this one."""
        before = len(collector.messages())
        begin = time.monotonic()
        end_fault()
        lab.wait_for(lambda: len(collector.messages()) > before,
                     "records after the fault", 30)
        self.note(f"recovered in {time.monotonic() - begin:.1f} s")

    def check_told_once(self, feed, *texts):
        """
        Each of @texts is in one line, and there are no others but of drops as
        such, which are logged for all kinds of sinks (tests/unit/lib/sink/test_drop_log.c).
        """
        lines = [line for line in feed.lines
                 if "records are dropped: " not in line and
                 "no more records are dropped" not in line]
        self.assertEqual(len(texts), len(lines), lines)
        for text, line in zip(texts, lines):
            self.assertIn(text, line)


class FaultsTest(GrpcTest):
    """What every kind of collector goes through."""

    make = Collector # @return: a collector that has not started

    def setUp(self):
        super().setUp()
        self.collector = self.make(self.lab)

    def feed_at_once(self, seconds):
        """Batches are sent at once; some have been when this returns."""
        feed = self.feed(self.collector, "batch_delay=10ms", seconds=seconds)
        lab.wait_for(self.collector.has_any, "records")
        return feed

    def test_all_is_delivered_once(self):
        self.collector.start()
        feed = self.feed(self.collector, rate=4 * self.RATE)
        self.assertEqual(0, self.check_all_came(self.collector, feed.finish()))
        self.check_told_once(feed)

    def test_collector_that_is_killed_misses_nothing(self):
        self.collector.start()
        feed = self.feed_at_once(4)
        for _ in range(2):
            self.collector.end()
            time.sleep(1)
            self.check_recovers(self.collector, self.collector.start)
        self.check_all_came(self.collector, feed.finish())

    def test_errors_are_told_once_and_nothing_is_lost(self):
        self.collector.set_mode("UNAVAILABLE", "back soon")
        self.collector.start()
        feed = self.feed(self.collector, seconds=5)
        for status in ("UNAVAILABLE", "UNIMPLEMENTED", "UNAUTHENTICATED",
                       "RESOURCE_EXHAUSTED"):
            self.collector.set_mode(status, "words")
            feed.wait_line(status)
        self.collector.set_mode("ok")
        self.check_all_came(self.collector, feed.finish())
        lines = feed.lines
        self.assertEqual(5, len(set(lines)), lines)
        self.assertEqual(5, len(lines), lines)
        self.assertIn("accepts records again", lines[-1])

    def test_records_wait_on_disk_for_a_collector_that_comes_later(self):
        self.collector.start().end()
        spool = f"spool=disk:{self.lab.path('spool')}"
        first = self.feed(self.collector, spool, seconds=1, drain=0.1).finish(1)
        self.collector.start()
        feed = Feed(self.lab, self.collector.spec(spool), "--first", first["written"], "--records", 1000,
                    release=False)
        result = feed.finish()
        self.assertEqual(first["written"], result["stats"]["recovered"]["records"])
        self.assertEqual(set(range(first["written"] + 1000)), set(self.numbers(self.collector)))

    def test_record_that_is_refused_is_the_only_one_missing(self):
        self.collector.set_mode("refuse-size", 1001)
        self.collector.start()
        feed = self.feed(self.collector, seconds=2)
        self.assertEqual(0, self.check_all_came(self.collector, feed.finish(), but=[1000]))
        self.check_told_once(feed, "refuses a record permanently: "
                                   "INVALID_ARGUMENT: poison")
