# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
# Needs: iperf3
"""`./dev bench`, apart from times: agents report what is sent, take turns, and leave no process."""

import os
import sys

sys.path.append(os.path.join(os.path.dirname(__file__), "..", "..", "bench", "live"))

import live
from lib import lab
import load
import measure
import turns
from agents import AGENTS
from scenarios import SCENARIOS


class Runs(lab.LabTest):
    def test_all_packets_are_reported(self):
        for scenario in "udp-egress-1k", "udp-ingress-1", "tcp":
            with self.subTest(scenario):
                self.check(scenario)

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

    def test_agents_take_turns(self):
        for scenario, name in ("udp-egress-1k", "netobs"), ("udp-ingress-1", "netobs"), ("tcp-short", "netobs-rtt"):
            with self.subTest(scenario):
                self.take_turns(SCENARIOS[scenario], name)

    def take_turns(self, scenario, name):
        """The agents must get through, too: one that has ended has no turn."""
        floods = turns.Floods(scenario, {one: AGENTS[one] for one in ("none", name)}, live.cpus())
        try:
            with turns.timekeeper(live.cpus()[1]):
                found = [turns.measure_round(floods.turn, [name], "none") for _ in range(2)]
            for post in floods.posts.values():
                self.assertGreater(sum(post.wire.counters()), 0)
                sender = post.senders[0]
                lab.wait_for(lambda: measure.stat_fields(sender)[0] == "T", "the sender to wait for its turn")
        finally:
            floods.close()
        for one in found:
            self.assertEqual([name], list(one))
            self.assertGreater(min(one[name]), 0)

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
