# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
# Lock: sockets, it names the owners of short-lived sockets, and lists all sockets of the host.
"""
Names of containers and pods in records, by files as container runtimes have them, of processes in
control groups as these make them.

Which containers there are, by which runtimes, is random.
"""

import json
import os
import signal
import socket
import time

from lib import bpf
from lib import lab
from lib import observer
from lib.hierarchy import Hierarchy
from lib.runtimes import Host
from lib.service import NOBODY, ServiceTest
from lib.sessions import Sessions
from lib.talkers import child, kill

NAMES = ("ContainerName", "ContainerImage", "PodName", "PodNamespace")
RIGHTS = "-all,+bpf,+perfmon,+net_admin"


class Contained:
    """Processes in control groups, each of which talks with a server of the namespace."""

    def prepare(self, netns):
        self.hierarchy = Hierarchy(self, "cgroup2", ())
        self.runtimes = Host(self.lab.path("root"))
        self.netns, self.expected, self.numbers = netns, {}, {}
        # Below the ports of clients, so that all know it for a service.
        self.port = 8080
        with netns:
            listener = socket.create_server(("127.0.0.1", self.port))
        self.serve(listener)

    def serve(self, listener):
        server = child(self.answer_all, listener, ns=self.netns)
        self.addCleanup(kill, [server])
        listener.close()

    @staticmethod
    def answer_all(listener):
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)
        while True:
            sock = listener.accept()[0]
            if not os.fork():
                while data := sock.recv(1):
                    sock.sendall(data)
                os._exit(0)
            sock.close()

    def container(self, make=None):
        """Its files, before its process. @return the files"""
        number = "".join(self.random.choices("0123456789abcdef", k=64))
        make = make or self.random.choice(Host.KINDS)
        group, files, names = make(self.runtimes, number, f"box-{len(self.expected)}")
        go, ready = os.pipe()
        pid = child(self.talk, self.port, go, ns=self.netns)
        self.addCleanup(kill, [pid])
        self.hierarchy.add(group, pid)
        os.write(ready, b"x")
        os.close(go)
        os.close(ready)
        self.expected[pid], self.numbers[pid] = names, number
        return files

    @staticmethod
    def talk(port, go):
        """Once it is in its group: a connection that goes on."""
        os.read(go, 1)
        sock = socket.create_connection(("127.0.0.1", port))
        while True:
            sock.sendall(b"x")
            sock.recv(1)
            time.sleep(0.05)

    def named(self, records):
        """The names of each process in the last record of it."""
        found = {}
        for record in records:
            for end in "Src", "Dst":
                if record.get(end + "Pid") in self.expected:
                    found[record[end + "Pid"]] = {name: record[end + name] for name in NAMES
                                                  if end + name in record}
        return found

    def check_own(self, records):
        """Each record has the names of its container, or, of one that is new, none yet."""
        for record in records:
            for pid, found in self.named([record]).items():
                self.assertIn(found, (self.expected[pid], {}), record)


class Names(Contained, lab.LabTest):
    def setUp(self):
        super().setUp()
        self.prepare(self.lab.ns("h"))
        self.options = "--container-names", "--container-root", self.runtimes.root

    def observe(self, *arguments):
        return observer.Observer(self.lab, self.netns, *self.options, "--interval", "0.2",
                                 *arguments).wait_attached((self.netns, "lo"))

    def test_flows_have_the_names_of_all_runtimes(self):
        for make in self.random.sample(Host.KINDS, k=len(Host.KINDS)):
            self.container(make)
        watch = self.observe()
        watch.wait_records(lambda lines: self.named(lines) == self.expected, "all names")
        for _ in range(5):  # while it runs
            self.container()
        watch.wait_records(lambda lines: self.named(lines) == self.expected, "all names")
        records = watch.stop().records
        self.check_own(records)
        self.assertEqual(self.expected, self.named(records))

    def test_a_container_that_is_gone_keeps_its_names(self):
        watch = self.observe()
        paths = self.container(self.random.choice(
            (Host.docker, Host.podman, Host.crio, Host.containerd)))
        watch.wait_records(lambda lines: self.named(lines) == self.expected, "its names")
        for path in paths:
            self.runtimes.remove(path)
        seen = len(watch.lines())
        watch.wait_records(lambda lines: len(lines) > seen + 10, "more records")
        later = watch.stop().records[seen:]
        self.assertEqual(self.expected, self.named(later))
        for record in later:
            self.assertIn(self.named([record]), (self.expected, {}))

    def test_without_the_option_nothing_is_read(self):
        self.container(Host.docker)
        self.options = ("--process",)
        watch = self.observe()
        watch.wait_records(self.named, "its process")
        records = watch.stop().records
        self.assertEqual([{}] * len(self.expected), list(self.named(records).values()))

    def test_groups_show_names(self):
        self.container(Host.docker)
        self.container(Host.crio)
        (docker, crio), expected = self.numbers.values(), list(self.expected.values())
        watch = self.observe("--by", "container,pod")

        def groups(lines):
            return {one["ContainerId"]: {name: one[name] for name in NAMES if name in one}
                    for one in lines if "ContainerId" in one}

        def without_image(names):
            return {name: value for name, value in names.items() if name != "ContainerImage"}

        wanted = {docker: without_image(expected[0]), crio: without_image(expected[1])}
        watch.wait_records(lambda lines: groups(lines) == wanted, "groups with names")
        watch.stop()
        done = observer.flows(self.lab, *self.options, "--by", "container,pod", "-o", "table",
                              "--interval", "0.5", "-d", "1", ns=self.netns)
        with done.lines() as file:
            text = file.read()
        self.assertIn(f"box-0 ({docker[:12]})", text)
        self.assertIn("shop/box-1-0 (0f3e9c1a)", text)

    def test_the_map_of_services_has_names(self):
        """As of the clients of the server: all of one pod, or of one container."""
        self.container(self.random.choice(Host.KINDS[:Host.KINDS.index(Host.unknown)]))
        names, = self.expected.values()
        workload = names.get("ContainerName")
        if "PodName" in names:
            workload = f"{names['PodNamespace']}/{names['PodName']}"

        def shown():
            done = self.netns.run(observer.netobsctl(), "map", "--services", *self.options, "-o", "json",
                                  "--once")
            return next((one for one in map(json.loads, done.splitlines())
                         if one.get("ServerPort") == self.port), None)

        def edge():
            return lab.wait_for(shown, "the edge")

        self.assertEqual(workload, lab.wait_for(lambda: edge().get("ClientWorkload"), "its name"))
        self.assertNotIn("ServerWorkload", edge())
        self.options = ()
        self.assertNotIn("ClientWorkload", edge())

    def test_sessions_have_names(self):
        for make in Host.docker, Host.containerd, Host.podman:
            self.container(make)
        known = set(self.expected)
        sessions = Sessions(self, *self.options)
        for _ in range(3):  # their files are read while they live, or later
            self.container()
        watch = self.observe()
        watch.wait_records(lambda lines: self.named(lines) == self.expected, "all names")
        watch.stop()
        for pid in self.expected:
            os.kill(pid, signal.SIGKILL)
        lab.wait_for(lambda: {one.get("Pid") for one in sessions.records()} >=
                     set(self.expected), "their sessions")
        for one in sessions.stop()[0]:
            if (pid := one.get("Pid")) in self.expected:
                found = {name: one[name] for name in NAMES if name in one}
                self.assertIn(found, (self.expected[pid], self.expected[pid] if pid in known
                                      else {}), one)


