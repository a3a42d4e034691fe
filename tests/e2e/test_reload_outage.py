# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
"""
Reloads of a service whose sinks are away: it answers all the time, at its end too, and the metrics
account for each record, whatever has been replaced.
"""

import contextlib
import json
import os
import signal
import socket
import threading
import time

from lib import http_lab
from lib import lab
from lib import metrics
from lib import observer
from lib import traffic
from lib.service import AGAIN, ServiceTest

SINKS = 32
WATCHDOG_S = 2
# Beyond what answers take before. On a machine with nothing else to do 0.1 suffices.
ANSWER_S = float(os.environ.get("NETOBS_TEST_ANSWER_S", "0.5"))
STEPS = int(os.environ.get("NETOBS_TEST_OUTAGE_RELOADS", "30"))
COUNTS = ("taken", "recovered", "delivered", "pending", "dropped", "kept")


def ask(path, line):
    """The answer of a service, bytes."""
    with socket.socket(socket.AF_UNIX) as client:
        client.settimeout(60)
        client.connect(path)
        client.sendall(line)
        return b"".join(iter(lambda: client.recv(1 << 16), b""))


class OutageTest(ServiceTest):
    def setUp(self):
        super().setUp()
        self.disk = self.lab.path("disk")
        os.mkdir(self.disk)

    def silent_port(self):
        """Of a collector that is connected and never reads."""
        with self.a:
            listener = socket.socket()
        self.addCleanup(listener.close)
        listener.bind(("127.0.0.1", 0))
        listener.listen(128)
        return listener.getsockname()[1]

    def send(self, count=5):
        """So many flows."""
        for _ in range(count):
            self.port = getattr(self, "port", 20000) + 1
            traffic.udp(self.a, self.A4, self.b, self.B4, [100], port=self.port)


