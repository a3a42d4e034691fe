# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
# Needs: prometheus
"""Metrics over HTTP and in a file: they are right, bounded, and cost the counting nothing."""

import os
import re
import socket
import stat
import subprocess
import time

from lib import dashboards
from lib import frames
from lib import lab
from lib import metrics
from lib import observer
from lib import traffic
from lib.attackers import Attacked
from lib.observer import Observer
from lib.prometheus import Prometheus

USAGE, FAILED = 2, 1
ACK = 0x10
SERIES = 128 # interfaces that have series of their own
REST = 0.05 # seconds of a client between its requests


class Served(lab.WiredTest):
    def observe(self, *arguments, where="127.0.0.1:0", **options):
        run = Observer(self.lab, self.a, "-i", "eth0", "--interval", "0.2",
                       "--metrics", where, *arguments, **options)
        return run.wait_attached((self.a, "eth0"))

    def scrape(self, run):
        with self.a:
            return metrics.scrape(metrics.served_at(run))

    def await_value(self, run, value, name, **labels):
        lab.wait_for(lambda: self.scrape(run).value(name, **labels) >= value, name)
        return self.scrape(run)


class Metrics(Served):
    def test_values_are_those_of_the_statistics(self):
        rules = self.lab.path("rules")
        lab.write(rules, 'reject udp port 5002\naccept icmp\ndefault accept\n')
        run = self.observe("--rules", rules)
        traffic.ping(self.a, "192.0.2.2", 10)
        traffic.udp(self.a, "192.0.2.1", self.b, "192.0.2.2", [100] * 50)
        self.await_value(run, 70, "netobs_seen_packets_total")
        found = self.await_value(run, 20, "netobs_sink_delivered_packets_total",
                                 sink="json", output="0")
        found.check_identity()
        result = run.stop()
        result.check_conservation()
        self.assertEqual(result.stats["seen"]["packets"],
                         found.value("netobs_seen_packets_total"))
        self.assertEqual(result.stats["filtered"]["bytes"],
                         found.value("netobs_filtered_bytes_total"))
        self.assertEqual(50, found.value("netobs_rule_packets_total", rule="0",
                                         action="reject", filter="udp port 5002"))
        for direction, packets in (("ingress", 10), ("egress", 10)):
            self.assertEqual(packets, found.value(
                "netobs_interface_packets_total", interface="eth0", netns="",
                direction=direction))
        self.assertEqual(20, found.value("netobs_sink_delivered_packets_total",
                                         sink="json", output="0"))
        self.assertEqual(0, found.value("netobs_sink_pending_seconds",
                                        sink="json", output="0"))
        self.assertEqual(1, found.value("netobs_interfaces"))
        self.assertEqual(1, found.value("netobs_sink_connected", sink="json", output="0"))
        drains = found.value("netobs_drain_duration_seconds_count")
        self.assertEqual(drains, found.value("netobs_drain_duration_seconds_bucket",
                                             le="+Inf"))
        self.assertGreater(found.value("netobs_drain_duration_seconds_sum"), 0)
        self.assertGreater(found.value("process_resident_memory_bytes"), 1 << 20)

    def talk_in_turn(self):
        """For several intervals: over a connection that has an answer to each request."""
        with traffic.make_socket(self.b, socket.SOCK_STREAM, "192.0.2.2", 5001) as listener, \
                traffic.make_socket(self.a, socket.SOCK_STREAM, "192.0.2.1") as client:
            listener.listen()
            client.connect(("192.0.2.2", 5001))
            server, _ = listener.accept()
            with server:
                server.settimeout(lab.PATIENCE_S)
                for _ in range(20):
                    for sender, receiver in ((client, server), (server, client)):
                        sender.sendall(bytes(100))
                        receiver.recv(100, socket.MSG_WAITALL)
                    time.sleep(REST)

    def check_times(self, found, name, times):
        """A histogram of @times, in ns."""
        self.assertEqual(len(times), found.value(f"{name}_count"))
        self.assertAlmostEqual(sum(times) / 1e9, found.value(f"{name}_sum"), places=8)
        for labels, value in found.all_of(f"{name}_bucket").items():
            limit = float(dict(labels)["le"]) * 1e9
            self.assertEqual(sum(time <= limit for time in times), value, labels)

    def test_health_of_tcp_is_that_of_the_records(self):
        path = self.lab.path("textfile")
        run = self.observe("--rtt", "--metrics-textfile", path)
        self.talk_in_turn()
        data = frames.ether(
            "02:00:00:00:00:03", "02:00:00:00:00:01", frames.IPV4,
            frames.ipv4("192.0.2.1", "192.0.2.3", frames.TCP,
                        frames.tcp(1024, 80, ACK, b"again" * 10)))
        self.a.send_frames("eth0", [data] * 3)
        records = run.stop().records
        found = metrics.Samples(lab.read(path))
        for name, key, new in (("rtt", "TimeFlowRttNs", "RttSamples"),
                               ("path_rtt", "PathRttNs", "RttSamples"),
                               ("response_time", "ResponseTimeNs", "AppResponses"),
                               ("app_latency", "AppLatencyNs", "AppResponses")):
            times = [record[key] for record in records if record.get(new) and key in record]
            self.assertGreater(len(times), 0)
            self.check_times(found, f"netobs_tcp_{name}_seconds", times)
        # The server answers at once, and the client rests.
        self.assertLess(found.value("netobs_tcp_app_latency_seconds_sum"),
                        0.5 * REST * found.value("netobs_tcp_app_latency_seconds_count"))
        for name, key in (("retransmitted_segments", "Retransmits"),
                          ("retransmitted_bytes", "BytesRetransmitted"),
                          ("out_of_order_segments", "OutOfOrder"),
                          ("late_unknown_segments", "LateUnknown"),
                          ("duplicate_acks", "DuplicateAcks"),
                          ("zero_windows", "ZeroWindows")):
            self.assertEqual(sum(record.get(key, 0) for record in records),
                             found.value(f"netobs_tcp_{name}_total"), name)
        self.assertGreaterEqual(found.value("netobs_tcp_retransmitted_segments_total"), 2)

    def test_both_formats_are_valid(self):
        """Also with sinks of each kind that counts something."""
        run = self.observe("-o", f"ipfix:file:{self.lab.path('flows')}",
                           "-o", "ipfix:tcp://127.0.0.1:9", "-o", "grpc://127.0.0.1:9",
                           "-o", "http://127.0.0.1:9/", "-o", "json:tcp://127.0.0.1:9",
                           "-o", f"json:{self.lab.path('lines')}?rotate.interval=1h")
        traffic.ping(self.a, "192.0.2.2", 5)
        self.await_value(run, 10, "netobs_sink_delivered_packets_total",
                         sink="json", output="0")
        with self.a:
            where = metrics.served_at(run)
            response, text = metrics.get(where)
            self.assertEqual("text/plain; version=0.0.4; charset=utf-8",
                             response.headers["Content-Type"])
        self.assertIn('netobs_sink_events_total{sink="grpc:', text)
        done = subprocess.run(["promtool", "check", "metrics"], input=text, text=True,
                              capture_output=True, check=False)
        self.assertEqual((0, "", ""), (done.returncode, done.stdout, done.stderr))
        run.stop(code=1)  # most collectors are away

    def test_documentation_is_complete(self):
        run = self.observe()
        families = {family.name + ("_total" if family.type == "counter" else "")
                    for family in self.scrape(run).families}
        with open(f"{os.environ['NETOBS_SOURCE']}/docs/metrics.md", encoding="utf-8") as file:
            named = set(re.findall(r"`((?:netobs|process)_\w+?)(?:_count)?[`{]", file.read()))
        both = {name.replace("_bytes_", "_packets_") for name in families}
        self.assertEqual(set(), named - families, "these do not exist")
        self.assertEqual(set(), {
            name for name in both - named
            if name != "netobs_pending_bytes" and "_packets" not in name}, "undocumented")
        run.stop()

    def test_requests_other_than_for_metrics(self):
        run = self.observe(where=f"unix:{self.lab.path('metrics')}")
        where = metrics.served_at(run)
        self.assertEqual(0o600, stat.S_IMODE(os.stat(where).st_mode))
        self.assertEqual(200, metrics.get(where, "/")[0].status)
        self.assertEqual(404, metrics.get(where, "/other")[0].status)
        self.assertEqual(200, metrics.get(where, "/metrics?name=value")[0].status)
        response, text = metrics.get(where, method="HEAD")
        self.assertEqual((200, ""), (response.status, text))
        self.assertGreater(int(response.headers["Content-Length"]), 1000)
        response, _ = metrics.get(where, method="POST")
        self.assertEqual((405, "GET, HEAD"), (response.status, response.headers["Allow"]))
        run.stop()
        self.assertFalse(os.path.exists(where))

    def test_file_is_replaced_as_a_whole(self):
        path = self.lab.path("netobs.prom")
        run = Observer(self.lab, self.a, "-i", "eth0", "--interval", "0.2",
                       "--metrics-textfile", path).wait_attached((self.a, "eth0"))
        lab.wait_for(lambda: os.path.exists(path), "the file")
        traffic.ping(self.a, "192.0.2.2", 5)
        seen = set()
        for _ in range(200):
            text = lab.read(path)
            self.assertTrue(text.endswith("\n"))
            seen.add(tuple(family.name for family in metrics.Samples(text).families))
        self.assertEqual(1, len(seen))
        run.stop()
        last = metrics.Samples(lab.read(path))
        last.check_identity()
        self.assertEqual(10, last.value("netobs_seen_packets_total"))
        self.assertEqual([], [name for name in os.listdir(self.lab.dir) if ".new" in name])

    def test_wrong_options_are_refused(self):
        for code, words, *arguments in (
                (USAGE, "none of ADDRESS:PORT", "--metrics", "localhost"),
                (USAGE, "cannot be combined with -r", "--metrics", "127.0.0.1:0",
                 "-r", "file.pcap"),
                (FAILED, "No such file or directory", "--metrics",
                 f"unix:{self.lab.path('none/metrics')}")):
            result = observer.flows(self.lab, *arguments, ns=self.a)
            self.assertEqual(code, result.code, result.errors)
            self.assertIn(words, result.errors)

    def test_beyond_loopback(self):
        run = Observer(self.lab, self.a, "-i", "eth0", "--metrics",
                       "192.0.2.1:9436").wait_attached((self.a, "eth0"))
        with self.b, socket.create_connection(("192.0.2.1", 9436), 30) as client:
            client.sendall(b"GET /metrics HTTP/1.0\r\n\r\n")
            self.assertIn(b" 200 OK", client.recv(100))
        run.stop()


