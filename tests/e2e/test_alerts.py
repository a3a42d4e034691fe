#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
"""Alerts of TCP connections that break rules, over a link that delays: lib/relay.py."""

import os
import subprocess

from lib import bpf
from lib import capfile
from lib import frames
from lib import lab
from lib import observer
from lib import relay
from lib.observer import features

# More than the processes of a busy machine wait for a CPU.
DELAY_MS = 200
THINK_MS = 500
TALK_SECONDS = 3
SECONDS = 2


class Alerts(lab.LabTest):
    def start(self, link, *arguments):
        """netobsctl alerts in a."""
        return observer.Observer(self.lab, link.a, "-i", "eth0", *arguments, verb="alerts").wait_attached(
            (link.a, "eth0"))

    def finish(self, run):
        """@return the alerts, and what each rule has counted"""
        result = run.stop()
        return result.records, {rule["rule"]: rule for rule in result.alerts}

    def test_a_slow_path_and_a_slow_server_are_told_apart(self):
        link = relay.Link(self.lab, DELAY_MS * 1000)
        link.serve(think_ms=THINK_MS)
        rules = {"path": f"rtt > {DELAY_MS - 50}ms for 2 of 3 hold 1h",
                 "server": f"app_latency > {THINK_MS - 50}ms hold 1h where dst port {relay.PORT}",
                 "slower": f"rtt > {THINK_MS + DELAY_MS}ms",
                 "elsewhere": "rtt > 0ns where port 22",
                 "grown": "rtt > 100000 * baseline",
                 "rate": "rate > 100Gbit",
                 "lossy": "retransmits > 90%"}
        run = self.start(link, *(f"--rule={name}={rule}" for name, rule in rules.items()))
        found = link.talk("pingpong", TALK_SECONDS)
        alerts, counts = self.finish(run)
        self.assertEqual(["path", "server"], sorted(alert["Alert"] for alert in alerts))
        for alert in alerts:
            self.assertEqual(rules[alert["Alert"]], alert["Rule"])
            self.assertEqual(("alert", "192.0.2.1", "192.0.2.2", found["port"], relay.PORT, 6,
                              "eth0", "to_server"),
                             tuple(alert[key] for key in
                                   ("type", "SrcAddr", "DstAddr", "SrcPort", "DstPort", "Proto",
                                    "Interface", "Way")))
            self.assertGreater(alert["Value"], alert["Threshold"])
        for name, rule in rules.items():
            fired = name in ("path", "server")
            self.assertEqual(fired, counts[rule]["fired"], rule)
            self.assertEqual(fired, counts[rule]["held"] > 0, rule)
            self.assertEqual((0, 0), (counts[rule]["limited"], counts[rule]["lost"]))

    def test_neither_the_path_nor_the_client_is_a_slow_server(self):
        """A keep-alive connection of a client that rests, to a server that answers at once."""
        link = relay.Link(self.lab, DELAY_MS * 1000)
        link.serve()
        slow, every = (f"app_latency > {limit} hold 0s limit none"
                       for limit in (f"{DELAY_MS - 50}ms", "0ns"))
        run = self.start(link, "--rule", slow, "--rule", every)
        found = link.talk("rest", 2 * TALK_SECONDS)
        alerts, counts = self.finish(run)
        self.note(f"{len(found['times'])} answers, {len(alerts)} samples, "
                  f"{max(alert['Value'] for alert in alerts) / 1e6:.2f} ms at most")
        self.assertEqual(0, counts[slow]["broken"])
        # An answer that takes no longer than the path did so far is not over 0.
        self.assertIn(len(alerts), range(1, len(found["times"]) + 1))
        self.assertEqual({"to_server"}, {alert["Way"] for alert in alerts})

    def test_a_filter_selects_the_connections(self):
        """The verifier has to bear the programs with alerts and an expression of any size."""
        link = relay.Link(self.lab, 2_000)
        link.serve()
        rule = ("--rule", "rtt > 0ns hold 0s limit none")
        terms = [f"(host 10.0.{i}.1 and (tcp port {i + 1} or udp))" for i in range(60)]
        for expression, is_seen in (("tcp", True), (f"not port {relay.PORT}", False),
                                    (f"tcp port {relay.PORT} or " + " or ".join(terms), True)):
            run = self.start(link, expression, *rule)
            link.talk("pingpong", 0.5)
            alerts, counts = self.finish(run)
            self.assertEqual(is_seen, bool(alerts), expression)
            self.assertEqual(len(alerts), counts[rule[1]]["fired"])

    def test_it_ends_with_the_count_and_with_its_reader(self):
        link = relay.Link(self.lab, 0)
        link.serve()
        rule = ("--rule", "rtt > 0ns hold 0s limit none")
        run = self.start(link, *rule, "-n", "3")
        link.talk("pingpong", 0.5)
        run.process.wait(lab.PATIENCE_S)
        self.assertEqual(3, len(run.finish().records))
        reads, writes = os.pipe()
        process = self.lab.spawn(observer.netobsctl(), "alerts", "-i", "eth0", *rule,
                                 ns=link.a, stdout=writes)
        os.close(writes)
        lab.wait_for(lambda: bpf.attached(link.a, "eth0") == 2, "netobsctl")
        os.close(reads)
        self.assertEqual(0, process.wait(timeout=60))

    def test_a_table_has_a_line_for_each(self):
        link = relay.Link(self.lab, 2_000)
        link.serve()
        processes = [self.lab.spawn(
            observer.netobsctl(), "alerts", "-i", "eth0", "-o", "table", "--rule",
            "slow=rtt > 1ms for 1 of 5", "-n", "1", ns=link.a, stdout=subprocess.PIPE, text=True,
            env=os.environ | more) for more in ({}, {"COLUMNS": "80"})]
        lab.wait_for(lambda: bpf.attached(link.a, "eth0") == 4, "netobsctl")
        link.talk("pingpong", 0.5)
        wide, narrow = (process.communicate(timeout=60)[0].splitlines() for process in processes)
        self.assertRegex(wide[0], "^TIME +CLIENT +SERVER +WAY +VALUE +OVER +SEEN AT +RULE")
        self.assertRegex(wide[1], r"192\.0\.2\.1:\d+ +192\.0\.2\.2:7000 +to server +[\d.]+ ms +"
                                  r"1\.00 ms +eth0 +slow: rtt > 1ms for 1 of 5$")
        self.assertRegex(narrow[0], "^TIME +CLIENT +SERVER +VALUE +RULE$")
        self.assertRegex(narrow[1], r" ms +slow: rtt > 1ms fo")

    def test_the_process_of_the_local_end_is_known(self):
        """Of a connection that is younger than an interval."""
        if not features()["sessions"]:
            self.skipTest("the kernel does not let programs follow TCP sockets")
        link = relay.Link(self.lab, 2_000)
        link.serve()
        run = self.start(link, "--process", "--rule", "rtt > 0ns hold 0s limit none")
        client = relay.ask(self.lab, link.a, "pingpong", relay.ADDRESSES[4][1], SECONDS)
        lab.wait_for(run.lines, "an alert") # so what it executes is Python by now
        name = lab.read(f"/proc/{client.pid}/comm").strip()
        relay.said(client)
        alerts, _ = self.finish(run)
        known = [alert for alert in alerts if "Pid" in alert]
        self.assertEqual({(name, client.pid)},
                         {(alert["Process"], alert["Pid"]) for alert in known})
        self.assertGreater(len(known), len(alerts) / 2)
        self.note(f"{len(known)} of {len(alerts)} alerts have the process")

    def test_filters_need_the_headers_that_files_have(self):
        path = self.lab.path("raw.pcap")
        packet = frames.ipv4("192.0.2.1", "192.0.2.2", frames.TCP, bytes(20))
        with open(path, "wb") as file:
            file.write(capfile.pcap(capfile.RAW, [(0, capfile.link(
                capfile.RAW, frames.ether("02:00:00:00:00:01", "02:00:00:00:00:02",
                                          frames.IPV4, packet)))]))
        for words, code in (("ether host 02:00:00:00:00:01", 1), ("tcp port 0", 0)):
            done = observer.run("alerts", "-r", path, "--rule", f"rtt > 0ns where {words}", code=code)
            self.assertEqual(bool(code), "without Ethernet header" in done.stderr, done.stderr)


if __name__ == "__main__":
    lab.main(at_once=3)
