#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
"""
Rules in a file: the first one that matches decides, each counts, and SIGHUP replaces all of
them in a flood without a packet that is not counted.
"""

import json
import os
import signal
import threading

from lib import capfile
from lib import frames as f
from lib import lab
from lib import observer
from lib import traffic
from lib.exact import ExactTest
from lib.observer import Observer

USAGE = 2
REPLACEMENTS = lab.sized(20)
RATE = lab.sized(20000)


class Rules(ExactTest):
    def write(self, *lines):
        lab.write(self.path, "\n".join(lines) + "\n")

    def setUp(self):
        super().setUp()
        self.path = self.lab.path("rules")

    def observe(self, *arguments):
        return Observer(self.lab, self.a, "-i", "eth0", "--rules", self.path,
                        *arguments).wait_attached((self.a, "eth0"))

    def replace(self, run, *lines):
        """Once the rules are in use, of which the log has a line each time."""
        done = f"{self.path}: {len(lines) - 1} rules are in use"
        before = run.messages().count(done)
        self.write(*lines)
        run.process.send_signal(signal.SIGHUP)
        lab.wait_for(lambda: run.messages().count(done) > before, "new rules")

    def judged(self, result):
        """Packets that rules decided about, replaced rules included."""
        replaced = result.stats.get("replaced_rules", {"packets": 0, "bytes": 0})
        parts = result.stats["rules"] + [replaced]
        return (sum(part["packets"] for part in parts),
                sum(part["bytes"] for part in parts))

    def test_first_rule_that_matches_decides(self):
        self.join(offload=False, ipv6=False)
        self.write("# what is noise", "reject icmp   # also ping", "",
                   "\taccept udp port 5002", "accept tcp", "default reject")
        run = self.observe()
        traffic.ping(self.a, self.B4, 10)
        traffic.udp(self.a, self.A4, self.b, self.B4, [100] * 50)
        result = run.stop()
        result.check_conservation()
        icmp, udp, tcp, rest = result.stats["rules"]
        self.assertEqual(("reject", "icmp", 20),
                         (icmp["action"], icmp["filter"], icmp["packets"]))
        self.assertEqual(50, udp["packets"])
        self.assertEqual(50 * 128, udp["bytes"])
        self.assertEqual(0, tcp["packets"])
        self.assertEqual("reject", rest["action"])
        self.assertNotIn("filter", rest)
        self.assertEqual(50, result.exported()[0])

    def test_rules_of_a_file(self):
        packets = traffic_file(self)
        self.write("reject udp dst port 51", "default accept")
        result = observer.flows(self.lab, "-o", "json", "--stats", "-r", packets,
                                "--rules", self.path)
        self.assertEqual(0, result.code, result.errors)
        result.check_conservation()
        self.assertEqual([20, 40],
                         [rule["packets"] for rule in result.stats["rules"]])

    def test_rules_sample_by_themselves(self):
        """Records, groups and counts of each rule follow its sampling."""
        packets = traffic_file(self)
        self.write("accept sample 1:4 udp dst port 50", "accept sample flow:1 udp dst port 51",
                   "default accept")

        def run(*arguments):
            done = observer.flows(self.lab, "--stats", "-r", packets, "--sampling", "2",
                                  "--rules", self.path, *arguments)
            self.assertEqual(0, done.code, done.errors)
            return done

        result = run("-o", "json")
        result.check_conservation()
        self.assertEqual({(50, 4, 5), (51, 1, 20), (52, 2, 10)},
                         {(record["DstPort"], record["Sampling"], record["Packets"])
                          for record in result.each()})
        self.assertEqual([("1:4", 15), ("flow:1", 0), (None, 10)],
                         [(rule.get("sample"), rule["sampled_out"]["packets"])
                          for rule in result.stats["rules"]])
        self.assertEqual({(4, 5), (1, 20), (2, 10)},
                         {(group["Sampling"], group["Packets"])
                          for group in run("-o", "json", "--by", "proto").records})
        table = run("-o", "table", "--by", "proto")
        text = table.lines().read()
        for words in "UDP (1:4)", "UDP (all)", "sampled at different rates":
            self.assertIn(words, text)

    def check_replaced(self, *arguments):
        lists = (("accept udp src portrange 1-30000", "accept ip or not ip",
                  "default reject"),
                 ("accept not udp", "accept udp", "default reject"))
        self.write(*lists[0])
        run = self.observe(*arguments)
        flood = traffic.begin_flood(self.lab, self.a, "eth0", "--flows", 5000,
                                    "--rate", RATE, "--dest", self.B4)
        for i in range(1, REPLACEMENTS + 1):
            self.replace(run, *lists[i % 2])
        flood.send_signal(signal.SIGTERM)
        sent = json.loads(flood.communicate(timeout=60)[0])["packets"]
        result = run.stop()
        result.check_conservation()
        self.assertEqual(0, result.stats["rules"][-1]["packets"])
        self.assertEqual((0, 0), result.total("filtered", "lost"))
        seen = result.stats["seen"]
        self.assertEqual((seen["observed_packets"], seen["observed_bytes"]),
                         self.judged(result))
        self.assertEqual(sent, sum(
            record["Packets"] for record in result.each()
            if record["Proto"] == 17 and record["DstAddr"] == self.B4))
        self.note(f"{REPLACEMENTS} lists, {sent} packets")

    def test_replaced_in_a_flood(self):
        self.join(offload=False, ipv6=False)
        self.check_replaced()

    def test_replaced_in_a_flood_with_clsact(self):
        self.join(offload=False, ipv6=False)
        self.check_replaced("--attach", "clsact")

    def test_rules_that_cannot_be_used_leave_those_of_before(self):
        self.join(offload=False, ipv6=False)
        self.write("accept udp", "default reject")
        run = self.observe()
        for line, words in (("accept udp prt 5", ":1: "), ("default", ":1: ")):
            self.write(line, "default accept")
            run.process.send_signal(signal.SIGHUP)
            lab.wait_for(lambda words=words: f"{self.path}{words}" in run.messages(),
                         "an error")
            self.write("accept udp", "default reject")
        traffic.ping(self.a, self.B4, 5)
        traffic.udp(self.a, self.A4, self.b, self.B4, [100] * 7)
        result = run.stop()
        result.check_conservation()
        self.assertEqual(7, result.exported()[0])

    def test_pipe_is_not_waited_for(self):
        """A reload reads regular files only; what waits at the start may be a pipe."""
        self.join(offload=False, ipv6=False)
        self.write("accept udp", "default reject")
        run = self.observe()
        os.unlink(self.path)
        os.mkfifo(self.path)
        run.process.send_signal(signal.SIGHUP)
        lab.wait_for(lambda: "not a regular file" in run.messages(), "an error")
        traffic.udp(self.a, self.A4, self.b, self.B4, [100] * 7)
        result = run.stop()
        self.assertEqual(7, result.exported()[0])
        writer = threading.Thread(target=self.write, args=("default reject",))
        writer.start()
        result = observer.flows(self.lab, "-d", "0.1", "--rules", self.path, ns=self.a)
        writer.join()
        self.assertEqual(0, result.code, result.errors)

    def test_files_that_are_none(self):
        cases = (
            (["accept tcp"], ": 'default accept' or"),
            (["accept", "default accept"], ":1: the expression is missing"),
            (["", "allow tcp", "default accept"], ":2: a line begins with"),
            (["default drop"], ":1: the default is"),
            (["accept sample 1:0 udp", "default reject"], ":1: behind 'sample'"),
            (["accept sample 100 udp", "default reject"], ":1: behind 'sample'"),
            (["accept sample flow:x udp", "default reject"], ":1: behind 'sample'"),
            (["accept sample 1:5000000000 udp", "default reject"], ":1: behind 'sample'"),
            (["accept sample 1:5", "default reject"], ":1: the expression is missing"),
            (["reject sample 1:5 udp", "default accept"], ":1: packets that are rejected"),
            (["default accept", "accept tcp"], ":2: lines behind the default"),
            (["accept udp", "accept tcp prt 5", "default accept"],
             ":2: "),
            ([f"accept port {port}" for port in range(1, 66)], ":65: there are more"),
        )
        for lines, words in cases:
            self.write(*lines)
            result = observer.flows(self.lab, "--rules", self.path)
            self.assertEqual(USAGE, result.code, lines)
            self.assertIn(f"{self.path}{words}", result.errors)


def traffic_file(test):
    """60 datagrams, 20 to each of three ports."""
    mac = "02:00:00:00:00:01", "02:00:00:00:00:02"
    packets = [(10 ** 18 + at, f.ether(*mac, f.IPV4, f.ipv4(
        "192.0.2.1", "192.0.2.2", f.UDP, f.udp(1000, 50 + at % 3, bytes(20)))))
               for at in range(60)]
    path = test.lab.path("file")
    with open(path, "wb") as file:
        file.write(capfile.pcap(capfile.ETHERNET, [
            (at, capfile.link(capfile.ETHERNET, frame)) for at, frame in packets]))
    return path


if __name__ == "__main__":
    lab.main()
