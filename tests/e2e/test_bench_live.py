#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
# Needs: iperf3
"""`./dev bench`, apart from times: what it sends, follows, sums up and prints."""

import argparse
import json
import math
import os
import random
import shutil
import subprocess
import sys
import tempfile
import unittest
from unittest import mock

sys.path.append(os.path.join(os.path.dirname(__file__), "..", "..", "bench", "live"))

import live
from lib import lab
import load
import measure
import method
import report
import summary
import turns
from agents import AGENTS
from scenarios import SCENARIOS

PACED, TCP = SCENARIOS["tcp-paced"], SCENARIOS["tcp"]
UDP = SCENARIOS["udp-egress-1k"]
HOST = {"kernel": "6.1", "cpu": "a CPU", "cpus": 2, "date": "2026-01-01"}
QUIET = {**HOST, "width": 0.02, "others": 0.01, "repeated": 1}
NARROW, WIDE = ({"median": 0.9, "low": 0.9 - half, "high": 0.9 + half} for half in (0.005, 0.05))


def cell(**fields):
    return {"packets": 1000, "seconds": 1.0, "reported": None, "agent_cpu_seconds": None,
            "rss_peak_bytes": None, "kernel_bytes": None, **fields}


def rounds_of(number=20, **agents):
    """Each agent has the same turn and neighbours in each round."""
    return [agents] * number


class Sums(unittest.TestCase):
    def summarize(self, rounds, scenario=UDP, **cells):
        cells = {agent: cells.get(agent, [cell()]) for agent in rounds[0]}
        return {row["agent"]: row for row in summary.summarize(scenario, rounds, cells)}

    def test_ratios_are_of_neighbours(self):
        """The machine is twice as fast in each other round; the agent takes 10 %."""
        rows = self.summarize([{"netobs": (90 * speed, 100 * speed)} for speed in (1, 2) * 10])
        self.assertEqual({"median": 0.9, "low": 0.9, "high": 0.9}, rows["netobs"]["of_none"])
        self.assertEqual(20, rows["netobs"]["rounds"])
        self.assertEqual(135, rows["netobs"]["median"])

    def test_worst_run_is_reported(self):
        rows = self.summarize(rounds_of(netobs=(9, 10)), netobs=[
            cell(reported=reported) for reported in (1000, 999, 1000)])
        self.assertEqual(0.999, rows["netobs"]["monitoring_rate"])

    def test_memory_is_the_highest_and_cpu_per_million_packets(self):
        rows = self.summarize(rounds_of(netobs=(9, 10)), netobs=[
            cell(rss_peak_bytes=5, agent_cpu_seconds=0.001),
            cell(rss_peak_bytes=7, agent_cpu_seconds=0.003)])
        self.assertEqual(7, rows["netobs"]["rss_peak_bytes"])
        self.assertIsNone(rows["netobs"]["kernel_bytes"])
        self.assertEqual(2, rows["netobs"]["agent_cpu_seconds_per_million"])

    def test_round_trip_times_are_compared_with_netobs(self):
        def verdicts(rtt):
            rows = self.summarize(rounds_of(**{"netobs": (5, 10), "netobs-rtt": (rtt, 10)}), TCP)
            return [(one["what"], one["met"]) for one in summary.check(rows.values())
                    if one["what"] != "monitoring rate"]
        self.assertEqual([("throughput of netobs, with --rtt", False)], verdicts(4.85))
        self.assertEqual([("throughput of netobs, with --rtt", True)], verdicts(4.95))

    def test_cpu_beyond_no_agent_is_a_difference(self):
        rows = self.summarize(rounds_of(netobs=(0.75, 0.5)), PACED)
        self.assertEqual({"median": 0.25, "low": 0.25, "high": 0.25}, rows["netobs"]["of_none"])
        self.assertEqual(0.75, summary.used_cpus(
            cell(ends_cpu_seconds=1.25, agent_cpu_seconds=0.25, seconds=2.0)))

    def test_one_packet_too_few_or_too_many_is_not_met(self):
        for reported, is_met in ((10 ** 9 - 1, False), (10 ** 9, True), (10 ** 9 + 1, False)):
            rows = self.summarize(rounds_of(netobs=(9, 10)), netobs=[
                cell(packets=10 ** 9, reported=reported)])
            self.assertEqual([is_met], [one["met"] for one in summary.check(rows.values())])


