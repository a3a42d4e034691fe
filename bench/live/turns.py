# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
"""
Turns of agents, each between two turns without any: what the machine does meanwhile, it
does to both.

Agents cannot be exchanged on one interface within a turn: a process takes a second to start
and to end, and a stopped one (SIGSTOP) still has its program or packet socket attached, which
costs the kernel what it costs. So in a flood, each agent has a wire of its own, with a sender
of its own that waits (SIGSTOP) until it is its agent's turn: what is attached to one wire costs
the packets of another nothing. Agents that have no turn are stopped, when they have read what
was queued for them: they leave their CPU to the one that has it.

A sender that keeps to a rate cannot be stopped, as it would then hurry. There a turn is a whole
run, with a new agent on a new wire.
"""

import contextlib
import os
import random
import signal
import time

from lib import lab
import load
import measure

UDP_TURN_SECONDS = 0.05
# iperf3 serves its connections in a cycle.
TCP_TURN_SECONDS = 0.2
BACKLOG_SECONDS = 0.25
IDLE_SECONDS, IDLE_CPU_SECONDS = 0.005, 0.0002
TIMEKEEPER = 10 # a real-time priority


def cpu_seconds(pids):
    total = 0
    for pid in pids:
        with contextlib.suppress(OSError):
            total += measure.process_cpu_seconds(pid)
    return total


def send_all(pids, number):
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)


class Post:
    """An agent, or none, with its wire and its sender."""

    def __init__(self, where, scenario, agent_class, cpus):
        self.scenario = scenario
        self.wire = load.Wire(where, cpus[0], scenario.qdisc)
        self.agent = agent_class(where, self.wire.host, load.INTERFACE, cpus[1])
        self.senders = [process.pid for process in self.wire.start(scenario)]
        send_all(self.senders, signal.SIGSTOP)
        process = self.agent.process
        self.watchers = measure.family(process.pid) if process else []
        self.rest()

    def rest(self):
        """Let the agent read what is queued, within a bound, then stop it."""
        end = time.monotonic() + BACKLOG_SECONDS
        before = -1
        while time.monotonic() < end:
            now = cpu_seconds(self.watchers)
            if now - before < IDLE_CPU_SECONDS:
                break
            before = now
            time.sleep(IDLE_SECONDS)
        send_all(self.watchers, signal.SIGSTOP)

    def turn(self):
        """The throughput."""
        if self.agent.process and self.agent.process.poll() is not None:
            raise RuntimeError(f"{self.agent.name} has ended")
        send_all(self.watchers, signal.SIGCONT)
        before, start = self.wire.progress(self.scenario), time.monotonic()
        send_all(self.senders, signal.SIGCONT)
        time.sleep(TCP_TURN_SECONDS if self.scenario.protocol == "tcp" else UDP_TURN_SECONDS)
        # Others may have had its CPU all the time.
        lab.wait_for(lambda: self.wire.progress(self.scenario) != before, "the sender")
        send_all(self.senders, signal.SIGSTOP)
        after, end = self.wire.progress(self.scenario), time.monotonic()
        self.rest()
        return (after - before) / (end - start)

    def end(self):
        """Stopped processes would not end."""
        send_all(self.senders + self.watchers, signal.SIGKILL)


class Floods:
    """All agents at once, on wires of their own."""

    def __init__(self, scenario, agents, cpus):
        self.where = lab.Lab()
        self.posts = {}
        try:
            for name, agent_class in agents.items():
                self.posts[name] = Post(self.where, scenario, agent_class, cpus)
        except BaseException:
            self.close()
            raise

    def turn(self, name):
        return self.posts[name].turn()

    def close(self):
        for post in self.posts.values():
            post.end()
        self.where.close()


@contextlib.contextmanager
def timekeeper(cpu):
    """Beside the sender, and not waiting for an agent when a turn ends. Children are as ever."""
    affinity = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {cpu})
    with contextlib.suppress(OSError):
        os.sched_setscheduler(0, os.SCHED_FIFO | os.SCHED_RESET_ON_FORK,
                              os.sched_param(TIMEKEEPER))
    try:
        yield
    finally:
        os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))
        os.sched_setaffinity(0, affinity)


def measure_round(turn, agents, reference, chance=random):
    """{agent: (its turn, the mean of the turns of @reference before and after)}"""
    found, before = dict.fromkeys(agents), turn(reference)
    for name in chance.sample(list(found), len(found)):
        own, after = turn(name), turn(reference)
        found[name] = own, (before + after) / 2
        before = after
    return found
