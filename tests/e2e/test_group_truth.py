# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
# Needs: nftables
"""
Groups against what others count: classes of networks against nftables, processes and their units against what
processes note themselves. Networks and traffic are random.
"""

import ipaddress
import json
import os
import re
import socket
import subprocess
import sys

from lib import lab
from lib import traffic
from lib.grouped import GroupedTest, group
from lib.hierarchy import Hierarchy

ALL = ipaddress.ip_network("10.77.0.0/16")
COUNTER = re.compile(r'ip daddr (\S+) counter packets (\d+) bytes (\d+)')
PORT = 5000
HEADERS = 28 # IPv4 and UDP
NETWORKS, SENT = 40, 3000
PROCESSES = 6

# Waits for a line, sends as many datagrams of these sizes as it chooses, notes them, and keeps its socket until its
# input ends. Without an address, it sends to its own socket: a flow is in the groups of both ends.
TALKER = """
import json, random, socket, sys
name, seed, address, port = sys.argv[1:]
with open("/proc/self/comm", "w") as comm:
    comm.write(name)
sizes = [random.Random(seed).randrange(1, 1400) for _ in range(random.Random(seed).randrange(1, 200))]
sender = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
if not address:
    sender.bind(("127.0.0.1", 0))
sender.connect((address, int(port)) if address else sender.getsockname())
sys.stdin.readline()
for size in sizes:
    sender.send(bytes(size))
    if not address:
        sender.recv(2000)
ends = 1 if address else 2
print(json.dumps([ends * len(sizes), ends * sum(sizes)]), flush=True)
sys.stdin.read()
"""


class GroupTruth(GroupedTest):
    def setUp(self):
        super().setUp()
        self.sink = traffic.make_socket(self.b, socket.SOCK_DGRAM, "0.0.0.0", PORT)
        self.addCleanup(self.sink.close)

    def sums(self, *names):
        """{values of these labels: (packets, bytes)} of the group."""
        found, sums = self.scrape(), {}
        for at, unit in enumerate(("packets", "bytes")):
            for labels, value in found.all_of(f"netobs_group_{unit}_total").items():
                labels = dict(labels)
                if names[0] in labels:
                    values = tuple(labels[name] for name in names)
                    sums.setdefault(values, [0, 0])[at] += int(value)
        return {values: tuple(pair) for values, pair in sums.items()}

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
            ours = {name: pair for (name,), pair in self.sums("dst_network").items()
                    if name.startswith("net")}
            return ours if sum(packets for packets, _ in ours.values()) >= SENT else None
        self.assertEqual(truth, lab.wait_for(find, "the packets"))
        self.stop()

    # ---- Processes ---------------------------------------------------------------------

    def talkers(self, number):
        return [self.lab.spawn(sys.executable, "-c", TALKER, f"talker-{at}", str(self.random.random()), address,
                               str(PORT), ns=self.a, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
                for at, address in enumerate([self.B4] * number + [""])]

    def check_notes(self, keys, talkers):
        """@talkers: a list of those that have the values of these keys, for each."""
        noted = {}
        for values, found in talkers.items():
            for talker in found:
                talker.stdin.write(b"\n")
                talker.stdin.flush()
            notes = [json.loads(talker.stdout.readline()) for talker in found]
            packets = sum(note[0] for note in notes)
            noted[values] = packets, sum(note[1] for note in notes) + packets * HEADERS

        def find():
            sums = self.sums(*keys)
            ours = {values: sums.get(values, (0, 0)) for values in noted}
            return ours if all(ours[values][0] >= noted[values][0] for values in noted) else None
        self.assertEqual(noted, lab.wait_for(find, "what they sent"))
        for talker in sum(talkers.values(), []):
            talker.stdin.close()
            talker.wait(lab.PATIENCE_S)
        self.stop()

    def test_processes_have_what_they_note(self):
        self.configure(*group("processes", "by = process"), interfaces=("eth0", "lo"), more="process = yes")
        self.start()
        self.check_notes(("process",), {(f"talker-{at}[{talker.pid}]",): [talker]
                                        for at, talker in enumerate(self.talkers(PROCESSES))})

    def test_units_have_what_their_processes_note(self):
        """In groups as systemd, libvirt and LXC name them."""
        hierarchy, tag = Hierarchy(self, "cgroup2", ()), f"nobs{os.getpid()}"
        scope, machine = rf"machine-{tag}\x2dvm.scope", "machine.slice"
        places = {
            f"{tag}.slice/{tag}-a.slice/web.service": ("web.service", f"{tag}-a.slice", "-"),
            f"{tag}.slice/web.service/x.service": ("web.service", f"{tag}.slice", "-"),
            f"{tag}.slice/_memory.service": ("memory.service", f"{tag}.slice", "-"),
            f"{machine}/{scope}/libvirt/emulator": (scope, machine, f"{tag}-vm"),
            f"lxc.payload.{tag}/system.slice/web.service": ("-", "-", tag)}
        self.configure(*group("units", "by = unit,slice,machine"), interfaces=("eth0", "lo"), more="process = yes")
        self.start()
        talkers = {}
        for path, values in places.items():
            talkers[values] = self.talkers(self.random.randrange(1, 4))
            for talker in talkers[values]:
                hierarchy.add(path, talker.pid)
        self.check_notes(("unit", "slice", "machine"), talkers)


if __name__ == "__main__":
    lab.main()
