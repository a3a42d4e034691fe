# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
"""Verdicts that the service makes of alerts: who is to blame, with norms and without, in time, for every sink.

A client asks a server, both are processes. Other work on this machine may delay them, too, so that
there may be other alerts; those that the test causes are never blamed on another place for certain.
"""

import collections
import contextlib
import json
import mmap
import os
import signal
import socket
import struct
import time

from lib import lab
from lib import metrics
from lib import observer
from lib import otlp
from lib import otlp_lab
from lib import record_sinks
from lib import talkers
from lib import traffic
from lib.observer import features
from lib.record_sinks import sink_section
from lib.service import AGAIN, ServiceTest
from lib.traced_service import TracedTest
from lib.tracer import has_all

RULE = "app_latency > 150ms hold 0s limit none"
QUICK_S, SLOW_S, PAUSE_S = .005, .25, .01
NORMAL_NS = 100_000_000 # of the server, at most: less than the slow time, however busy the host is meanwhile
PROMISE_NS = 10_000_000_000
SERVER = "server process"


class Conversation:
    """A client in a, which asks a server in b, which thinks for a time that may change."""

    def __init__(self, test):
        self.shared = mmap.mmap(-1, 16)
        self.think(QUICK_S)
        with test.b:
            listener = socket.create_server((test.B4, 0))
        self.address = listener.getsockname()
        with listener:
            self.server = talkers.child(self.serve, listener, ns=test.b)
        self.client = talkers.child(self.ask, ns=test.a)
        test.addCleanup(self.end)
        self.more()

    def think(self, seconds):
        self.shared[:8] = struct.pack("d", seconds)

    def serve(self, listener):
        with contextlib.suppress(EOFError), listener.accept()[0] as end:
            while True:
                traffic.receive(end, 100)
                time.sleep(struct.unpack("d", self.shared[:8])[0])
                end.sendall(bytes(1000))

    def ask(self):
        with socket.create_connection(self.address) as end:
            while True:
                end.sendall(bytes(100))
                traffic.receive(end, 1000)
                self.shared[8:] = struct.pack("Q", self.rounds() + 1)
                time.sleep(PAUSE_S)

    def rounds(self):
        return struct.unpack("Q", self.shared[8:])[0]

    def more(self, rounds=10):
        last = self.rounds() + rounds
        lab.wait_for(lambda: self.rounds() >= last, "more rounds")

    def stop_often(self, until):
        """Stop the server for most of the time, and let it answer between."""
        def once():
            before = self.rounds()
            os.kill(self.server, signal.SIGSTOP)
            time.sleep(SLOW_S)
            os.kill(self.server, signal.SIGCONT)
            lab.wait_for(lambda: self.rounds() > before, "an answer")
            return until()
        return lab.wait_for(once, "a verdict", 300)

    def end(self):
        if self.client:
            talkers.kill([self.client, self.server])
        self.client = None


