# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
# Needs: nftables iproute2 strace
"""netobsctl trace --netfilter: the hooks that bytes pass, in the kernel's order, and what rules do there.

A client, a router and a server.
"""

import contextlib
import errno
import resource
import socket
import time

from lib import bpf
from lib import lab
from lib import nfqueue
from lib import traffic
from lib.observer import features
from lib.tracer import CLIENT, PARTS, Network, Network6, Trace, Tracer, bytes_of

SENT = ["output", "postrouting"]
PASSED = ["prerouting", "forward", "postrouting"]
TAKEN = ["prerouting", "input"]
RULES = 20_000
MANY = """
table ip many {{
    chain forward {{
        type filter hook forward priority 0
{}
    }}
}}
"""
DROP = """
table ip drops {
    chain forward {
        type filter hook forward priority 0
        udp length > 100 drop
    }
}
"""


def with_ends(hooks):
    return [point for hook in hooks for point in (hook, hook + "_end")]


def hooks_of(steps):
    """(namespace, point) of the hooks on the way that arrived."""
    return [(one["NetnsInode"], one["Point"]) for one in steps
            if one["Layer"] == "ip" and "Attempt" not in one]


def links(pid):
    """Of a process, to hooks of netfilter."""
    return sum("netfilter" in text for text in bpf.fdinfos(pid))


class Netfilter(Trace):
    def expected(self, network, direction):
        ends = network.client.inode, network.server.inode
        sender, receiver = ends[::-1] if direction else ends
        return [(inode, point) for inode, hooks in ((sender, SENT), (network.router.inode, PASSED),
                                                    (receiver, TAKEN))
                for point in with_ends(hooks)]

    @staticmethod
    def records(tracer):
        return lab.json_lines(tracer.path, is_whole=False)

    @contextlib.contextmanager
    def pair(self, network):
        with contextlib.closing(network.connect()) as client, \
                contextlib.closing(network.listener.accept()[0]) as server:
            yield client, server

    def warm_up(self, tracer, network):
        """Hooks of a namespace are seen once a connection has passed it."""
        self.warm(network, tracer, lambda found: any(
            hooks_of(one["Steps"]) == self.expected(network, one["Direction"]) for one in found))

    def warm(self, network, tracer, is_enough):
        def is_seen():
            self.talk(network, [50, 50])
            time.sleep(.1)
            return is_enough(tracer.own(self.records(tracer)))
        lab.wait_for(is_seen, "hooks of all namespaces")

    def talk(self, network, sizes):
        """@return the client's port"""
        with self.pair(network) as pair:
            traffic.exchange(*pair, sizes)
            return pair[0].getsockname()[1]

    def check_time(self, journey, where):
        steps = [one for one in journey["Steps"] if "Attempt" not in one]
        times = [one["AfterNs"] for one in steps]
        self.assertEqual(times, sorted(times), where)
        self.assertEqual(journey["TotalNs"],
                         sum(journey.get(name, 0) for name in PARTS + ["UnknownNs"]), where)
        at = [one["AfterNs"] for one in steps if one["Layer"] == "ip"]
        inside = sum(end - begin for begin, end in zip(at[::2], at[1::2]))
        self.assertEqual(journey["NetfilterNs"], inside, where)
        self.assertLess(inside, journey["TotalNs"], where)

    def trace(self, network, where, rounds):
        """Journeys of a connection, which have each byte once."""
        tracer = Tracer(self, network.address[1], "--netfilter")
        self.warm_up(tracer, network)
        sizes = [[self.random.randint(1, 1000) for _ in range(2)] for _ in range(rounds)]
        with self.pair(network) as pair:
            port = pair[0].getsockname()[1]
            for there, back in sizes:
                traffic.send(*pair, there)
                traffic.send(*pair[::-1], back)
        own = [one for one in tracer.stop() if port in (one["SrcPort"], one["DstPort"])]
        connection, = {one["Connection"] for one in own if one["SrcPort"] == port}
        own = [one for one in own if one["Connection"] == connection]
        for direction in range(2):
            size = sum(one[direction] for one in sizes)
            self.assertEqual(bytes_of(own, direction), ([(0, size)], 0), where)
        return own

    def check_hooks(self, own, network, where):
        for one in own:
            text = f"{where}: {one}"
            self.assertEqual(hooks_of(one["Steps"]), self.expected(network, one["Direction"]), text)
            self.check_time(one, text)


