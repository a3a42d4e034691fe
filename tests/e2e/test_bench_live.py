#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
# Needs: iperf3
"""`./dev bench`, apart from times: what it sends, follows, sums up and prints."""

import os
import sys
import unittest

sys.path.append(os.path.join(os.path.dirname(__file__), "..", "..", "bench", "live"))

import chart
from lib import lab
import load
import measure
import report
import rtt_chart
import summary
import table
from agents import AGENTS
from scenarios import SCENARIOS


def cell(number, agent, throughput, **fields):
    return {"scenario": "udp-egress-1k", "agent": agent, "round": number,
            "throughput": throughput, "unit": "packet/s", "packets": 1000,
            "seconds": 1.0, "reported": None, "agent_cpu_seconds": None,
            "softirq_seconds": 0.5, "busy_seconds": 1.0,
            "busy_beside": 0.25,
            "rss_peak_bytes": None, "kernel_bytes": None, **fields}


class Sums(unittest.TestCase):
    def summarize(self, *cells):
        return {row["agent"]: row for row in summary.summarize(cells)}

    def test_ratios_are_of_neighbours_in_a_round(self):
        """The machine is twice as fast in round 2; the agent takes 10 %."""
        rows = self.summarize(
            cell(1, "none", 100), cell(1, "empty", 95), cell(1, "netobs", 90),
            cell(2, "none", 200), cell(2, "empty", 190), cell(2, "netobs", 180),
            cell(3, "none", 100), cell(3, "empty", 95), cell(3, "netobs", 50))
        self.assertEqual({"median": 0.9, "min": 0.5, "max": 0.9},
                         rows["netobs"]["of_none"])
        self.assertEqual(1, rows["none"]["of_none"]["max"])
        self.assertEqual(90, rows["netobs"]["throughput"]["median"])

    def test_no_neighbour_no_ratio(self):
        rows = self.summarize(cell(1, "netobs", 90))
        self.assertIsNone(rows["netobs"]["of_none"])

    def test_worst_run_is_reported(self):
        rows = self.summarize(*(cell(number, "netobs", 90, reported=reported)
                                for number, reported in
                                enumerate((1000, 999, 1000))))
        self.assertEqual(0.999, rows["netobs"]["monitoring_rate"])

    def test_memory_is_the_highest_and_cpu_per_million_packets(self):
        rows = self.summarize(
            cell(1, "netobs", 90, rss_peak_bytes=5, agent_cpu_seconds=0.001),
            cell(2, "netobs", 90, rss_peak_bytes=7, agent_cpu_seconds=0.003))
        self.assertEqual(7, rows["netobs"]["rss_peak_bytes"])
        self.assertIsNone(rows["netobs"]["kernel_bytes"])
        self.assertEqual(2, rows["netobs"]["agent_cpu_seconds_per_million"])

    def test_others_are_seen_where_no_agent_is(self):
        self.assertEqual(0.25, summary.disturbance(
            [cell(1, "none", 100),
             cell(1, "netobs", 90, busy_beside=0.9)]))
        self.assertIsNone(summary.disturbance([]))

    def test_targets(self):
        lines = summary.summarize([
            cell(1, "empty", 100),
            cell(1, "netobs", 96, reported=1000)])
        self.assertEqual([("monitoring rate", True),
                          ("throughput of empty", False)],
                         [(one["what"], one["met"])
                          for one in summary.check(lines, SCENARIOS)])

    def test_round_trip_times_are_compared_with_netobs(self):
        def what(*cells):
            cells = [{**one, "scenario": "tcp"} for one in cells]
            return [(one["what"], one["met"]) for one in
                    summary.check(summary.summarize(cells), SCENARIOS)
                    if one["what"] != "monitoring rate"]
        self.assertEqual([("throughput of netobs, with --rtt", False)],
                         what(cell(1, "netobs", 100), cell(1, "netobs-rtt", 97)))
        self.assertEqual([("throughput of netobs, with --rtt", True)],
                         what(cell(1, "netobs", 100), cell(1, "netobs-rtt", 99)))
        self.assertEqual([], what(cell(1, "netobs-rtt", 97)))

    def test_cpu_beyond_no_agent_is_of_neighbours_in_a_round(self):
        """The ends take more in round 2; the agent takes a quarter of a CPU."""
        rows = self.summarize(
            cell(1, "none", 100, ends_cpu_seconds=0.5),
            cell(1, "netobs", 100, ends_cpu_seconds=0.625, agent_cpu_seconds=0.125),
            cell(2, "none", 100, ends_cpu_seconds=3.0, seconds=2.0),
            cell(2, "netobs", 100, ends_cpu_seconds=3.0, agent_cpu_seconds=0.5, seconds=2.0))
        self.assertEqual({"median": 0.25, "min": 0.25, "max": 0.25},
                         rows["netobs"]["more_cpus"])
        self.assertEqual({"median": 1.0, "min": 0.5, "max": 1.5}, rows["none"]["used_cpus"])
        self.assertIsNone(self.summarize(cell(1, "netobs", 100))["netobs"]["more_cpus"])

    def test_a_rate_that_is_given_is_no_target(self):
        cells = [{**cell(1, agent, 100, reported=1000), "scenario": "tcp-paced"}
                 for agent in ("empty", "netobs", "netobs-rtt")]
        self.assertEqual(["monitoring rate"], [
            one["what"] for one in summary.check(summary.summarize(cells), SCENARIOS)])

    def test_one_lost_packet_is_not_met(self):
        lines = summary.summarize([
            cell(1, "netobs", 96, packets=10 ** 9, reported=10 ** 9 - 1)])
        self.assertFalse(summary.check(lines, SCENARIOS)[0]["met"])


