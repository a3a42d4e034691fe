#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
# Needs: strace
"""
Interfaces and namespaces are created and removed while a service runs: it counts each packet
at each of them, and keeps nothing.
"""

import concurrent.futures
import json
import os
import re
import statistics
import threading
import time

from lib import bpf
from lib import frames
from lib import lab
from lib.watched import WatchedTest

INTERFACES = int(os.environ.get("NETOBS_TEST_CHURN", "40" if lab.is_shrunk() else "100"))
AT_ONCE, FEW = 50, 100  # interfaces
PACKETS = 50  # on each of them
PLACES, LOOKS = 512, 8 # OUTCOME_PLACES, OUTCOME_LOOKS
OBSERVING = re.compile(r"\bv(\d+): observing$", re.MULTILINE)


class Watch:
    """When a service says that it observes an interface, as soon as it does."""

    def __init__(self, path):
        self.observing = {}
        self.is_over = threading.Event()
        self.thread = threading.Thread(target=self.read, args=(path,))
        self.thread.start()

    def read(self, path):
        text = ""
        with open(path, encoding="utf-8") as file:
            while not self.is_over.wait(0.005):
                text += file.read()
                for found in OBSERVING.finditer(text):
                    self.observing.setdefault(int(found[1]), time.monotonic())
                text = text[text.rfind("\n") + 1:]

    def stop(self):
        self.is_over.set()
        self.thread.join()


