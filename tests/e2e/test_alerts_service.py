# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
# Needs: nfdump libfixbuf-tools
"""Alerts of the service: rules that change while it runs, and the sinks that alerts go to."""

import collections
import signal
import time

from lib import grpc_lab
from lib import ipfix
from lib import lab
from lib import metrics
from lib import netobs_proto
from lib import observer
from lib import record_sinks
from lib import relay
from lib.record_sinks import Flows, sink_section, take_host
from lib.service import AGAIN, ServiceTest

EACH = "rtt > 0ns hold 0s limit none" # sample is an alert
SECONDS = 2
STATUS_S = 0.3 # a status is made anew after less
PEN = 4711
AGENT = f"agent_ip = {netobs_proto.AGENT}"
METRICS = ("rtt", "app_latency", "retransmits", "rate")


def alert_section(name, rule):
    return [f'[alert "{name}"]', f"rule = {rule}"]


class AlertsTest(ServiceTest):
    def configure(self, *parts, **options):
        self.metrics = self.lab.path("metrics")
        self.write(*parts, "[metrics]", f"listen = unix:{self.metrics}", more="rtt = yes",
                   **options)

    def talk(self, seconds=SECONDS):
        """Requests and answers between a and b, which go on while this returns."""
        relay.serve(self.lab, self.b, self.B4)
        return relay.ask(self.lab, self.a, "pingpong", self.B4, seconds)

    def records(self, name):
        return list(take_host(lab.json_lines(self.lab.path(name))))

    def alerts(self, name):
        return [record for record in self.records(name) if record.get("type") == "alert"]

    def rules(self):
        """What each has done, by its name; None: all that were replaced."""
        return {rule.get("name"): rule for rule in self.status()["alerts"]}

    def at_rest(self):
        """The same, once the connection has ended and all alerts have been delivered."""
        def find():
            rules = self.rules()
            time.sleep(STATUS_S)
            is_at_rest = all(rule["fired"] == rule["delivered"] for rule in rules.values())
            return rules if is_at_rest and rules == self.rules() else None
        rules = lab.wait_for(find, "all alerts")
        for rule in rules.values():
            self.assertEqual(rule["broken"], rule["fired"] + rule["held"] + rule["limited"] +
                             rule["lost"])
        return rules


