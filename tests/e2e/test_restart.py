# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
"""
netobsctl run with persist = yes: counting goes on while the service is replaced or away, and
each packet is reported once.
"""

import concurrent.futures
import ctypes
import glob
import json
import os
import signal
import socket
import struct
import threading
import time

from lib import bpf
from lib import lab
from lib import nat
from lib import observer
from lib import talkers
from lib import traffic
from lib.persistent import PersistentTest

RESTARTS = int(os.environ.get("NETOBS_TEST_RESTARTS", "5"))
RATE = lab.sized(20000)
OBJ_GET, MAP_UPDATE = 7, 2
FLOWS = lab.sized(100000) # whose entries take several maps
LAYOUT_AT = 8 # in the state


class RestartTest(PersistentTest):
    ATTACH = "auto"

    def setUp(self):
        super().setUp()
        self.runs = 0

    def begin(self, *parts, more="", command=(), **options):
        """A run with a file of its own for its records."""
        self.runs += 1
        self.rewrite(*parts, more=more, **options)
        self.start(*command)

    def run_once(self):
        self.begin()
        self.stop()

    def rewrite(self, *parts, more="", **options):
        """The configuration of the run."""
        self.write(*self.persist(), *parts, sinks=(f"run{self.runs}",),
                   more=f"attach = {self.ATTACH}\n{more}", **options)

    def fail_to_start(self, *, output, more=""):
        self.write(*self.persist(), sinks=(), more=more)
        with open(self.path, "a", encoding="utf-8") as file:
            file.write(f'[sink "none"]\noutput = {output}\n')
        observer.run("run", "-c", self.path, ns=self.a, code=1)

    def send(self, count):
        traffic.udp(self.a, self.A4, self.b, self.B4, [100] * count)

    def report(self):
        """Packets in the records of the last run, of which none is lost."""
        exported = self.exported()
        self.assertEqual(exported, self.packets(f"run{self.runs}"))
        self.assertNotIn("not accounted for", self.messages())
        return exported

    def end(self, packets):
        """Of a run that has reported so many."""
        self.stop()
        self.assertEqual(packets, self.report())

    def records(self):
        return lab.json_lines(self.lab.path(f"run{self.runs}"))

    def ctl(self, verb, *arguments, code=0, command=()):
        done = observer.run(verb, "--persist-dir", self.set, *arguments, ns=self.a, code=code, under=command)
        return done.stdout + done.stderr

    def change_layout(self):
        """The set is one of another version of netobs."""
        path = ctypes.create_string_buffer(f"{self.set}/state".encode())
        fd, _ = bpf.bpf(OBJ_GET, struct.pack("<QII", ctypes.addressof(path), 0, 0))
        size = int(lab.read(f"/proc/self/fdinfo/{fd}").split("value_size:")[1].split()[0])
        key, value = ctypes.create_string_buffer(4), ctypes.create_string_buffer(size + 8)
        names = struct.pack("<IIQQQ", fd, 0, ctypes.addressof(key),
                            ctypes.addressof(value), 0)
        bpf.bpf(bpf.MAP_LOOKUP, names)
        struct.pack_into("<I", value, LAYOUT_AT, 99)
        bpf.bpf(MAP_UPDATE, names)
        os.close(fd)

    def flood(self, flows):
        return traffic.begin_flood(self.lab, self.a, "eth0", "--flows", flows,
                                   "--rate", RATE, "--dest", self.B4)

    def restart_in_a_flood(self, *parts, **options):
        self.begin(*parts, **options)
        flood = self.flood(5000)
        reported = 0
        for i in range(RESTARTS):
            self.stop()
            reported += self.report()
            time.sleep(0.1 * (i % 3))
            self.begin(*parts, **options)
        flood.send_signal(signal.SIGTERM)
        sent = json.loads(flood.communicate(timeout=60)[0])["packets"]
        self.stop()
        self.note(f"{RESTARTS} restarts, {sent} packets")
        self.assertEqual(sent, reported + self.report())
        self.assertEqual(sent, self.a.counters("eth0")["tx"]["packets"])