class Answers(OutageTest):
    """Each kind of sink, by how its other side fails and where its records wait."""

    AWAY = 9 # where nobody listens
    KINDS = {
        "files": "json:{disk}/{name}.json?rotate.interval={minutes}m",
        "files of IPFIX": "ipfix:file:{disk}/{name}?spool.max_age={minutes}m",
        "json": "json:tcp://127.0.0.1:{port}?spool.max_age={minutes}m",
        "ipfix": "ipfix:tcp://127.0.0.1:{port}?spool.max_age={minutes}m",
        "http": "http://127.0.0.1:{port}/?spool.max_age={minutes}m",
        "grpc": "grpc://127.0.0.1:{port}?spool.max_age={minutes}m",
        "kafka": "kafka://127.0.0.1:{port}/flows?spool.max_age={minutes}m",
    }

    def setUp(self):
        """First, with all that it starts: what else this host does is not the service's time."""
        lab.run_first()
        self.addCleanup(lab.run_as_others)
        super().setUp()

    def fill_disk(self):
        with contextlib.suppress(OSError), open(f"{self.disk}/fill", "wb") as file:
            while file.write(bytes(4096)):
                file.flush()

    def configure(self, kind, port, is_on_disk, minutes):
        parts = []
        for i in range(SINKS):
            spec = self.KINDS[kind].format(disk=self.disk, name=f"s{i}", port=port,
                                           minutes=minutes)
            spool = f"&spool=disk:{self.lab.path('spool')}-{i}" if is_on_disk else ""
            parts += [f'[sink "s{i}"]', f"output = {spec}{spool}"]
        self.write(*parts, sinks=())

    def longest_answer(self, act):
        """To requests for the status, meanwhile."""
        times, is_over = [], threading.Event()

        def ask_often():
            while not is_over.is_set():
                began = time.monotonic()
                try:
                    json.loads(ask(self.control, b"status\n"))
                except (OSError, ValueError): # it has ended
                    return
                times.append(time.monotonic() - began)
                is_over.wait(0.02)

        asker = threading.Thread(target=ask_often)
        asker.start()
        act()
        is_over.set()
        asker.join()
        return max(times, default=0) # of what ends before an answer

    def reload_by(self, verb):
        self.minutes += 1
        self.configure(*self.case, self.minutes)
        self.send()
        if verb == "reload":
            self.assertIn(b'"messages"', ask(self.control, b"reload\n"))
            self.supervisor.wait("READY=1")
        else:
            self.reload(AGAIN)

    def begin(self):
        self.minutes += 1
        self.configure(*self.case, self.minutes)
        self.beats = self.supervisor.note_times("WATCHDOG=1")
        del self.beats[:]
        self.start(release=True, WATCHDOG_USEC=str(WATCHDOG_S * 1000000))
        if "files" in self.case[0]:
            self.fill_disk()
        self.send(20)

    def longest_at_end(self):
        if self.process.poll() is not None: # it is measured again
            self.begin()
        os.kill(self.pid, signal.SIGTERM)
        longest = self.longest_answer(lambda: self.process.wait(timeout=60))
        self.gaps.append(max((after - before for before, after in
                              zip(self.beats, self.beats[1:])), default=0))
        # What came late is measured again.
        return longest if self.gaps[-1] < WATCHDOG_S else longest + WATCHDOG_S

    def run_case(self, kind, fault, is_on_disk):
        if fault == "full":
            self.lab.small_disk(self.disk, "1M")
        port = self.silent_port() if fault == "silent" else self.AWAY
        self.case, self.minutes, self.gaps = (kind, port, is_on_disk), 5, []
        self.begin()
        idle = self.longest_answer(lambda: time.sleep(1))
        longest = {verb: lab.least(lambda verb=verb: self.longest_answer(
            lambda: self.reload_by(verb)), idle + ANSWER_S) for verb in ("reload", "signal")}
        longest["end"] = lab.least(self.longest_at_end, idle + ANSWER_S)
        self.note(f"{kind}, {fault}, {'disk' if is_on_disk else 'memory'}: ms idle "
                  f"{idle * 1000:.0f}, " + ", ".join(
                      f"{verb} {took * 1000:.0f}" for verb, took in longest.items()) +
                  f"; WATCHDOG=1 after {min(self.gaps):.1f} s")
        self.assertEqual([], [verb for verb, took in longest.items()
                              if took >= idle + ANSWER_S])
        self.assertLess(min(self.gaps), WATCHDOG_S)

# Where nobody listens, a collector that is connected and never reads, or a disk that is full; and whether records wait
# on another disk.
CASES = (("files", "full", False), ("files of IPFIX", "full", False),
         ("json", "away", False), ("json", "silent", True), ("ipfix", "away", True), ("ipfix", "silent", False),
         ("http", "away", False), ("http", "silent", True), ("grpc", "away", True), ("grpc", "silent", False),
         ("kafka", "away", True), ("kafka", "silent", False))
for case_ in CASES:
    setattr(Answers, "test_" + "_".join(case_[:2]).replace(" ", "_"),
            lambda self, case=case_: self.run_case(*case))


class Slow(OutageTest):
    """A collector that takes its time: a sink that is replaced waits for its answers."""

    def configure(self, minutes):
        self.write('[sink "slow"]', f"output = http://127.0.0.1:{self.collector.port}/",
                   f"spool = disk:{self.lab.path('spool')}", "batch_delay = 0",
                   f"spool.max_age = {minutes}m", sinks=())

    def test_nothing_is_sent_twice(self):
        self.collector = http_lab.Collector(self.a)
        self.addCleanup(self.collector.stop)
        self.collector.delay_s = 1.5
        self.configure(5)
        self.start()
        for minutes in range(6, 10):
            self.send(20)
            time.sleep(0.4) # the interval ends
            self.configure(minutes)
            self.reload(AGAIN)
        self.send(20)
        self.stop()
        ports = [line["SrcPort"] for line in self.collector.lines]
        self.assertEqual(5 * 20, len(ports))
        self.assertEqual(len(ports), len({json.dumps(line) for line in self.collector.lines}))


