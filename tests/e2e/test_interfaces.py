# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
"""Interfaces are chosen by name, pattern and namespace, and come and go."""

import os
import signal

from lib import bpf
from lib import lab
from lib import traffic
from lib.observer import Observer


class Interfaces(lab.LabTest):
    def setUp(self):
        super().setUp()
        self.a, self.b = self.lab.ns("a"), self.lab.ns("b")

    def wire(self, number, name=None):
        """Another wire between a and b: 10.0.NUMBER.0/24."""
        name = name or f"p{number}"
        self.lab.wire(self.a, name, [f"10.0.{number}.1/24"],
                      self.b, f"q{number}", [f"10.0.{number}.2/24"])

    def ping(self, number, count=10):
        traffic.ping(self.a, f"10.0.{number}.2", count)

    def observe(self, *arguments, on=()):
        return Observer(self.lab, self.a, *arguments).wait_attached(
            *((self.a, name) for name in on))

    def packets(self, result):
        """{interface: packets of echo requests and replies there}"""
        found = {}
        for record in result.records:
            for name in set(record["Interfaces"]):
                found[name] = found.get(name, 0) + record["Packets"]
        return found

    def finish(self, observer, expected):
        result = observer.stop()
        result.check_conservation()
        self.assertEqual(expected, self.packets(result))
        self.note(f"packets by interface: {expected}")
        return result

    def test_names_patterns_and_exclusions(self):
        for number in range(1, 5):
            self.wire(number)
        cases = (
            (["-i", "p1"], {1}),
            (["-i", "p1", "-i", "p3"], {1, 3}),
            (["-i", "/^p[123]$/"], {1, 2, 3}),
            (["-i", "/^p/", "-x", "p2", "-x", "/3/"], {1, 4}),
            (["-x", "lo", "-x", "/p[12]/"], {3, 4}),
        )
        for arguments, chosen in cases:
            names = [f"p{number}" for number in sorted(chosen)]
            observer = self.observe(*arguments, on=names)
            for number in range(1, 5):
                self.assertEqual(number in chosen,
                                 bool(bpf.attached(self.a, f"p{number}")))
                self.ping(number, number)
            self.finish(observer, {f"p{n}": 2 * n for n in chosen})

    def test_altnames(self):
        """They select interfaces; records have the kernel's names."""
        long = "a-name-of-more-than-fifteen-characters"
        for number, altname in ((1, long), (2, "wan2"), (3, "any"), (4, "a,b")):
            self.wire(number)
            self.a.ip("link", "property", "add", "dev", f"p{number}", "altname", altname)
        for arguments, chosen in ((["-i", long], {1}), (["-i", "any"], {3}),
                                  (["-i", "a,b"], {4}), (["-i", "/^wan/"], {2}),
                                  (["-x", long, "-x", "/^(wan|any)/", "-x", "lo"], {4})):
            with self.subTest(arguments):
                observer = self.observe(*arguments, on=[f"p{n}" for n in chosen])
                for number in range(1, 5):
                    self.ping(number, number)
                self.finish(observer, {f"p{n}": 2 * n for n in chosen})
        # One that an interface gets, and loses, while flows are observed.
        observer = self.observe("-i", "/^wan/", "--interval", "0.2", on=("p2",))
        self.a.ip("link", "property", "add", "dev", "p1", "altname", "wan1")
        lab.wait_for(lambda: bpf.attached(self.a, "p1") == 2, "p1")
        self.ping(1)
        self.wait_packets(observer, 20)
        self.a.ip("link", "property", "del", "dev", "p1", "altname", "wan1")
        lab.wait_for(lambda: not bpf.attached(self.a, "p1"), "leaving it")
        self.ping(1)
        self.finish(observer, {"p1": 20})

    def test_names_that_are_meant_otherwise(self):
        for name, hint in (("any", "all interfaces are observed without"),
                           ("p1,p2", "repeat"), ("p*", "between slashes")):
            with self.subTest(name), self.assertRaisesRegex(RuntimeError, f"exit 2: .*{hint}"):
                self.a.run(os.environ["NETOBSCTL"], "flows", "-i", name)

    def test_one_direction(self):
        self.wire(1)
        for way, number, source in (("ingress", 0, "10.0.1.2"),
                                    ("egress", 1, "10.0.1.1")):
            observer = self.observe("-i", "p1", "--direction", way,
                                    on=("p1",))
            self.assertEqual(1, bpf.attached(self.a, "p1"))
            self.ping(1)
            result = self.finish(observer, {"p1": 10})
            self.assertEqual({(number, source)},
                             {(r["IfDirections"][0], r["SrcAddr"])
                              for r in result.records})

    def test_name_that_goes_and_comes_back(self):
        self.wire(1)
        observer = self.observe("-i", "p1", "--interval", "0.2", on=("p1",))
        self.ping(1)
        self.a.ip("link", "del", "p1")
        self.wire(2, "p1")
        lab.wait_for(lambda: bpf.attached(self.a, "p1") == 2, "p1 again")
        self.ping(2)
        self.finish(observer, {"p1": 40})

    def test_gone_with_traffic_not_yet_drained(self):
        self.wire(1)
        observer = self.observe("-x", "lo", "--interval", "60", on=("p1",))
        ifindex = self.a.ifindex("p1")
        self.ping(1)
        self.a.ip("link", "del", "p1")
        result = self.finish(observer, {"p1": 20})
        self.assertEqual({ifindex},
                         {r["IfIndexes"][0] for r in result.records})

    def test_renamed_while_running(self):
        self.wire(1)
        observer = self.observe("-x", "lo", "--interval", "0.2", on=("p1",))
        self.ping(1)
        self.wait_packets(observer, 20)
        self.rename("p1", "wan0")
        self.ping(1)
        self.finish(observer, {"p1": 20, "wan0": 20})

    @staticmethod
    def wait_packets(observer, count):
        """What is not yet drained would get the new name."""
        observer.wait_records(lambda records: sum(
            r["Packets"] for r in records) == count, "all packets")

    def rename(self, old, new):
        """The address stays; static neighbours do not survive the link."""
        self.a.ip("link", "set", old, "down")
        self.a.ip("link", "set", old, "name", new)
        self.a.ip("link", "set", new, "up")
        self.know(new)

    def know(self, name):
        mac = self.b.ip("-br", "link", "show", "q1").split()[2]
        self.a.neighbour(name, mac, "10.0.1.2")

    def test_rename_into_and_out_of_what_is_chosen(self):
        self.wire(1, "other")
        self.wire(2)
        observer = self.observe("-i", "/^p/", "--interval", "0.2", on=("p2",))
        self.assertEqual(0, bpf.attached(self.a, "other"))
        self.rename("other", "p1")
        lab.wait_for(lambda: bpf.attached(self.a, "p1") == 2, "p1")
        self.ping(1)
        self.wait_packets(observer, 20)
        self.rename("p1", "other")
        lab.wait_for(lambda: not bpf.attached(self.a, "other"), "leaving it")
        self.ping(1)
        self.finish(observer, {"p1": 20})

    def test_down_at_the_start(self):
        self.wire(1)
        self.a.ip("link", "set", "p1", "down")
        observer = self.observe("-x", "lo", "--interval", "0.2")
        self.a.ip("link", "set", "p1", "up")
        self.know("p1")
        lab.wait_for(lambda: bpf.attached(self.a, "p1") == 2, "p1")
        self.ping(1)
        self.a.ip("link", "set", "p1", "down")
        self.a.ip("link", "set", "p1", "up")
        self.know("p1")
        lab.wait_for(lambda: bpf.attached(self.a, "p1") == 2, "p1 again")
        self.ping(1)
        self.finish(observer, {"p1": 40})

    def test_other_namespaces(self):
        """By name, by path, by pattern; from a namespace that has neither."""
        self.wire(1)
        self.wire(2)
        outside = self.lab.ns("o")
        path = f"/run/netns/{self.b.name}"
        for spec, names in ((f"netns:{self.b.name}/q1", {"q1"}),
                            (f"netns:{path}/q2", {"q2"}),
                            (f"netns:{self.b.name}//^q/", {"q1", "q2"})):
            observer = Observer(self.lab, outside, "-i", spec)
            observer.wait_attached(*((self.b, name) for name in names))
            self.ping(1)
            self.ping(2)
            result = self.finish(observer, {name: 20 for name in names})
            self.assertEqual({self.b.inode},
                             {r["NetnsInode"] for r in result.records})
            for name in ("q1", "q2"):
                self.assertEqual(0, bpf.attached(self.b, name))

    def test_namespace_is_not_kept_and_observed_again(self):
        self.wire(1)
        outside = self.lab.ns("o")
        name, inode = self.b.name, self.b.inode
        observer = Observer(self.lab, outside, "--interval", "0.2", "-i",
                            f"netns:{name}/q1", "-i", "lo")
        observer.wait_attached((self.b, "q1"), (outside, "lo"))
        self.ping(1)
        lab.run(lab.IP, "netns", "del", name)
        # Its end of the wire goes only when nothing holds the namespace.
        lab.wait_for(lambda: "p1" not in self.a.ip("-br", "link"),
                     "the namespace to go")
        lab.run(lab.IP, "netns", "add", name)
        self.b.sysctl("ipv6/conf/default/disable_ipv6", 1)
        again = os.stat(f"/run/netns/{name}").st_ino
        self.wire(1)
        lab.wait_for(lambda: bpf.attached(self.b, "q1") == 2, "q1 again")
        self.ping(1, 20)
        result = self.finish(observer, {"q1": 60})
        self.assertEqual({inode, again},
                         {r["NetnsInode"] for r in result.records})

    def test_second_name_of_an_observed_namespace(self):
        """It is observed under one of its names, and under the other one after that."""
        self.wire(1)
        outside, other = self.lab.ns("o"), self.lab.ns("x")
        a, x = self.a.name, other.name
        observer = Observer(self.lab, outside, "--interval", "0.2", "--per-interface",
                            *(word for name in (x, a) for word in
                              ("-i", f"netns:{name}//^p/")))
        observer.wait_attached((self.a, "p1"))
        self.ping(1)
        lab.run(lab.IP, "netns", "del", x)
        lab.run("touch", f"/run/netns/{x}")
        lab.run("mount", "--bind", f"/run/netns/{a}", f"/run/netns/{x}")
        lab.wait_for(lambda: "which already is" in observer.messages(), "the alias")
        self.ping(1, 20)
        self.assertEqual(2, bpf.attached(self.a, "p1"))
        lab.run(lab.IP, "netns", "del", a)
        lab.wait_for(lambda: f"netns:{x}: observing it again" in observer.messages(),
                     "the other name")
        lab.wait_for(lambda: bpf.attached(other, "p1") == 2, "p1 again")
        before = observer.messages().count("which already is")
        traffic.ping(other, "10.0.1.2", 40)
        result = self.finish(observer, {"p1": 140})
        self.assertEqual({self.a.inode}, {r["NetnsInode"] for r in result.records})
        self.assertEqual(1, before)

    def test_namespace_of_a_process_that_ends(self):
        outside = self.lab.ns("o")
        process = self.lab.spawn("sleep", "60", ns=self.b)
        path = f"/proc/{process.pid}/ns/net"
        lab.wait_for(lambda: os.stat(path).st_ino == self.b.inode, "the process")
        observer = Observer(self.lab, outside, "-i", f"netns:{path}/lo", "-i",
                            "lo").wait_attached((self.b, "lo"), (outside, "lo"))
        process.kill()
        process.wait()
        lab.wait_for(lambda: not bpf.attached(self.b, "lo"), "leaving it")
        self.assertIn("is gone", observer.messages())
        observer.stop().check_conservation()

    def overrun(self):
        """More messages about links than wait for their reader."""
        path = self.lab.path("storm")
        with open(path, "w", encoding="ascii") as file:
            for number in range(20000):
                file.write(f"link set lo txqueuelen {1000 + number % 2}\n")
        self.a.ip("-batch", path)

    def test_same_index_after_lost_messages(self):
        """Came back, or went elsewhere and returned, while no one read its messages."""
        elsewhere = self.lab.ns("o")
        for mode in ("tcx", "clsact") if bpf.has_tcx() else ("clsact",):
            self.wire(1)
            self.wire(2)
            index = self.a.ifindex("p1")
            observer = self.observe("-x", "lo", "-vv", "--attach", mode,
                                    on=("p1", "p2"))
            observer.process.send_signal(signal.SIGSTOP)
            self.overrun()
            self.a.ip("link", "del", "p1")
            self.a.ip("link", "add", "p1", "index", index, "type", "veth",
                      "peer", "name", "q1", "netns", self.b.name)
            for ns, name in (self.a, "p1"), (self.b, "q1"):
                ns.ip("link", "set", name, "up")
            self.a.ip("link", "set", "p2", "netns", elsewhere.name)
            elsewhere.ip("link", "set", "p2", "netns", self.a.name)
            self.assertEqual(0, bpf.attached(self.a, "p1"))
            observer.process.send_signal(signal.SIGCONT)
            for name in "p1", "p2":
                lab.wait_for(lambda n=name: bpf.attached(self.a, n) == 2, name)
            self.assertIn("overrun", observer.messages())
            observer.stop().check_conservation()
            for name in "p1", "p2":
                self.a.ip("link", "del", name)


if __name__ == "__main__":
    lab.main(at_once=3)