class Packaging(Served):
    """The dashboard and the alerts: valid, and about metrics that exist."""

    SOURCE = os.environ["NETOBS_SOURCE"]
    ALERTS = f"{SOURCE}/packaging/prometheus/netobs-alerts.yml"

    def expressions(self):
        found = dashboards.expressions("netobs-health", "5m")
        self.assertGreater(len(found), 30)
        return found

    def test_alerts_fire_for_what_goes_wrong(self):
        lab.run("promtool", "check", "rules", self.ALERTS)
        lab.run("promtool", "test", "rules", f"{self.SOURCE}/tests/prometheus/alerts.yml")

    def test_metrics_that_they_name_exist(self):
        rules = self.lab.path("rules")
        lab.write(rules, "default accept\n")
        run = self.observe("--rules", rules, "-o", f"ipfix:file:{self.lab.path('flows')}")
        traffic.ping(self.a, "192.0.2.2", 1)
        self.await_value(run, 2, "netobs_exported_packets_total")
        lab.wait_for(lambda: self.scrape(run).all_of(
            "netobs_sink_last_delivery_timestamp_seconds"), "a delivery")
        found = self.scrape(run)
        # Without rules about connections, there are no series of them.
        names = found.names() | {f"{family.name}_total" for family in found.families
                                 if family.type == "counter" and not family.samples}
        with open(self.ALERTS, encoding="utf-8") as file:
            alerts = "\n".join(line for line in file if not line.startswith("#"))
        for text in [alerts, *self.expressions()]:
            named = set(re.findall(r"\b(?:netobs|process)_\w+", text))
            self.assertEqual(set(), named - names, text)
        run.stop()

    def test_prometheus_scrapes_and_evaluates(self):
        run = self.observe()
        prometheus = Prometheus(self.lab, self.a, f"127.0.0.1:{metrics.served_at(run)}", self.ALERTS)
        traffic.ping(self.a, "192.0.2.2", 10)
        for expression in "netobs_exported_packets_total == 20", 'up{job="netobs"} == 1':
            lab.wait_for(lambda asked=expression: prometheus.query(asked), expression)
        for expression in self.expressions():
            self.assertIsNotNone(prometheus.query(expression), expression)
        groups = lab.wait_for(lambda: [
            group for group in (prometheus.ask("/api/v1/rules") or {}).get("groups", [])
            if all(rule["health"] == "ok" for rule in group["rules"])], "the alerts")
        self.assertEqual(set(), {rule["name"] for rule in groups[0]["rules"]
                                 if rule["state"] == "firing"})
        run.stop()


