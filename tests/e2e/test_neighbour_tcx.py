# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
"""
A good neighbour of tcx programs: those of others keep their place and their
say, and no link of ours outlives its process.
"""

import json
import os
import shlex
import signal
import socket
import time

from lib import bpf
from lib import lab
from lib import observer
from lib import traffic
from lib.observer import Observer
from lib.privileges import NEEDED, with_only
from lib.neighbour import BLOCKED, COUNT, OPEN, NeighbourTest, modes


class NeighbourTcx(NeighbourTest):
    def test_tcx_programs_before_and_after_ours(self):
        there = self.program(bpf.NEXT, OPEN)
        first = self.program(bpf.NEXT, OPEN)
        last = self.program(bpf.DROP, BLOCKED)
        there.attach(*self.point, "ingress", bpf.AFTER)
        before = self.snapshot()
        for runs, mode in enumerate(modes(), 1):
            observing = self.observe("--attach", mode)
            first.attach(*self.point, "ingress", bpf.BEFORE)
            last.attach(*self.point, "ingress", bpf.AFTER)
            programs = bpf.tcx_programs(*self.point, "ingress")
            self.assertEqual(3 + (mode == "tcx"), len(programs))
            self.assertEqual((0, COUNT), self.arrivals(), mode)
            self.assertEqual([2 * runs * COUNT - COUNT, runs * COUNT,
                              runs * COUNT],
                             [p.count() for p in (there, first, last)])
            # Theirs go while we run; what remains, remains in order.
            first.detach()
            last.detach()
            self.assertEqual((COUNT, COUNT), self.arrivals(), mode)
            result = observing.stop()
            result.check_conservation()
            self.assertEqual(before, self.snapshot(), mode)
            if mode == "tcx":
                self.assertEqual((4 * COUNT, 4 * COUNT * 29), self.inward(
                    result))
        self.note("tcx programs before and after ours all ran")

    @staticmethod
    def inward(result):
        mine = [r for r in result.records if r["DstAddr"] == "192.0.2.1" and
                r["Proto"] == 17]
        return (sum(r["Packets"] for r in mine), sum(r["Bytes"] for r in mine))

    def test_verdicts_of_others_hide_nothing_from_the_first(self):
        """A neighbour ends the chain, as Cilium does; before us or after."""
        for order, seen in (("first", COUNT), ("last", 0)):
            finals = [self.program(bpf.PASS, OPEN) for _ in bpf.TCX]
            for direction, final in zip(bpf.TCX, finals):
                final.attach(*self.point, direction, bpf.AFTER)
            observing = self.observe("--attach", "tcx", "--attach-order",
                                     order)
            self.send(self.a, "192.0.2.1", "192.0.2.2")
            self.send(self.b, "192.0.2.2", "192.0.2.1")
            lab.wait_for(lambda last=finals: [p.count() for p in last] == [COUNT, COUNT],
                         "all packets")
            result = observing.stop()
            result.check_conservation()
            for source in "192.0.2.1", "192.0.2.2":
                self.assertEqual(seen, sum(
                    r["Packets"] for r in result.records
                    if (r["SrcAddr"], r.get("DstPort")) == (source, OPEN)),
                                 (order, source))
            for final in finals:
                final.detach()

    def shadows(self):
        """What `netobsctl check` lists."""
        text = self.a.run(observer.netobsctl(), "check", "-o", "json")
        return [(s["interface"], s["direction"], s["kind"], s["name"])
                for s in json.loads(text)["shadowed"]]

    def test_what_comes_before_us_is_reported(self):
        """There at the start, and put in front of us later."""
        there = self.program(bpf.PASS, OPEN)
        there.attach(*self.point, "egress", bpf.AFTER)
        observing = self.observe("--attach", "tcx", "--interval", "0.2")
        self.assertNotIn("may hide", observing.messages())
        self.assertEqual([], self.shadows())
        later = self.program(bpf.PASS, OPEN)
        later.attach(*self.point, "egress", bpf.BEFORE)
        lab.wait_for(lambda: "may hide" in observing.messages(), "the message")
        self.assertRegex(observing.messages(), r"eth0: tcx program 'foreign' "
                         r"\(id \d+\), before netobs on egress, may hide")
        self.assertEqual([("eth0", "egress", "tcx", "foreign")], self.shadows())
        self.send(self.a, "192.0.2.1", "192.0.2.2")
        self.assertEqual(COUNT, later.count())
        later.detach()
        lab.wait_for(lambda: "any more" in observing.messages(), "its end")
        self.assertEqual([], self.shadows())
        result = observing.stop()
        self.assertEqual(1, result.errors.count("may hide"))
        self.assertEqual(0, sum(r["Packets"] for r in result.records
                                if r.get("DstPort") == OPEN))

    def test_netobs_of_another_process_hides_nothing(self):
        """Also where it cannot be recognised by the names of its programs."""
        kept = self.lab.path("netobsctl-run")
        lab.write(kept, f"#!/bin/sh\nexec {shlex.join(with_only(NEEDED))} {observer.netobsctl()} "
                        '"$@"\n')
        os.chmod(kept, 0o755)
        lesser = Observer(self.lab, self.a, "-i", "eth0", "--interval", "0.2", program=kept)
        lesser.wait_attached(self.point)
        for order in "first", "last":
            other = self.observe("--attach", "tcx", "--attach-order", order)
            self.assertEqual(2, len(bpf.tcx_programs(*self.point, "ingress")))
            self.send(self.b, "192.0.2.2", "192.0.2.1")
            time.sleep(1)
            other.stop()
        later = self.program(bpf.PASS, OPEN)
        later.attach(*self.point, "egress", bpf.BEFORE)
        lab.wait_for(lambda: "may hide" in lesser.messages(), "the message of another program")
        later.detach()
        self.assertEqual(1, lesser.stop().errors.count("may hide"))

    def test_netobs_is_recognised_however_often_others_look(self):
        observing = self.observe("--attach", "tcx", "--interval", "0.2")
        (program,) = bpf.tcx_programs(*self.point, "ingress")

        def look():
            with self.a, socket.socket(socket.AF_UNIX) as client:
                client.setblocking(False)
                return not client.connect_ex(b"\0netobs/program/%d" % program)

        self.assertTrue(look())
        while look(): # until no connection has room to wait
            pass
        lab.wait_for(look, "netobs to accept connections", 30)
        observing.stop()

    @staticmethod
    def send(ns, source, target):
        with traffic.make_socket(ns, socket.SOCK_DGRAM, source) as sender:
            for _ in range(COUNT):
                sender.sendto(b"x", (target, OPEN))

    def test_kill_leaves_no_tcx_link(self):
        before = self.snapshot()
        observing = self.observe("--attach", "tcx")
        self.assertEqual(2, bpf.attached(*self.point))
        observing.stop(signal.SIGKILL, code=-signal.SIGKILL)
        self.assertEqual(0, bpf.attached(*self.point))
        self.assertEqual(before, self.snapshot())


if __name__ == "__main__":
    lab.main("tcx links", bpf.has_tcx)
