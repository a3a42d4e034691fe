# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
# Needs: prometheus
"""Groups of the service: metrics and records that add up to what is exported. What TCP does is random."""

import json
import os
import socket
import subprocess

from lib import grpc_lab
from lib import lab
from lib import metrics
from lib import netobs_proto
from lib import observer
from lib import traffic
from lib.configuration import Configured
from lib.grouped import GroupedTest, group
from lib.observer import features
from lib.record_sinks import sink_section, take_host
from lib.service import AGAIN
from lib.sessions import RESET

UNITS = "packets", "bytes", "flows"
PORTS = range(5000, 5040)
SERIES = 8


class Config(Configured, lab.LabTest):
    def setUp(self):
        super().setUp()
        self.path = self.lab.path("netobs.conf")

    def test_each_error_has_its_place(self):
        self.check_errors((
            ('[group "a"]\nseries = 5', '1:1: [group "a"] needs \'by\''),
            ('[group "a"]\nby = servce', "2:6: by: there is no key 'servce'; did you mean 'service'?"),
            ('[group "a"]\nby = flow', "2:6: by: 'flow' is no key of groups"),
            ('[group "a"]\nby = pod', "2:6: by: it needs 'process = yes' in [capture]"),
            ('[group "a"]\nby = src\nseries = 0', "3:10: series: '0' is not from 1 to 10000"),
            ('[group "a"]\nby = src\nseries = 10001', "3:10: series: '10001' is not from"),
            ('[group "a"]\nby = src\nrecords = maybe', "3:11: records: 'maybe' is not yes or no"),
            ('[group "a"]\nby = src\nmetrics = no', '1:1: [group "a"] has neither records nor'),
            ('[group "a"]\nby = src\nhistograms = rtt', "3:14: histograms: it needs 'rtt = yes' in"),
            ('[capture]\nrtt = yes\n[group "a"]\nby = src\nhistograms = rtt,rrt',
             "5:14: histograms: there is no 'rrt'; there are rtt, app_latency"),
            ('[capture]\nrtt = yes\n[group "a"]\nby = src\nseries = 2501\nhistograms = rtt, app_latency',
             "3:1: histograms: the series of all groups have 5002, more than 5000"),
            ('[group "a"]\nby = src\nserie = 5', "3:1: there is no key 'serie'; did you mean 'series'?"),
            (f'[group "{"n" * 64}"]\nby = src', "1:1: its name has more than 63 bytes"),
            ("".join(f'[group "g{i}"]\nby = src\nseries = 10000\n' for i in range(3)),
             "7:1: series: all groups have 30000, more than 20000"),
            ("[group]\nby = src", '1:1: it needs a name: [group "NAME"]'),
            ("".join(f'[group "g{i}"]\nby = src\n' for i in range(17)),
             "33:1: there are more than 16 groups"),
            ('[network "a"]\ncidr = 10.0.0.1/8', "2:8: cidr: a: '10.0.0.1/8' has bits behind"),
            ('[network "a"]\ncidr = 10.0.0.0/8\n[network "b"]\ncidr = 10.0.0.0/8',
             "4:8: cidr: b: it has a prefix that a has, too"),
            ('[network "a"]\ncird = 10.0.0.0/8', "2:1: there is no key 'cird'; did you mean 'cidr'?"),
            (f'[network "{"n" * 32}"]\ncidr = ::1', f"2:8: cidr: {'n' * 32}: a name has 1 to 31 bytes"),
            ('[network "a"]\ncidr = ::1/x\n[network "b"]\ncidr = ::2', "2:8: cidr: a: '::1/x' has a"),
            ('[sink "i"]\noutput = ipfix:file:/x\nrecords = group',
             "3:11: ipfix: option records: a sink of kind ipfix cannot represent group"),
        ))

    def test_limits_are_of_groups_with_metrics_and_reported_once(self):
        for more, count in ("", 1), ("records = yes\nmetrics = no\n", 0):
            lab.write(self.path, "".join(f'[group "g{i}"]\nby = src\nseries = 10000\n{more}' for i in range(5)))
            _, _, errors = self.config("check", self.path)
            self.assertEqual(count, errors.count("series: all groups have"), errors)

    def test_an_empty_key_removes_a_group(self):
        lab.write(self.path, '[group "a"]\nby = servce\n[group "a"]\nby =\n[group "b"]\nby = src\n'
                             '[sink "n"]\noutput = null\n')
        code, out, errors = self.config("show", "-o", "json", self.path)
        self.assertEqual((0, ""), (code, errors))
        self.assertEqual([("b", "by", "src")],
                         [(entry["name"], entry["key"], entry["value"])
                          for entry in json.loads(out) if entry["section"] == "group"])


