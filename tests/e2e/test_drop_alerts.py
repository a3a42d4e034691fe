# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
# Needs: nftables
# Lock: drops, its drops need room among those of the whole host.
"""Rules about packets that the kernel drops: alerts of flows, compared with the kernel's counters.

Counts and thresholds are random.
"""

import socket
import subprocess
import threading
import time

from lib import drops
from lib import lab
from lib import metrics
from lib import observer
from lib import traffic
from lib.drops import CLIENT, SERVER, nft_packets
from lib.observer import features
from lib.service import end_service, launch, status_of

ALL_ROUTES = "/^(rc|rs)$/"
PASSED, SOME, TCP = 2060, 2061, 2080 # ports

# One of ten datagrams, and one of five segments, beside what the server drops already.
RULES = f"""
table inet some {{
    chain input {{
        type filter hook input priority 0;
        udp dport {SOME} numgen inc mod 10 < 1 counter drop comment "some"
        tcp dport {TCP} numgen inc mod 5 < 1 counter drop comment "tcp"
    }}
}}
"""



class DropAlerts(drops.DropsTest):
    def setUp(self):
        super().setUp()
        self.server.run("nft", "-f", "-", input=RULES)
        for port in PASSED, SOME:
            receiver = traffic.make_socket(self.server, socket.SOCK_DGRAM, "0.0.0.0", port)
            self.addCleanup(receiver.close)
            receiver.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 20)

    def send(self, port, count, source):
        traffic.throw(self.client, (SERVER, port), count, data=bytes(64), source=(CLIENT, source))

    # ---- The command --------------------------------------------------------------------

    def test_alerts_have_what_was_dropped(self):
        """Each packet that is dropped of a flow is in one alert, if every record is one."""
        run = observer.Observer(self.lab, self.router, "--drops", "-i", ALL_ROUTES,
                                "--rule", "each=drops > 0 hold 0s limit none",
                                "--rule", "server=drops > 0 hold 0s limit none where port 2001",
                                "--rule", "once=drops > 0 hold 1h where udp",
                                "--rule", "never=drops > 100000000",
                                "--rule", "tcp=drops > 0 where tcp", verb="alerts").wait_attached()
        counts = {port: self.random.randrange(20, 200) for port in (2001, 2003, PASSED)}
        for port, count in counts.items():
            self.send(port, count, 4000)
        result = run.stop()
        alerts, counted = result.records, {one["name"]: one for one in result.alerts}
        for one in result.alerts:
            self.assertEqual(one["broken"], one["fired"] + one["held"] + one["limited"] + one["lost"])
            self.assertEqual(one["fired"], one["delivered"])
        self.assertEqual(counts[2001], nft_packets(self.server, "2001"))
        self.assertEqual(counts[2003], nft_packets(self.router, "2003"))
        for name, ports in (("each", (2001, 2003)), ("server", (2001,))):
            own = [one for one in alerts if one["Alert"] == name and one["SrcPort"] == 4000]
            self.assertEqual({port: counts[port] for port in ports},
                             {port: sum(one["Value"] for one in own if one["DstPort"] == port)
                              for port in {one["DstPort"] for one in own}}, counted)
            for one in own:
                self.assertEqual(("drops", "packets", 0, 17, CLIENT, SERVER, "to_server", 1, 1),
                                 tuple(one[key] for key in (
                                     "Metric", "Unit", "Threshold", "Proto", "SrcAddr", "DstAddr",
                                     "Way", "Hits", "Among")))
                self.assertIn(one["Interface"], ("rc", "rs"))
                self.assertEqual(self.router.inode, one["NetnsInode"])
        self.assertEqual([2001, 2003], sorted(one["DstPort"] for one in alerts
                                              if one["Alert"] == "once" and one["SrcPort"] == 4000))
        self.assertEqual([0, 0], [counted[name]["broken"] for name in ("never", "tcp")])

    def test_a_table_has_a_line_for_each(self):
        with self.lab.spawn(observer.netobsctl(), "alerts", "--drops", "--rule", "lossy=drops > 0.1%",
                            "-i", ALL_ROUTES, "-o", "table", "-n", "1", "-d", "60", ns=self.router,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
            while process.poll() is None:
                self.send(2001, 10, 4000)
                time.sleep(0.3)
            out, errors = process.stdout.read(), process.stderr.read()
        self.assertEqual(0, process.returncode, errors)
        self.assertRegex(out, r" 100\.00 % +0\.10 % +r[cs] +lossy: drops > 0\.1%")

    # ---- The service --------------------------------------------------------------------

    def configure(self, interval, *rules, capture=(), more=()):
        """@rules: (name, rule, further keys)"""
        self.path, self.control = self.lab.path("netobs.conf"), self.lab.path("control.sock")
        lines = ["[capture]", f"interface = {ALL_ROUTES}", "drops = yes", *capture, "[flows]",
                 f"interval = {interval}", "[control]", f"path = {self.control}",
                 '[sink "all"]', f"output = json:{self.lab.path('records')}",
                 "records = flow,alert,journey", *more]
        for name, rule, *keys in rules:
            lines += [f'[alert "{name}"]', f"rule = {rule}", *keys]
        lab.write(self.path, "\n".join(lines) + "\n")
        self.lines = lines

    def run_service(self):
        with open(self.lab.path("messages"), "wb") as messages:
            return launch(self, self.router, self.lines, stderr=messages)

    def stop(self, service):
        end_service(self, service)
        observer.check_sanitizer(lab.read(self.lab.path("messages")))

    def records(self, kind):
        found = lab.json_lines(self.lab.path("records"), is_whole=False)
        return [one for one in found if one.get("type", "flow") == kind]

    def test_shares_are_of_the_flow(self):
        """All of a flow is in one record, and a tenth of it is dropped."""
        self.configure("10m", ("under", "drops > 9% where port 2061"),
                       ("over", "drops > 11% where port 2061"), ("all", "drops > 99.9%"),
                       ("number", "drops > 10"))
        service = self.run_service()
        count = 10 * self.random.randrange(12, 40)
        self.send(SOME, count, 4000)
        self.send(2001, 10, 4000)
        self.send(PASSED, 100, 4000)
        self.stop(service)
        self.assertEqual(count // 10, nft_packets(self.server, "some"))
        own = [one for one in self.records("alert") if one["SrcPort"] == 4000]
        self.assertEqual(
            [("all", 2001, 1000000, 999000), ("number", SOME, count // 10, 10),
             ("under", SOME, 100000, 90000)],
            sorted((one["Alert"], one["DstPort"], one["Value"], one["Threshold"]) for one in own))
        self.assertEqual({"all": ("drop_share", "ppm"), "under": ("drop_share", "ppm"),
                          "number": ("drops", "packets")},
                         {one["Alert"]: (one["Metric"], one["Unit"]) for one in own})
        flows = {one["DstPort"]: one for one in self.records("flow") if one["SrcPort"] == 4000}
        for one in own:
            flow = flows[one["DstPort"]]
            self.assertEqual(flow["TimeFlowStartMs"], one["TimeFlowStartMs"])
            wanted = flow["PktDropPackets"] if one["Metric"] == "drops" else \
                1000000 * flow["PktDropPackets"] // flow["Packets"]
            self.assertEqual(wanted, one["Value"])

    def test_metrics_and_a_reload(self):
        self.configure("200ms", ("each", "drops > 0 hold 0s limit none where port 2001"))
        service = self.run_service()
        count = self.random.randrange(10, 100)
        self.send(2001, count, 4000)
        lab.wait_for(lambda: sum(one["Value"] for one in self.records("alert")) == count, "alerts")
        samples = metrics.Samples(self.router.run(observer.netobsctl(), "metrics", "-s", self.control))
        n_alerts = len(self.records("alert"))
        for name in "samples", "fired":
            series = f"netobs_alert_{name}_total" if name == "samples" else "netobs_alerts_fired_total"
            self.assertEqual(n_alerts, samples.value(series, alert="each"))
        self.configure("200ms", ("each", "drops > 0 hold 0s limit none where port 2001"),
                       ("rtt", "rtt > 1s"))
        checked = observer.run("config", "check", self.path, code=None)
        self.assertIn("alerts need 'rtt = yes' in [capture]", checked.stderr)
        self.configure("200ms", ("other", "drops > 0 hold 1h where port 2003"))
        self.router.run(observer.netobsctl(), "reload", "-s", self.control)
        self.send(2003, count, 4001)
        self.send(2001, count, 4001)
        lab.wait_for(lambda: [one for one in self.records("alert") if one["Alert"] == "other"],
                     "the other rule")
        alerts = {one.get("name", "replaced"): one for one in status_of(self.control)["alerts"]}
        self.assertEqual(1, alerts["other"]["fired"])
        self.assertEqual(n_alerts, alerts["replaced"]["fired"])
        self.stop(service)

    def talk(self, until):
        """A connection that loses segments, all the time; @return its port"""
        with self.server:
            listener = socket.create_server((SERVER, TCP))
        self.addCleanup(listener.close)
        with self.client:
            end = socket.create_connection((SERVER, TCP), timeout=60)
        self.addCleanup(end.close)
        other, _ = listener.accept()
        self.addCleanup(other.close)

        def echo():
            try:
                while part := other.recv(4096):
                    other.sendall(part)
            except OSError:
                pass
        thread = threading.Thread(target=echo)
        thread.start()
        self.addCleanup(thread.join)
        port = end.getsockname()[1]
        while not until(port):
            end.sendall(bytes(100))
            end.recv(4096)
        end.shutdown(socket.SHUT_RDWR)
        return port

    def test_an_alert_has_its_connection_traced(self):
        if not features().get("trace"):
            self.skipTest("this kernel cannot trace")
        self.configure("200ms", ("lossy", f"drops > 0 hold 1s where port {TCP} or port 2001",
                                 "trace = 10s"))
        service = self.run_service()
        self.send(2001, 10, 4000)
        port = self.talk(lambda port: any(port in (one["SrcPort"], one["DstPort"])
                                          for one in self.records("journey")))
        status = status_of(self.control)
        self.stop(service)
        alerts = [one for one in self.records("alert") if one["SrcPort"] == port]
        self.assertTrue(alerts)
        self.assertEqual({("lossy", CLIENT, SERVER, TCP, 6)},
                         {(one["Alert"], one["SrcAddr"], one["DstAddr"], one["DstPort"], one["Proto"])
                          for one in alerts})
        self.assertEqual({"lossy"}, {one["Alert"] for one in self.records("journey")})
        self.assertLessEqual({one["AlertTimeNs"] for one in self.records("journey")},
                             {one["TimeNs"] for one in alerts})
        # That of UDP is no connection.
        self.assertGreaterEqual(status["trace"]["refused"], 1)
        self.assertGreaterEqual(status["trace"]["armed"], 1)


if __name__ == "__main__":
    lab.main("tracepoint of dropped packets", lambda: features()["drops"])