class Rounds(unittest.TestCase):
    """The method, with samples of known distributions; unit.bench_interval has the rest."""

    def measure(self, sigma, most=400, width=0.02, busy=()):
        """Rounds until a ratio with this noise is known; @busy: what others take in each run."""
        chance = random.Random(7)
        found = method.Method(width, most)
        shares = iter(busy)
        with mock.patch.object(method.Others, "share", lambda _: next(shares, 0.0)):
            rounds = found.rounds(lambda: chance.gauss(0.9, sigma), lambda rounds: {"x": rounds})
        return found, rounds

    def test_quiet_ones_end_early_and_noisy_ones_later(self):
        self.assertEqual(20, len(self.measure(0.003)[1]))
        self.assertGreater(len(self.measure(0.03)[1]), 40)

    def test_too_noisy(self):
        with self.assertRaises(method.TooNoisy) as caught:
            self.measure(0.5, most=50)
        self.assertRegex(str(caught.exception), r"^after 50 rounds, the ratio of x is between "
                         r"[\d.]+ and [\d.]+, an interval of [\d.]+; below 0.02 is needed$")

    def test_disturbed_runs_are_repeated_within_a_bound(self):
        found, rounds = self.measure(0.003, busy=(0.2, 0.04, 0.3, 0.01))
        self.assertEqual((20, {"width": 0.02, "others": 0.04, "repeated": 2}),
                         (len(rounds), method.summary([found])))
        found, rounds = self.measure(0.003, busy=[0.5] * 99)
        self.assertEqual((20, 0.5, method.MOST_REPEATS),
                         (len(rounds), found.others, found.repeated))

    def test_a_noisy_scenario_leaves_the_others_their_results(self):
        options = argparse.Namespace(width=0.02, rounds=50, scenario=["udp-egress-1", "tcp"])
        floods = [([], {}), method.TooNoisy("wide")]
        with mock.patch.object(live.Bench, "flood", side_effect=floods), \
                mock.patch.object(live.summary, "summarize", return_value=["row"]):
            bench = live.Bench(options)
            self.assertEqual((["row"], {"width": 0.02, "others": 0.0, "repeated": 0}),
                             bench.measure())
        self.assertEqual({"tcp": "wide"}, bench.noisy)

    def test_interval_is_that_of_the_library(self):
        self.assertEqual((4, 1, 7), method.interval([7, 1, 6, 2, 5, 3, 4]))
        self.assertEqual(math.inf, method.interval([1] * 6).high)

    def test_each_turn_is_between_two_of_the_reference(self):
        names = ["a", "b", "c"]
        for seed in range(10):
            log = []
            found = turns.measure_round(lambda name: log.append(name) or len(log), names, "r",
                                        random.Random(seed))
            self.assertEqual(names, list(found), "in the order of the table")
            self.assertEqual(sorted(names), sorted(log[1::2]))
            self.assertEqual(["r"] * 4, log[::2])
            for own, reference in found.values():
                self.assertEqual(own, reference, "the mean of both neighbours")
        orders = {tuple(self.order(seed)) for seed in range(20)}
        self.assertGreater(len(orders), 3)

    @staticmethod
    def order(seed):
        log = []
        turns.measure_round(lambda name: log.append(name) or 1, ["a", "b", "c"], "r",
                            random.Random(seed))
        return log


# What burns a second: as a child of this process, then as one that has lost its parent.
BURN = """
import os, sys, time
sys.path[:0] = {paths!r}
import method
def burn():
    end = time.process_time() + 0.5
    while time.process_time() < end:
        pass
def measure(is_orphan):
    before = method.Others().seconds
    reader, writer = os.pipe()
    if not os.fork():
        if is_orphan and os.fork():
            os._exit(0)
        os.write(writer, str(os.getpid()).encode())
        burn()
        os._exit(0)
    os.wait()
    burner = os.read(reader, 16).decode()
    while os.path.exists("/proc/" + burner): # until its parent knows what it took
        time.sleep(0.01)
    return method.Others().seconds - before
own, other = measure(False), measure(True)
print(own, other)
"""