class GroupsTest(GroupedTest):
    def send(self, *ports):
        """More packets to later ports."""
        for port in ports:
            traffic.udp(self.a, self.A4, self.b, self.B4, [100] * (1 + port % 40), port=port)

    def check_sums(self, found, *names):
        """Each group has what was exported, in all of its series."""
        for name in names:
            for unit in UNITS:
                total = sum(value for labels, value in
                            found.all_of(f"netobs_group_{unit}_total").items()
                            if ("group", name) in labels)
                exported = found.value("netobs_records_total" if unit == "flows" else
                                       f"netobs_exported_{unit}_total")
                self.assertEqual(exported, total, f"{unit} of {name}")

    def check_steps(self, before, after, names=tuple(f"netobs_group_{unit}_total" for unit in UNITS)):
        """No counter steps back, but of a series that has left meanwhile: then all it had is in "left"."""
        for name in names:
            later = after.all_of(name)
            for labels, value in before.all_of(name).items():
                if later.get(labels, value) < value:
                    own = {key: label for key, label in labels if key in ("group", "le")}
                    left = [found.value(name, **own, series="left") for found in (before, after)]
                    self.assertGreaterEqual(left[1] - left[0], value, f"{name} {labels}")

    def check_formats(self):
        _, text = metrics.get(self.metrics)
        done = subprocess.run(["promtool", "check", "metrics"], input=text, text=True,
                              capture_output=True, check=False)
        self.assertEqual((0, "", ""), (done.returncode, done.stdout, done.stderr))
        metrics.scrape(self.metrics)

    def await_packets(self, packets):
        def find():
            found = self.scrape()
            self.check_sums(found, *self.names)
            return found if found.value("netobs_exported_packets_total") >= packets else None
        return lab.wait_for(find, "the packets")

    def status(self, *options):
        return lab.run(observer.netobsctl(), "status", "-s", self.control, *options)

    def check_status(self, found):
        """The status has what the metrics have, which may be newer by a moment."""
        def sums(name, **labels):
            return {unit: sum(value for key, value in found.all_of(f"netobs_group_{unit}_total").items()
                              if {("group", name), *labels.items()} <= set(key)) for unit in UNITS}

        def find():
            groups = json.loads(self.status("-o", "json"))["groups"]
            return groups if all(group["all"] == sums(group["name"]) for group in groups) else None
        groups = lab.wait_for(find, "the status")
        self.assertEqual([("few", "port", SERIES, SERIES), ("many", "src,dst,port", len(PORTS), 500)],
                         [tuple(group[key] for key in ("name", "by", "series", "max_series"))
                          for group in groups])
        for group in groups:
            for kind in "other", "left":
                self.assertEqual(sums(group["name"], series=kind), group[kind])
        text = self.status()
        self.assertRegex(text, rf"\n  few: by port: {SERIES} of {SERIES} series; \d+ flows\n"
                         r"    without a series: \d+ of \d+ packets, [\d.]+ k?B of [\d.]+ [kM]?B\n"
                         r"    of series that have ended: \d+ of \d+ packets, ")
        self.assertIn(f"\n  many: by src,dst,port: {len(PORTS)} of 500 series; ", text)

    def records(self, name):
        return list(take_host(lab.json_lines(self.lab.path(name))))