class Words(unittest.TestCase):
    def test_only_1_looks_like_1(self):
        self.assertEqual("1", table.rate(1.0))
        self.assertEqual("0.9990", table.rate(0.999))
        self.assertEqual("0.9999990", table.rate(1 - 1e-6))
        self.assertEqual("100 %", chart.percent(1.0))
        self.assertEqual("99.99 %", chart.percent(1 - 1e-9))

    def test_labels_keep_apart_and_in_order(self):
        wanted = [50, 10, 51, 52]
        placed = chart.spread_labels(wanted, 5)
        self.assertEqual([46, 10, 51, 56], placed)

    def test_report_fills_its_markers_only(self):
        document = ("before\n<!-- live: made by ./dev bench report -->\nold\n"
                    "<!-- end -->\nafter\n")
        filled = report.fill(document, "live", r"new \1")
        self.assertNotIn("old", filled)
        self.assertIn(r"new \1", filled)
        self.assertEqual(filled, report.fill(filled, "live", r"new \1"))
        self.assertTrue(filled.startswith("before\n"))
        self.assertTrue(filled.endswith("after\n"))
        with self.assertRaises(SystemExit):
            report.fill(document, "drain", "")

    def test_tables_of_every_kind(self):
        lines = summary.summarize([cell(1, "none", 1e6), cell(1, "empty", 9e5),
                                   cell(1, "netobs", 8e5, reported=1000)])
        results = {"kernel": "6.1", "cpu": "a CPU", "cpus": 2, "rounds": 1,
                   "date": "2026-01-01", "versions": {"iperf3": "3"},
                   "results": lines, "disturbance": 0.01,
                   "targets": summary.check(lines, SCENARIOS)}
        self.assertIn("| netobs | 0.80 Mpacket/s | 0.800 | 0.889 | 1 |",
                      report.live(results))
        self.assertIn("UDP egress, 1k flows", table.text(lines))
        self.assertIn("'1k' 1", chart.script(results, "x.svg"))

    def test_round_trip_times(self):
        cells = [{**cell(1, agent, throughput, unit="bit/s", reported=reported,
                         ends_cpu_seconds=used), "scenario": scenario}
                 for scenario in ("tcp", "tcp-paced")
                 for agent, throughput, used, reported in
                 (("none", 5e9, 1.0, None), ("empty", 5e9, 1.0, None),
                  ("netobs", 4e9, 1.01, 1000), ("netobs-rtt", 3.96e9, 1.03, 1000),
                  ("host-int", 3e9, 1.4, 990))]
        lines = summary.summarize(cells)
        results = {"kernel": "6.1", "cpu": "a CPU", "cpus": 2, "rounds": 1,
                   "versions": {"iperf3": "3"}, "results": lines, "disturbance": None,
                   "targets": summary.check(lines, SCENARIOS)}
        text = report.rtt(results)
        self.assertIn("| netobs-rtt | 3.96 Gbit/s | 0.792 | 0.990 | 1 | 103.0 % | 3.0 % |", text)
        self.assertIn("| host-int | 3.00 Gbit/s | 0.600 | 0.750 | 0.9900 | 140.0 % | 40.0 % |",
                      text)
        self.assertIn("with --rtt | 0.98 | 0.9900 | met |", text)
        script = rtt_chart.script(results, "x.svg")
        self.assertEqual(2, script.count("plot "))
        self.assertIn("\n1 40.000 40.000 40.000 ", script)

    def test_datapath_and_drain(self):
        host = {"kernel": "6.1", "cpu": "a CPU", "rounds": 1}
        text = report.datapath({**host, "results": [
            {"store": store, "flows": flows, "distribution": "uniform",
             "cpus": 1, "sharing": "disjoint", "ns_per_packet": 50,
             "ns_over_empty": ns} for store, flows, ns in
            (("netobs", 1, 4.4), ("netobs", 1024, 9), ("hash", 1, 70))]})
        self.assertIn("| flows | 1 | 1,024 |", text)
        self.assertIn("| netobs | 4 | 9 |", text)
        self.assertIn("| hash | 70 | - |", text)
        text = report.alternating({**host, "results": [
            {"store": "netobs", "distribution": "zipf", "flows": flows, "sent": 9,
             "counted": 9, "ratio": ratio} for flows, ratio in ((1, 0.9), (1000, 0.8))]})
        self.assertIn("| netobs, zipf | 0.900 | 0.800 |", text)
        text = report.drain({**host, "results": [
            {"flows": 1000, "user_ns_per_flow": 120.4, "system_ns_per_flow": 5,
             "wall_ns_per_flow": 130, "rss_peak_bytes": 1 << 20,
             "kernel_bytes": 2 << 20, "total_bytes": 3 << 20}]})
        self.assertIn("| 1,000 | 120 | 5 | 130 | 1.0 MiB | 2.0 MiB | 3.0 MiB |", text)


