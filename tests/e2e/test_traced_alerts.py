# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
"""Alerts of the service that have their connections traced: what sinks get, and what the kernel holds.

Connections write requests and answers of random sizes.
"""

import contextlib
import json
import os
import random
import signal
import socket
import threading
import time

from lib import lab
from lib import metrics
from lib import netobs_proto
from lib import otlp
from lib import otlp_lab
from lib import record_sinks
from lib import traffic
from lib.observer import features
from lib.record_sinks import sink_section
from lib.service import AGAIN
from lib.traced_service import TracedTest
from lib.tracer import bytes_of, by_connection

RULE = "app_latency > 20ms hold 0s limit none"
SLOW_S = .04 # an answer takes, of a connection that breaks it
TRACED = "2s"
ROUNDS = 12


class Talk(threading.Thread):
    """A connection from a to b: requests and answers of known sizes, until it is to end."""

    def __init__(self, test, seconds):
        super().__init__()
        self.seconds = seconds
        self.random = random.Random(test.random.random())
        self.sizes = [], [] # of requests, and of answers
        with test.b:
            self.listener = socket.create_server((test.B4, 0))
        with test.a:
            self.client = socket.create_connection(self.listener.getsockname())
        self.ports = self.client.getsockname()[1], self.listener.getsockname()[1]
        self.server = threading.Thread(target=self.serve)
        self.is_over = threading.Event()
        self.server.start()
        self.start()

    def serve(self):
        with self.listener, self.listener.accept()[0] as end, contextlib.suppress(EOFError):
            while True:
                traffic.receive(end, 8)
                asked, answered = self.sizes[0][-1], self.sizes[1][-1]
                traffic.receive(end, asked - 8)
                time.sleep(self.seconds)
                end.sendall(bytes(answered))

    def run(self):
        while not self.is_over.is_set():
            for one in self.sizes:
                one.append(self.random.randint(8, 3000))
            self.client.sendall(bytes(self.sizes[0][-1]))
            traffic.receive(self.client, self.sizes[1][-1])

    def rounds(self):
        return len(self.sizes[0])

    def more(self, rounds=ROUNDS):
        """So many more of them."""
        last = self.rounds() + rounds
        lab.wait_for(lambda: self.rounds() >= last, "more rounds")

    def end(self):
        self.is_over.set()
        self.join()
        self.client.close()
        self.server.join()


class AlertsTest(TracedTest):
    def to_file(self, *parts, trace=TRACED, **options):
        self.configure(*parts, *sink_section("file", f"json:{self.lab.path('file')}",
                                             "records = alert,journey"), rule=RULE, trace=trace, **options)

    def wait_until_traced(self, talks):
        """To load the programs takes a second, or more beside load."""
        clients = {talk.ports[0] for talk in talks}
        lab.wait_for(lambda: clients <= {one["SrcPort"] for one in self.records("journey")},
                     "journeys of each connection")

    def check_journeys(self, talks):
        """Each byte of each talk once, from when its alert came."""
        by_id = by_connection(self.records("journey"))
        found = {}
        for journeys in by_id.values():
            ports = {(one["SrcPort"], one["DstPort"])[::-1 if one["Direction"] else 1]
                     for one in journeys}
            self.assertEqual(1, len(ports), self.seed)
            found.setdefault(ports.pop(), []).append(journeys)
        self.assertEqual(sorted(one.ports for one in talks), sorted(found), self.seed)
        for talk in talks:
            self.assertEqual(1, len(found[talk.ports]), f"{self.seed}: {talk.ports}")
            for direction in range(2):
                ranges, double = bytes_of(found[talk.ports][0], direction)
                where = f"{self.seed}: {talk.ports}, {direction}: {ranges}"
                self.assertEqual((1, 0), (len(ranges), double), where)
                size = ranges[0][1] - ranges[0][0]
                self.assertGreaterEqual(size, sum(talk.sizes[direction][-ROUNDS:]), where)
                self.assertLessEqual(size, sum(talk.sizes[direction]), where)

    def check_alerts(self):
        """Each journey has the name, the time and the connection of an alert."""
        alerts = {(one["Alert"], one["TimeNs"], one["SrcPort"], one["DstPort"])
                  for one in self.records("alert")}
        for one in self.records("journey"):
            ports = one["SrcPort"], one["DstPort"]
            self.assertIn((one["Alert"], one["AlertTimeNs"], *ports[::-1 if one["Direction"] else 1]),
                          alerts, self.seed)


