#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
# Needs: nftables
"""netobsctl trace -o SINK, --svg and --show summary, beside each other."""

import json
import os
import signal
import subprocess

from lib import bpf
from lib import lab
from lib import observer
from lib.observer import features
from lib import traffic
from lib.tracer import Network, Trace, Tracer, bytes_of, by_connection, wait_until


class Outputs(Trace):
    def setUp(self):
        super().setUp()
        self.where = f"seed {self.seed}"
        self.net = Network(self.lab, self.random.random() < .5, False)

    def talk_all(self, sizes):
        network = self.net
        with network.connect() as client, network.listener.accept()[0] as server:
            for size in sizes:
                traffic.send(client, server, size)

    def trace(self, *options, **streams):
        """Of the server's port."""
        return self.lab.spawn(observer.netobsctl(), "trace", *options, f"tcp port {self.net.address[1]}",
                              **streams)

    def run_to_end(self, *options, **streams):
        """While connections are made; its standard output is a file, which is returned."""
        path = self.lab.path("stdout")
        with open(path, "wb") as out:
            process = self.trace(*options, stdout=out, **streams)
        wait_until(process, lambda: self.talk_all([1000] * 10))
        return path

    def test_a_sink_of_events_alone_stops_by_count(self):
        path, count = self.lab.path("few"), 20
        self.run_to_end("-o", f"json:{path}?records=trace", "-n", count)
        with open(path, encoding="utf-8") as file:
            self.assertEqual(["trace"] * count, [json.loads(line)["type"] for line in file])

    def test_a_sink_of_alerts_alone_is_no_mistake(self):
        done = observer.run("trace", "-d", ".2", "--rule", "slow=app_latency > 1s", "-i", "lo", "-o",
                            f"json:{self.lab.path('alerts')}?records=alert", code=None)
        self.assertEqual((0, ""), (done.returncode, done.stderr))

    def summarize(self, *outputs):
        return lab.read(self.run_to_end("--show", "summary", "-n", 20, *outputs))

    def test_a_summary_is_printed_beside_other_outputs(self):
        journeys = self.lab.path("journeys")
        text = self.summarize("-o", f"json:{journeys}")
        self.assertRegex(text, r"P50 +P90 +P99 +MAX", self.where)
        with open(journeys, encoding="utf-8") as file:
            self.assertEqual(20, len(file.readlines()), self.where)
        summary = json.loads(self.summarize("-o", "json", "-o", f"json:{journeys}"))
        self.assertEqual(20, sum(one["Journeys"] for one in summary["Directions"]), self.where)

    def test_nothing_is_attached_before_a_pipe_has_a_reader(self):
        path = self.lab.path("pipe")
        os.mkfifo(path)
        process = self.trace("--svg", path, "-d", "30", stderr=subprocess.PIPE)
        lab.wait_for(lambda: self.is_opening(process), "the command at its pipe")
        self.assertFalse(any("raw_tracepoint" in text for text in bpf.fdinfos(process.pid)))
        process.send_signal(signal.SIGINT)
        self.assertEqual((0, b""), (process.wait(60), process.stderr.read()))
        process = self.trace("--svg", path, "-n", 10)
        with open(path, "rb") as pipe:
            wait_until(process, lambda: self.talk_all([1000] * 10))
            self.assertEqual(pipe.read(5), b"<?xml")

    @staticmethod
    def is_opening(process):
        """It waits in open(2) for the other end of a FIFO."""
        return lab.read(f"/proc/{process.pid}/wchan") in ("wait_for_partner", "fifo_open")

    def test_sinks_get_journeys_and_events(self):
        paths = {name: self.lab.path(name) for name in ("journeys", "events")}
        tracer = Tracer(self, self.net.address[1], "-o", f"json:{paths['journeys']}?host=no",
                        "-o", f"json:{paths['events']}?host=no&records=trace")
        self.talk_all([self.random.randint(1, 5000)])
        own = tracer.stop()
        connections = {one["Connection"] for one in own}
        found = {}
        for name, path in paths.items():
            found[name] = [one for one in lab.json_lines(path) if one["Connection"] in connections]
        self.assertEqual(found["journeys"], own, self.where)
        self.assertEqual({one["type"] for one in found["events"]}, {"trace"}, self.where)
        self.assertEqual({one["Connection"] for one in found["events"]}, connections, self.where)
        for journeys in by_connection(own).values():
            self.assertEqual(bytes_of(journeys, 0)[1], 0, self.where)


if __name__ == "__main__":
    lab.main("tracepoints of TCP", lambda: features()["trace"])
