# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
# Needs: nftables iproute2
"""Records of queues and hosts: who fills the queue that a traced connection waits in, and what namespaces count.

A host with a slow uplink, a container behind masquerading, and another host. Rivals are processes of their own.
"""

import collections
import contextlib
import os
import select
import signal
import socket
import subprocess
import sys
import threading
import time

from lib import lab
from lib import observer
from lib.tracer import PORT, has_all

HOST, PEER, INSIDE = "192.0.2.1", "192.0.2.2", "198.51.100.2"
RIVAL_PORT, STEADY_PORT = PORT + 1, PORT + 2
MASQUERADE = """
table ip nat {
    chain post {
        type nat hook postrouting priority 100
        oifname "up0" masquerade
    }
}
"""
PAYLOAD, HEADERS, BURST = 1300, 42, 60
PERIOD_NS = 1 << 28 # of a record of a queue
RATE, BUCKET = 20_000_000, 20_000 # bits a second and bytes of the uplink's tbf
RIVAL = """
import socket, sys, time
proto, address, port, seconds, rate = sys.argv[1], sys.argv[2], *map(float, sys.argv[3:])
kind = socket.SOCK_DGRAM if proto == "udp" else socket.SOCK_STREAM
end = socket.socket(socket.AF_INET, kind)
# A socket of UDP is not connected: it has no address of its own.
if proto == "tcp":
    end.connect((address, int(port)))
begin, sent = time.monotonic(), 0
while time.monotonic() < begin + seconds:
    if proto == "udp":
        end.sendto(bytes(1300), (address, int(port)))
    else:
        end.sendall(bytes(1300))
    sent += 1
    time.sleep(max(0, begin + sent * 1300 * 8 / rate - time.monotonic()))
print(end.getsockname()[1], sent)
"""


@contextlib.contextmanager
def sink(listener):
    """Reads what connections send, and closes the listener."""
    is_over = threading.Event()

    def read(listener):
        ends = [listener]
        while not is_over.is_set():
            for end in select.select(ends, [], [], .1)[0]:
                if end is listener:
                    ends.append(listener.accept()[0])
                elif not end.recv(1 << 16):
                    ends.remove(end)
                    end.close()
        for end in ends:
            end.close()
    reader = threading.Thread(target=read, args=(listener,))
    reader.start()
    try:
        yield
    finally:
        is_over.set()
        reader.join()


