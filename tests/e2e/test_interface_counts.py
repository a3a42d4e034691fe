# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
# Lock: drops, its flows fill the table of drops of the whole host.
"""The outcome of each packet, at each interface: the identity, and the packets really sent."""

import collections
import math
import signal
import threading

from lib import frames as f
from lib import lab
from lib import metrics
from lib import traffic
from lib.observer import Observer

WIRES = 3
FRAMES = lab.sized(4000) # on each wire, in each direction
ELSEWHERE = "02:00:00:00:00:99" # the receiver answers to none of them
ACCEPTED, REJECTED = 5001, 5002
OUTCOMES = "flows", "filtered", "unparsed", "sampled_out", "lost"


def datagram(rng, port):
    """A few of all have the same addresses and ports, at other interfaces and in other lengths."""
    return f.IPV4, f.ipv4(f"198.18.0.{rng.randrange(256)}", "198.18.1.1", f.UDP, f.udp(
        rng.randrange(1024, ACCEPTED), port, bytes(rng.randrange(200))))


KINDS = {
    "accepted": ("flows", lambda rng: datagram(rng, ACCEPTED)),
    "rejected": ("filtered", lambda rng: datagram(rng, REJECTED)),
    "ARP": ("unparsed", lambda _: (f.ARP, f.arp(ELSEWHERE, "198.18.0.1", "198.18.0.2"))),
    "short": ("unparsed", lambda rng: (f.IPV4, datagram(rng, ACCEPTED)[1][:12])),
    "bad": ("unparsed", lambda rng: (f.IPV4, b"\x44" + datagram(rng, ACCEPTED)[1][1:])),
    "other": ("unparsed", lambda rng: (0x88b5, rng.randbytes(40))),
}


class InterfaceCounts(lab.LabTest):
    def setUp(self):
        super().setUp()
        self.a, self.b = self.lab.ns("a"), self.lab.ns("b")
        self.names = [f"eth{i}" for i in range(WIRES)]
        for name in self.names:
            self.lab.veth(self.a, name, self.b, name, offload=False)

    def observe(self, *options, **how):
        self.run_ = Observer(self.lab, self.a, "-i", "/^eth/", "--metrics", "127.0.0.1:0",
                             *options, **how)
        self.run_.wait_attached(*((self.a, name) for name in self.names))

    def scrape(self):
        with self.a:
            found = metrics.scrape(metrics.served_at(self.run_))
        found.check_identity()
        return found

    def counted(self, found):
        """{(interface, direction): {outcome: packets}}"""
        counts = collections.defaultdict(dict)
        for outcome in ("seen", *OUTCOMES):
            name = "" if outcome == "flows" else f"{outcome}_"
            for labels, value in found.all_of(f"netobs_interface_{name}packets_total").items():
                labels = dict(labels)
                if value:
                    counts[labels["interface"], labels["direction"]][outcome] = value
        return dict(counts)

    def await_packets(self, number):
        lab.wait_for(lambda: self.scrape().value("netobs_observed_packets_total") >= number,
                     f"{number} packets")
        return self.counted(self.scrape())

    def mixture(self):
        """Frames, and how many there are of each outcome."""
        weights = [self.random.random() for _ in KINDS]
        outcomes, made = collections.Counter(), []
        for kind in self.random.choices(list(KINDS), weights, k=FRAMES):
            outcome, make = KINDS[kind]
            outcomes[outcome] += 1
            made.append(f.ether(ELSEWHERE, "02:00:00:00:00:98", *make(self.random)))
        return made, dict(outcomes)

    def send_everywhere(self):
        """At once on all wires in both directions, while metrics are read. What was sent."""
        truth, senders = {}, []
        for name in self.names:
            for ns, direction in ((self.a, "egress"), (self.b, "ingress")):
                made, truth[name, direction] = self.mixture()
                senders.append(threading.Thread(target=ns.send_frames, args=(name, made)))
        for sender in senders:
            sender.start()
        scrapes = 0
        while any(sender.is_alive() for sender in senders):
            self.scrape()
            scrapes += 1
        for sender in senders:
            sender.join()
        self.note(f"{scrapes} scrapes meanwhile")
        return truth

    def kernel_counts(self):
        return {(name, direction): self.a.counters(name)[way]["packets"]
                for name in self.names for direction, way in (("ingress", "rx"), ("egress", "tx"))}

    def rules(self):
        path = self.lab.path("rules")
        lab.write(path, f"reject udp port {REJECTED}\ndefault accept\n")
        return path

    def count(self, *options):
        """What was sent, and what was counted."""
        self.observe("--interval", "0.2", "--rules", self.rules(), *options)
        before = self.kernel_counts()
        truth = self.send_everywhere()
        counts = self.await_packets(2 * WIRES * FRAMES)
        self.run_.stop().check_conservation()
        now = self.kernel_counts()
        self.assertEqual({point: now[point] - before[point] for point in now},
                         {point: counts[point].pop("seen") for point in now})
        return truth, counts

    def test_each_outcome_is_counted_where_it_was(self):
        self.assertEqual(*self.count())

    def test_samples(self):
        truth, counts = self.count("--sampling", "3")
        for point, sent in truth.items():
            found = counts[point]
            self.assertEqual(sent.get("flows", 0),
                             found.get("flows", 0) + found.get("sampled_out", 0))
            self.assertEqual(sent.get("filtered", 0), found.get("filtered", 0))
            self.assert_third(found.get("flows", 0), sent.get("flows", 0))

    def assert_third(self, part, whole):
        """A point may have a handful of packets: up to seven standard deviations beside it."""
        self.assertLessEqual(abs(part - whole / 3), 7 * math.sqrt(whole * 2 / 9))

    def test_losses(self):
        """With netobsctl stopped, the log and the overflow table fill up."""
        self.observe("--interval", "2", "--max-memory", "32M", "--direction", "egress",
                     release=True)
        self.run_.process.send_signal(signal.SIGSTOP)
        sent = {(name, "egress"): traffic.flood(
                    self.lab, self.a, name, "--flows", 200000, "--packets", number,
                    "--payload", 100)["packets"]
                for name, number in zip(self.names, (300000, 200000, 250000))}
        self.run_.process.send_signal(signal.SIGCONT)
        counts = self.await_packets(sum(sent.values()))
        self.assertEqual(sent, {point: found["seen"] for point, found in counts.items()})
        self.assertEqual([], [point for point, found in counts.items() if "lost" not in found],
                         counts)
        self.note({name: found["lost"] for (name, _), found in counts.items()})
        lost = self.run_.stop().stats["lost"]
        self.assertEqual(sum(found["lost"] for found in counts.values()),
                         lost["table_full"]["packets"])


if __name__ == "__main__":
    lab.main()