class Bounds(lab.LabTest):
    """Series are bounded, whatever interfaces are called and however many there are."""

    def setUp(self):
        super().setUp()
        self.a = self.lab.ns("a")

    def observe(self, *arguments):
        run = Observer(self.lab, self.a, "--interval", "0.2", "--metrics", "127.0.0.1:0",
                       *arguments)
        run.wait_attached()
        return run

    def scrape(self, run):
        with self.a:
            return metrics.scrape(metrics.served_at(run))

    def test_more_interfaces_than_series(self):
        more = 20
        script = self.lab.path("links")
        with open(script, "w", encoding="ascii") as file:
            file.writelines(f"link add d{i} up type veth peer name p{i}\n"
                            f"link set p{i} up\naddr add 198.18.{i}.1/24 dev d{i}\n"
                            f"neigh add 198.18.{i}.2 lladdr 02:00:00:00:00:01 dev d{i}\n"
                            for i in range(SERIES + more))
        self.a.ip("-batch", script)
        run = self.observe("-i", "/^d/")
        lab.wait_for(lambda: self.scrape(run).value("netobs_interfaces") == SERIES + more,
                     "all interfaces")
        self.send(SERIES + more)
        self.check(run, SERIES + more)
        for i in range(0, SERIES, 2):
            self.a.ip("link", "del", f"d{i}")
        lab.wait_for(lambda: self.scrape(run).value("netobs_interfaces") == SERIES // 2 + more,
                     "half of them to go")
        self.check(run, SERIES + more)
        run.stop()

    def send(self, count):
        """A datagram over each."""
        with self.a, socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
            for i in range(count):
                sender.sendto(b"x", (f"198.18.{i}.2", 9))

    def check(self, run, count):
        """The others have all that has no series, or had one: nothing is taken back."""
        name = "netobs_interface_packets_total"
        def find():
            found = self.scrape(run)
            found.check_identity()
            return found if found.total(name) >= count else None
        found = lab.wait_for(find, "all packets")
        self.assertLessEqual(len(found.all_of(name)), 2 * (SERIES + 1))


