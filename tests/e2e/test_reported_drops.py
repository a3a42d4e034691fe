# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
# Needs: nftables
# Lock: drops, its sinks get the drops of the whole host.
"""Drops of a service: records in its sinks, metrics and status, compared with nft's counters."""

import collections
import json
import signal

from lib import bpf
from lib import lab
from lib import metrics
from lib import observer
from lib import record_sinks
from lib import traffic
from lib.observer import features
from lib.record_sinks import sink_section, take_host
from lib.service import launch

RULES = """
table inet drops {
    chain input {
        type filter hook input priority 0;
        udp dport 3001 counter drop comment "3001"
    }
}
"""


class ReportedDrops(lab.LabTest):
    def setUp(self):
        super().setUp()
        self.ns = self.lab.ns("d")
        self.ns.run("nft", "-f", "-", input=RULES)
        self.path, self.records = self.lab.path("netobs.conf"), self.lab.path("records")
        self.socket = self.lab.path("control.sock")

    def write(self, *sinks, enabled="yes"):
        self.lines = ("[drops]", f"enabled = {enabled}", "[flows]", "interval = 300ms",
                      "[control]", f"path = {self.socket}", *sinks)
        lab.write(self.path, "\n".join(self.lines) + "\n")

    def own(self, *more):
        return sink_section("a", f"json:{self.records}", "records = drop", *more)

    def start(self):
        # Of drops that wait for it to read them, the kernel's table has room for some of the whole host.
        self.service = launch(self, self.ns, self.lines, enter=lab.run_first)

    def reload(self, enabled):
        self.write(*self.own(), enabled=enabled)
        self.service.send_signal(signal.SIGHUP)
        self.supervisor.wait("READY=1")

    def stop(self):
        self.service.send_signal(signal.SIGTERM)
        self.assertEqual(0, self.service.wait(lab.PATIENCE_S))

    def send(self, count):
        with traffic.awake():
            traffic.throw(self.ns, ("127.0.0.1", 3001), count, data=b"drop")

    def read(self):
        return list(take_host(lab.json_lines(self.records, is_whole=False)))

    def dropped(self, records):
        return sum(one["PktDropPackets"] for one in records
                   if one.get("DstPort") == 3001 and one["NetnsInode"] == self.ns.inode)

    def counted(self):
        rules = json.loads(self.ns.run("nft", "-j", "list", "ruleset"))["nftables"]
        return next(part["counter"]["packets"] for rule in rules
                    if rule.get("rule", {}).get("comment") == "3001"
                    for part in rule["rule"]["expr"] if "counter" in part)

    def ask(self, verb, *options):
        return self.ns.run(observer.netobsctl(), verb, "-s", self.socket, *options)

    def sums(self):
        found = collections.Counter()
        for one in self.read():
            reason = one.get("PktDropLatestDropCause", "").removeprefix("SKB_DROP_REASON_")
            found[reason, one["DropKind"]] += one["PktDropPackets"]
        return dict(found)

    def metrics(self):
        return {(labels["reason"], labels["kind"]): value for (name, pairs), value in
                metrics.Samples(self.ask("metrics")).series.items()
                for labels in [dict(pairs)] if name == "netobs_drops_packets_total"}

    def test_every_sink_gets_each_record(self):
        sinks = record_sinks.Sinks(self, self.ns, "drop")
        self.write(*self.own(), *sinks.sections())
        self.start()
        self.send(100)
        lab.wait_for(lambda: self.dropped(self.read()), "the first records")
        self.send(50)
        self.stop()
        records = self.read()
        self.assertEqual((150, 150), (self.counted(), self.dropped(records)))
        self.assertEqual({"drop"}, {one["type"] for one in records})
        sinks.check(records)

    def test_metrics_and_status_have_the_sums_of_records(self):
        self.write(*self.own())
        self.start()
        self.send(70)
        lab.wait_for(lambda: self.dropped(self.read()) == 70, "the records")
        self.reload("no")
        lab.wait_for(lambda: not any(name.startswith("netobs_drop_") for name in
                                     bpf.programs_of(self.service.pid).values()), "the observer to end")
        self.send(5) # no record has these
        # A drain that was under way when the reload was answered has records, and the one after it.
        lab.wait_for(lambda: self.sums() == self.metrics(), "metrics with the sums of records")
        self.reload("yes")
        status = json.loads(self.ask("status", "-o", "json"))["drops"]
        self.assertEqual(0, status["missed"] + status["lost"])
        self.send(30)
        lab.wait_for(lambda: self.dropped(self.read()) == 100, "the records")
        self.stop()
        self.assertEqual((105, 100), (self.counted(), self.dropped(self.read())))


if __name__ == "__main__":
    lab.main("tracepoint of dropped packets", lambda: features()["drops"])
