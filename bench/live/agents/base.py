# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
"""What all agents have in common: a life around the traffic."""

import contextlib
import os
import signal
import time

from lib import lab
import measure

READY_SECONDS = 20
STOP_SECONDS = 120
# An agent is through with its backlog when it has used no CPU for this long.
QUIET_SECONDS = 0.2
BACKLOG_SECONDS = 20


class Agent:
    """
    Something that watches an interface. Subclasses start a process in
    start(), and say in count() how many packets it reported, or None.
    """

    name = ""
    protocols = ("udp", "tcp") # of the scenarios that it runs in
    packages = () # of Debian, beyond what every benchmark needs
    accounts = None # what it says of packets that it did not report
    lag_seconds = 0 # what it has seen, it has read after this

    def __init__(self, where, ns, interface, cpu):
        self.where, self.ns, self.interface = where, ns, interface
        self.cpu = cpu
        self.process = None
        self.usage = self.said = None
        self.start()
        if self.process:
            self.usage = measure.Usage(self.process.pid).look()
            where.defer(self.kill)

    def start(self):
        """Start it, and return when it sees packets."""
        raise NotImplementedError

    def prepare(self, seconds):
        """Traffic of about @seconds is to begin when this returns."""

    def count(self):
        """Packets reported, after the end."""
        raise NotImplementedError

    def spawn(self, *command, **options):
        self.process = self.where.spawn(*command, ns=self.ns, enter=self.pin,
                                        **options)
        return self.process

    def pin(self):
        os.sched_setaffinity(0, {self.cpu})

    def log(self, name):
        """A file for what the agent says."""
        return open(self.where.path(f"{self.name}-{name}"), "w+",
                    encoding="utf-8")

    def spawn_and_wait(self, words, *command):
        """Start it; self.said keeps what it says, which has @words when this returns."""
        self.said = self.log("said")
        self.spawn(*command, stdout=self.said, stderr=self.said)

        def found():
            if self.process.poll() is not None:
                raise RuntimeError(f"{self.name} ended: {lab.read(self.said.name)}")
            return words in lab.read(self.said.name)
        lab.wait_for(found, f"{self.name} to be ready", READY_SECONDS)

    def catch_up(self):
        """Let it read what is queued for it."""
        time.sleep(self.lag_seconds)
        end = time.monotonic() + BACKLOG_SECONDS
        before = -1
        while before != self.usage.look().cpu_seconds():
            if time.monotonic() > end:
                return
            before = self.usage.cpu_seconds()
            time.sleep(QUIET_SECONDS)

    def ask_to_end(self):
        self.process.send_signal(signal.SIGINT)

    def stop(self):
        """End it, and follow what it uses to the last."""
        self.ask_to_end()
        end = time.monotonic() + STOP_SECONDS
        while not os.waitid(os.P_PID, self.process.pid,
                            os.WEXITED | os.WNOHANG | os.WNOWAIT):
            if time.monotonic() > end:
                raise TimeoutError(f"{self.name} does not end")
            self.usage.look()
            time.sleep(0.01)
        self.usage.look()
        self.process.wait()

    def kill(self):
        """Also the children of a process that was killed before."""
        for pid in self.usage.survivors():
            os.kill(pid, signal.SIGKILL)


def remove(path):
    with contextlib.suppress(FileNotFoundError):
        os.unlink(path)
