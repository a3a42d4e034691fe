#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
# Label: measure
# Cost: 45
# Lock: measure, memory runs out at a moment that depends on the CPU time it gets.
"""
Memory: little of it is taken, and when the kernel refuses more, packets are
kept in another way or counted as lost, or the start fails with a message.
"""

import os
import subprocess
import time

from lib import bpf
from lib import lab
from lib import observer
from lib import traffic
from lib.observer import Observer

MIB = 1 << 20
# Memory of maps for each CPU beyond 2, see docs/performance.md.
MORE_CPUS = min(5 * (os.cpu_count() - 2) // 2, 85)


class ControlGroup:
    """A memory control group, version 1 or 2, whichever is mounted."""

    def __init__(self, where, tag=""):
        name = os.path.basename(where.dir) + tag
        if os.path.exists("/sys/fs/cgroup/memory/memory.limit_in_bytes"):
            self.root = "/sys/fs/cgroup/memory"
            self.knob = "memory.limit_in_bytes"
        else:
            self.root = "/sys/fs/cgroup"
            self.knob = "memory.max"
            self.write(self.root, "cgroup.subtree_control", "+memory")
        self.path = os.path.join(self.root, name)
        os.mkdir(self.path)
        where.defer(self.remove)
        # A process stays inside: the host's manager may remove empty groups.
        where.spawn("sleep", "infinity", enter=self.enter)

    @staticmethod
    def write(directory, name, value):
        lab.write(os.path.join(directory, name), str(value))

    def enter(self):
        """For a child before it runs its program."""
        self.write(self.path, "cgroup.procs", os.getpid())

    def limit(self, mib):
        """@mib: with 2 CPUs"""
        self.write(self.path, self.knob, (mib + MORE_CPUS) * MIB)

    def remove(self):
        lab.wait_for(lambda: os.rmdir(self.path) is None, "the group's end")


class Memory(lab.WiredTest):
    def test_idle(self):
        watcher = Observer(self.lab, self.a, "-i", "eth0", "--interval", "0.1",
                           release=True).wait_attached((self.a, "eth0"))
        time.sleep(1)
        memory = watcher.memory()
        watcher.stop()
        self.note(f"idle: {observer.in_mib(memory)}")
        self.assertLess(memory["now"], 8 * MIB)

    def assert_accounted(self, watcher, sent):
        result = watcher.stop()
        result.check_conservation()
        self.assertEqual((sent["packets"], sent["bytes"]),
                         result.total("seen"))
        return result.stats["lost"]

    def run_briefly(self, *options, enter=None, outside=False):
        done = self.lab.spawn(
            observer.netobsctl(release=True), "flows", "-d", "1",
            "-i", self.from_outside() if outside else "eth0", *options,
            ns=None if outside else self.a, stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE, text=True, enter=enter)
        _, errors = done.communicate(timeout=lab.PATIENCE_S)
        self.assertEqual(0, bpf.attached(self.a, "eth0"))
        self.note(errors.strip())
        return done.returncode, errors

    def refusal(self, *options, **where):
        code, errors = self.run_briefly(*options, **where)
        self.assertEqual(1, code, errors)
        return errors

    def test_groups_are_never_filled(self):
        """The kernel would kill; tables and flows keep to what there is."""
        for mib, *options in ((32,), (64, "--active-timeout", "60"),
                              (64, "--max-memory", "1G"), (256,)):
            with self.subTest(mib=mib, options=options):
                self.check_group(mib, *options)

    def from_outside(self):
        """Inside `ip netns exec` control groups are not mounted."""
        return f"netns:{self.a.name}/eth0"

    def check_group(self, mib, *options):
        group = ControlGroup(self.lab, str(len(self.lab.undo)))
        group.limit(mib)
        watcher = Observer(self.lab, None, "-i", self.from_outside(),
                           "--interval", "5", *options, release=True,
                           enter=group.enter).wait_attached((self.a, "eth0"))
        flows = lab.sized(400000)
        sent = traffic.flood(self.lab, self.a, "eth0", "--flows", flows,
                             "--packets", flows, "--rate", 100000)
        lost = self.assert_accounted(watcher, sent)
        messages = watcher.messages()
        self.assertRegex(messages, "memory control group leaves")
        self.assertEqual("--max-memory" in options,
                         "--max-memory: the memory" in messages)
        self.note(f"{mib} MiB {options}: of {sent['packets']} packets lost "
                  f"{ {name: count['packets'] for name, count in lost.items()} }")

    def test_too_small_a_group_is_refused(self):
        group = ControlGroup(self.lab)
        group.limit(18)
        self.assertRegex(self.refusal(enter=group.enter, outside=True),
                         "memory control group leaves .* the least")

    def test_kernel_refuses_memory_at_the_start(self):
        group = ControlGroup(self.lab)
        group.limit(8)
        if not bpf.charges_groups():
            self.assertEqual((0, ""), self.run_briefly(enter=group.enter))
            return
        self.assertRegex(self.refusal(enter=group.enter),
                         "[Cc]annot (make|load).*memory")


if __name__ == "__main__":
    lab.main()
