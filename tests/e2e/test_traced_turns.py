# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
# Needs: nftables
"""netobsctl trace --show turns: two hosts, which are namespaces, agree with each other and with what the processes log."""

import collections
import threading
import time

from lib import lab
from lib import tracer
from lib.observer import features
from lib.tracer import Network, Trace, Tracer

TURNS = 12
SLACK_NS = 3_000_000 # of the wall clock, which is read once
RULES = """
table ip turned {{
    chain post {{
        type nat hook postrouting priority 100
        oifname "rs" masquerade
    }}
    chain drops {{
        type filter hook forward priority 0
        oifname "rs" meta length > 600 numgen inc mod {every} == 0 drop
    }}
}}
"""
WIRE = "WireSrcAddr", "WireSrcPort", "WireDstAddr", "WireDstPort", "Seq", "Bytes"
Said = collections.namedtuple("Said", "before after direction bytes")


def receive(end, size):
    while size:
        data = end.recv(size)
        assert data
        size -= len(data)


class Log:
    """What the processes did: when each message was written, and between which times it was read."""

    def __init__(self):
        self.written, self.read = [], []

    def write(self, end, direction, size):
        before = time.time_ns()
        end.sendall(bytes(size))
        self.written.append(Said(before, time.time_ns(), direction, size))

    def take(self, end, direction, size):
        before = time.time_ns()
        receive(end, size)
        self.read.append(Said(before, time.time_ns(), direction, size))


class Turns(Trace):
    def setUp(self):
        super().setUp()
        if not tracer.has_all():
            self.skipTest("the kernel lacks tracepoints of sockets: tcp_sendmsg_locked, sk_data_ready")
        self.network = Network(self.lab, False, False)

    def drop(self, every):
        self.network.router.run("nft", "-f", "-", input=RULES.format(every=every))

    def trace(self, *spaces):
        return Tracer(self, tracer.PORT, "--show", "turns", spaces=spaces)

    def converse(self, log, think_s):
        sizes = [(self.random.randint(1, 3000), self.random.randint(1, 60_000)) for _ in range(TURNS)]

        def serve():
            end = self.network.listener.accept()[0]
            with end:
                for request, answer in sizes:
                    log.take(end, 0, request)
                    time.sleep(think_s)
                    log.write(end, 1, answer)
                end.recv(1)
        server = threading.Thread(target=serve)
        server.start()
        with self.network.connect() as end:
            for request, answer in sizes:
                log.write(end, 0, request)
                log.take(end, 1, answer)
        server.join()

    def converse_of_two(self, every, think_s=.02):
        """The log, and the records of the client's host, which masquerades and drops, and of the server's."""
        log = Log()
        self.drop(every)
        tracers = self.trace(self.network.client, self.network.router), self.trace(self.network.server)
        self.converse(log, think_s)
        return log, *([one for one in each.stop() if one.get("Ended")] for each in tracers)

    def messages(self, records, direction):
        return sorted((one for one in records if one["Kind"] == "message" and one["Direction"] == direction),
                      key=lambda one: one["Offset"])

    def assert_between(self, begin, ns, end, record):
        self.assertLessEqual(begin - SLACK_NS, ns, f"seed {self.seed}: {record}")
        self.assertLessEqual(ns, end + SLACK_NS, f"seed {self.seed}: {record}")

    def check_written(self, log, records, direction):
        said = [one for one in log.written if one.direction == direction]
        self.assertEqual([one["Bytes"] for one in records], [one.bytes for one in said])
        for record, one in zip(records, said):
            self.assertTrue(record["Sends"])
            self.assert_between(one.before, record["TimeNs"], one.after, record)
            self.assert_between(one.before, record["TimeNs"] + record["WrittenAfterNs"], one.after, record)
            self.assertEqual(record["SentBytes"], record["OutBytes"] + record.get("DroppedBytes", 0), record)
            self.assertEqual(sum(record["LimitsNs"]), record.get("SentAfterNs", 0), record)

    def check_read(self, log, records, direction):
        said = [one for one in log.read if one.direction == direction]
        self.assertEqual([one["Bytes"] for one in records], [one.bytes for one in said])
        for record, one in zip(records, said):
            self.assertTrue(record["Reads"])
            self.assertEqual(record["SegmentBytes"], record["InBytes"], record)
            self.assert_between(one.before, record["TimeNs"] + record["ReadAfterNs"], one.after, record)

    def check(self, log, client, server):
        for direction, sender, receiver in (0, client, server), (1, server, client):
            sent, came = self.messages(sender, direction), self.messages(receiver, direction)
            self.check_written(log, sent, direction)
            self.check_read(log, came, direction)
            self.assertEqual([[one[name] for name in WIRE] for one in sent],
                             [[one[name] for name in WIRE] for one in came])
            for out, into in zip(sent, came):
                self.assertEqual(out["OutBytes"], into["InBytes"], f"{out} {into}")
        for answer, record in zip((one for one in log.written if one.direction), self.messages(server, 0)):
            self.assert_between(answer.before, record["TimeNs"] + record["AnswerAfterNs"], answer.after, record)

    def test_both_hosts_tell_of_the_same_messages(self):
        log, client, server = self.converse_of_two(every=1_000_000)
        self.check(log, client, server)
        for records, names in (client, "OutAfterNs InAfterNs"), (server, "InAfterNs AnswerAfterNs ReadyAfterNs"):
            handshake, = (one for one in records if one["Kind"] == "connect")
            self.assertEqual(handshake["Attempts"], 1)
            self.assertEqual([], [name for name in names.split() if name not in handshake], handshake)

    def test_drops_are_those_of_the_host_that_drops(self):
        log, client, server = self.converse_of_two(every=5)
        self.check(log, client, server)
        drops = [one for one in self.messages(client, 0) if one.get("Drops")]
        self.assertTrue(drops, f"seed {self.seed}")
        for one in drops:
            self.assertEqual(one["DropCause"], "SKB_DROP_REASON_NETFILTER_DROP")
            self.assertTrue(one["DropFunction"])
        self.assertFalse([one for one in server if one.get("Drops")])

    def test_a_stream_has_slices_that_sum_up(self):
        tracers = self.trace(self.network.client, self.network.router), self.trace(self.network.server)
        end_ns = time.monotonic() + 4

        def drain():
            with self.network.listener.accept()[0] as end:
                while end.recv(1 << 16):
                    time.sleep(.02)
        server = threading.Thread(target=drain)
        server.start()
        with self.network.connect() as end:
            while time.monotonic() < end_ns:
                end.sendall(bytes(1 << 14))
        server.join()
        client, server = ([one for one in each.stop() if one["Kind"] == "slice"] for each in tracers)
        self.assertGreaterEqual(len(client), 2, f"seed {self.seed}")
        self.assertGreaterEqual(len(server), 2)
        for one in client:
            self.assertEqual(sum(one["LimitsNs"]), one["TotalNs"], one)


if __name__ == "__main__":
    lab.main("tracepoints of TCP", lambda: features()["trace"])