class Groups(GroupsTest):
    def test_sums_are_exact_at_each_scrape(self):
        """While heavier groups take the places of others."""
        self.names = "few", "many"
        self.configure(*group("few", "by = port", f"series = {SERIES}"),
                       *group("many", "by = src,dst,port"))
        self.start()
        before, sent = self.scrape(), 0
        for first in range(0, len(PORTS), 4):
            for _ in range(2):
                self.send(*PORTS[first:first + 4])
                sent += sum(1 + port % 40 for port in PORTS[first:first + 4])
                after = self.await_packets(sent)
                self.check_steps(before, after)
                before = after
        of_few = [labels for labels in before.all_of("netobs_group_bytes_total")
                  if ("group", "few") in labels]
        self.assertEqual(SERIES + 2, len(of_few))
        self.assertGreater(before.value("netobs_group_packets_total", group="few",
                                        series="left"), 0)
        self.assertEqual(0, before.value("netobs_group_packets_total", group="many",
                                         series="other"))
        for port in PORTS:
            self.assertEqual(2 * (1 + port % 40), before.value(
                "netobs_group_packets_total", group="many", src=self.A4, dst=self.B4,
                port=f"{port}/UDP"))
        self.check_status(before)
        self.check_formats()
        self.stop()

    def test_records_add_up_to_the_flows(self):
        self.names = "services",
        collector = grpc_lab.Collector(self.lab, "--netobs", ns=self.a).start()
        self.configure(*group("services", "by = service,client", f"series = {SERIES}",
                              "records = yes"),
                       *group("silent", "by = src"),
                       *sink_section("groups", f"json:{self.lab.path('groups')}",
                                     "records = group"),
                       *sink_section("grpc", collector.spec(), "records = group",
                                     f"agent_ip = {netobs_proto.AGENT}"))
        self.start()
        self.send(*PORTS)
        self.send(*PORTS)
        self.await_packets(2 * sum(1 + port % 40 for port in PORTS))
        self.stop()
        flows, groups = self.records("a"), self.records("groups")
        self.assertEqual({"services"}, {record["Group"] for record in groups})
        self.assertEqual({"group"}, {record["type"] for record in groups})
        self.assertEqual({"group", "other"}, {record["Series"] for record in groups})
        for unit in "Packets", "Bytes":
            self.assertEqual(sum(flow[unit] for flow in flows),
                             sum(record[unit] for record in groups))
        self.assertEqual(len(flows), sum(record["Flows"] for record in groups))
        for record in groups:
            self.assertEqual(record["Series"] == "group", "ServerPort" in record)
        self.assertEqual(netobs_proto.lines(groups), netobs_proto.lines(collector.others()))

    def test_networks_have_what_was_sent_to_their_addresses(self):
        self.names = "ways",
        ways = group("ways", "by = src_network,dst_network")
        self.configure(*ways, '[network "net"]', "cidr = 192.0.2.0/24",
                       '[network "peer"]', f"cidr = 198.51.100.0/24 {self.B4}/32")
        self.start()
        self.send(PORTS[0], PORTS[1])
        sent = 2 + PORTS[0] % 40 + PORTS[1] % 40
        found = self.await_packets(sent)
        self.assertEqual(sent, found.value("netobs_group_packets_total", group="ways",
                                           src_network="net", dst_network="peer"))
        self.configure(*ways, '[network "other"]', f"cidr = {self.B4}")
        self.reload(AGAIN)
        traffic.udp(self.a, self.A4, self.b, self.B4, [100] * 3, port=PORTS[2])
        lab.wait_for(lambda: self.scrape().all_of("netobs_group_packets_total").get(
            tuple(sorted({"group": "ways", "src_network": "internet",
                          "dst_network": "other"}.items()))) == 3, "the packets")
        self.stop()

    def test_a_reload_keeps_groups_that_stay(self):
        self.names = "kept",
        kept = group("kept", "by = port")
        self.configure(*kept, *group("gone", "by = src"))
        self.start()
        self.send(PORTS[0])
        before = self.await_packets(1 + PORTS[0] % 40)
        self.configure(*kept, *group("new", "by = src", "records = yes"))
        self.reload(AGAIN, "records of groups are sent to no sink")
        after = self.scrape()
        self.check_steps(before, after)
        self.check_sums(after, "kept")
        self.assertEqual({"kept", "new"}, {dict(labels)["group"] for labels in
                                           after.all_of("netobs_group_bytes_total")})
        self.assertEqual(0, after.value("netobs_group_packets_total", group="new",
                                        series="other"))
        self.send(PORTS[1])
        found = self.await_packets(2 + PORTS[0] % 40 + PORTS[1] % 40)
        self.assertEqual(1 + PORTS[1] % 40, found.value(
            "netobs_group_packets_total", group="new", src=self.A4))
        self.stop()


