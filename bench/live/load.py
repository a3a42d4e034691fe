# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
"""
The traffic of a scenario, between the host of the agents and its peer, bounded
in time and in number; all of it on one CPU.

UDP goes to a MAC address that nobody has, so that it ends right behind the
hooks, in the same way for everybody. The interfaces' offloads are off: a packet
of TCP is a packet for agents of every kind, and for the interface's counters.
"""

import json
import math
import os
import subprocess
import time

from lib import lab
from lib import traffic
from scenarios import TCP_STREAMS

HOST, PEER, PORT = "192.0.2.1", "192.0.2.2", 5201
INTERFACE = "eth0"
# 75 octets a frame, as in the published evaluation.
UDP_PAYLOAD = 33
MAX_PACKETS = 50_000_000
QUIET_SECONDS = 0.25


class Wire:
    """The two namespaces, joined."""

    def __init__(self, where, cpu):
        self.where, self.cpu = where, cpu
        self.host, self.peer = where.ns("host"), where.ns("peer")
        where.wire(self.host, INTERFACE, [f"{HOST}/24"],
                   self.peer, INTERFACE, [f"{PEER}/24"], offload=False)

    def counters(self):
        """(packets that arrived, packets that left or tried to)"""
        counters = self.host.counters(INTERFACE)
        return (counters["rx"]["packets"],
                counters["tx"]["packets"] + counters["tx"]["dropped"])

    def quiet_counters(self):
        """Connections may go on for a moment when their processes have ended."""
        last, now = None, self.counters()
        while last != now:
            time.sleep(QUIET_SECONDS)
            last, now = now, self.counters()
        return now

    def run(self, scenario, seconds):
        """Send; {"packets": .., "seconds": .., "throughput": .., "unit": ..}"""
        before = self.counters()
        send = self.tcp if scenario.protocol == "tcp" else self.udp
        sent = send(scenario, seconds)
        arrived, left = (after - earlier for earlier, after in
                         zip(before, self.quiet_counters()))
        sent.setdefault("packets", arrived + left)
        if sent["packets"] != arrived + left:
            raise RuntimeError(f"sent {sent}, but the interface counted "
                               f"{arrived} packets in and {left} out")
        return sent

    def udp(self, scenario, seconds):
        is_egress = scenario.direction == "egress"
        sent = traffic.flood(
            self.where, self.host if is_egress else self.peer, INTERFACE,
            "--flows", scenario.flows, "--seconds", seconds, "--packets",
            MAX_PACKETS, "--payload", UDP_PAYLOAD, "--cpus", self.cpu)
        # What the wire refused has passed the sender's hook, but no other.
        packets = sent["packets"] - (0 if is_egress else sent["refused"])
        return {"packets": packets, "seconds": sent["seconds"],
                "throughput": packets / sent["seconds"], "unit": "packet/s"}

    def tcp(self, scenario, seconds):
        server = self.iperf3(self.host, "-s", "-1", "-B", HOST)
        lab.wait_for(lambda: self.is_listening(server), "iperf3")
        # It takes whole seconds, and 0 for ever.
        client = self.iperf3(self.peer, "-c", HOST, "-P", TCP_STREAMS, "-t",
                             max(1, math.ceil(seconds)), "-J", "-b",
                             scenario.rate // TCP_STREAMS)
        out, _ = client.communicate(timeout=seconds + 60)
        server.communicate(timeout=60)
        if client.returncode:
            raise RuntimeError(f"iperf3: {out}")
        end = json.loads(out)["end"]
        received, cpu = end["sum_received"], end["cpu_utilization_percent"]
        return {"seconds": received["seconds"],
                "throughput": received["bits_per_second"], "unit": "bit/s",
                "ends_cpu_seconds": (cpu["host_total"] + cpu["remote_total"]) / 100 *
                                    received["seconds"]}

    def iperf3(self, ns, *arguments):
        return self.where.spawn(
            "iperf3", "-p", PORT, *arguments, ns=ns,
            enter=lambda: os.sched_setaffinity(0, {self.cpu}),
            stdout=subprocess.PIPE)

    def is_listening(self, server):
        if server.poll() is not None:
            raise RuntimeError("iperf3 -s ended at once")
        return f":{PORT} " in self.host.run("ss", "-Hltn")