class Restart(RestartTest):
    def test_restarts_in_a_flood(self):
        self.restart_in_a_flood()

    def test_packets_in_between_have_their_times(self):
        self.begin()
        self.send(7)
        self.end(7)
        began = time.time()
        self.send(5)
        ended = time.time()
        self.begin()
        self.end(5)
        for record in self.records():
            self.assertEqual(["eth0"], record["Interfaces"])
            self.assertGreaterEqual(record["TimeFlowStartMs"] / 1000, began - 0.1)
            self.assertLessEqual(record["TimeFlowEndMs"] / 1000, ended + 0.1)

    def test_interfaces_come_and_go_in_between(self):
        self.lab.wire(self.a, "eth1", ["198.51.100.1/24"], self.b, "eth1",
                      ["198.51.100.2/24"])
        self.begin(interfaces=("/eth/",))
        self.stop()
        traffic.udp(self.a, "198.51.100.1", self.b, "198.51.100.2", [100] * 6)
        self.a.ip("link", "del", "eth1")
        self.lab.wire(self.a, "eth2", ["203.0.113.1/24"], self.b, "eth2",
                      ["203.0.113.2/24"])
        self.send(4)
        self.begin(interfaces=("/eth/",))
        traffic.udp(self.a, "203.0.113.1", self.b, "203.0.113.2", [100] * 3)
        self.end(6 + 4 + 3)
        by_name = {}
        for record in self.records():
            (name,) = record["Interfaces"]
            by_name[name] = by_name.get(name, 0) + record["Packets"]
        self.assertEqual({"eth1": 6, "eth0": 4, "eth2": 3}, by_name)
        # An interface that is no longer selected is detached.
        self.run_once()
        self.assertEqual(0, bpf.attached(self.a, "eth2"))
        self.assertEqual(2, bpf.attached(self.a, "eth0"))

    def test_namespaces_keep_their_numbers(self):
        """Also if they are named in another order, or not any more."""
        there = f"netns:{self.b.name}/eth0"
        self.begin(interfaces=("eth0", there))
        self.stop()
        self.send(5)
        self.begin(interfaces=(there, "eth0"))
        self.end(5)
        self.assertEqual({self.a.inode, self.b.inode},
                         {inode for record in self.records()
                          for inode in record["NetnsInodes"]})
        self.send(6)
        self.begin()
        self.end(6)
        self.assertEqual(0, bpf.attached(self.b, "eth0"))

    def test_namespaces_that_return_keep_their_numbers(self):
        """And so their links, and what waits for the next process."""
        there = f"netns:{self.b.name}/eth0"
        links = f"{self.set}/links"
        self.begin(interfaces=("eth0", there))
        before = sorted(os.listdir(links))
        self.rewrite(interfaces=("eth0",))
        self.reload()
        lab.wait_for(lambda: bpf.attached(self.b, "eth0") == 0, "programs to be detached")
        self.rewrite(interfaces=("eth0", there))
        self.reload()
        lab.wait_for(lambda: sorted(os.listdir(links)) == before, "the same pins")
        self.stop()
        self.send(5)
        self.begin(interfaces=("eth0", there))
        self.assertNotIn("which already is", self.messages())
        self.assertEqual(before, sorted(os.listdir(links)))
        self.end(5)
        self.assertEqual({self.a.inode, self.b.inode},
                         {inode for record in self.records()
                          for inode in record["NetnsInodes"]})

    def test_who_had_a_port_meanwhile_is_not_named(self):
        """It may have been another process than the one that has it at the start."""
        def send():
            traffic.throw(self.a, receiver.getsockname(), 3, source=(self.A4, 7000))

        receiver = traffic.make_socket(self.b, socket.SOCK_DGRAM, self.B4)
        self.addCleanup(receiver.close)
        self.begin(more="process = yes")
        self.stop()
        talkers.join([talkers.child(send)])
        with traffic.make_socket(self.a, socket.SOCK_DGRAM, self.A4, 7000) as sock:
            sock.sendto(b"", receiver.getsockname())
            self.begin(more="process = yes")
            self.end(4)
        self.assertEqual([None], [record.get("SrcPid") for record in self.records()])

    def test_other_rules(self):
        """They take effect with the new process; the old options apply to packets until then."""
        def rules(*matches):
            lines = []
            for match in matches:
                lines += [f'[filter "{match}"]', f"match = {match}", "action = reject"]
            return lines

        self.begin(*rules("tcp"), more="default_action = accept")
        self.send(3)
        self.end(3)
        self.send(4)
        self.begin(*rules("tcp", "udp"), more="default_action = accept")
        self.send(5)
        self.end(4)
        self.assertEqual(5, self.stats()["filtered"]["packets"])
        self.begin()
        self.send(2)
        self.end(2)

    def test_another_sampling_after_a_failed_start(self):
        """Neither earlier packets nor packets that its own programs counted are mislabelled."""
        self.run_once()
        self.send(5)
        self.fail_to_start(more="sampling = 3", output="json:/proc/none/flows")
        self.send(300)
        self.begin(more="sampling = 3")
        self.stop()
        by_sampling = {}
        for record in self.records():
            sampling = record.get("Sampling")
            by_sampling[sampling] = by_sampling.get(sampling, 0) + record["Packets"]
        self.assertEqual({1, 3}, set(by_sampling))
        self.assertEqual(5, by_sampling[1])
        stats = self.stats()
        self.assertEqual(300, by_sampling[3] + stats["sampled_out"]["packets"])
        self.assertEqual(0, sum(part["packets"] for part in stats["lost"].values()))

    def test_keys_that_take_effect_later(self):
        """The log and the status name them, until the set has been removed."""
        self.begin("[limits]", "max_flows = 1000000")
        self.stop()
        self.begin("[limits]", "max_flows = 20000", more="attach_order = last")
        self.assertIn("max_flows, attach_order: ", self.messages())
        self.assertEqual(["max_flows", "attach_order"], self.status()["kept_keys"])
        self.send(4)
        self.end(4)
        self.ctl("detach")
        self.begin("[limits]", "max_flows = 20000", more="attach_order = last")
        self.assertNotIn("max_flows", self.messages())
        self.assertEqual([], self.status()["kept_keys"])
        self.stop()

    def test_kills(self):
        """Packets in the kernel are reported; packets in the process are counted as lost."""
        self.begin()
        self.send(7)
        lab.wait_for(lambda: self.records(), "records")
        with self.supervisor.changed:
            self.supervisor.lines.clear()
        for _ in range(2): # what has been delivered has been noted
            self.supervisor.wait("STATUS=")
        self.kill()
        self.send(5)
        self.run_once()
        self.assertEqual(5, self.stats()["exported"]["packets"])
        self.assertEqual(0, self.lost())
        self.begin(more="[flows]\nactive_timeout = 60s")
        self.send(6)
        self.supervisor.wait("STATUS=Observing 1 interfaces: 6 packets")
        self.kill()
        self.run_once()
        self.assertEqual(6, self.lost())