# Of groups, what all flows have, and the metric of that.
TOTALS = {"netobs_group_retransmitted_segments_total": "netobs_tcp_retransmitted_segments_total",
          "netobs_group_rtt_seconds_count": "netobs_tcp_rtt_seconds_count",
          "netobs_group_app_latency_seconds_count": "netobs_tcp_app_latency_seconds_count"}
DROPS = "netobs_group_drops_packets_total", "netobs_group_drops_bytes_total"
CONNECTIONS = "netobs_group_connections_total", "netobs_group_connections_failed_total"
HISTOGRAMS = {"netobs_group_rtt_seconds": "netobs_tcp_rtt_seconds",
              "netobs_group_app_latency_seconds": "netobs_tcp_app_latency_seconds"}
COUNTERS = *TOTALS, *DROPS, *CONNECTIONS, *(f"{name}_bucket" for name in HISTOGRAMS)
JSON_HISTOGRAMS = {"netobs_group_rtt_seconds": "RttHistogram",
                   "netobs_group_app_latency_seconds": "AppLatencyHistogram"}
CLOSED = 4000  # a port without a listener


class Tcp(GroupsTest):
    """Connections, drops and times, in few series of which heavier ones take the place of others."""

    def setUp(self):
        super().setUp()
        if not {"sessions", "drops"} <= {name for name, is_there in features().items() if is_there}:
            self.skipTest("the kernel does not let programs follow TCP sockets and drops")
        self.made = self.failed = 0
        self.weight = 1  # of exchanges: later ports have more bytes
        for ns in self.a, self.b:
            ns.acknowledge_at_once()

    def configure_all(self):
        times = "histograms = rtt, app_latency"
        self.configure(
            *group("services", "by = service", f"series = {SERIES}", times, "records = yes"),
            *group("hosts", "by = host"),
            "[sessions]", "enabled = yes", f"pid = {os.getpid()}", "buffer = 64M",
            *sink_section("groups", f"json:{self.lab.path('groups')}", "records = group"),
            more="rtt = yes\ndrops = yes")

    def sums(self, found, name, metric):
        """Of all series, by the other labels: le."""
        sums = {}
        for labels, value in found.all_of(metric).items():
            labels = dict(labels)
            if labels["group"] == name:
                le = labels.get("le")
                sums[le] = sums.get(le, 0) + value
        return sums

    def check_all(self, found):
        self.check_sums(found, "services")
        for metric, total in TOTALS.items():
            self.assertEqual({None: found.value(total)}, self.sums(found, "services", metric), metric)
        for unit, metric in zip(("packets", "bytes"), DROPS):
            self.assertEqual({None: found.value(f"netobs_flow_drops_{unit}_total", place="flow")},
                             self.sums(found, "services", metric))
        for metric, total in HISTOGRAMS.items():
            self.assertEqual({dict(labels)["le"]: value for labels, value in
                              found.all_of(f"{total}_bucket").items()},
                             self.sums(found, "services", f"{metric}_bucket"))
            self.assertAlmostEqual(found.value(f"{total}_sum"),
                                   self.sums(found, "services", f"{metric}_sum")[None], places=6)
            self.assertEqual({}, self.sums(found, "hosts", f"{metric}_bucket"))
        self.assertEqual({None: found.total("netobs_sessions_reported_total")},
                         self.sums(found, "hosts", CONNECTIONS[0]))

    def connect(self, port):
        """A connection that ends in a random way."""
        kind = self.random.choice(("fin", "fin", "refused", "reset", "reset_after_data"))
        self.made += 1
        self.failed += kind in ("refused", "reset")
        if kind == "refused":
            with traffic.make_socket(self.a, socket.SOCK_STREAM, self.A4) as client, \
                    self.assertRaises(ConnectionRefusedError):
                client.connect((self.B4, port))
            return
        client, server = traffic.connected(self.a, self.A4, self.b, self.B4, port)
        with client, server:
            if kind != "reset":
                traffic.exchange(client, server, [self.random.randint(1, 3000 * self.weight)
                                                  for _ in range(self.random.randint(1, 5))])
            if kind != "fin":
                server.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)

    def lose(self, count):
        """Datagrams to a port of a that nothing is bound to: its kernel drops them."""
        with traffic.make_socket(self.b, socket.SOCK_DGRAM, self.B4) as sender:
            for _ in range(count):
                sender.sendto(bytes(100), (self.A4, CLOSED))

    def of_connections(self, found):
        return [int(self.sums(found, "services", metric)[None]) for metric in CONNECTIONS]

    def await_all(self, dropped):
        """All connections and drops; the identities hold until then, too."""
        def find():
            found = self.scrape()
            self.check_all(found)
            return found if self.of_connections(found) == [self.made, self.failed] and \
                self.sums(found, "services", DROPS[0])[None] >= dropped else None
        return lab.wait_for(find, "the connections and drops")

    def test_all_that_tcp_does_is_in_the_groups(self):
        self.configure_all()
        self.start()
        before, dropped = self.scrape(), 0
        for first in range(0, len(PORTS), 4):
            for port in self.random.choices(PORTS[first:first + 4], k=12):
                self.connect(port)
            self.weight += 1
            self.lose(5)
            dropped += 5
            after = self.await_all(dropped)
            self.check_steps(before, after)
            self.check_steps(before, after, COUNTERS)
            before = after
        self.check_formats()
        self.assertGreater(before.value(CONNECTIONS[0], group="services", series="left"), 0)
        self.assertGreater(before.total("netobs_group_app_latency_seconds_count"), 0)
        for port in PORTS[:3]:
            self.connect(port)
        self.stop()
        self.check_records(before)

    def check_records(self, found):
        """They are of all intervals, so that they add up to what the last scrape has, or more."""
        records = self.records("groups")
        self.assertEqual([self.made, self.failed],
                         [sum(record.get(key, 0) for record in records)
                          for key in ("Connections", "ConnectionsFailed")])
        for metric, key in zip(DROPS, ("PktDropPackets", "PktDropBytes")):
            self.assertLessEqual(self.sums(found, "services", metric)[None],
                                 sum(record.get(key, 0) for record in records), key)
        for metric, key in JSON_HISTOGRAMS.items():
            bound, counted = 16e-6, [0] * 26
            for record in records:
                for i, value in enumerate(record.get(key, ())):
                    counted[i] += value
            for le, value in self.sums(found, "services", f"{metric}_bucket").items():
                below = [n for i, n in enumerate(counted) if bound * 2**i <= float(le) * 1.001]
                self.assertLessEqual(value, sum(below), f"{key} up to {le}: {counted}")
            self.assertGreater(sum(counted), 0)


if __name__ == "__main__":
    lab.main()
