# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
# Needs: nftables iproute2 iputils-ping
# Alone: a flow of UDP that is not chosen takes a place too, until that is known
"""netobsctl trace of UDP and ICMP, compared with what both ends of random flows noted.

A client, a router and a server, with NAT in the router, or VXLAN behind it. Each datagram has a number.
"""

import collections
import select
import socket
import struct
import threading
import time

from lib import lab
from lib.ipfix import SO_RCVBUFFORCE
from lib.observer import features
from lib.tracer import PARTS, PORT, Network, Network6, Trace, Tracer, union

HEADER = struct.Struct("!II")
UDP, ICMP, UDP_HEADER = 17, 1, 8
FRAGMENTED = 1400 # more may be, with the headers of VXLAN
# Of the lab alone: flows of others that match take places as well.
OTHERS = "or ((udp or icmp) and (net 192.0.2 or net 198.51.100 or net 203.0.113 or net 2001:db8::/32))"
LOSS = """
table ip lossy {{
    chain forward {{
        type filter hook forward priority 0
        meta l4proto udp meta length > 60 numgen random mod 100 < {percent} drop
    }}
}}
"""
UDP_SEGMENT, IPV6_HOPOPTS, IPV6_DSTOPTS = 103, 54, 59 # of linux/udp.h and linux/in6.h
CLOSED = 9 # a port without a socket
EIGHT_BYTES_OF_OPTIONS = b"\0\0" b"\1\4\0\0\0\0" # PadN
FORWARD_DROP = "SKB_DROP_REASON_NETFILTER_DROP"
FULL, NO_SOCKET = "SKB_DROP_REASON_SOCKET_RCVBUFF", "SKB_DROP_REASON_NO_SOCKET"


class Datagram:
    """One that was sent, with the times of the calls that moved it, in ns since 1970."""

    def __init__(self, size):
        self.size, self.begin, self.end, self.read = size, time.time_ns(), None, None

    def __repr__(self):
        return f"{self.size} bytes, sent {self.begin} to {self.end}, read {self.read}"


class Flow:
    """A socket of the client, and all that it has sent to the server."""

    def __init__(self, number, network, is_connected):
        self.number, self.network, self.sent = number, network, []
        self.is_connected = is_connected
        with network.client:
            self.end = socket.socket(network.family, socket.SOCK_DGRAM)
            self.end.connect(network.address)
            self.port = self.end.getsockname()[1]
            if not is_connected:
                self.end.close()
                self.end = socket.socket(network.family, socket.SOCK_DGRAM)
                self.end.bind(("", self.port))

    def send(self, size):
        data = HEADER.pack(self.number, len(self.sent)).ljust(size, b"x")
        self.sent.append(Datagram(len(data)))
        if self.is_connected:
            self.end.send(data)
        else:
            self.end.sendto(data, self.network.address)
        self.sent[-1].end = time.time_ns()


class Receiver:
    """A socket of the server, which a thread reads; without flows, it only counts bytes."""

    def __init__(self, network, flows, pause=0, room=16 << 20):
        self.flows, self.pause, self.is_over, self.size = flows, pause, False, 0
        with network.server:
            self.end = socket.socket(network.family, socket.SOCK_DGRAM)
            self.end.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, room)
            self.end.bind(network.listener.getsockname())
        self.thread = threading.Thread(target=self.read)

    def read(self):
        time.sleep(self.pause)
        while True:
            if not select.select([self.end], [], [], .05)[0]:
                if self.is_over:
                    return
                continue
            begin = time.time_ns()
            data = self.end.recv(65536)
            end = time.time_ns()
            self.size += len(data)
            if not self.flows:
                continue
            flow, number = HEADER.unpack_from(data)
            assert self.flows[flow].sent[number].read is None
            self.flows[flow].sent[number].read = begin, end

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        time.sleep(self.pause + .3)
        self.is_over = True
        self.thread.join()
        self.end.close()