class Sinks(AlertsTest):
    def test_every_sink_gets_each_alert(self):
        sinks = record_sinks.Sinks(self, self.a, "alert")
        with self.a:
            udp = ipfix.Receiver()
        self.addCleanup(udp.close)
        own = f"pen = {PEN}"
        self.configure(
            *alert_section("each", EACH), *alert_section("none", "rtt > 200s"),
            *sink_section("file", f"json:{self.lab.path('file')}", "records = flow,alert"),
            *sinks.sections(),
            *sink_section("udp", f"ipfix:udp://127.0.0.1:{udp.port}", "records = alert", own),
            *sink_section("ipfix", f"ipfix:file:{self.lab.path('ipfix')}",
                          "records = flow,alert", own))
        self.start()
        port = relay.said(self.talk())["port"]
        rules = self.at_rest()
        self.stop()
        alerts = self.alerts("file")
        self.assertGreater(len(alerts), 50)
        self.assertEqual((len(alerts), 0), (rules["each"]["fired"], rules["none"]["broken"]))
        self.assertEqual({("each", EACH, "rtt", 6)}, {(alert["Alert"], alert["Rule"],
                         alert["Metric"], alert["Proto"]) for alert in alerts})
        self.assertEqual(alerts, sinks.lines.found)
        sinks.check(alerts)
        self.assertEqual([], sinks.grpc.messages())
        self.assertEqual([], self.alerts("a"))
        # Flows are counted beside them, as ever.
        self.assertEqual(self.exported(), sum(record["Packets"] for record in self.records("file")
                                              if "type" not in record))
        self.assertEqual(self.exported(), self.packets("a"))
        wanted = self.wanted(alerts, port)
        self.assertEqual(wanted, self.of_ipfix(udp.records()))
        records = ipfix.read_file(self.lab.path("ipfix"))
        self.assertEqual(wanted, self.of_ipfix(records))
        flows = list(filter(ipfix.is_flow, records))
        self.assertEqual(self.exported(), sum(ipfix.number(flow.fields[2]) for flow in flows))
        text = lab.run("ipfixDump", "--rfc5610", "--in", self.lab.path("ipfix"))
        for name in "netobsAlertName", "netobsAlertValue", "netobsNetnsInode":
            self.assertIn(name, text)

    def wanted(self, alerts, port):
        """What each says, in whole milliseconds."""
        ways = "to_server", "to_client"
        for alert in alerts:
            self.assertEqual((self.A4, self.B4, port, relay.PORT),
                             tuple(alert[key] for key in
                                   ("SrcAddr", "DstAddr", "SrcPort", "DstPort")))
        return collections.Counter(
            (alert["TimeMs"], alert["TimeFlowStartMs"], alert["Alert"], alert["Rule"],
             METRICS.index(alert["Metric"]), ways.index(alert["Way"]), alert["Value"],
             alert["Threshold"], alert.get("Baseline", 0), alert["Hits"], alert["Among"],
             alert["Interface"], alert["IfIndex"], alert["NetnsInode"], port)
            for alert in alerts)

    @staticmethod
    def of_ipfix(records):
        """The members of those that are alerts, as wanted() has them."""
        found = collections.Counter()
        for fields in (record.fields for record in records):
            if (PEN, 84) not in fields:
                continue
            at = [ipfix.number(fields[element]) for element in (323, 152)]
            own = {number: fields[PEN, number] for number in range(80, 91)}
            found[(*at, ipfix.text(own[80]), ipfix.text(own[81]), ipfix.number(own[82]),
                   ipfix.number(own[83]), *(ipfix.number(own[n]) for n in range(84, 89)),
                   ipfix.text(fields[82]), ipfix.number(fields[138]),
                   ipfix.number(fields[PEN, 12]), ipfix.number(fields[7]))] += 1
        return found

    def test_collectors_of_flows_lose_none_beside_alerts(self):
        nfcapd = Flows(self.lab, self.a, 9995)
        self.configure(*alert_section("each", EACH),
                       *sink_section("nfcapd", "ipfix:udp://127.0.0.1:9995",
                                     "records = flow,alert"))
        self.start()
        relay.said(self.talk(1))
        self.at_rest()
        self.stop()
        self.assertEqual(self.exported(), sum(row.get("in_packets", 0) for row in nfcapd.rows()))

    def test_collector_of_netobserv_takes_flows_and_keeps_alerts_waiting(self):
        """It lacks their service until its next version."""
        grpc = grpc_lab.Collector(self.lab, ns=self.a).start()
        self.configure(*alert_section("each", EACH),
                       *sink_section("flows", grpc.spec(), AGENT),
                       *sink_section("alerts", grpc.spec(), "records = alert", AGENT),
                       *sink_section("file", f"json:{self.lab.path('file')}", "records = alert"))
        self.start()
        relay.said(self.talk())
        fired = self.at_rest()["each"]["fired"]
        self.assertGreater(fired, 50)
        lab.wait_for(lambda: f"127.0.0.1:{grpc.port} does not implement /netobs.Collector/Send: "
                     "UNIMPLEMENTED: " in self.messages(), "the message")
        lab.wait_for(grpc.records, "flows")
        status = self.sink_status()
        self.assertEqual(fired, status["alerts"]["pending"]["records"])
        self.assertEqual(0, status["alerts"]["delivered"]["records"])
        grpc.end(signal.SIGTERM)
        grpc.options = ("--netobs",)
        grpc.start()
        lab.wait_for(lambda: len(grpc.others()) == fired, "the alerts")
        self.stop()
        self.assertEqual(netobs_proto.lines(self.alerts("file")),
                         netobs_proto.lines(grpc.others()))
        self.assertEqual(self.exported(), sum(record.packets for record in grpc.records()))
        self.assertEqual(1, self.messages().count("does not implement"))

    def sink_status(self):
        return {sink["name"]: sink for sink in self.status()["sinks"]}


