#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
# Needs: nftables
"""
Groups against what others count: classes of networks against nftables, processes against what they note themselves.
Networks and traffic are random.
"""

import ipaddress
import json
import re
import socket
import subprocess
import sys

from lib import lab
from lib.grouped import GroupedTest, group

ALL = ipaddress.ip_network("10.77.0.0/16")
COUNTER = re.compile(r'ip daddr (\S+) counter packets (\d+) bytes (\d+)')
PORT = 5000
HEADERS = 28 # IPv4 and UDP
NETWORKS, SENT = 40, 3000
PROCESSES = 6

# Sends as many datagrams of these sizes as it chooses, notes them, and keeps its socket until its input ends.
TALKER = """
import json, random, socket, sys
name, seed, address, port = sys.argv[1:]
with open("/proc/self/comm", "w") as comm:
    comm.write(name)
sizes = [random.Random(seed).randrange(1, 1400) for _ in range(random.Random(seed).randrange(1, 200))]
sender = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
sender.connect((address, int(port)))
for size in sizes:
    sender.send(bytes(size))
print(json.dumps([len(sizes), sum(sizes)]), flush=True)
sys.stdin.read()
"""


class GroupTruth(GroupedTest):
    def setUp(self):
        super().setUp()
        with self.b:
            self.sink = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.addCleanup(self.sink.close)
        self.sink.bind(("", PORT))

    def sums(self, label):
        """{value of that label: (packets, bytes)} of the group."""
        found, sums = self.scrape(), {}
        for at, unit in enumerate(("packets", "bytes")):
            for labels, value in found.all_of(f"netobs_group_{unit}_total").items():
                labels = dict(labels)
                if label in labels:
                    sums.setdefault(labels[label], [0, 0])[at] += int(value)
        return {name: tuple(pair) for name, pair in sums.items()}

    # ---- Classes -----------------------------------------------------------------------

    def some_networks(self):
        """All addresses, and some of them again and again."""
        found = {ALL}
        while len(found) < NETWORKS:
            start = int(self.random.choice(sorted(found)).network_address)
            address = start + self.random.randrange(1 << self.random.choice((4, 8, 12, 16)))
            found.add(ipaddress.ip_network((min(address, int(ALL.broadcast_address)),
                                            self.random.randrange(18, 33)), strict=False))
        return sorted(found, key=lambda one: -one.prefixlen)

    def count_by_nftables(self, networks):
        """Each packet where the first of them has it: the longest prefix."""
        rules = "".join(f"ip daddr {one} counter accept\n" for one in networks)
        self.b.run("nft", "-f", "-", input="table ip t {\nchain c {\ntype filter hook prerouting "
                   f"priority raw;\n{rules}}}\n}}")

    def counters(self):
        """{network: (packets, bytes)}, of those that have had some."""
        listed = COUNTER.findall(self.b.run("nft", "list", "table", "ip", "t"))
        counts = {ipaddress.ip_network(name): (int(packets), int(octets))
                  for name, packets, octets in listed}
        return {f"net{one.network_address}-{one.prefixlen}": count
                for one, count in counts.items() if count[0]}

    def test_classes_have_what_nftables_counts(self):
        networks = self.some_networks()
        self.b.ip("route", "add", "local", ALL, "dev", "lo")
        self.a.ip("route", "add", ALL, "via", self.B4)
        self.count_by_nftables(networks)
        sections = [line for one in networks for line in (
            f'[network "net{one.network_address}-{one.prefixlen}"]', f"cidr = {one}")]
        self.configure(*group("classes", "by = dst_network"), *sections)
        self.start()
        with self.a, socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
            for _ in range(SENT):
                within = self.random.choice(networks)
                address = within[self.random.randrange(within.num_addresses)]
                sender.sendto(bytes(self.random.randrange(1, 1400)), (str(address), PORT))
        truth = self.counters()
        self.assertEqual(SENT, sum(packets for packets, _ in truth.values()))
        self.assertGreater(len(truth), NETWORKS // 2)

        def find():
            ours = {name: pair for name, pair in self.sums("dst_network").items()
                    if name.startswith("net")}
            return ours if sum(packets for packets, _ in ours.values()) >= SENT else None
        self.assertEqual(truth, lab.wait_for(find, "the packets"))
        self.stop()

    # ---- Processes ---------------------------------------------------------------------

    def test_processes_have_what_they_note(self):
        self.configure(*group("processes", "by = process"), more="process = yes")
        self.start()
        talkers = {f"talker-{number}": self.lab.spawn(
            sys.executable, "-c", TALKER, f"talker-{number}", str(self.random.random()), self.B4, str(PORT),
            ns=self.a, stdin=subprocess.PIPE, stdout=subprocess.PIPE) for number in range(PROCESSES)}
        noted = {}
        for name, talker in talkers.items():
            packets, octets = json.loads(talker.stdout.readline())
            noted[f"{name}[{talker.pid}]"] = packets, octets + packets * HEADERS

        def find():
            sums = self.sums("process")
            ours = {name: sums.get(name, (0, 0)) for name in noted}
            return ours if all(ours[name][0] >= noted[name][0] for name in noted) else None
        self.assertEqual(noted, lab.wait_for(find, "the processes"))
        for talker in talkers.values():
            talker.stdin.close()
            talker.wait(lab.PATIENCE_S)
        self.stop()


if __name__ == "__main__":
    lab.main()