class Runs(lab.LabTest):
    def check(self, scenario):
        cpu = min(os.sched_getaffinity(0))
        wire = load.Wire(self.lab, cpu)
        agent = AGENTS["netobs"](self.lab, wire.host, load.INTERFACE, cpu)
        sent = wire.run(SCENARIOS[scenario], 0.3)
        agent.usage.look_at_maps()
        agent.stop()
        self.assertEqual(sent["packets"], agent.count())
        self.assertGreater(sent["packets"], 0)
        self.assertGreater(agent.usage.peak_rss_bytes(), 0)
        self.assertGreater(agent.usage.kernel_bytes, 0)

    def test_all_udp_that_leaves_is_reported(self):
        self.check("udp-egress-1k")

    def test_all_udp_that_arrives_is_reported(self):
        self.check("udp-ingress-1")

    def test_all_tcp_is_reported(self):
        self.check("tcp")

    def test_children_are_followed_and_ended(self):
        process = self.lab.spawn("sh", "-c", "sleep 1000 & sleep 1000; true")
        lab.wait_for(lambda: len(measure.family(process.pid)) == 3,
                     "the shell's children")
        usage = measure.Usage(process.pid).look()
        process.kill()
        process.wait()
        left = usage.survivors()
        self.assertEqual(2, len(left))
        for pid in left:
            os.kill(pid, 9)
        lab.wait_for(lambda: not usage.survivors(), "their end")


if __name__ == "__main__":
    lab.main()
