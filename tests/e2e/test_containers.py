#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
"""
Interfaces that lead to containers have these in the metrics and in the status of a service, which
runs with the rights of the unit only.

Which containers there are, by which runtimes, is random.
"""

import os
import time

from lib import bpf
from lib import lab
from lib import metrics
from lib import observer
from lib.hierarchy import Hierarchy
from lib.runtimes import POD, UID
from lib.service import NOBODY, ServiceTest

RIGHTS = "-all,+bpf,+perfmon,+net_admin"
ID = "0123456789abcdef"

# Where runtimes have the group of a container.
RUNTIMES = ("docker/{}", "system.slice/docker-{}.scope", "machine.slice/libpod-{}.scope",
            "system.slice/nerdctl-{}.scope")
POD_RUNTIMES = (POD + "/cri-containerd-{}.scope", POD + "/crio-{}.scope")
OTHERS = ("user.slice/user-0.slice/user@0.service/docker-{}.scope", "nobs-none")


class Containers(ServiceTest):
    def setUp(self):
        super().setUp()
        self.hierarchies = [Hierarchy(self, "cgroup2", ())]
        if os.path.isdir("/sys/fs/cgroup/memory"):
            self.hierarchies.append(Hierarchy(self, "cgroup", ("-o", "memory")))
        self.processes = {}
        self.addCleanup(lambda: self.end(*list(self.processes)))
        self.count = 0

    def begin(self, *before):
        bpf.unlock_memory()
        directory = self.lab.path("run")
        os.mkdir(directory)
        os.chown(directory, NOBODY, NOBODY)
        self.control, self.metrics = f"{directory}/control", f"{directory}/metrics"
        self.write("[metrics]", f"listen = unix:{self.metrics}", '[sink "a"]',
                   f"output = json:{directory}/a", sinks=(), interfaces=("/^(eth0$|v)/",))
        self.start_as_nobody(RIGHTS, *before)
        self.processes["service"] = [self.process]

    # ---- Containers

    def namespace(self):
        """Another one, and the interface that leads there."""
        number, self.count = self.count, self.count + 1
        ns = self.lab.ns(f"c{number}")
        self.lab.veth(self.a, f"v{number}", ns, "eth0")
        return number, ns

    def run_in(self, number, ns, path, is_in_all=False):
        """A process in a namespace, and in a group."""
        process = self.lab.spawn("sleep", "1000", ns=ns)
        self.processes.setdefault(number, []).append(process)
        for hierarchy in self.hierarchies if is_in_all else [self.random.choice(self.hierarchies)]:
            hierarchy.add(path, process.pid)

    def end(self, *numbers):
        for number in numbers:
            for process in self.processes.pop(number, ()):
                process.kill()
                process.wait()

    def name(self):
        return "".join(self.random.choices(ID, k=64))

    def container(self):
        """What its interface has."""
        number, ns = self.namespace()
        name = self.name()
        self.run_in(number, ns, self.random.choice(RUNTIMES).format(name))
        return {f"v{number}": (name, "")}

    def pod(self):
        """Two of its containers."""
        number, ns = self.namespace()
        for _ in range(2):
            self.run_in(number, ns, self.random.choice(POD_RUNTIMES).format(self.name()))
        return {f"v{number}": ("", UID)}

    def shared(self):
        """Containers that share a namespace without being a pod."""
        number, ns = self.namespace()
        for path in RUNTIMES[:2]:
            self.run_in(number, ns, path.format(self.name()))
        return {}

    def other(self):
        """Groups that are called so by others, and processes in none."""
        number, ns = self.namespace()
        self.run_in(number, ns, self.random.choice(OTHERS).format(self.name()))
        return {}

    def nested(self):
        """Containers in a container, of which the outer one has the interface."""
        number, ns = self.namespace()
        name, path = self.name(), self.random.choice(RUNTIMES)
        self.run_in(number, ns, path.format(name) + "/init")
        self.run_in(number, self.lab.ns(f"n{number}"),
                    path.format(name) + f"/docker/{self.name()}")
        return {f"v{number}": (name, "")}

    # ---- What the service reports

    def of_status(self):
        return {one["name"]: (one.get("container_id", ""), one.get("pod_uid", ""))
                for one in self.status()["interfaces"] if "container_id" in one or "pod_uid" in one}

    def of_metrics(self):
        found = {}
        for labels, value in metrics.scrape(self.metrics).all_of(
                "netobs_interface_container_info").items():
            labels = dict(labels)
            self.assertEqual((1, ""), (value, labels["netns"]))
            found[labels["interface"]] = labels["container_id"], labels["pod_uid"]
        return found

    def await_containers(self, expected):
        lab.wait_for(lambda: self.of_status() == expected, f"{expected}")
        lab.wait_for(lambda: self.of_metrics() == expected, f"{expected} in metrics")

    def test_seen_from_a_group_of_its_own(self):
        """As in a container with the groups of the host: those are above its own."""
        group = f"{self.hierarchies[0].directory}/nobs-own/service"
        self.run_in(-1, self.a, "nobs-own/service", True)
        expected = self.container() | self.pod()
        self.begin("sh", "-c", f'echo 0 >{group}/cgroup.procs && exec unshare -C "$@"', "sh")
        self.await_containers(expected)
        self.stop()

    def test_they_are_those_at_the_other_end(self):
        self.run_in(-1, self.a, RUNTIMES[0].format(self.name())) # it shares the host's namespace
        kinds = [self.container, self.pod, self.shared, self.other, self.nested]
        expected = {}
        for make in self.random.sample(kinds * 2, k=2 * len(kinds)):
            expected.update(make())
        self.begin()
        self.await_containers(expected)
        number, ns = self.namespace() # its process comes later
        time.sleep(2 * self.random.random())
        name = self.name()
        self.run_in(number, ns, RUNTIMES[1].format(name))
        self.await_containers(expected | {f"v{number}": (name, "")})
        text = observer.run("status", "-s", self.control, ns=self.a).stdout
        self.assertIn(f"    to container {name}", text)
        self.assertIn(f"    to pod {UID}", text)
        self.end(number)
        self.a.ip("link", "del", f"v{number}")
        self.await_containers(expected)
        self.stop()


if __name__ == "__main__":
    lab.main()