class VerdictTest(TracedTest):
    def to_file(self, *parts, diagnose=(), **options):
        self.configure("[diagnose]", "enabled = yes", *diagnose, *parts,
                       *sink_section("file", f"json:{self.lab.path('file')}", "records = alert,verdict,turn"),
                       rule=RULE, **options)

    def verdicts(self, since_ns=0):
        """Of alerts since then."""
        return [one for one in self.records("verdict") if one["AlertTimeNs"] >= since_ns]

    def check_verdict(self, talk, one):
        """What is so in any case."""
        self.assertEqual(("slow", self.A4, *talk.address, 6, talk.client, talk.server),
                         tuple(one.get(name) for name in ("Alert", "SrcAddr", "DstAddr", "DstPort", "Proto",
                                                          "SrcPid", "DstPid")), one)
        self.assertIn(one["AlertTimeNs"], [alert["TimeNs"] for alert in self.records("alert")])
        self.assertGreaterEqual(one["Connections"], 1, one)
        if one["Certainty"] == "certain":
            self.assertEqual(SERVER, one["Place"], one)

    def await_verdict(self, talk, since_ns, *certainties, stops=False):
        """
        One of these that blames the server's process. Without norms, in the time that is promised: others may be
        late. With norms only the first verdicts of a connection are sure, since the tracer thins later turns out.
        """
        came_ns, has_norms = {}, "certain" in certainties

        def find():
            found = self.verdicts(since_ns)
            for one in found:
                came_ns.setdefault(one["AlertTimeNs"], time.time_ns())
                self.check_verdict(talk, one)
            return [one for one in found if one["Certainty"] in certainties and one["Place"] == SERVER and
                    (has_norms or came_ns[one["AlertTimeNs"]] - one["AlertTimeNs"] <= PROMISE_NS)]
        return (talk.stop_often(find) if stops else lab.wait_for(find, "a verdict", 300))[0]

    def make_norms(self, talk):
        """Of what is normal: a part may take four times the mean and 20 ms."""
        path = self.lab.path("norms")
        done = observer.run("diagnose", "--before", "1", "--for", "1", "-o", "json", f"tcp port {talk.address[1]}")
        norm = json.loads(done.stdout)
        for part in norm["Parts"]:
            most_ns = 4 * part["NowNs"] + 20_000_000
            part["MostNs"] = min(most_ns, NORMAL_NS) if part["Place"] == SERVER else most_ns
            part["BeforeNs"] = part["NowNs"]
        lab.write(path, json.dumps(norm) + "\n")
        self.to_file(diagnose=[f"norms = {path}"])
        self.reload(AGAIN)
        talk.more()

    def counted(self):
        """Verdicts, and alerts without one."""
        samples = metrics.Samples(metrics.get(self.metrics)[1])
        return [samples.total(f"netobs_diagnose_{name}_total") for name in ("verdicts", "alerts_refused")]

    def of_status(self):
        return ServiceTest.status(self)["diagnose"]

    def of_metrics(self):
        """What the status has, from the metrics."""
        samples = metrics.Samples(metrics.get(self.metrics)[1])
        return {"followed": samples.value("netobs_diagnose_alerts_followed_total")} | {
            key: samples.value("netobs_diagnose_verdicts_total", certainty=key.replace("_", " "))
            for key in ("not_sure", "likely", "certain")} | {
            key: samples.value("netobs_diagnose_alerts_refused_total", reason=reason)
            for key, reason in (("over_max", "max"), ("without_turns", "no_turns"), ("not_tcp", "not_tcp"))}

    def check_status(self):
        """The status, its text and the metrics count the verdicts of the file, and alerts without one."""
        lab.wait_for(lambda: not self.of_status()["now"], "the last verdict", 300)
        counted = self.of_status()
        sure = collections.Counter(one["Certainty"] for one in self.verdicts())
        self.assertEqual([sure[key] for key in ("not sure", "likely", "certain")],
                         [counted[key] for key in ("not_sure", "likely", "certain")])
        self.assertEqual(counted["followed"], sum(sure.values()) + counted["without_turns"])
        text = " ".join(observer.run("status", "-s", self.control).stdout.split())
        self.assertIn("{followed} followed, 0 of them now; without a verdict: {over_max} beyond max, "
                      "{without_turns} without turns, {not_tcp} not of TCP verdicts: {certain} certain, "
                      "{likely} likely, {not_sure} not sure".format(**counted), text)
        del counted["now"]
        lab.wait_for(lambda: self.of_metrics() == counted, "metrics that equal the status")

    def check_rest(self):
        """Without an alert, nothing is attached."""
        held = self.programs()
        if not self.records("alert"):
            self.assertEqual({}, held)

    def begin_slow(self, talk):
        since_ns = time.time_ns()
        talk.think(SLOW_S)
        return since_ns

    def come_to_rest(self):
        lab.wait_for(self.is_at_rest, "the tracer's end", 300)
        lab.wait_for(lambda: not self.status()["connections"], "the end of traces", 300)
        # An alert may still wait for more turns.
        lab.wait_for(lambda: self.counted()[0] == len(self.verdicts()),
                     "each verdict in a file")


class Sinks(VerdictTest):
    def test_every_sink_gets_each_verdict(self):
        lines, collector = record_sinks.Lines(self.a), otlp_lab.HttpReceiver(self.a)
        self.addCleanup(collector.stop)
        self.to_file(*sink_section("tcp", f"json:tcp://127.0.0.1:{lines.port}", "records = verdict"),
                     *sink_section("otlp", f"otlp+http://127.0.0.1:{collector.port}",
                                   "records = verdict", "host = no"))
        self.start()
        talk = Conversation(self)
        talk.more()
        self.check_rest()
        since_ns = self.begin_slow(talk)
        one = self.await_verdict(talk, since_ns, "not sure", "likely")
        self.assertIn("before", one["Missing"])
        self.assertTrue(self.records("turn"))
        talk.end()
        self.come_to_rest()
        undiagnosed = self.counted()[1]
        self.stop()
        found = self.verdicts()
        self.assertEqual(found, lines.found)
        self.assertEqual(by_name(map(otlp.expected, found)), by_name(log.attributes for log in collector.logs()))
        self.assertLessEqual({one["Certainty"] for one in found}, {"not sure", "likely"})
        if undiagnosed:
            self.assertIn("alerts without a verdict", self.messages())