class Datagrams(Trace):
    """Each datagram has one journey, which ends as it is read, or where it was dropped."""

    def setUp(self):
        super().setUp()
        self.has_reasons = features()["drop_reasons"]

    def flows(self, network, number):
        flows = [Flow(i, network, self.random.random() < .5) for i in range(number)]
        for flow in flows:
            self.addCleanup(flow.end.close)
        return flows

    def random_size(self):
        return self.random.choice((HEADER.size, self.random.randrange(HEADER.size, FRAGMENTED)))

    def send_all(self, flows, number):
        """In turns, and in bursts."""
        for _ in range(number):
            flow = self.random.choice(flows)
            for _ in range(self.random.choice((1, 1, 1, 5))):
                flow.send(self.random_size())
            time.sleep(self.random.choice((0, 0, .001, .01)))

    @staticmethod
    def numbered(journeys, flow):
        """Those of the datagrams that it has sent, by their number."""
        connections = {one["Connection"] for one in journeys
                       if one["Proto"] == UDP and flow.port in (one["SrcPort"], one["DstPort"])
                       and not one["Direction"]}
        assert len(connections) == 1, f"{flow.port}: {connections}"
        found = collections.defaultdict(list)
        for one in journeys:
            if one["Connection"] in connections and not one["Direction"]:
                found[one["Seq"]].append(one)
        return found

    def check_sum(self, journey, where):
        parts = sum(journey.get(name, 0) for name in PARTS + ["UnknownNs"])
        self.assertEqual(journey["TotalNs"], parts, where)
        times = [step["AfterNs"] for step in journey["Steps"]]
        self.assertEqual(times, sorted(times), where)
        self.assertEqual(times[-1], journey["TotalNs"], where)

    def check_way(self, journey, network, where):
        order = [network.client.inode, network.router.inode, network.server.inode]
        passed = [one["NetnsInode"] for one in journey["Steps"] if "NetnsInode" in one]
        passed = [one for one, before in zip(passed, [None] + passed) if one != before]
        self.assertEqual(passed, order[:len(passed)], where)

    def check_read(self, journey, datagram, where):
        begin, end = journey["TimeNs"], journey["TimeNs"] + journey["TotalNs"]
        self.assertTrue(datagram.begin <= begin <= datagram.end, where)
        last = journey["Steps"][-1]["Point"]
        if last != "read":
            # The process has taken it before the socket was looked at.
            self.assertIn("reader", journey["UnknownParts"], where)
            return
        self.assertTrue(end <= datagram.read[1] + 10_000, where)
        self.assertTrue(end >= datagram.read[0], where)

    def check_datagram(self, datagram, own, network, where):
        text = f"{where}: {datagram}: {own}"
        ranges, double = union((one["Offset"], one["Offset"] + one["Bytes"]) for one in own)
        self.assertEqual((ranges, double), ([(0, datagram.size + UDP_HEADER)], 0), text)
        for one in own:
            self.check_sum(one, text)
            self.check_way(one, network, text)
            self.assertEqual(one["Attempts"], 1, text)
            if datagram.read:
                self.assertNotIn("Dropped", one, text)
                self.check_read(one, datagram, text)

    def check_flows(self, flows, journeys, network, where):
        for flow in flows:
            found = self.numbered(journeys, flow)
            self.assertEqual(sorted(found), list(range(1, len(flow.sent) + 1)), where)
            for number, datagram in enumerate(flow.sent, 1):
                self.check_datagram(datagram, found[number], network, where)

    def complete(self, journeys):
        """Most are; a process that reads at the same time may be ahead of the kernel's report."""
        udp = [one for one in journeys if one["Proto"] == UDP]
        return sum("UnknownParts" not in one for one in udp) / len(udp)

    def run_flows(self, network, number, **options):
        """@options: of the receiver"""
        tracer = Tracer(self, network.address[1], also=OTHERS)
        flows = self.flows(network, 8)
        with Receiver(network, flows, **options):
            self.send_all(flows, number)
        return flows, [one for one in tracer.stop() if one["Proto"] == UDP]

    def test_every_datagram_has_one_journey(self):
        self.check_every(*self.network())

    def test_over_ipv6(self):
        self.check_every(Network6(self.lab), f"seed {self.seed}")

    def check_every(self, network, where):
        flows, journeys = self.run_flows(network, lab.sized(200))
        self.assertTrue(all(one.read for flow in flows for one in flow.sent), where)
        self.check_flows(flows, journeys, network, where)
        if self.has_sockets:
            self.assertGreater(self.complete(journeys), .5, where)

    def test_datagrams_that_are_dropped_end_there(self):
        network, where = self.network()
        network.router.run("nft", "-f", "-", input=LOSS.format(percent=30))
        flows, journeys = self.run_flows(network, lab.sized(200))
        self.check_flows(flows, journeys, network, where)
        for one in self.check_lost(flows, journeys, FORWARD_DROP, where):
            self.assertEqual(one["Steps"][-1]["NetnsInode"], network.router.inode, where)

    def check_lost(self, flows, journeys, cause, where):
        """Those of datagrams that no process has read: all were dropped, and why is known."""
        lost = []
        for flow in flows:
            found = self.numbered(journeys, flow)
            for number, datagram in enumerate(flow.sent, 1):
                if not datagram.read:
                    lost += found[number]
        self.assertTrue(lost, where)
        for one in lost:
            self.assertTrue(one.get("Dropped"), f"{where}: {one}")
            self.assertEqual(one["Steps"][-1]["Point"], "drop", where)
            if self.has_reasons:
                self.assertEqual(one["DropCause"], cause, f"{where}: {one}")
        return lost

    def test_a_socket_that_is_full_drops(self):
        network, where = self.network()
        flows, journeys = self.run_flows(network, lab.sized(200), pause=1, room=1)
        self.check_flows(flows, journeys, network, where)
        self.check_lost(flows, journeys, FULL, where)
        self.assertTrue(any(one.read for flow in flows for one in flow.sent), where)

    def test_what_no_socket_wants_is_dropped(self):
        network, where = self.network()
        tracer = Tracer(self, network.address[1], also=OTHERS)
        flows = [flow for flow in self.flows(network, 8) if not flow.is_connected]
        flows = flows or [Flow(0, network, False)]
        self.send_all(flows, lab.sized(50))
        journeys = [one for one in tracer.stop() if one["Proto"] == UDP]
        self.check_flows(flows, journeys, network, where)
        for one in self.check_lost(flows, journeys, NO_SOCKET, where):
            self.assertNotIn("UnknownParts", one, where)

    def test_fragments_have_journeys_of_their_own(self):
        network, where = Network(self.lab, False, False), f"seed {self.seed}"
        network.router.run("nft", "-f", "-", input=LOSS.format(percent=5).replace("meta l4proto udp", ""))
        tracer = Tracer(self, network.address[1], also=OTHERS)
        flows = self.flows(network, 4)
        with Receiver(network, flows):
            for _ in range(lab.sized(60)):
                self.random.choice(flows).send(self.random.randrange(1000, 9000))
                time.sleep(self.random.choice((0, .001)))
        journeys = [one for one in tracer.stop() if one["Proto"] == UDP]
        self.check_flows(flows, journeys, network, where)
        sent = [(one, self.numbered(journeys, flow)[number])
                for flow in flows for number, one in enumerate(flow.sent, 1)]
        self.assertTrue(any(len(own) > 2 for _, own in sent), where)
        for datagram, own in sent:
            drops = [one for one in own if one["Drops"]]
            self.assertEqual(bool(drops), not datagram.read, f"{where}: {datagram} {own}")

    def test_fragments_of_ipv6_behind_extension_headers(self):
        """Those of each hop are in front of the fragment's header, those of the destination behind it.

        The kernel frees what it fragmented by kfree_skb. A datagram that no socket wants leaves its headers in
        memory which the next ones get: none of their buffers is taken for it.
        """
        network, where = Network6(self.lab), f"seed {self.seed}"
        tracer = Tracer(self, network.address[1], also=OTHERS)
        flows = self.flows(network, 8)
        for number, flow in enumerate(flows):
            for bit, option in enumerate((IPV6_HOPOPTS, IPV6_DSTOPTS)):
                if number >> bit & 1:
                    flow.end.setsockopt(socket.IPPROTO_IPV6, option, EIGHT_BYTES_OF_OPTIONS)
        with network.client:
            unwanted = socket.socket(network.family, socket.SOCK_DGRAM)
        self.addCleanup(unwanted.close)
        with Receiver(network, flows):
            for _ in range(lab.sized(20)):
                for flow in flows:
                    unwanted.sendto(b"x" * FRAGMENTED, (network.address[0], CLOSED))
                    flow.send(self.random.randrange(1000, 9000))
                    time.sleep(self.random.choice((0, .001)))
        journeys = [one for one in tracer.stop() if one["Proto"] == UDP]
        self.assertTrue(all(one.read for flow in flows for one in flow.sent), where)
        self.check_flows(flows, journeys, network, where)
        lost = [one for one in journeys if one["DstPort"] == CLOSED]
        number = sum(len(flow.sent) for flow in flows)
        self.assertEqual(sorted(one["Seq"] for one in lost), list(range(1, number + 1)), where)
        for one in lost:
            self.assertEqual(one["Bytes"], FRAGMENTED + UDP_HEADER, where)
            if self.has_reasons:
                self.assertEqual(one["DropCause"], NO_SOCKET, where)
        self.assertTrue(any(one["Offset"] for one in journeys), where)
        if self.has_sockets:
            self.assertGreater(self.complete(journeys), .5, where)

    def test_a_buffer_that_the_kernel_segments_is_followed_to_there(self):
        """UDP_SEGMENT: it is whole up to the socket, whose datagrams are the kernel's."""
        for network in Network(self.lab, self.random.random() < .5, False), Network6(self.lab):
            where = f"seed {self.seed} {network.family}"
            tracer = Tracer(self, network.address[1], also=OTHERS)
            flows = self.flows(network, 4)
            with Receiver(network, []) as receiver:
                for flow in flows:
                    flow.end.setsockopt(socket.IPPROTO_UDP, UDP_SEGMENT, 1000)
                for _ in range(lab.sized(20)):
                    self.random.choice(flows).send(self.random.randint(1, 40) * 1000)
                    time.sleep(.002)
            journeys = [one for one in tracer.stop() if one["Proto"] == UDP]
            flows = [flow for flow in flows if flow.sent]
            self.check_flows(flows, journeys, network, where)
            sent = sum(one.size for flow in flows for one in flow.sent)
            self.assertEqual(receiver.size, sent, where)
            for flow in flows:
                for number, own in self.numbered(journeys, flow).items():
                    for one in own:
                        is_one = flow.sent[number - 1].size == 1000
                        if not is_one:
                            self.assertEqual(one["UnknownParts"], ["stack", "reader"], f"{where}: {one}")
                        self.assertFalse(one["Drops"], f"{where}: {one}")

    def test_flows_that_are_not_chosen_leave_their_places(self):
        """More than there are places, again and again: none takes one twice, and one that is chosen is traced."""
        network, where = Network(self.lab, False, False), f"seed {self.seed}"
        tracer = Tracer(self, network.address[1], "--max-connections", 1024, also=f"or udp port {PORT}")
        with network.client:
            others = [socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(400)]
        for one in others:
            self.addCleanup(one.close)
        flow, = self.flows(network, 1)
        with Receiver(network, [flow]):
            for port in range(20_000, 20_000 + lab.sized(20)):
                for one in others: # 8000 flows
                    one.sendto(b"x", (network.address[0], port))
                    one.sendto(b"x", (network.address[0], 20_000))
                flow.send(100)
                time.sleep(.15)
        journeys, messages = tracer.end()
        self.assertNotIn("were not traced", messages, where)
        self.check_flows([flow], [one for one in journeys if one["Proto"] == UDP], network, where)

    def test_echoes_and_their_replies(self):
        network, where = self.network()
        tracer = Tracer(self, network.address[1], also=OTHERS)
        count = 10
        network.client.run("ping", "-q", "-c", count, "-i", ".05", "-s", 100, network.address[0])
        journeys = [one for one in tracer.stop() if one["Proto"] == ICMP]
        self.assertEqual(len({one["Connection"] for one in journeys}), 1, where)
        for direction in range(2):
            own = [one for one in journeys if one["Direction"] == direction]
            self.assertEqual([one["Seq"] for one in sorted(own, key=lambda one: one["TimeNs"])],
                             list(range(1, count + 1)), where)
            for one in own:
                text = f"{where}: {one}"
                self.check_sum(one, text)
                self.assertEqual((one["Offset"], one["Bytes"], one["Drops"]), (0, 108, 0), text)
        for one in journeys:
            # The kernel answers requests itself.
            unknown = ["stack", "reader"] if not one["Direction"] else None
            if self.has_sockets:
                self.assertEqual(one.get("UnknownParts"), unknown, f"{where}: {one}")


if __name__ == "__main__":
    # Before Linux 6.3, what a process has read of fragments and echoes looks dropped.
    lab.main("tracepoints of sockets", lambda: features()["trace_sockets"], at_once=2)
