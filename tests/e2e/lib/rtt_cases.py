# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
"""Round-trip times of one connection after another over a link, by netobs and by the kernel."""

import collections
import json
import signal
import statistics
import subprocess
import threading
import time

from lib import bpf
from lib import lab
from lib import observer
from lib import packets
from lib import relay
from lib import rtt_truth

# All samples, as rules see them.
RULE = "rtt > 0ns hold 0s limit none"
THINK_MS = 30
PORTS = {"pingpong": relay.PORT, "bulk": relay.PORT, "think": relay.PORT + 1}
IDLE_S = 0.2

Case = collections.namedtuple("Case", "delay_ms loss kind gso timestamps family")
# In microseconds; true: of all that tcpdump saw at the interface, or None.
Found = collections.namedtuple("Found", "case median least samples retransmits true_least "
                               "largest kernels_median kernels_least kernels_largest "
                               "kernels_samples")


class Watcher:
    """netobsctl alerts in a; all round-trip times to the server, by the client's port."""

    def __init__(self, where, link):
        self.process = where.spawn(
            observer.netobsctl(), "alerts", "-i", "eth0", "-o", "json", "--stats",
            "--rule", RULE, ns=link.a, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, text=True)
        self.times = collections.defaultdict(list)  # microseconds
        self.reader = threading.Thread(target=self.read)
        self.reader.start()

    def read(self):
        for line in self.process.stdout:
            alert = json.loads(line)
            if alert["Way"] == "to_server":
                self.times[alert["SrcPort"]].append(alert["Value"] / 1000)

    def rest(self):
        """Leaves alerts in the ring until take(). A process that is woken for an alert delays the
        packet's way from the interface to its socket, which is in the kernel's sample."""
        self.process.send_signal(signal.SIGSTOP)

    def take(self, port):
        """Those of a connection that has ended."""
        self.process.send_signal(signal.SIGCONT)
        lab.wait_for(lambda: self.times[port], "samples")
        seen = -1
        while seen != len(self.times[port]):
            seen = len(self.times[port])
            time.sleep(IDLE_S)
        return self.times.pop(port)

    def stop(self):
        self.process.send_signal(signal.SIGINT)
        self.process.wait(timeout=60)
        self.reader.join()
        errors = self.process.stderr.read()
        observer.check_sanitizer(errors)
        counts, = json.loads(errors.splitlines()[-1])["alerts"]
        if self.process.returncode or counts["lost"]:
            raise AssertionError(errors)


class Watched:
    """A link whose connections are measured, one after another."""

    def __init__(self, where, delay_ms, loss, seed):
        self.lab, self.loss = where, loss
        self.link = relay.Link(where, delay_ms * 1000, int(loss * 1_000_000), seed)
        for family in relay.ADDRESSES:
            self.link.serve(family)
            self.link.serve(family, THINK_MS, PORTS["think"])
        self.watcher = Watcher(where, self.link)
        lab.wait_for(lambda: bpf.attached(self.link.a, "eth0") == 2, "netobsctl")
        self.path = where.path(f"{self.link.a.name}")

    def talk(self, case, seconds):
        return self.link.talk("bulk" if case.kind == "bulk" else "pingpong", seconds,
                              case.family, PORTS[case.kind],
                              (lab.tool("kernelrtt"), self.path + ".rtt"))

    def round_trips(self, dump, port):
        """The least and the largest that are true, in microseconds."""
        dropped = packets.read(self.link.dropped).packets if self.loss else ()
        times = rtt_truth.round_trips(dump.stop().packets, dropped, port)
        return min(times) / 1000, max(times) / 1000

    def measure(self, case, seconds):
        self.link.configure(case.timestamps, case.gso)
        # A link that loses nothing takes more of bulk data than tcpdump has time for.
        dump = packets.Tcpdump(self.lab, self.link.a, "eth0", self.path + ".pcap", "-s", 2048,
                               "tcp") if self.loss or case.kind != "bulk" else None
        self.watcher.rest()
        talked = self.talk(case, seconds)
        truth = self.round_trips(dump, talked["port"]) if dump else (None, None)
        with open(self.path + ".rtt", encoding="ascii") as file:
            kernels, least = zip(*(map(int, line.split()) for line in file))
        times = self.watcher.take(talked["port"])
        return Found(case, statistics.median(times), min(times), times,
                     talked["retransmits"], *truth, statistics.median(kernels), least[-1],
                     max(kernels), len(kernels))