class Totals(OutageTest):
    """Of each name, through random reloads; NETOBS_TEST_SEED repeats them."""

    def setUp(self):
        super().setUp()
        self.before = {}

    def spec(self, name):
        where = self.random.choice((9, self.silent))
        kind = self.random.choice((
            f"json:tcp://127.0.0.1:{where}", f"http://127.0.0.1:{where}/",
            f"grpc://127.0.0.1:{where}", f"ipfix:tcp://127.0.0.1:{where}",
            f"json:{self.lab.path(name)}", "json:/dev/full", "null"))
        spool = self.random.choice(("memory", f"disk:{self.lab.path(f'spool-{name}')}",
                                    f"disk:{self.lab.path(f'other-{name}')}"))
        return f"{kind}?spool={spool}&spool.max_age={self.random.randint(60, 80)}s"

    def configure(self):
        """One sink is always there, some change, others come and go."""
        names = ["always", *self.random.sample(("one", "two", "three"),
                                               self.random.randint(0, 3))]
        parts = []
        for name in names:
            if name not in self.specs or self.random.random() < 0.7:
                self.specs[name] = self.spec(name)
            parts += [f'[sink "{name}"]', f"output = {self.specs[name]}"]
        self.write("[metrics]", f"listen = unix:{self.where}", f"textfile = {self.last}",
                   *parts, sinks=())

    def sums(self, text):
        """Of each name, by count; and the records that were made."""
        samples = metrics.Samples(text)
        found = {}
        for (metric, labels), value in samples.series.items():
            for count in COUNTS:
                if metric.startswith(f"netobs_sink_{count}_records"):
                    counts = found.setdefault(dict(labels)["output"], dict.fromkeys(COUNTS, 0))
                    counts[count] += int(value)
        return found, int(samples.value("netobs_records_total"))

    def check(self, text=None):
        found, made = self.sums(text or metrics.get(self.where)[1])
        for name, counts in found.items():
            self.assertEqual(counts["taken"] + counts["recovered"],
                             sum(counts[count] for count in COUNTS[2:]), (name, counts))
        for name, counts in self.before.items():
            for count in set(COUNTS) - {"pending"}:
                self.assertGreaterEqual(found[name][count], counts[count], (name, count))
        self.before = found
        return found["always"]["taken"] == made

    def status_agrees(self):
        """With the totals, between which and the status more records may come."""
        self.check()
        status = json.loads(ask(self.control, b"status\n"))["status"]
        return {total["name"]: total["taken"]["records"] for total in status["sink_totals"]} == {
            name: total["taken"] for name, total in self.before.items()}

    def test_random_reloads(self):
        self.silent = self.silent_port()
        self.where, self.last = self.lab.path("metrics"), self.lab.path("textfile")
        self.specs = {}
        self.configure()
        self.start()
        for _ in range(STEPS):
            self.configure()
            self.send(self.random.randint(0, 10))
            time.sleep(self.random.choice((0, 0.3))) # with and without a drain
            self.reload(AGAIN)
            self.check()
        self.send()
        lab.wait_for(self.check, "all records in the totals")
        lab.wait_for(self.status_agrees, "these totals in the status")
        text = lab.run(observer.netobsctl(), "status", "-s", self.control)
        self.assertIn("  always, with sinks that reloads have closed:\n    ", text)
        os.kill(self.pid, signal.SIGTERM)
        self.process.wait(timeout=60)
        observer.check_sanitizer(self.messages())
        self.assertTrue(self.check(lab.read(self.last)))
        sums = {count: sum(total[count] for total in self.before.values())
                for count in COUNTS}
        self.assertEqual(0, sums["pending"])
        self.note(f"{STEPS} reloads: " + ", ".join(
            f"{count} {number}" for count, number in sums.items()))


if __name__ == "__main__":
    lab.main(at_once=4)