class Hostile(Attacked, Served):
    """Clients that do not keep to HTTP, or to any pace."""

    def reach(self):
        return metrics.connect(self.where)

    def ask(self):
        metrics.scrape(self.where).check_identity()
        return True

    def malformed(self):
        """A request that was one, or noise."""
        kind = self.random.randrange(5)
        noise = self.random.randbytes(self.random.randrange(1, 300))
        request = bytearray(b"GET /metrics HTTP/1.1\r\nHost: x\r\nAccept: text/plain\r\n\r\n")
        if kind == 0:
            return noise
        if kind == 1:
            return b"GET /" + noise + b" HTTP/1.1\r\n\r\n"
        if kind == 2:
            return b"GET /metrics HTTP/1.1\r\n" + b"X: y\r\n" * 5000
        if kind == 3:
            return bytes(request[:self.random.randrange(len(request))])
        for _ in range(self.random.randrange(1, 8)):
            request[self.random.randrange(len(request))] = self.random.randrange(256)
        return bytes(request)

    def test_counting_goes_on_under_attack(self):
        run = self.observe(release=True)
        packets = lab.sized(200000)
        with self.a: # which threads inherit
            self.where = metrics.served_at(run)
            self.withstand(run.process.pid, lambda: run.memory()["now"], b"GET /met", "--packets", packets)
            metrics.scrape(self.where)
        result = run.stop()
        result.check_conservation()
        self.assertGreaterEqual(result.stats["seen"]["packets"], packets)
        self.assertEqual((0, 0), result.total("lost"))


if __name__ == "__main__":
    lab.main(at_once=3)
