# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
# Label: ecosystem
"""
flowlogs-pipeline gets records in each way that it can read: its connections, directions and
metrics are those of the packets.
"""

import collections
import json
import socket

from lib import flowlogs
from lib import kafka
from lib import lab
from lib import metrics
from lib import traffic
from lib import truth
from lib.observer import Observer
from lib.once import OnceTest

A4, B4 = "192.0.2.1", "198.51.100.1"
GRPC = 2055
ICMP, TCP = 1, 6
INGRESS, EGRESS = 0, 1


def is_port_open(ns, port):
    with ns, socket.socket() as probe:
        return not probe.connect_ex(("127.0.0.1", port))


class Flowlogs(OnceTest):
    def setUp(self):
        super().setUp()
        self.program = flowlogs.program()
        self.a, self.r, self.b = self.routed()
        for ns, name in (self.a, "eth0"), (self.r, "in0"), (self.r, "out0"), (self.b, "eth0"):
            ns.offload(name, "tso", "gso", "gro", on=False)

    def feed(self):
        """Nothing is to be done for sinks that send."""

    def feed_lines(self):
        lines = self.run_.lines()
        for record in lines[self.fed:]:
            self.pipeline.process.stdin.write(json.dumps(record).encode() + b"\n")
        self.pipeline.process.stdin.flush()
        self.fed = len(lines)

    def ingest(self, **settings):
        self.pipeline = flowlogs.Pipeline(self.lab, settings, self.r)
        def serves():
            if self.pipeline.process.poll() is not None:
                raise RuntimeError(self.pipeline.messages())
            return is_port_open(self.r, flowlogs.Pipeline.METRICS)
        lab.wait_for(serves, "the pipeline")

    def talk(self):
        """Connections of both protocols, of which either side sends more."""
        for at in range(10):
            octets = [self.random.randrange(1, 100000) for _ in range(2)]
            traffic.tcp(self.a, A4, self.b, B4, octets[0], port=5001 + at, answer=octets[1])
        for at in range(10):
            sizes = [self.random.randrange(1400) for _ in range(self.random.randrange(1, 30))]
            ends = [(self.a, A4), (self.b, B4)]
            self.random.shuffle(ends)
            traffic.udp(*ends[0], *ends[1], sizes, port=6001 + at, sport=7001 + at)

    def observe(self, *sink):
        """What crosses in0, where each packet is seen first or last."""
        tap = truth.Capture(self.lab, self.r, "in0")
        self.run_ = Observer(self.lab, self.r, "-i", "in0", "-i", "out0", "--interval", "0.2",
                             *sink)
        self.run_.wait_attached((self.r, "in0"), (self.r, "out0"))
        self.talk()
        tap.stop()
        self.truth = {key[:5]: total for key, total in truth.sums(tap.file).items()}

    def connections(self, kind):
        return [record for record in self.pipeline.connections(kind) if record["Proto"] != ICMP]

    def have_ended(self, number):
        """It looks for connections that have rested when further records come."""
        traffic.ping(self.a, B4, 1)
        self.feed()
        return len(self.connections("endConnection")) >= number

    def check_connections(self, octets_of):
        """Each is tracked from its first packet to its last."""
        pairs = {(key[2], frozenset(((key[0], key[3]), (key[1], key[4])))) for key in self.truth}
        lab.wait_for(lambda: self.have_ended(len(pairs)), "the ends of connections")
        self.run_.stop().check_conservation()
        found = self.connections("endConnection")
        self.assertEqual(len(pairs), len(found))
        self.assertEqual(len(pairs), len(self.connections("newConnection")))
        for record in found:
            there = tuple(record[name] for name in
                          ("SrcAddr", "DstAddr", "Proto", "SrcPort", "DstPort"))
            back = (there[1], there[0], there[2], there[4], there[3])
            for key, way in (there, "AB"), (back, "BA"):
                real = self.truth.get(key, truth.Sum())
                self.assertEqual((real.packets, octets_of(real)),
                                 (record.get(f"Packets_{way}", 0),
                                  record.get(f"Bytes_{way}", 0)), key)

    def check_metrics(self, octets_of, directions):
        """@directions: of the host and of the interface, of what @a sends and receives."""
        real = collections.Counter()
        for key, total in self.truth.items():
            labels = {"SrcAddr": key[0], "DstAddr": key[1], "Proto": str(key[2])}
            for name, value in zip(("FlowDirection", "IfDirection"),
                                   directions[key[0] == A4]):
                labels[name] = str(value)
            labels = tuple(sorted(labels.items()))
            real["packets", labels] += total.packets
            real["bytes", labels] += octets_of(total)
        with self.r:
            samples = metrics.scrape(flowlogs.Pipeline.METRICS)
        found = {(unit, labels): value for unit in ("packets", "bytes")
                 for labels, value in samples.all_of(f"flp_{unit}_total").items()
                 if ("Proto", str(ICMP)) not in labels}
        self.assertEqual(dict(real), found)

    def check_protobuf(self):
        """It counts frames, and is for a host whose address is that of @a."""
        def octets_of(total):
            return total.l2_bytes
        self.check_connections(octets_of)
        self.assertEqual({A4}, {record["SrcAddr"] for record in self.connections("endConnection")
                                if record["Proto"] == TCP}, "who opened connections")
        self.check_metrics(octets_of, {True: (EGRESS, INGRESS), False: (INGRESS, INGRESS)})

    def test_grpc(self):
        self.ingest(type="grpc", grpc={"port": GRPC})
        lab.wait_for(lambda: is_port_open(self.r, GRPC), "the collector")
        self.observe("-o", f"grpc://127.0.0.1:{GRPC}?agent_ip={A4}")
        self.check_protobuf()

    def test_kafka(self):
        self.r.ip("link", "set", "lo", "up")
        broker = kafka.Broker(self.lab, ns=self.r).start()
        broker.make_topic("flows")
        self.ingest(type="kafka", kafka={
            "brokers": [broker.address()], "topic": "flows", "groupid": "test",
            "decoder": {"type": "protobuf"}})
        self.observe("-o", f"kafka://{broker.address()}/flows?agent_ip={A4}")
        self.check_protobuf()

    def test_json_lines(self):
        """They have the octets of packets, and no address of an agent."""
        def octets_of(total):
            return total.bytes
        self.feed, self.fed = self.feed_lines, 0
        self.ingest(type="stdin", stdin={})
        self.observe()
        self.check_connections(octets_of)
        self.check_metrics(octets_of, {True: ("", ""), False: ("", "")})


if __name__ == "__main__":
    lab.main()