class Service(Contained, ServiceTest):
    def setUp(self):
        super().setUp()
        self.prepare(self.a)

    def begin(self, rights, root):
        bpf.unlock_memory()
        directory = self.lab.path("run")
        os.mkdir(directory)
        os.chown(directory, NOBODY, NOBODY)
        self.control, self.records = f"{directory}/control", f"{directory}/records"
        self.write("[host]", "container_names = yes", f"container_root = {root}",
                   "[sessions]", "enabled = yes", '[sink "r"]', f"output = json:{self.records}",
                   "records = flow,session", sinks=(), interfaces=("lo",),
                   more="process = yes")
        self.start_as_nobody(rights)

    def lines(self):
        if not os.path.exists(self.records):
            return []
        return lab.json_lines(self.records, is_whole=False)

    def of_sessions(self):
        return {one["Pid"]: {name: one[name] for name in NAMES if name in one}
                for one in self.lines() if one.get("type") == "session" and one.get("Pid") in self.expected}

    def protect(self):
        """As /var/lib/docker is: for root only."""
        os.chmod(self.lab.path("root"), 0o755)
        for name in os.listdir(self.runtimes.root):
            os.chmod(os.path.join(self.runtimes.root, name), 0o700)

    def test_with_the_right_to_read(self):
        self.container(Host.docker)
        self.container(Host.crio)
        self.protect()
        self.begin(RIGHTS + ",+dac_read_search", self.runtimes.root)
        lab.wait_for(lambda: self.named(self.lines()) == self.expected, "all names")
        self.check_own(self.lines())
        for pid in self.expected:
            os.kill(pid, signal.SIGKILL)
        lab.wait_for(lambda: self.of_sessions() == self.expected, "their sessions")
        self.stop()
        self.assertNotIn("names of containers", self.messages())

    def test_without_it_a_line_says_so(self):
        self.container(Host.docker)
        self.container(Host.crio)
        self.protect()
        self.begin(RIGHTS, self.runtimes.root)
        lab.wait_for(lambda: len(self.named(self.lines())) == len(self.expected), "processes")
        self.assertEqual([{}] * len(self.expected), list(self.named(self.lines()).values()))
        self.stop()
        # Flows and sessions share what looks for them.
        self.assertEqual(1, self.messages().count("names of containers"), self.messages())
        self.assertIn("CAP_DAC_READ_SEARCH", self.messages())

    def test_names_that_no_record_can_have_are_reported(self):
        self.write("[host]", "container_names = yes", f"container_root = {self.runtimes.root}",
                   interfaces=("lo",))
        self.start()
        self.stop()
        self.assertEqual(1, self.messages().count("container_names: no record has such names"),
                         self.messages())

    def test_keys_are_checked(self):
        self.check_errors([
            ("[host]\ncontainer_names = maybe", "2:"),
            ("[host]\ncontainer_name = yes", "2:1: there is no key 'container_name'")])
        self.write("[host]", "container_names = yes", "field.site = x")
        code, text, errors = self.config("show", self.path)
        self.assertEqual((0, ""), (code, errors))
        self.assertIn("container_names = yes", text)


if __name__ == "__main__":
    lab.main()
