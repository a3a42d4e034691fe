# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
"""
The traffic of a scenario, between the host of the agents and its peer; all of it
on one CPU.

UDP goes to a MAC address that no host has, so that it ends right behind the
hooks, in the same way for all. The interfaces' offloads are off: a packet
of TCP is a packet for agents of every kind, and for the interface's counters.
"""

import json
import math
import os
import subprocess
import time

from lib import lab
from lib import traffic

HOST, PEER, PORT = "192.0.2.1", "192.0.2.2", 5201
INTERFACE = "eth0"
# 75 octets a frame, as in the published evaluation.
UDP_PAYLOAD = 33
MAX_PACKETS = 50_000_000
QUIET_SECONDS = 0.25
FOREVER_SECONDS = 86400
# Of a connection that is stopped and continued: buffers that fill and empty in a moment.
WINDOW = "256K"
STARTED_PACKETS = 1000


class Counters:
    """The kernel's counters of an interface, of which this thread need not be in the namespace."""

    def __init__(self, where, ns, interface):
        self.interface = interface
        with ns: # it stays that of this namespace
            self.devices = os.open("/proc/thread-self/net/dev", os.O_RDONLY)
        where.defer(os.close, self.devices)

    def fields(self):
        """In the order of net/dev."""
        text = os.pread(self.devices, 1 << 12, 0).decode()
        line = next(line for line in text.splitlines() if f"{self.interface}:" in line)
        return [int(value) for value in line.split(":")[1].split()]

    def packets(self):
        """(that arrived, that left or tried to)"""
        fields = self.fields()
        return fields[1], fields[9] + fields[11]


class Wire:
    """The two namespaces, joined."""

    def __init__(self, where, cpu, qdisc=""):
        self.where, self.cpu = where, cpu
        self.host, self.peer = where.ns("host"), where.ns("peer")
        where.wire(self.host, INTERFACE, [f"{HOST}/24"],
                   self.peer, INTERFACE, [f"{PEER}/24"], offload=False)
        if qdisc:
            self.host.tc("qdisc", "add", "dev", INTERFACE, "root", *qdisc.split())
        self.device = Counters(where, self.host, INTERFACE) # of the agents

    def counters(self):
        return self.device.packets()

    def progress(self, scenario):
        """What the throughput is the growth of."""
        if scenario.unit == "bit/s":
            return 8 * self.device.fields()[0]
        return self.counters()[scenario.direction == "egress"]

    def quiet_counters(self):
        """Connections may go on for a moment when their processes have ended."""
        last, now = None, self.counters()
        while last != now:
            time.sleep(QUIET_SECONDS)
            last, now = now, self.counters()
        return now

    def run(self, scenario, seconds):
        """Send; {"packets": .., "seconds": ..}"""
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

    def start(self, scenario):
        """The processes that send and receive, from now on until they are stopped."""
        if scenario.protocol == "tcp":
            processes = self.start_tcp(scenario, FOREVER_SECONDS, "-w", WINDOW)
        else:
            processes = [traffic.start_flood(self.where, *self.sender(scenario),
                                             *self.flood(scenario))]
        lab.wait_for(lambda: sum(self.counters()) > STARTED_PACKETS, "traffic")
        return processes

    def sender(self, scenario):
        return (self.host if scenario.direction == "egress" else self.peer), INTERFACE

    def flood(self, scenario):
        return "--flows", scenario.flows, "--payload", UDP_PAYLOAD, "--cpus", self.cpu

    def udp(self, scenario, seconds):
        sent = traffic.flood(self.where, *self.sender(scenario), *self.flood(scenario),
                             "--seconds", seconds, "--packets", MAX_PACKETS)
        # What the wire refused has passed the sender's hook, but no other.
        is_egress = scenario.direction == "egress"
        packets = sent["packets"] - (0 if is_egress else sent["refused"])
        return {"packets": packets, "seconds": sent["seconds"]}

    def tcp(self, scenario, seconds):
        # It takes whole seconds.
        client, server = self.start_tcp(scenario, max(1, math.ceil(seconds)), "-J")
        out, _ = client.communicate(timeout=seconds + 60)
        server.communicate(timeout=60)
        if client.returncode:
            raise RuntimeError(f"iperf3: {out}")
        end = json.loads(out)["end"]
        cpu = end["cpu_utilization_percent"]
        seconds = end["sum_received"]["seconds"]
        return {"seconds": seconds,
                "ends_cpu_seconds": (cpu["host_total"] + cpu["remote_total"]) / 100 * seconds}

    def start_tcp(self, scenario, seconds, *options):
        """(client, server)"""
        server = self.iperf3(self.host, "-s", "-1", "-B", HOST)
        lab.wait_for(lambda: self.is_listening(server), "iperf3")
        # Writes that wait for others would not be packets of their own.
        writes = ["-l", scenario.write, "-N"] if scenario.write else []
        if scenario.direction == "egress":
            writes.append("-R") # the server sends
        return self.iperf3(self.peer, "-c", HOST, "-P", scenario.flows, "-t", seconds, "-b",
                           scenario.rate // scenario.flows, *writes, *options), server

    def iperf3(self, ns, *arguments):
        return self.where.spawn(
            "iperf3", "-p", PORT, "-i", 0, *arguments, ns=ns,
            enter=lambda: os.sched_setaffinity(0, {self.cpu}),
            stdout=subprocess.PIPE)

    def is_listening(self, server):
        if server.poll() is not None:
            raise RuntimeError("iperf3 -s ended at once")
        return f":{PORT} " in self.host.run("ss", "-Hltn")
