# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
"""
A good neighbour: what others attached to an interface works on, before, while
and after netobsctl runs there, and netobsctl leaves nothing of its own.
"""

import json
import signal

from lib import bpf
from lib import lab
from lib import traffic
from lib.neighbour import BLOCKED, COUNT, OPEN, NeighbourTest, modes
from lib.observer import netobsctl


class Neighbour(NeighbourTest):
    def add_clsact_filter(self, program, direction="ingress"):
        path = f"{self.bpffs}/{program.fd}"
        program.pin(path)
        self.a.tc("qdisc", "add", "dev", "eth0", "clsact")
        self.a.tc("filter", "add", "dev", "eth0", direction, "bpf", "da",
                  "object-pinned", path)

    def test_clsact_filter_that_drops(self):
        drop = self.program(bpf.DROP, BLOCKED)
        self.add_clsact_filter(drop)
        before = self.snapshot()
        self.assertEqual((0, COUNT), self.arrivals())
        for runs, mode in enumerate(modes()):
            observer = self.observe("--attach", mode)
            self.assertEqual((0, COUNT), self.arrivals(), mode)
            result = observer.stop()
            result.check_conservation()
            self.assertEqual(before, self.snapshot(), mode)
            self.assertEqual((0, COUNT), self.arrivals(), mode)
            self.assertEqual(COUNT * (2 * runs + 3), drop.count())
            ports = {r["DstPort"]: r["Packets"] for r in result.records
                     if r["DstAddr"] == "192.0.2.1"}
            # tcx comes before all clsact filters, our clsact filter last.
            expected = {OPEN: COUNT}
            if mode == "tcx":
                expected[BLOCKED] = COUNT
            self.assertEqual(expected, ports, mode)
        self.note("a dropping clsact filter drops on, and is unchanged")

    def test_root_qdisc(self):
        for kind, options in (("tbf", ["rate", "1gbit", "burst", "100kb",
                                       "latency", "50ms"]),
                              ("htb", ["default", "1"])):
            self.a.tc("qdisc", "add", "dev", "eth0", "root", "handle", "1:",
                      kind, *options)
            if kind == "htb":
                self.a.tc("class", "add", "dev", "eth0", "parent", "1:",
                          "classid", "1:1", "htb", "rate", "1gbit")
            before = self.snapshot()
            for mode in modes():
                observer = self.observe("--attach", mode)
                sent = self.qdisc_packets()
                traffic.ping(self.a, "192.0.2.2", 20)
                self.assertEqual(20, self.qdisc_packets() - sent)
                observer.stop().check_conservation()
                self.assertEqual(before, self.snapshot(), mode)
            traffic.ping(self.a, "192.0.2.2", 5)
            self.assertEqual(25, self.qdisc_packets() - sent)
            self.a.tc("qdisc", "del", "dev", "eth0", "root")
            self.note(f"{kind}: shaped on, unchanged")

    def qdisc_packets(self):
        shown = json.loads(self.a.tc("-s", "-j", "qdisc", "show", "dev",
                                     "eth0", "root"))
        return shown[0]["packets"]

    def test_kill_leaves_an_inert_stub_on_clsact(self):
        drop = self.program(bpf.DROP, BLOCKED)
        self.add_clsact_filter(drop)
        before = self.snapshot()
        observer = self.observe("--attach", "clsact")
        observer.stop(signal.SIGKILL, code=-signal.SIGKILL)
        left = self.our_filters()
        self.assertEqual(2, len(left))
        for program in left:
            self.assertEqual("netobs_stub", program["name"])
            (jump,) = program["map_ids"]
            lab.wait_for(lambda: not self.map_entries(jump),
                         "the kernel to clear the jump")
        self.assertEqual((0, COUNT), self.arrivals())
        # The next start removes our remains, and leaves everything else.
        observer = self.observe("--attach", "clsact")
        self.assertEqual(2, len(self.our_filters()))
        self.assertFalse({p["id"] for p in left} &
                         {p["id"] for p in self.our_filters()})
        self.assertEqual((0, COUNT), self.arrivals())
        observer.stop().check_conservation()
        self.assertEqual([], self.our_filters())
        self.assertEqual(before, self.snapshot())
        self.note("two inert stubs after kill -9, gone after the next run")

    def our_filters(self):
        found = []
        for way in bpf.TCX:
            for line in bpf.filters(self.a, "eth0", way):
                words = line.split()
                number = words[words.index("id") + 1]
                shown = json.loads(lab.run("bpftool", "-j", "prog", "show",
                                           "id", number))
                if shown["name"].startswith("netobs"):
                    found.append(shown)
        return found

    @staticmethod
    def map_entries(number):
        shown = json.loads(lab.run("bpftool", "-j", "map", "dump", "id",
                                   number))
        return [item for item in shown if "error" not in
                str(item.get("value", ""))]

    def test_clsact_of_ours_goes_with_us(self):
        before = self.snapshot()
        observer = self.observe("--attach", "clsact")
        self.assertIn("clsact", self.snapshot()["eth0"]["qdisc"])
        self.assertEqual(2, len(self.our_filters()))
        observer.stop()
        self.assertEqual(before, self.snapshot())

    def test_clsact_of_ours_stays_when_others_use_it(self):
        observer = self.observe("--attach", "clsact")
        drop = self.program(bpf.DROP, BLOCKED)
        path = f"{self.bpffs}/late"
        drop.pin(path)
        self.a.tc("filter", "add", "dev", "eth0", "ingress", "bpf", "da",
                  "object-pinned", path)
        self.assertEqual((0, COUNT), self.arrivals())
        observer.stop()
        self.assertEqual((0, COUNT), self.arrivals())
        self.assertEqual([], self.our_filters())

    def test_filter_and_xdp_program_before_us_are_reported(self):
        """A filter that ends the chain hides packets, and we say so."""
        final = self.program(bpf.PASS, OPEN)
        path, shield = f"{self.bpffs}/early", f"{self.bpffs}/shield"
        final.pin(path)
        self.a.tc("qdisc", "add", "dev", "eth0", "clsact")
        self.a.tc("filter", "add", "dev", "eth0", "ingress", "pref", "1", "bpf",
                  "da", "object-pinned", path)
        text = self.a.run(netobsctl(), "check", "--attach", "clsact", "-o", "json")
        self.assertEqual(["clsact"],
                         [s["kind"] for s in json.loads(text)["shadowed"]])
        observer = self.observe("--attach", "clsact", "--interval", "0.2")
        self.assertRegex(observer.messages(), r"eth0: clsact filter '.*' of "
                         "priority 1, before netobs on ingress, may hide")
        self.assertEqual((COUNT, COUNT), self.arrivals())
        self.assertEqual(COUNT, final.count())
        bpf.pin_xdp(shield)
        self.a.ip("link", "set", "dev", "eth0", "xdpgeneric", "pinned", shield)
        lab.wait_for(lambda: "XDP program 'shield'" in observer.messages(),
                     "the message")
        result = observer.stop()
        result.check_conservation()
        self.assertEqual(0, sum(r["Packets"] for r in result.records
                                if r.get("DstPort") == OPEN))

    def test_others_take_clsact_away_under_us(self):
        observer = self.observe("--attach", "clsact")
        traffic.ping(self.a, "192.0.2.2", 10)
        self.a.tc("qdisc", "del", "dev", "eth0", "clsact")
        traffic.ping(self.a, "192.0.2.2", 10)
        self.assertTrue(observer.is_running())
        result = observer.stop()
        result.check_conservation()
        self.assertGreaterEqual(result.exported()[0], 20)
        self.assertEqual(0, bpf.attached(*self.point))

    def test_two_observers_at_once(self):
        for mode in modes():
            before = self.snapshot()
            first = self.observe("--attach", mode)
            second = self.observe("--attach", mode)
            lab.wait_for(lambda: bpf.attached(*self.point) == 4, "both")
            traffic.ping(self.a, "192.0.2.2", 20)
            # The process that created clsact removes it, if no other filter is left.
            for observer in (second, first):
                result = observer.stop()
                result.check_conservation()
                self.assertEqual((40, 40 * 84), result.exported(), mode)
            self.assertEqual(before, self.snapshot())


if __name__ == "__main__":
    lab.main(at_once=3)