class Sinks(AlertsTest):
    def test_every_sink_gets_each_journey(self):
        sinks = record_sinks.Sinks(self, self.a, "journey")
        collector = otlp_lab.HttpReceiver(self.a)
        self.addCleanup(collector.stop)
        self.to_file(
            *sinks.sections(),
            *sink_section("otlp", f"otlp+http://127.0.0.1:{collector.port}", "records = journey", "host = no"),
            *sink_section("both", f"json:{self.lab.path('both')}", "records = trace,journey"),
            sinks=("flows",))
        self.start()
        fast = Talk(self, 0)
        fast.more()
        fast.end()
        self.assertEqual({}, self.programs())
        talks = [Talk(self, SLOW_S) for _ in range(3)]
        self.wait_until_traced(talks)
        for talk in talks:
            talk.more()
            talk.end()
        self.assertTrue(self.programs())
        lab.wait_for(self.is_at_rest, "the tracer's end")
        counted = self.status()
        samples = metrics.Samples(metrics.get(self.metrics)[1])
        self.stop()
        found = self.records("journey")
        self.check_journeys(talks)
        self.check_alerts()
        self.assertNotIn(fast.ports[0], {one["SrcPort"] for one in found})
        self.assertEqual(found, sinks.lines.found)
        sinks.check(found)
        self.assertEqual(netobs_proto.lines(found), netobs_proto.lines(self.records("journey", "both")))
        self.assertEqual(by_name(map(otlp.expected, found)),
                         by_name(log.attributes for log in collector.logs()))
        self.assertEqual(set(), {record.get("type") for record in self.flows()} - {None})
        events = self.records("trace", "both")
        self.assertEqual((counted["journeys"], counted["events"]), (len(found), len(events)))
        self.assertEqual(counted["complete_journeys"],
                         sum("UnknownParts" not in one for one in found))
        self.assertEqual({one["Connection"] for one in found},
                         {one["Connection"] for one in events})
        for name in "journeys", "events":
            self.assertEqual(counted[name], samples.value(f"netobs_trace_{name}_total"))
        self.assertEqual(counted["armed"], len(self.records("alert")))

    def flows(self):
        return lab.json_lines(self.lab.path("flows"))

    def test_what_cannot_be_is_refused(self):
        udp = '[sink "u"]\noutput = ipfix:udp://127.0.0.1:4739\nrecords = journey'
        alert = f'[capture]\nrtt = yes\n[alert "a"]\nrule = {RULE}\ntrace = '
        self.check_errors((
            (udp, "3:11: ipfix: option records: a sink of kind ipfix cannot represent journey"),
            (alert + "soon", "5:9: trace: 'soon' is not a duration"),
            ("[trace]\nmax_connections = 65537", "2:19: max_connections: it is more than 65536"),
            ("[trace]\nmax_event = 1", "2:1: there is no key 'max_event'; did you mean 'max_events'?")))


def by_name(records):
    return sorted(json.dumps(record, sort_keys=True) for record in records)


class Life(AlertsTest):
    def start_slow(self):
        """A talk that is traced."""
        talk = Talk(self, SLOW_S)
        self.wait_until_traced([talk])
        return talk

    def test_reload_changes_what_is_traced_without_loss(self):
        self.to_file(trace="20s")
        self.start()
        talk = self.start_slow()
        since = talk.rounds()
        self.to_file("[trace]", "max_events = 999999", trace="20s")
        self.reload(AGAIN)
        before = self.status()["armed"]
        lab.wait_for(lambda: self.status()["armed"] > before, "another alert")
        self.to_file(trace=None)
        self.reload(AGAIN)
        after = self.status()["armed"]
        talk.more()
        talk.end()
        self.assertEqual(after, self.status()["armed"])
        lab.wait_for(self.is_at_rest, "the tracer's end")
        self.stop()
        self.check_journeys([talk])
        self.check_alerts()
        # What was traced went on.
        for direction, sizes in enumerate(talk.sizes):
            ranges, _ = bytes_of(self.records("journey"), direction)
            self.assertGreaterEqual(ranges[0][1] - ranges[0][0], sum(sizes[since:]), self.seed)

    def test_the_service_goes_on_while_programs_are_loaded(self):
        """It answers meanwhile: of the alerts that wait."""
        self.to_file(trace="1s")
        self.start()

        def answers_meanwhile():
            talk, has_waited = Talk(self, SLOW_S), False
            while talk.ports[0] not in {one["SrcPort"] for one in self.records("journey")}:
                has_waited |= bool(self.status()["waiting"])
            talk.end()
            lab.wait_for(self.is_at_rest, "the tracer's end")
            return has_waited
        lab.wait_for(answers_meanwhile, "an answer while programs are loaded", 300)
        counted = self.status()
        self.assertEqual(0, counted["waiting"], self.seed)
        self.assertEqual(counted["armed"] + counted["refused"], len(self.records("alert")), self.seed)
        self.stop()

    def test_an_end_or_a_kill_leaves_nothing(self):
        for number in signal.SIGTERM, signal.SIGKILL:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(self.lab.path("file"))
            self.to_file(trace="1m")
            self.start()
            self.assertEqual({}, self.programs())
            talk = self.start_slow()
            held = self.programs()
            self.assertGreater(len(held), 5)
            os.kill(self.pid, number)
            self.process.wait(60)
            lab.wait_for(lambda: not held.keys() & self.loaded().keys(), "the kernel")
            talk.end()
            if number == signal.SIGTERM:
                self.check_alerts()
                self.assertEqual(0, self.process.returncode)

    def test_budgets_are_kept_and_what_they_cut_is_counted(self):
        limit = self.random.randint(20, 60)
        self.to_file("[trace]", "max_connections = 2", f"max_events = {limit}", trace="20s")
        self.start()
        talks = [Talk(self, SLOW_S) for _ in range(4)]
        counted = lab.wait_for(lambda: self.cut_and_refused(), "what is cut")
        self.assertEqual(2, counted["connections"], self.seed)
        self.assertLessEqual(counted["events"], 2 * limit, self.seed)
        for talk in talks:
            talk.end()
        lab.wait_for(self.is_at_rest, "the tracer's end")
        samples = metrics.Samples(metrics.get(self.metrics)[1])
        counted = self.status()
        self.stop()
        self.assertEqual(counted["cut_by_connection"],
                         samples.value("netobs_trace_events_missing_total", reason="max_events"))
        self.assertEqual(counted["refused"], samples.value("netobs_trace_alerts_refused_total"))
        self.assertEqual(len(self.records("alert")), counted["armed"] + counted["refused"])
        self.assertLessEqual(len({one["Connection"] for one in self.records("journey")}), 2)

    def cut_and_refused(self):
        counted = self.status()
        return counted if counted["cut_by_connection"] and counted["refused"] else None


if __name__ == "__main__":
    lab.main("tracepoints of TCP", lambda: features()["trace"])
