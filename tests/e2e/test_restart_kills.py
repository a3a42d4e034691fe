# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
"""
netobsctl run with persist = yes is killed again and again in traffic, while it starts, drains or
waits: no packet is in two records, and those that are in none are counted as lost.
NETOBS_TEST_KILLS says how often in all tests, NETOBS_TEST_SEED repeats the times.
"""

import contextlib
import json
import os
import re
import socket
import threading
import time

from lib import lab
from lib import traffic
from lib.persistent import PersistentTest

KILLS = int(os.environ.get("NETOBS_TEST_KILLS", "40")) // 2
BURST, PAUSE_S = 20, 0.01 # packets, and the time between bursts
FREQUENT = 50 # flows, which have half of the packets; all others are flows of one packet
PORTS = range(10000, 60000) # of those
LOST = re.compile(r"persist: (\d+) packets, which an earlier process had not reported, are lost")


class Sender(threading.Thread):
    """The packets that each flow was sent, by its ports."""

    def __init__(self, ns, source, dest):
        super().__init__()
        self.ns, self.source, self.dest = ns, source, dest
        self.sent = {}
        self.turn = threading.Lock()
        self.is_over = False

    def run(self):
        while not self.is_over:
            with traffic.make_socket(self.ns, socket.SOCK_DGRAM, self.source) as sender:
                self.send_to_all_ports(sender)

    def send_to_all_ports(self, sender):
        source = sender.getsockname()[1]
        for at in range(0, len(PORTS), BURST // 2):
            with self.turn:
                for i in range(at, at + BURST // 2):
                    for port in (PORTS[i], 1 + i % FREQUENT):
                        sender.sendto(b"", (self.dest, port))
                        self.sent[source, port] = self.sent.get((source, port), 0) + 1
            if self.is_over:
                return
            time.sleep(PAUSE_S)


class Kills(PersistentTest):
    distinct = iter # of the lines of the file

    def setUp(self):
        super().setUp()
        self.lost = 0
        traffic.udp(self.a, self.A4, self.b, self.B4, [1]) # addresses are resolved from now on
        self.sender = Sender(self.a, self.A4, self.B4)

    def configure(self, *options):
        output = f"json:{self.lab.path('out')}?records=flow,stats"
        self.write(*self.persist(), '[sink "out"]', f"output = {'&'.join((output, *options))}",
                   sinks=(), more="direction = egress")

    @contextlib.contextmanager
    def traffic(self):
        self.sender.start()
        try:
            yield
        finally:
            self.sender.is_over = True
            self.sender.join()

    def kill_one(self, life):
        """What it counts as lost takes effect only behind the message about it."""
        self.spawn(NOTIFY_SOCKET="")
        time.sleep(self.random.random() * life)
        self.process.kill()
        self.process.wait(timeout=60)
        self.lost += sum(map(int, LOST.findall(self.messages())))

    def records(self):
        """Of whole lines: a kill may cut one."""
        with open(self.lab.path("out"), encoding="utf-8") as file:
            for line in self.distinct(file):
                with contextlib.suppress(json.JSONDecodeError):
                    yield json.loads(line)

    def count(self):
        """Packets in records by their ports, and the most of one drain."""
        flows, most, drained = {}, 0, 0
        for record in self.records():
            if record.get("type") == "stats": # it ends the drain
                drained = 0
                continue
            key = record["SrcPort"], record["DstPort"]
            flows[key] = flows.get(key, 0) + record["Packets"]
            drained += record["Packets"]
            most = max(most, drained)
        return flows, most

    def check(self, kills):
        """
        All that was sent until now, in the records or lost. Where a kill hit a drain whose records
        had been delivered, and not been noted, they count as lost as well: @return whether.
        """
        flows, most = self.count()
        for key, packets in flows.items():
            self.assertLessEqual(packets, self.sender.sent[key], key)
        sent, delivered = sum(self.sender.sent.values()), sum(flows.values())
        surplus = delivered + self.lost - sent
        self.assertGreaterEqual(surplus, 0, f"{sent} packets, {delivered} in records, "
                                f"{self.lost} lost")
        self.assertLessEqual(surplus, kills * most)
        self.lost -= surplus
        return surplus > 0

    def end_one(self):
        """As of its end, all packets are delivered or lost."""
        self.stop()
        stats = self.stats()
        self.lost += stats["lost"]["restart"]["packets"]
        self.assertEqual(stats["seen"]["packets"], stats["exported"]["packets"] + sum(
            part["packets"] for kind in ("lost", "unparsed") for part in stats[kind].values()))
        self.assertNotIn("not accounted for", self.messages())

    def kill_in_traffic(self):
        began = time.monotonic()
        self.start()
        life = time.monotonic() - began + 0.5
        self.stop()
        rounds = doubted = killed = 0
        with self.traffic():
            while killed < KILLS:
                kills = self.random.randint(1, 3)
                for _ in range(kills):
                    self.kill_one(life)
                self.start()
                with self.sender.turn:
                    self.end_one()
                    doubted += self.check(kills)
                killed, rounds = killed + kills, rounds + 1
        self.note(f"{killed} kills, {sum(self.sender.sent.values())} packets, {self.lost} of them "
                  f"lost; {doubted} of {rounds} times, some of a drain were delivered nevertheless")
        self.assertGreater(self.lost, 0)
        self.assertLessEqual(2 * doubted, rounds)

    def test_file(self):
        self.configure()
        self.kill_in_traffic()

    def test_spool_on_disk(self):
        """After a kill, it sends some lines again as they were."""
        self.distinct = dict.fromkeys
        self.configure(f"spool=disk:{self.lab.path('spool')}")
        self.kill_in_traffic()


if __name__ == "__main__":
    lab.main(at_once=2)