class Others(lab.LabTest):
    def test_descendants_are_none_of_them(self):
        """In a namespace of processes that has no others; its first one adopts orphans."""
        script = self.lab.path("burn.py")
        lab.write(script, BURN.format(paths=[os.path.dirname(method.__file__),
                                             os.path.dirname(os.path.dirname(lab.__file__))]))
        own, other = map(float, lab.run(
            "unshare", "--pid", "--fork", "--mount-proc", "sh", "-c",
            f"{sys.executable} {script}; true").split())
        self.assertGreaterEqual(other - own, 0.4)


class Published(unittest.TestCase):
    @staticmethod
    def results(**fields):
        row = {"scenario": "tcp", "agent": "netobs", "rounds": 20, "median": 5e9,
               "of_none": NARROW, "of_netobs": None, "monitoring_rate": 1.0,
               "agent_cpu_seconds_per_million": 0.25, "rss_peak_bytes": 1 << 20,
               "kernel_bytes": None, **fields}
        return {**QUIET, "versions": {"iperf3": "3"}, "results": [row],
                "targets": summary.check([row])}

    @staticmethod
    def stores():
        return [{"store": store, "flows": flows, "distribution": distribution, "ratio": 0.9, "ratio_low": 0.895, "ratio_high": 0.905,
                 "ns_over_empty": 4.4, "sent": 9, "counted": 9}
                for store in ("empty", "netobs", "percpu_hash") for flows in (1, 1000)
                for distribution in ("uniform", "zipf")]

    def test_noisy_results_are_not_published(self):
        def refused(results):
            with self.assertRaises(SystemExit) as caught:
                report.check({"live": results})
            return str(caught.exception)
        report.check({"live": self.results(), "drain": {"results": []}})
        self.assertIn("tcp, netobs to none is between 0.850 and 0.950, an interval of 0.100",
                      refused(self.results(of_none=WIDE)))
        self.assertIn("netobs to netobs is between", refused(self.results(of_netobs=WIDE)))
        self.assertIn("others took 6.0 % of a CPU",
                      refused({**self.results(), "others": 0.06}))
        stores = self.stores()
        stores[0]["ratio_high"] = 0.95
        self.assertIn("empty, 1, uniform", refused({**QUIET, "results": stores}))
        self.assertIn("measure again", refused({"results": []}))

    def test_a_refusal_changes_no_file(self):
        with tempfile.TemporaryDirectory() as place:
            shutil.copy(os.path.join(os.environ["NETOBS_SOURCE"], "docs", report.DOCUMENT), place)
            path = os.path.join(place, report.DOCUMENT)
            before = lab.read(path)
            for results, is_refused in ((self.results(of_none=WIDE), True),
                                        (self.results(), False)):
                with open(os.path.join(place, "live.json"), "w", encoding="utf-8") as file:
                    json.dump(results, file)
                done = subprocess.run(
                    [sys.executable, report.__file__, place, place], capture_output=True, text=True,
                    check=False, env={**os.environ, "PYTHONPATH": os.path.dirname(__file__)})
                self.assertEqual(is_refused, done.returncode != 0, done.stderr)
                self.assertEqual(is_refused, "nothing is published" in done.stderr)
                self.assertEqual(is_refused, lab.read(path) == before)


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

    def take_turns(self, scenario, *names):
        """The agents must get through, too: one that has ended has no turn."""
        scenario = SCENARIOS[scenario]
        agents = {name: AGENTS[name] for name in ("none", *names)}
        floods = turns.Floods(scenario, agents, live.cpus())
        try:
            with turns.timekeeper(live.cpus()[1]):
                found = [turns.measure_round(floods.turn, names, "none") for _ in range(2)]
            counters = {name: post.wire.counters() for name, post in floods.posts.items()}
            for post in floods.posts.values():
                self.assertEqual("T", self.state(post.senders[0]), "it waits for its turn")
        finally:
            floods.close()
        for one in found:
            self.assertEqual(list(names), list(one))
            for own, reference in one.values():
                self.assertGreater(min(own, reference), 0)
        for name in agents:
            self.assertGreater(sum(counters[name]), 0)

    @staticmethod
    def state(pid):
        lab.wait_for(lambda: measure.stat_fields(pid)[0] == "T", "the sender to stop")
        return measure.stat_fields(pid)[0]

    def test_udp_takes_turns(self):
        self.take_turns("udp-egress-1k", "netobs")

    def test_arriving_udp_takes_turns(self):
        self.take_turns("udp-ingress-1", "netobs")

    def test_tcp_takes_turns(self):
        self.take_turns("tcp-short", "netobs-rtt")

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