class Translated(nat.NatTest, RestartTest):
    """By a router, whose programs report each translation once, to the process that reads it."""

    PAUSE = .01 # the kernel has room for some 9,000 reports that nobody reads
    MANY = 700 # conversations, of two reports each

    def setUp(self):
        super().setUp()
        self.a = self.router
        self.rules(nat.BASE + "add rule inet nat post oifname rs masquerade\n")
        self.receiver = traffic.make_socket(self.server, socket.SOCK_DGRAM, self.SERVER, 8080)
        self.addCleanup(self.receiver.close)
        self.asked, self.pause = 0, self.PAUSE

    def ask(self, is_over):
        """Again and again, by a port of its own each time."""
        while not is_over.is_set():
            with traffic.make_socket(self.client, socket.SOCK_DGRAM, self.CLIENT) as sock:
                sock.sendto(b"x", (self.SERVER, 8080))
                self.receiver.sendto(b"x", self.receiver.recvfrom(1)[1])
                sock.recv(1)
            self.asked += 1
            time.sleep(self.pause)

    def ask_many(self):
        """More than the reports of which a process keeps for the next one."""
        before, self.pause = self.asked, 0
        lab.wait_for(lambda: self.asked - before > self.MANY, "conversations")

    def total(self):
        """Packets of conversations in the records of the last run."""
        return sum(record["Packets"] for record in self.records()
                   if 8080 in (record.get("SrcPort"), record.get("DstPort")))

    def test_each_packet_counts_once(self):
        options = {"more": "nat = yes", "interfaces": ("rc", "rs")}
        is_over, total = threading.Event(), 0
        self.begin(**options)
        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            asker = pool.submit(self.ask, is_over)
            try:
                for run in range(RESTARTS):
                    time.sleep(self.random.random())
                    if run % 2:
                        self.ask_many()
                    self.stop()
                    self.pause = self.PAUSE
                    total += self.total()
                    self.begin(**options)
            finally:
                is_over.set()
        asker.result()
        self.stop()
        self.assertGreater(self.asked, RESTARTS)
        self.note(f"{RESTARTS} restarts, {self.asked} conversations")
        self.assertEqual(2 * self.asked, total + self.total())