def by_name(records):
    return sorted(json.dumps(record, sort_keys=True) for record in records)


class Norms(VerdictTest):
    def begin(self):
        self.to_file()
        self.start()
        talk = Conversation(self)
        self.check_rest()
        self.make_norms(talk)
        return talk

    def test_a_server_that_thinks_is_blamed(self):
        talk = self.begin()
        one = self.await_verdict(talk, self.begin_slow(talk), "likely", "certain")
        self.assertEqual("thinks", one["Cause"], one)
        talk.end()
        self.come_to_rest()
        self.stop()

    def test_a_server_that_is_stopped_is_blamed(self):
        talk = self.begin()
        one = self.await_verdict(talk, time.time_ns(), "likely", "certain", stops=True)
        self.assertEqual("stopped", one["Cause"], one)
        talk.end()
        self.come_to_rest()
        self.stop()


class Rights(VerdictTest):
    def test_those_of_the_unit_suffice_and_what_they_hide_is_missing(self):
        os.chmod(self.lab.dir, 0o777)
        self.to_file()
        os.chmod(self.path, 0o644)
        self.start_as_nobody("-all,+bpf,+perfmon,+net_admin")
        talk = Conversation(self)
        one = self.await_verdict(talk, self.begin_slow(talk), "not sure", "likely")
        self.assertIn("counters", one["Missing"], one)
        talk.end()
        self.come_to_rest()
        self.stop()


class Limits(VerdictTest):
    def test_alerts_beyond_max_are_counted(self):
        self.to_file(diagnose=["max = 1"])
        self.start()
        talks = [Conversation(self) for _ in range(3)]
        self.check_rest()
        for talk in talks:
            talk.think(SLOW_S)
        lab.wait_for(lambda: self.counted()[1] >= 2 and self.verdicts(), "verdicts, and none", 300)
        for talk in talks:
            talk.end()
        self.come_to_rest()
        self.check_status()
        made, undiagnosed = self.counted()
        self.stop()
        self.assertEqual(1, self.messages().count("alerts without a verdict"), self.messages())
        self.assertLessEqual(made + undiagnosed, len(self.records("alert")))

    def test_what_cannot_be_is_refused(self):
        alert = f'[capture]\nrtt = yes\n[alert "a"]\nrule = {RULE}\n[diagnose]\nenabled = yes\n'
        norms, bad, none, empty, alarm = map(self.lab.path, ("missing", "bad", "none", "empty", "alarm"))
        lab.write(bad, '{"type":"verdict","TimeMs":1}\n{"type":"verdict","Turns":"many"}\n')
        lab.write(none, '{"type":"turn","TimeMs":1}\n')
        lab.write(empty, "")
        lab.write(alarm, '{"type":"verdict","Place":"network","TurnsBefore":10}\n'
                         '{"type":"verdict","Place":"none"}\n{"type":"verdict","Place":"network","TurnsBefore":9}\n')
        self.check_errors((
            ("[diagnose]\nenable = yes", "2:1: there is no key 'enable'; did you mean 'enabled'?"),
            (alert + "for = soon", "7:7: for: 'soon' is not a duration"),
            (alert + "for = 999ms", "7:7: for: it is not from 1s to 1m"),
            (alert + "for = 60001ms", "7:7: for: it is not from 1s to 1m"),
            (alert + "max = 0", "7:7: max: '0' is not a"),
            (alert + "max = 65", "7:7: max: it is more than 64"),
            ("[diagnose]\nenabled = maybe", "2:11: enabled: 'maybe' is not yes or no"),
            (alert + f"norms = {norms}", f"7:9: norms: {norms}: No such file"),
            (alert + f"norms = {alarm}", f"7:9: norms: {alarm}:3: it blames a place, and had less than ten turns"),
            (alert + f"norms = {bad}", f"7:9: norms: {bad}:2: it is no verdict as JSON"),
            (alert + f"norms = {none}", f"7:9: norms: {none}:1: it is no verdict as JSON"),
            (alert + f"norms = {empty}", f"7:9: norms: {empty}: no verdict"),
            (alert + "norms = /", "7:9: norms: /: Is a directory"),
            (alert + "norms = /dev/zero", "7:9: norms: /dev/zero:1: it is no verdict as JSON")))


if __name__ == "__main__":
    lab.main("tracepoints of TCP", lambda: features()["trace"] and has_all())
