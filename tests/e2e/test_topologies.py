#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
# Cost: 90
# Needs: git
"""
A packet is counted once, whatever the topology: random graphs of namespaces,
random sets of observed interfaces, known traffic, one or two observers. Routers translate addresses,
also those of tunnels; to an observer with --nat, what it knows to be one conversation counts once.
NETOBS_TEST_TOPOLOGIES=N tries so many, NETOBS_TEST_SEED=SEED those from that seed on. One observer in
four has a filter that matches all packets; with NETOBS_TEST_FILTER=EXPRESSION, all have that one.
"""

import collections
import multiprocessing
import os
import signal
import subprocess
import time
import traceback

from lib import lab
from lib import topology_actions
from lib import topology_check
from lib import topology_random
from lib import topology_truth

WORKERS = max(2, lab.sized(6))  # fewer where loading programs takes seconds
TOPOLOGIES = 30
REPORTED = 3
FILTERED = 4 # one of so many
MATCHES_ALL = "ip or not ip"


def start_worker():
    lab.die_with_parent()
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def filter_of(seed):
    """None is a filter, too: the empty expression."""
    return os.environ.get("NETOBS_TEST_FILTER",
                          "" if seed % FILTERED else MATCHES_ALL)


def attempt(job):
    """(The seed, what is wrong with its topology: text or None, what it has)"""
    seed, features = job
    topology = topology_random.make(seed, features)
    for number, view in enumerate(topology.views()):
        view.filter = tuple(filter_of(seed + number).split())
    has = topology_actions.taken(topology) | topology_truth.joined(topology) | \
        ({"second"} if topology.second else set()) | \
        ({"tunnel"} if any(flow.inner for flow in topology.flows) else set())
    try:
        if not topology.observed:
            return seed, None, has
        wrong, _ = topology_check.observe(topology)
        return seed, wrong and topology_check.report(topology, wrong), has
    except Exception: # pylint: disable=broad-except
        return seed, f"{topology.describe()}\n{traceback.format_exc()}", has


def choose_seed():
    """
    By chance, and in CI by the commit: a network that the generator should have left out fails there
    for the commit that was tried, and for no later one.
    """
    commit = subprocess.run(["git", "-c", "safe.directory=*", "-C", os.environ["NETOBS_SOURCE"],
                             "rev-parse", "HEAD"], capture_output=True, text=True,
                            check=False).stdout.strip()
    if os.environ.get("CI") and commit:
        return int(commit, 16) % 10 ** 9
    return time.time_ns() // 1000 % 10 ** 9


class Topologies(lab.LabTest):
    """As many as were asked for."""

    def test_each_packet_is_counted_once(self):
        first = int(os.environ.get("NETOBS_TEST_SEED", choose_seed()))
        count = int(os.environ.get(
            "NETOBS_TEST_TOPOLOGIES",
            1 if "NETOBS_TEST_SEED" in os.environ
            else max(20, lab.sized(TOPOLOGIES))))
        features = topology_random.find_features()
        self.note(f"seeds from {first} on, {count} topologies, "
                  f"{'with' if features.vlans else 'without'} VLANs")
        failed, having = {}, collections.Counter()
        jobs = [(seed, features) for seed in range(first, first + count)]
        with multiprocessing.Pool(min(WORKERS, count),
                                  start_worker) as pool:
            for seed, wrong, has in pool.imap_unordered(attempt, jobs):
                having.update(has)
                if wrong:
                    failed[seed] = wrong
        self.note(", ".join(f"{having[name]} of {count} with {what}" for name, what in (
            ("redirect", "packets that tc redirects"), ("mirror", "copies that tc sends"),
            ("nat", "translations that are joined"), ("tunnel", "tunnels"),
            ("second", "two observers"))))
        for at, seed in enumerate(sorted(failed)):
            # All is said of the first ones, and of others what is wrong.
            text = failed[seed] if at < REPORTED else \
                failed[seed].split("\nWrong:\n")[-1]
            print(f"NETOBS_TEST_SEED={seed}\n{text}\n", flush=True)
        self.assertEqual([], sorted(failed), "seeds that failed")


if __name__ == "__main__":
    lab.main()