class Hooks(Netfilter):
    def test_bytes_pass_all_hooks_in_order(self):
        is_translated = self.random.random() < .5
        network, where = Network(self.lab, is_translated, False), f"seed {self.seed} {is_translated}"
        self.check_hooks(self.trace(network, where, lab.sized(30)), network, where)

    def test_nat_is_between_two_points(self):
        network, where = Network(self.lab, True, False), f"seed {self.seed}"
        tracer = Tracer(self, network.address[1], "--show", "events", "--layer", "ip")
        self.warm(network, tracer, lambda found: {"prerouting", "forward_end"} <= {
            one["Point"] for one in found if one["NetnsInode"] == network.router.inode})
        port = self.talk(network, [100])
        own = tracer.stop()
        connection, = {one["Connection"] for one in own
                       if port == one["SrcPort"] and one["NetnsInode"] == network.client.inode}
        there = [one for one in own if one["Connection"] == connection and one["Bytes"]
                 and one["NetnsInode"] == network.router.inode and not one["Direction"]]
        self.assertEqual({one["Layer"] for one in own}, {"ip"}, where)
        at = {one["Point"]: one for one in there}
        self.assertEqual(list(at), with_ends(PASSED), where)
        inner = network.listener.getsockname()
        for point in at:
            one, text = at[point], f"{where}: {at[point]}"
            is_inner = point != "prerouting"
            self.assertEqual((one["DstAddr"], one["DstPort"]),
                             inner if is_inner else network.address, text)
            is_own = point != "postrouting_end"
            self.assertEqual(one["SrcAddr"] == CLIENT, is_own, text)

    def test_rules_that_take_time_are_seen(self):
        network, where = Network(self.lab, False, False), f"seed {self.seed}"
        quick = self.trace(network, where, 20)
        network.router.run("nft", "-f", "-", input=MANY.format("\n".join(
            f"        ip daddr 203.0.113.{i % 256} tcp dport {i} counter" for i in range(1, RULES))))
        slow = self.trace(network, where, 20)
        self.check_hooks(slow, network, where)
        least = {name: min(one["NetfilterNs"] for one in own)
                 for name, own in (("quick", quick), ("slow", slow))}
        self.assertGreater(least["slow"], least["quick"], where)

    def test_a_drop_is_behind_the_hook_that_drops(self):
        network, where = Network(self.lab, False, False), f"seed {self.seed}"
        network.router.run("nft", "-f", "-", input=DROP)
        tracer = Tracer(self, network.address[1], "--netfilter", also=f"or udp port {network.address[1]}")
        self.warm_up(tracer, network)
        with network.client:
            end = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        with end:
            end.connect(network.address)
            port = end.getsockname()[1]
            for _ in range(10):
                end.send(bytes(500))
                time.sleep(.01)
        own = [one for one in tracer.stop() if one["Proto"] == 17 and one["SrcPort"] == port]
        self.assertEqual(len(own), 10, where)
        for one in own:
            text = f"{where}: {one}"
            points = [step["Point"] for step in one["Steps"]]
            self.assertEqual(points[-2:], ["forward", "drop"], text)
            self.assertTrue(one["Dropped"], text)
            self.assertIn("NetfilterNs", one, text)
            self.assertEqual(one["TotalNs"],
                             sum(one.get(name, 0) for name in PARTS + ["UnknownNs"]), text)

    def test_ipv6_has_the_same_hooks(self):
        network, where = Network6(self.lab), f"seed {self.seed}"
        self.check_hooks(self.trace(network, where, 5), network, where)


class Links(Netfilter):
    def test_without_the_option_nothing_is_linked(self):
        network = Network(self.lab, False, False)
        tracer = Tracer(self, network.address[1])
        self.talk(network, [100])
        lab.wait_for(lambda: tracer.own(self.records(tracer)), "journeys")
        self.assertEqual(links(tracer.process.pid), 0)
        own = tracer.stop()
        self.assertTrue(own)
        for one in own:
            self.assertEqual(hooks_of(one["Steps"]), [], one)
            self.assertNotIn("NetfilterNs", one)

    def test_without_events_of_ip_nothing_is_linked(self):
        network = Network(self.lab, False, False)
        tracer = Tracer(self, network.address[1], "--netfilter", "--show", "events", "--layer", "tcp")
        self.talk(network, [100])
        lab.wait_for(lambda: tracer.own(self.records(tracer)), "events")
        self.assertEqual(links(tracer.process.pid), 0)
        self.assertFalse({"netobs_tr_nf", "netobs_tr_nfend"} & set(bpf.programs_of(tracer.process.pid).values()))
        self.assertEqual({one["Layer"] for one in tracer.stop()}, {"tcp"})

    def test_several_tracers_have_a_place_at_each_hook(self):
        network, where = Network(self.lab, False, False), f"seed {self.seed}"
        tracers = [Tracer(self, network.address[1], "--netfilter") for _ in range(3)]
        for tracer in tracers:
            self.warm_up(tracer, network)
        port = self.talk(network, [100])
        for tracer in tracers:
            own = [one for one in tracer.stop() if port in (one["SrcPort"], one["DstPort"])]
            self.assertEqual(len(own), 2, where)
            self.check_hooks(own, network, where)

    def test_links_keep_no_namespace_for_long(self):
        network = Network(self.lab, False, False)
        tracer = Tracer(self, network.address[1], "--netfilter")
        self.warm_up(tracer, network)
        self.assertGreater(links(tracer.process.pid), 0)
        lab.run("ip", "netns", "del", network.client.name)
        lab.wait_for(lambda: '"rc"' not in network.router.ip("-j", "link"), "the end of the namespace")
        tracer.stop()