class Queues(lab.LabTest):
    def setUp(self):
        super().setUp()
        self.host, self.peer, self.inside = (self.lab.ns(tag) for tag in "hpi")
        self.lab.wire(self.host, "up0", [f"{HOST}/24"], self.peer, "p0", [f"{PEER}/24"])
        self.lab.wire(self.inside, "c0", [f"{INSIDE}/24"], self.host, "hc", ["198.51.100.1/24"])
        self.inside.ip("route", "add", "default", "via", "198.51.100.1")
        self.host.sysctl("ipv4/ip_forward", 1)
        self.host.run("nft", "-f", "-", input=MASQUERADE)
        self.path = self.lab.path("records.json")

    def records(self, kind):
        return [one for one in lab.json_lines(self.path, is_whole=False) if one["type"] == kind] \
            if os.path.exists(self.path) else []

    def trace(self, expression):
        return self.lab.spawn(observer.netobsctl(), "trace", "--netns", self.host.name, "--netns", self.inside.name,
                              "-o", f"json:{self.path}?records=queue,host,turn", expression)

    def stop(self, process):
        process.send_signal(signal.SIGINT)
        self.assertEqual(process.wait(60), 0)

    def rival(self, ns, *arguments):
        """@return its process"""
        return self.lab.spawn(sys.executable, "-c", RIVAL, *arguments, ns=ns, stdout=subprocess.PIPE, text=True)

    def sink(self, port):
        """Reads at a port of the peer."""
        with self.peer:
            return sink(socket.create_server((PEER, port), backlog=16))

    @contextlib.contextmanager
    def stream(self, port):
        """A connection from the host to its peer, whose queue is never empty."""
        with self.host:
            end = socket.create_connection((PEER, port))
        is_over = threading.Event()

        def write():
            while not is_over.is_set():
                end.sendall(bytes(1 << 16))
        writer = threading.Thread(target=write)
        writer.start()
        try:
            yield
        finally:
            is_over.set()
            writer.join()
            end.close()

    def queues(self, kind):
        """Those of the uplink, whose sums are exact."""
        found = [one for one in self.records("queue") if one["Kind"] == kind and
                 (one["NetnsInode"], one["Interface"]) == (self.host.inode, "up0")]
        for one in found:
            amounts = [share["Amount"] for share in one["Shares"]]
            self.assertEqual(one["Amount"], sum(amounts) + one["Rest"])
            self.assertEqual(amounts, sorted(amounts, reverse=True))
            self.assertLessEqual(one["WaitedNs"], one["TotalNs"])
        return found

    def check_rival(self, ns, proto):
        """The largest flow beside the traced one is the rival's, with its process."""
        before, begin_ns = self.received(), time.time_ns() - PERIOD_NS
        rival = self.rival(ns, proto, PEER, RIVAL_PORT, 2, 8e6)
        out, _ = rival.communicate(timeout=60)
        port, sent = map(int, out.split())
        lab.wait_for(lambda: self.received() == (time.sleep(.5), self.received())[1], "the rival's last packet")
        arrived = self.received() - before
        time_ns = time.time_ns()
        lab.wait_for(lambda: any(one["TimeNs"] > time_ns for one in self.queues("qdisc")), "later records")
        sums, owners = collections.Counter(), {}
        shares = [share for one in self.queues("qdisc") for share in one["Shares"]
                  if one["TimeNs"] > begin_ns and share["DstPort"] == RIVAL_PORT and share["Proto"] == (17 if proto == "udp" else 6)]
        for share in shares:
            sums[share["SrcPort"]] += share["Amount"]
            owners.setdefault(share["SrcPort"], set()).add((share.get("Pid"), share.get("Command")))
        (flow, amount), = sums.most_common(1)
        if ns is self.host:
            self.assertEqual(flow, port)
        name = os.path.basename(sys.executable)[:15]
        self.assertIn((rival.pid, name), owners[flow])
        self.assertLessEqual(owners[flow], {(rival.pid, name), (None, None)})
        if proto == "udp":
            self.assertEqual(amount % (PAYLOAD + HEADERS), 0)
            self.assertLessEqual(amount, arrived * (PAYLOAD + HEADERS))
            self.assertLessEqual(arrived, sent)
            # Packets that left while nothing traced waited are in no record: no more than the queue gives meanwhile.
            free_s = self.unwaited_ns(begin_ns + PERIOD_NS, time_ns) / 1e9
            self.assertGreaterEqual(amount, arrived * (PAYLOAD + HEADERS) - BUCKET - free_s * RATE / 8)
        self.assertGreater(amount, sent * PAYLOAD / 3)

    def unwaited_ns(self, begin_ns, end_ns):
        """How long no traced byte waited at the uplink, by the records, at most."""
        free = end_ns - begin_ns
        for one in self.queues("qdisc"):
            covered = min(end_ns, one["TimeNs"] + one["TotalNs"]) - max(begin_ns, one["TimeNs"])
            if covered > 0:
                free -= max(0, covered - (one["TotalNs"] - one["WaitedNs"]))
        return free

    def received(self):
        """Datagrams that the peer has got, whether a process reads them or not."""
        return sum(self.peer.snmp("Udp", name) for name in ("InDatagrams", "NoPorts", "InErrors"))

    def test_rivals_in_a_queue(self):
        """Of UDP and of TCP, of this host and of a container whose address is translated."""
        self.host.tc("qdisc", "add", "dev", "up0", "root", "tbf", "rate", f"{RATE}bit", "burst", f"{BUCKET}b", "limit", "200k")
        tracer = self.trace(f"tcp port {PORT}")
        with self.sink(PORT), self.sink(RIVAL_PORT), self.stream(PORT):
            lab.wait_for(lambda: self.queues("qdisc"), "the tracer")
            for ns in (self.host, self.inside):
                for proto in ("udp", "tcp"):
                    with self.subTest(ns=ns.name, proto=proto):
                        self.check_rival(ns, proto)
        self.stop(tracer)
        traced = [share for one in self.queues("qdisc") for share in one["Shares"] if share.get("Traced")]
        self.assertEqual({share["DstPort"] for share in traced}, {PORT})

    @contextlib.contextmanager
    def chat(self, port):
        """A connection from the peer, whose ends answer each other at once; yields a function that counts rounds."""
        rounds, is_over = [0], threading.Event()
        with self.host:
            listener = socket.create_server((HOST, port))
        with self.peer:
            client = socket.create_connection((HOST, port))
        server = listener.accept()[0]

        def talk():
            while not is_over.is_set():
                for sender, receiver in ((client, server), (server, client)):
                    sender.sendall(b"x" * 100)
                    receiver.recv(100, socket.MSG_WAITALL)
                rounds[0] += 1
                time.sleep(.001)
        thread = threading.Thread(target=talk)
        thread.start()
        try:
            yield lambda: rounds[0]
        finally:
            is_over.set()
            thread.join()
            for end in (client, server, listener):
                end.close()

    def named_burst(self):
        """
        Send a burst of datagrams from the peer. @return its shares; none: on a busy machine, no packet of the
        traced connection comes in the 10 ms behind it
        """
        with self.peer, socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as end:
            for _ in range(BURST):
                end.sendto(bytes(PAYLOAD), (HOST, RIVAL_PORT))
            port, end_s = end.getsockname()[1], time.monotonic() + 1
        found = []
        while not found and time.monotonic() < end_s:
            time.sleep(.05)
            found = [share for one in self.queues("uplink") for share in one["Shares"] if share["SrcPort"] == port]
        return found

    def test_burst_at_an_uplink(self):
        """It is named, although a flow beside it sends more over the whole time."""
        tracer = self.trace(f"tcp port {PORT}")
        with self.chat(PORT):
            lab.wait_for(lambda: self.records("turn"), "the tracer")
            steady = self.rival(self.peer, "udp", HOST, STEADY_PORT, 600, 10e6)
            lab.wait_for(lambda: self.queues("uplink"), "the uplink")
            shares = lab.wait_for(self.named_burst, "a burst")
            amount = sum(share["Amount"] for share in shares)
            self.assertEqual(amount % (PAYLOAD + HEADERS), 0)
            self.assertLessEqual(amount, BURST * (PAYLOAD + HEADERS))
            steady.kill()
        self.stop(tracer)

    def test_what_a_namespace_counts(self):
        """A full accept queue, and an uplink whose carrier goes and comes."""
        tracer = self.trace(f"tcp port {PORT} or tcp port {STEADY_PORT}")
        with self.chat(PORT) as rounds:
            lab.wait_for(lambda: self.hosts("NodeName"), "the tracer")
            with self.host:
                full = socket.create_server((HOST, STEADY_PORT), backlog=1)
            clients = []
            for _ in range(6):
                with self.peer:
                    clients.append(socket.socket())
                    clients[-1].setblocking(False)
                    clients[-1].connect_ex((HOST, STEADY_PORT))
            lab.wait_for(lambda: self.hosts("ListenOverflows"), "an overflow")
            found = lab.wait_for(lambda: [one for one in self.hosts("AcceptLimit") if one.get("AcceptQueue")],
                                 "the accept queue")
            self.assertEqual({(one["AcceptLimit"], one["AcceptQueue"]) for one in found}, {(1, 2)})
            self.assertGreaterEqual(self.host.snmp("TcpExt", "ListenOverflows", "netstat"),
                                    sum(one["ListenOverflows"] for one in self.hosts("ListenOverflows")))
            self.assertFalse(self.hosts("CarrierChanges"))
            self.peer.ip("link", "set", "p0", "down")
            self.peer.up("p0")
            before = rounds()
            lab.wait_for(lambda: rounds() > before, "the connection")
            found = lab.wait_for(lambda: self.hosts("CarrierChanges"), "changes of the carrier")
            self.assertEqual((sum(one["CarrierChanges"] for one in found), {one["Uplink"] for one in found}),
                             (2, {"up0"}))
            for end in (full, *clients):
                end.close()
        self.stop(tracer)

    def hosts(self, field):
        """Records of the host that have that field."""
        return [one for one in self.records("host") if one["NetnsInode"] == self.host.inode and field in one]


if __name__ == "__main__":
    lab.main("tracepoints of the tracer", has_all)