class Rules(AlertsTest):
    def to_file(self, *parts):
        self.configure(*parts, *sink_section("alerts", f"json:{self.lab.path('alerts')}",
                                             "records = alert"))

    def check_delivered(self, *names):
        """Each alert is in the file, once, under the name of its rule. Those of @names are left."""
        rules = self.at_rest()
        self.stop()
        found = collections.Counter(alert["Alert"] for alert in self.alerts("alerts"))
        for name in names:
            self.assertEqual(rules[name]["fired"], found.pop(name, 0), name)
        self.assertEqual(rules.get(None, {"fired": 0})["fired"], sum(found.values()))
        self.assertEqual(self.packets("a"), self.exported())
        return rules

    def test_they_change_with_the_configuration(self):
        kept = alert_section("kept", EACH)
        self.to_file(*kept, *alert_section("goes", EACH + " where tcp"))
        self.start()
        client = self.talk(6)
        seen = []
        for other in (alert_section("comes", EACH), alert_section("comes", "rtt > 200s"), [],
                      alert_section("last", EACH + f" where port {relay.PORT}")):
            before = self.rules()["kept"]["fired"]
            lab.wait_for(lambda: self.rules()["kept"]["fired"] > before + 20, "alerts")
            self.to_file(*kept, *other)
            self.reload(AGAIN)
            seen.append(self.rules())
        relay.said(client)
        counts = [rules["kept"]["broken"] for rules in seen]
        self.assertEqual(sorted(counts), counts)
        self.assertGreater(counts[0], 20)
        self.assertIn("comes", seen[0])
        self.assertNotIn("goes", seen[0])
        rules = self.check_delivered("kept", "last")
        # No sample was between two lists of rules: that of "kept" broke it each time.
        self.assertEqual(rules["kept"]["broken"], rules["kept"]["fired"] + rules["kept"]["lost"])

    def test_metrics_have_them(self):
        held, limited = "rtt > 0ns hold 1h limit none", "rtt > 1ns hold 0s limit 3/h"
        self.to_file(*alert_section("each", EACH), *alert_section("held", held),
                     *alert_section("limited", limited))
        self.start()
        relay.said(self.talk(1))
        rules = self.at_rest()
        self.assertEqual((1, 3), (rules["held"]["fired"], rules["limited"]["fired"]))
        self.assertEqual((0, 0), (rules["held"]["limited"], rules["limited"]["held"]))
        names = {"broken": ("netobs_alert_samples_total", {}),
                 "fired": ("netobs_alerts_fired_total", {}),
                 "held": ("netobs_alerts_suppressed_total", {"reason": "hold"}),
                 "limited": ("netobs_alerts_suppressed_total", {"reason": "limit"}),
                 "lost": ("netobs_alerts_lost_total", {})}
        def check(rules):
            samples = metrics.Samples(metrics.get(self.metrics)[1])
            return all(rule[key] == samples.value(series, alert=name or "", **labels)
                       for name, rule in rules.items()
                       for key, (series, labels) in names.items())
        lab.wait_for(lambda: check(rules), "the metrics")
        text = observer.run("status", "-s", self.control).stdout
        self.assertIn(f"held: {held}", text)
        self.assertIn(f"1 alerts; {rules['held']['held']} not sent because of hold", text)
        # Those that are replaced go on to count together.
        self.to_file(*alert_section("each", EACH))
        self.reload(AGAIN)
        replaced = {key: rules["held"][key] + rules["limited"][key] for key in names}
        lab.wait_for(lambda: check({None: replaced}), "those that were replaced")
        self.check_delivered("each")

    def test_without_rtt_they_take_a_restart(self):
        self.write()
        self.start()
        self.to_file(*alert_section("each", EACH))
        self.reload("[capture] rtt: the new value takes effect after a restart",
                    "alerts take effect after a restart, as 'rtt' and 'drops' do", AGAIN)
        self.stop()

    def test_a_sink_that_takes_them_is_missed(self):
        self.configure(*alert_section("each", EACH))
        self.start()
        self.assertIn("alerts are counted, and sent to no sink", self.messages())
        self.stop()


class Config(AlertsTest):
    def test_each_error_has_its_place(self):
        rtt = "[capture]\nrtt = yes\n"
        cases = (
            ("[alert]\n", '1:1: it needs a name: [alert "NAME"]'),
            ('[alert "x"]\n', "1:1: [alert \"x\"] needs 'rule'"),
            ('[alert "x"]\nrul = rtt > 1s', "2:1: there is no key 'rul'; did you mean 'rule'?"),
            ('[alrt "x"]\nrule = rtt > 1s', "1:1: there is no section 'alrt'; did you mean 'alert'?"),
            ('[alert "x"]\nrule = rtt > 1s', "2:8: alerts need 'rtt = yes' in [capture]"),
            (f'{rtt}[alert "x"]\nrule = drops > 0.1%',
             "4:8: alerts about drops need 'drops = yes' in [capture]"),
            (f'{rtt}[alert "x"]\nrule = rtt > 5ms for 3 of 2', "4:8: rule: column 15: 3 of 2 cannot be"),
            (f'{rtt}[alert "{"x" * 64}"]\nrule = rtt > 1s', "3:1: its name has more than 63 bytes"),
            (rtt + "".join(f'[alert "{n}"]\nrule = rtt > {n + 1}ms\n' for n in range(129)),
             f"{3 + 2 * 128}:1: there are more than 128 alerts"),
            (rtt + "".join(f'[alert "{n}"]\nrule = rtt > 1ms where port {n + 1}\n'
                           for n in range(65)), f"{4 + 2 * 64}:8: column "),
        )
        self.check_errors(cases)


if __name__ == "__main__":
    lab.main()