class Crowded(Netfilter):
    """Hooks with many programs of others, of which the kernel takes 1024."""

    OTHERS, QUEUED = 200, 5
    FORWARD = 2 # NF_INET_FORWARD
    LAST, OUTERMOST = (1 << 31) - 1, 256 # of which the last one is the kernel's own
    WARNING = "netfilter's hooks in the network namespace {} are not traced: a hook has no room for one more program"

    def setUp(self):
        super().setUp()
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        self.addCleanup(resource.setrlimit, resource.RLIMIT_NOFILE, (soft, hard))
        self.network = Network(self.lab, False, False)
        self.program = bpf.NetfilterProgram()
        self.addCleanup(self.program.close)

    def fill(self, priorities):
        """@return the error of the one that the hook does not take, or None"""
        try:
            for priority in priorities:
                self.program.attach(self.network.router, self.FORWARD, priority)
        except OSError as error:
            return error.errno
        return None

    def test_programs_of_others_are_between_two_points(self):
        where = f"seed {self.seed}"
        self.assertIsNone(self.fill(range(-self.OTHERS // 2, self.OTHERS // 2)))
        self.assertEqual(len(self.program.links), self.OTHERS)
        self.check_hooks(self.trace(self.network, where, 20), self.network, where)

    def trace_full(self):
        """@return a tracer that has said that a hook is full"""
        tracer = Tracer(self, self.network.address[1], "--netfilter")
        warning = self.WARNING.format(self.network.router.inode)

        def is_reported():
            self.talk(self.network, [50])
            return warning in tracer.messages()
        lab.wait_for(is_reported, "the warning")
        return tracer

    def check_full(self):
        """It is named, and traced once there is room."""
        tracer = self.trace_full()
        self.program.detach()
        self.warm_up(tracer, self.network)
        self.assertNotIn("were not traced in", tracer.end()[1])

    def test_a_hook_that_the_kernel_has_no_room_in_is_named(self):
        self.assertEqual(self.fill(range(2000)), errno.E2BIG)
        self.note(f"{len(self.program.links)} programs")
        self.assertGreater(len(self.program.links), self.OTHERS)
        self.check_full()

    def test_later_attempts_close_no_link(self):
        """The kernel would drop the packets that wait in queues."""
        queue = nfqueue.Queue(self.network.router, "FORWARD", "-p", "udp")
        self.addCleanup(queue.close)
        self.assertEqual(self.fill(range(1, 2000)), errno.E2BIG)
        tracer = self.trace_full()
        calls = self.watch_calls(tracer)
        with self.network.client, socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as end:
            for _ in range(self.QUEUED):
                end.sendto(b"waits", self.network.address)
        lab.wait_for(lambda: queue.waiting() == self.QUEUED, "packets in the queue")
        before = self.refused(calls)

        def is_tried():
            self.talk(self.network, [50])
            self.assertIsNone(tracer.process.poll(), tracer.messages())
            self.assertEqual(queue.waiting(), self.QUEUED)
            return self.refused(calls) > before
        lab.wait_for(is_tried, "a later attempt")
        self.assertEqual(queue.waiting(), self.QUEUED)

    def watch_calls(self, tracer):
        """@return the path of those of bpf(2) from now on"""
        path = self.lab.path("calls")
        self.lab.spawn("strace", "-f", "-qq", "-e", "trace=bpf", "-o", path, "-p", tracer.process.pid)

        def is_watched():
            return "TracerPid:\t0\n" not in lab.read(f"/proc/{tracer.process.pid}/status")
        lab.wait_for(is_watched, "strace")
        return path

    @staticmethod
    def refused(path):
        """How many links the kernel had no room for."""
        with open(path, encoding="utf-8") as file:
            return sum("BPF_LINK_CREATE" in line and "E2BIG" in line for line in file)

    def test_a_hook_without_outermost_place_is_named(self):
        self.assertIsNone(self.fill(self.LAST - i for i in range(1, self.OUTERMOST + 1)))
        self.check_full()


if __name__ == "__main__":
    lab.main("links of programs to netfilter's hooks", lambda: features()["trace_netfilter"], at_once=2)