class Churn(WatchedTest):
    def setUp(self):
        super().setUp()
        self.created = {} # when, by number

    def create(self, number, index=None):
        """A namespace, and a wire to it."""
        ns = self.lab.ns(f"x{number}")
        self.created[number] = time.monotonic()
        self.lab.veth(ns, "far0", self.a, f"v{number}", index_b=index)
        return ns

    def remove(self, namespaces):
        path = self.lab.path("batch")
        with open(path, "w", encoding="ascii") as file:
            file.writelines(f"netns del {ns.name}\n" for ns in namespaces)
        lab.run("ip", "-batch", path)
        for ns in namespaces:
            self.lab.namespaces.remove(ns)

    @staticmethod
    def can_send(ns):
        """Until the kernel has noticed the carrier, it drops packets that are sent."""
        return json.loads(ns.ip("-j", "link", "show", "far0"))[0]["qdisc"] != "noop"

    def send(self, number, ns):
        lab.wait_for(lambda: self.can_send(ns), "its carrier")
        packet = frames.ether(
            "02:00:00:00:00:01", "02:00:00:00:00:02", frames.IPV4,
            frames.ipv4("10.0.0.1", "10.0.0.2", frames.UDP,
                        frames.udp(1024 + number, 9, b"?" * 100)))
        arp = frames.ether("ff:ff:ff:ff:ff:ff", "02:00:00:00:00:02", frames.ARP,
                           frames.arp("02:00:00:00:00:02", "10.0.0.2", "10.0.0.3"))
        ns.send_frames("far0", [packet] * PACKETS + [arp])

    def send_to_all(self, made):
        """Together: the kernel waits for a grace period when a packet socket is closed."""
        with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
            list(pool.map(self.send, made.keys(), made.values()))

    def have_received(self, numbers):
        """An interface that is removed drops what waits for it."""
        links = json.loads(self.a.ip("-s", "-j", "link", "show"))
        received = {link["ifname"]: link["stats64"]["rx"]["packets"] for link in links}
        return all(received[f"v{number}"] == PACKETS + 1 for number in numbers)

    def have_unparsed(self, numbers, packets):
        """Packets that are in no flow: for these, each interface has a place on a CPU."""
        unparsed = self.scrape().all_of("netobs_interface_unparsed_packets_total")
        found = {dict(labels)["interface"]: value for labels, value in unparsed.items()
                 if dict(labels)["direction"] == "ingress"}
        return all(found.get(f"v{number}") == packets for number in numbers)

    def cycle(self, numbers):
        made = {number: self.create(number) for number in numbers}
        lab.wait_for(lambda: made.keys() <= self.watch.observing.keys(), "all to be observed")
        lab.wait_for(lambda: self.have_unparsed(made, 0), "series of each interface")
        self.send_to_all(made)
        lab.wait_for(lambda: self.have_unparsed(made, 1), "the packets of each interface")
        lab.wait_for(lambda: self.have_received(made), "the packets of each interface")
        self.remove(made.values())
        lab.wait_for(lambda: self.scrape().value("netobs_interfaces") == 1,
                     "the interfaces to be gone")

    def test_interfaces_and_namespaces_come_and_go(self):
        # Names are kept until no flow can be of them.
        self.observe(interfaces=("/^(eth|v)/",), more="[flows]\nidle_timeout = 1s")
        self.watch = Watch(self.lab.path("messages"))
        self.addCleanup(self.watch.stop)
        self.cycle(range(AT_ONCE))
        if bpf.has_tcx():  # both of eth0
            lab.wait_for(lambda: str(self.descriptors()).count("bpf_link") == 2,
                         "links to be closed")
        open_ones = self.descriptors()
        # After half of the rounds, everything that is allocated once exists.
        kept_from = AT_ONCE + (INTERFACES // 2 if INTERFACES > FEW else 0)
        begin = time.monotonic()
        for first in range(AT_ONCE, AT_ONCE + INTERFACES, AT_ONCE):
            if first <= kept_from:
                memory = self.memory()
            self.cycle(range(first, first + AT_ONCE))
        self.await_closed(open_ones)
        count = AT_ONCE + len(range(0, INTERFACES, AT_ONCE)) * AT_ONCE
        self.await_exported(count * PACKETS)
        took = [self.watch.observing[number] - self.created[number] for number in range(count)]
        self.note(f"{count - AT_ONCE} interfaces in {time.monotonic() - begin:.0f} s, observed "
                  f"after {statistics.median(took):.3f} s (median), {max(took):.3f} s at most; "
                  f"{len(open_ones)} descriptors, memory of its own {memory} KiB before, "
                  f"{self.memory()} at the end")
        self.assertLess(self.memory() - memory, max(1024, memory / 10))
        self.stop()
        self.assertEqual(count * PACKETS, self.exported())
        per_interface = {}
        for record in lab.json_lines(self.lab.path("a")):
            name, = record["Interfaces"]
            per_interface[name] = per_interface.get(name, 0) + record["Packets"]
        self.assertEqual({f"v{number}": PACKETS for number in range(count)}, per_interface)

    def test_those_that_are_gone_leave_their_places(self):
        """A CPU has few slots for interfaces with the same index modulo their number."""
        before = os.sched_getaffinity(0)
        os.sched_setaffinity(0, {min(before)})
        self.addCleanup(os.sched_setaffinity, 0, before)
        self.observe(interfaces=("/^(eth|v)/",))
        self.watch = Watch(self.lab.path("messages"))
        self.addCleanup(self.watch.stop)
        for number in range(1 + LOOKS):
            ns = self.create(number, 1000 + number * PLACES)
            lab.wait_for(lambda n=number: n in self.watch.observing, "it to be observed")
            lab.wait_for(lambda n=number: self.have_unparsed((n,), 0), "its series")
            self.send(number, ns)
            lab.wait_for(lambda n=number: self.have_unparsed((n,), 1),
                         "its packet")
            self.remove([ns])
            lab.wait_for(lambda: self.scrape().value("netobs_interfaces") == 1, "it to be gone")
        self.stop()

    def marks(self, trace):
        return lab.read(trace).count(f'"{bpf.EXPEDITED_MARK}"')

    def has_marked(self, trace, count):
        """Soon: not if another process has the knob at that moment, such as another test."""
        try:
            lab.wait_for(lambda: self.marks(trace) > count, "it to be expedited", seconds=3)
        except TimeoutError:
            return False
        return True

    def test_a_single_interface_is_expedited(self):
        """Also one that goes, since the kernel may be about to remove others, too."""
        trace = self.lab.path("trace")
        self.write(interfaces=("/^(eth|v)/",))
        self.start("strace", "-f", "-qq", "-o", trace, "-P", bpf.EXPEDITED, "-e", "trace=pwrite64",
                   release=True)
        self.watch = Watch(self.lab.path("messages"))
        self.addCleanup(self.watch.stop)
        has_tcx = bpf.has_tcx()
        attached = detached = tries = 0
        while tries < (30 if has_tcx else 3) and min(attached, detached) < 3:
            before = self.marks(trace)
            ns = self.create(tries)
            lab.wait_for(lambda n=tries: n in self.watch.observing, "it to be observed")
            came = self.marks(trace)
            self.remove([ns])
            attached += came > before
            detached += has_tcx and self.has_marked(trace, came)
            tries += 1
        if has_tcx:
            self.assertGreaterEqual(min(attached, detached), 3, f"of {tries}")
        else:
            self.assertEqual(0, attached)
        self.stop()
        bpf.await_unexpedited()


if __name__ == "__main__":
    lab.main()
