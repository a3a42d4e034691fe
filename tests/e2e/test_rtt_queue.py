#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
# Label: measure
# Cost: 60
# Lock: measure, it measures times.
"""Path RTT and application latency beside a queue of one's own: neither has the time in it.

A link with a delay (lib/relay.py), a client, a server that notes what it takes, and a queueing discipline in
front of one of them, which others fill; that end is observed. NETOBS_TEST_QUEUES=N tries N random cases,
NETOBS_TEST_SEED repeats them.
"""

import collections
import json
import os
import signal
import statistics
import subprocess
import sys

from lib import bpf
from lib import lab
from lib import observer
from lib import relay

CASES = int(os.environ.get("NETOBS_TEST_QUEUES", "3"))
SECONDS = 1
TRIES = 5  # what disturbs a measurement on a busy machine is not there each time
SHARE, LEAST_NS = 0.05, 100_000
DISCARD = 9
DATAGRAM = 1000
ABSENT_SHARE = 0.1 # of random cases
MBIT = 5
# Send as much at once as the discipline takes BURST_MS for, then SHARE of its rate, every EVERY_MS.
FLOOD = """
import socket, sys, time
address, (burst_ms, share, every_ms) = sys.argv[1], map(float, sys.argv[2:])
family = socket.AF_INET6 if ":" in address else socket.AF_INET
out = socket.socket(family, socket.SOCK_DGRAM)
out.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 22)
rate = %d * 1e6 / 8 / %d
send = lambda n: [out.sendto(bytes(%d - 42), (address, %d)) for _ in range(n)]
send(int(burst_ms / 1e3 * rate))
print("ready", flush=True)
begin, sent = time.monotonic(), 0
while True:
    time.sleep(every_ms / 1e3)
    due = int((time.monotonic() - begin) * rate * share)
    send(due - sent)
    sent = due
""" % (MBIT, DATAGRAM, DATAGRAM, DISCARD)

Case = collections.namedtuple(
    "Case", "qdisc burst_ms share every_ms is_first family size think_ms gso timestamps at")
RATE = f"rate {MBIT}mbit"
QDISCS = {
    "noqueue": "noqueue",
    "pfifo": "pfifo limit 1000",
    "bfifo": "bfifo limit 4mb",
    "pfifo_fast": "pfifo_fast",
    "tbf": f"tbf {RATE} burst 4kb limit 2mb",
    "tbf of buffers": f"tbf {RATE} burst 64kb limit 2mb",
    "htb": f"htb default 1; class parent 1: classid 1:1 htb {RATE}",
    "htb and pfifo": f"htb default 1; class parent 1: classid 1:1 htb {RATE}; "
                     "qdisc parent 1:1 pfifo limit 1000",
    "prio": "prio",
    "fq": "fq",
    "fq_codel": "fq_codel",
    "cake": f"cake bandwidth {MBIT}mbit",
    "netem": f"netem limit 10000 {RATE}",
    "netem delay": "netem delay 20ms limit 10000",
}


def shape(ns, words, interface="eth0"):
    """Have a discipline. False: this kernel has none of the kind."""
    ns.tc("qdisc", "del", "dev", interface, "root", check=False)
    first, *others = words.split("; ")
    try:
        ns.tc("qdisc", "replace", "dev", interface, "root", *(["handle", "1:"] if others else []),
              *first.split())
        for command in others:
            kind, *rest = command.split()
            ns.tc(kind, "add", "dev", interface, *rest)
    except RuntimeError as error:
        if "unknown" not in str(error).lower() and "No such file" not in str(error):
            raise
        return False
    return True