class Sets(RestartTest):
    """That are another version's, damaged, in use, or none."""

    def test_another_layout(self):
        """Its packets are counted as lost, and all later ones are reported."""
        self.run_once()
        self.send(5)
        self.change_layout()
        self.assertIn('"readable":false', self.ctl("check", "-o", "json"))
        self.begin()
        self.assertIn("another version", self.messages())
        self.send(4)
        self.stop()
        self.assertEqual(5, self.lost())
        self.assertEqual(4, self.stats()["exported"]["packets"])
        self.send(3)
        self.begin()
        self.end(3)

    def test_another_layout_in_a_flood(self):
        """Each packet is either reported or counted as lost."""
        self.begin()
        flood = self.flood(500)
        self.stop()
        total = self.report()
        self.change_layout()
        self.begin()
        flood.send_signal(signal.SIGTERM)
        sent = json.loads(flood.communicate(timeout=60)[0])["packets"]
        self.stop()
        self.assertGreater(self.lost(), 0)
        self.assertEqual(sent, total + self.stats()["seen"]["packets"])

    def test_damage(self):
        """The last is what a killed detach leaves: it removes links, and the state, before other maps."""
        for names in (("maps/l1_buckets",), ("state",), ("namespaces",), ("interfaces",),
                      ("maps/overflow_1",), ("links",), ("links", "state")):
            with self.subTest(names):
                self.run_once()
                for name in names:
                    for path in glob.glob(f"{self.set}/{name}/*") or [f"{self.set}/{name}"]:
                        os.unlink(path)
                self.begin()
                if names[0].startswith(("maps", "state")):
                    self.assertIn("persist: ", self.messages())
                self.send(4)
                self.end(4)
                self.assertEqual(2, bpf.attached(self.a, "eth0"))

    def test_one_process_at_a_time(self):
        self.begin()
        with open(self.path, "a", encoding="utf-8") as file:
            file.write("[control]\npath = none\n")
        done = observer.run("run", "-c", self.path, ns=self.a, code=1)
        self.assertIn(f"process {self.pid} uses it", done.stderr)
        self.assertIn(f"process {self.pid} uses it", self.ctl("detach", code=1))
        self.send(4)
        self.end(4)

    def test_detach(self):
        before = bpf.snapshot(self.a, "eth0")
        self.assertIn("nothing is left", self.ctl("detach"))
        self.run_once()
        self.send(3)
        self.assertIn("used by no process, 3 packets wait", self.ctl("check"))
        text = self.ctl("detach")
        self.assertIn("programs at 2 hooks", text)
        self.assertIn("3 packets had not been reported", text)
        self.assertEqual([], os.listdir(self.set))
        self.assertEqual(before, bpf.snapshot(self.a, "eth0"))
        self.assertIn("nothing is left", self.ctl("detach"))
        self.begin()
        self.send(4)
        self.end(4)

    def test_detach_without_privileges(self):
        """An error names the missing privileges, and nothing has been removed."""
        self.run_once()
        self.send(3)
        os.chmod(os.path.dirname(self.bpffs), 0o711)
        self.assertIn("it needs CAP_BPF", self.ctl("detach", code=1, command=[
            "setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]))
        self.send(4)
        self.begin()
        self.end(7)

    def test_directories_of_others(self):
        """Who can write there could replace the tables: nothing of it is used."""
        self.run_once()
        above = os.path.dirname(self.set)
        for path, owner, mode in ((self.set, 65534, 0o700), (self.set, 0, 0o770),
                                  (f"{self.set}/links", 65534, 0o700),
                                  (f"{self.set}/maps", 0, 0o703), (above, 0, 0o777),
                                  (above, 65534, 0o700)):
            with self.subTest(path=path, owner=owner, mode=mode):
                before = os.stat(path)
                os.chown(path, owner, -1)
                os.chmod(path, mode)
                self.begin()
                self.assertIn(f"belongs to user {owner}, mode {mode:04o}", self.messages())
                message, = [line for line in self.messages().splitlines()
                            if "persist: " in line]
                self.assertIn(f"persist: {self.set}: ", message)
                self.assertIn("packets that pass between two runs", message)
                self.assertEqual(owner != 0, "run as that user" in message)
                self.assertEqual(owner == 0, "others can change" in message)
                self.send(4)
                self.end(4)
                os.chown(path, before.st_uid, -1)
                os.chmod(path, before.st_mode & 0o7777)
        self.run_once()
        # The set has counted them all the time.
        self.assertEqual(6 * 4, self.report())

    def test_another_directory_in_the_place_of_its_own(self):
        self.begin()
        moved = f"{self.set}-moved"
        os.rename(self.set, moved)
        os.makedirs(f"{self.set}/maps")
        sent = traffic.flood(self.lab, self.a, "eth0", "--flows", FLOWS, "--packets", FLOWS,
                             "--dest", self.B4)["packets"]
        self.end(sent)
        self.assertEqual([], os.listdir(f"{self.set}/maps"))
        for part in "/maps", "":
            os.rmdir(self.set + part)
        os.rename(moved, self.set)
        self.send(4)
        self.begin()
        self.end(4)

    def test_a_failed_start_leaves_things_as_they_were(self):
        self.write(*self.persist(), interfaces=("nosuchif",))
        observer.run("run", "-c", self.path, ns=self.a, code=1)
        self.assertEqual(0, bpf.attached(self.a, "eth0"))
        self.run_once()
        self.write(*self.persist(), interfaces=("eth0", "nosuchif"))
        observer.run("run", "-c", self.path, ns=self.a, code=1)
        self.send(4)
        self.begin()
        self.end(4)

    def test_where_nothing_can_be_pinned(self):
        """The service does its job all the same."""
        for where, why in ((self.lab.path("set"), "not in a BPF file system"),
                           (f"{self.bpffs}/no/set", "No such file or directory"),
                           (self.set, "Read-only file system")):
            with self.subTest(why):
                if why.startswith("Read-only"):
                    lab.run("mount", "-o", "remount,ro", self.bpffs)
                self.set = where
                self.begin()
                self.assertIn(why, self.messages())
                self.send(4)
                self.end(4)
                self.assertEqual(0, bpf.attached(self.a, "eth0"))


class Clsact(RestartTest):
    """COMPAT(<6.6): filters instead of links."""

    ATTACH = "clsact"

    def test_restarts_in_a_flood(self):
        self.restart_in_a_flood()

    def test_detach_without_privileges(self):
        """The owner of the directory may remove its files, and not the filters."""
        self.run_once()
        self.send(3)
        self.assertIn("it needs CAP_BPF", self.ctl("detach", code=1, command=[
            "setpriv", "--securebits=+noroot", "--bounding-set=-all", "--inh-caps=-all",
            "--ambient-caps=-all"]))
        self.assertEqual(2, bpf.attached(self.a, "eth0"))
        self.send(4)
        self.begin()
        self.end(7)

    def test_kill_and_detach(self):
        before = bpf.snapshot(self.a, "eth0")
        self.begin()
        self.kill()
        self.send(5)
        self.run_once()
        self.assertEqual(5, self.stats()["exported"]["packets"])
        self.assertEqual(0, self.lost())
        self.assertEqual(2, bpf.attached(self.a, "eth0"))
        self.assertIn("programs at 2 hooks", self.ctl("detach"))
        self.assertEqual(before, bpf.snapshot(self.a, "eth0"))


if __name__ == "__main__":
    lab.main(at_once=2)