class Queues(lab.LabTest):
    def setUp(self):
        super().setUp()
        self.links = {}

    def link(self, delay_us):
        if delay_us not in self.links:
            self.links[delay_us] = relay.Link(self.lab, delay_us)
        return self.links[delay_us]

    def flood(self, link, case):
        process = self.lab.spawn(sys.executable, "-c", FLOOD,
                                 relay.ADDRESSES[case.family][case.at == "a"], case.burst_ms,
                                 case.share, case.every_ms, ns=getattr(link, case.at),
                                 stdout=subprocess.PIPE, text=True)
        self.assertEqual("ready\n", process.stdout.readline())
        return process

    def measure(self, link, case, port):
        """What the client found, and what was said of its connection, over time."""
        ns = getattr(link, case.at)
        watcher = self.lab.spawn(observer.netobsctl(), "tcp", "--interval", "0.1", "-i", "eth0",
                                 "-o", "json", ns=ns, stdout=subprocess.PIPE,
                                 stderr=subprocess.PIPE, text=True)
        lab.wait_for(lambda: bpf.attached(ns, "eth0") == 2, "netobsctl")
        flood = self.flood(link, case) if case.share and case.is_first else None
        talk = self.lab.spawn(sys.executable, relay.CHAT, 5, relay.ADDRESSES[case.family][1], port,
                              SECONDS, case.size, ns=link.a, stdout=subprocess.PIPE, text=True,
                              enter=lab.run_first)
        if case.share and not flood:
            lab.wait_for(lambda: link.a.run("ss", "-tnH", "dport", port), "the connection")
            flood = self.flood(link, case)
        out, _ = talk.communicate(timeout=120)
        self.assertEqual(0, talk.returncode)
        if flood:
            flood.kill()
        watcher.send_signal(signal.SIGINT)
        lines, errors = watcher.communicate(timeout=60)
        observer.check_sanitizer(errors)
        self.assertEqual(0, watcher.returncode, errors)
        found = json.loads(out)
        lines = [json.loads(line) for line in lines.splitlines()]
        return found, [line for line in lines if line["SrcPort"] == found["port"]]

    def wrong(self, case, delay_us, found, lines):
        """What is not as link and server are, and what is not known."""
        there, back = lines[-1]["ToServer"], lines[-1]["ToClient"]
        path = delay_us * 1000
        ways = (path, 0) if case.at == "a" else (0, path)
        least, middle = (of(found["thoughts"]) * 1000 for of in (min, statistics.median))
        lasts = [line["ToServer"]["LastAppLatencyNs"] for line in lines
                 if "LastAppLatencyNs" in line["ToServer"]]
        # The way of a single answer varies as the link does.
        for name, ours, truth, share_of in (
                ("path RTT to the server", there.get("PathRttNs"), ways[0], ways[0]),
                ("path RTT to the client", back.get("PathRttNs"), ways[1], ways[1]),
                ("least latency", there.get("MinAppLatencyNs"), least, least),
                ("median latency", statistics.median(lasts) if lasts else None, middle,
                 middle + ways[0])):
            if ours is None:
                yield f"no {name}"
            elif abs(ours - truth) > max(SHARE * share_of, LEAST_NS):
                yield f"{name} is {ours:.0f} ns, not {truth:.0f}"

    def check(self, case, delay_us=10_000):
        """Whether all is known. None: the kernel has no such discipline."""
        why = []
        link = self.link(delay_us)
        link.configure(case.timestamps, case.gso)
        shape(link.b if case.at == "a" else link.a, "noqueue")
        if not shape(getattr(link, case.at), QDISCS[case.qdisc]):
            return None
        port = relay.PORT + len(self.lab.processes)
        server = self.lab.spawn(sys.executable, relay.CHAT, "serve",
                                relay.ADDRESSES[case.family][1], port, case.think_ms, case.size,
                                ns=link.b, stdout=subprocess.PIPE, text=True, enter=lab.run_first)
        self.assertEqual("ready\n", server.stdout.readline())
        for _ in range(TRIES):
            found, lines = self.measure(link, case, port)
            why = list(self.wrong(case, delay_us, found, lines))
            self.note(f"{' '.join(map(str, case))}: answers took "
                      f"{statistics.median(found['times']) / 1000:.1f} ms, "
                      f"{found['retransmits']} retransmits; {'; '.join(why) or 'all is right'}")
            if not why or (found["retransmits"] and all(one.startswith("no ") for one in why)):
                break
        server.kill()
        if lab.is_shrunk(): # an emulated machine takes milliseconds for each packet
            return True
        with self.subTest(case=case):
            self.assertEqual([], [one for one in why if not one.startswith("no ")])
        return not why

    def test_a_server_is_not_the_queue_in_front_of_it(self):
        """A queue that comes with the connection, one that was there before, and one that cuts buffers."""
        case = Case("tbf", 60, 0.98, 5, False, 4, 200, 1.5, True, True, "a")
        for one in (case, case._replace(is_first=True),
                    case._replace(size=20_000, share=0.3),
                    case._replace(qdisc="htb", family=6), case._replace(at="b")):
            self.assertTrue(self.check(one))

    def draw(self, qdisc):
        draw = self.random
        burst_ms = draw.choice((0, 20, 60))
        return Case(qdisc, burst_ms, draw.choice((0, 0.3, 0.98)), draw.choice((5, 20)),
                    draw.random() < 0.5, draw.choice((4, 6)), draw.choice((20, 200, 3000, 20_000)),
                    draw.choice((0.3, 1.5, 10, 50)), draw.random() < 0.5, draw.random() < 0.5,
                    draw.choice("ab"))

    def test_random_queues(self):
        kinds = [kind for kind in QDISCS if shape(self.link(10_000).a, QDISCS[kind])]
        self.note(f"this kernel lacks {', '.join(set(QDISCS) - set(kinds)) or 'none'}")
        known = [self.check(self.draw(self.random.choice(kinds))) for _ in range(CASES)]
        self.note(f"{known.count(True)} of {CASES} are all known")
        self.assertGreaterEqual(known.count(True), (1 - ABSENT_SHARE) * CASES - 1)


if __name__ == "__main__":
    lab.main()
