# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
# Needs: conntrack nftables
"""netobsctl trace --show turns: two hosts, which are namespaces, agree with each other and with what the processes log."""

import collections
import os
import select
import signal
import socket
import sys
import threading
import time

from lib import lab
from lib import tracer
from lib.observer import features
from lib.tracer import Network, Network6, Trace, Tracer

TURNS = 12
IP_MTU_DISCOVER, IP_PMTUDISC_DO = 10, 2 # of linux/in.h
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
PASS = """
table inet passed {
    chain post {
        type nat hook postrouting priority 100
        oifname "rs*" masquerade
    }
    chain drops {
        type filter hook forward priority 0
        meta l4proto udp numgen random mod 100 < 20 drop
    }
}
"""
REFUSE_ANSWERS = "table ip out { chain input { type filter hook input priority 0; tcp flags & syn == syn drop; }; }"
REFUSE = "table ip out {{ chain output {{ type filter hook output priority 0; {what} drop; }}; }}"
ENTRY = ("-A -p tcp -s 203.0.{net}.{host} -d 203.0.113.1 --sport {port} --dport 9 -t 600 --state ESTABLISHED"
         " -u SEEN_REPLY,ASSURED\n")
READER = """
import socket, sys, time
listener = socket.socket(fileno=int(sys.argv[1]))
time.sleep(float(sys.argv[2]))
end = listener.accept()[0]
end.sendall(end.recv(100))
time.sleep(600)
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


class SeesSockets(Trace):
    def setUp(self):
        super().setUp()
        if not tracer.has_all():
            self.skipTest("the kernel lacks tracepoints of sockets: tcp_sendmsg_locked, sk_data_ready")


class Turns(SeesSockets):
    def setUp(self):
        super().setUp()
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

    # ---- What does not get out ----

    def fill_conntrack(self, ns):
        """With entries that no new one may replace."""
        room = int(ns.run("sysctl", "-n", "net.netfilter.nf_conntrack_max"))
        path = self.lab.path("entries")
        with open(path, "w", encoding="ascii") as file:
            for i in range(room):
                file.write(ENTRY.format(net=i >> 24 & 255, host=i >> 16 & 255, port=i & 65535))
        ns.run("conntrack", "-R", path)

    def check_kept_back(self, record):
        self.assertTrue(record["Sends"])
        self.assertEqual(record["DropCause"], "SKB_DROP_REASON_NETFILTER_DROP")
        self.assertTrue(record["DropFunction"])
        self.assertEqual((record["NetnsInode"], record["Pid"]), (self.network.client.inode, os.getpid()))
        self.assertEqual([], [name for name in ("OutAfterNs", "OutBytes", "Uplink") if name in record], record)
        self.assertEqual(record["SentBytes"], record["DroppedBytes"])

    def refused(self):
        """The records of a handshake, of which no SYN gets out in 2.5 s, and of a datagram."""
        each = self.trace_also(self.network.client)
        with self.network.client, socket.socket() as end, socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as other:
            end.settimeout(2.5)
            self.assertRaises(TimeoutError, end.connect, self.network.address)
            try:
                other.sendto(bytes(92), self.network.address)
            except PermissionError:
                pass # the kernel says so
        return each.stop()

    def trace_also(self, *spaces):
        return Tracer(self, tracer.PORT, "--show", "turns", spaces=spaces, also=f"or udp port {tracer.PORT}")

    def check_refused(self):
        records = self.refused()
        handshakes = [one for one in records if one["Kind"] == "connect"]
        self.assertGreaterEqual(len(handshakes), 2, records)
        for one in handshakes:
            self.check_kept_back(one)
            self.assertEqual(one["Attempts"], one["Drops"])
        self.assertGreaterEqual(handshakes[-1]["Drops"], 2)
        self.assertEqual([one.get("Ended", False) for one in handshakes], [False] * (len(handshakes) - 1) + [True])
        datagram, = (one for one in records if one["Kind"] == "message")
        self.check_kept_back(datagram)
        self.assertEqual(datagram["DroppedBytes"], 100)

    def test_what_the_own_filter_drops_has_a_record(self):
        self.network.client.run("nft", "-f", "-", input=REFUSE.format(what="meta l4proto { tcp, udp }"))
        self.check_refused()

    def test_what_finds_no_room_in_conntrack_has_a_record(self):
        self.network.client.run("nft", "-f", "-", input=REFUSE.format(what="ct state new ip daddr 203.0.113.9"))
        self.fill_conntrack(self.network.client)
        self.check_refused()

    def test_a_handshake_goes_on_if_the_own_filter_drops_the_answer(self):
        self.network.client.run("nft", "-f", "-", input=REFUSE_ANSWERS)
        each = self.trace(self.network.client)
        with self.network.client, socket.socket() as end:
            end.settimeout(2.5)
            self.assertRaises(TimeoutError, end.connect, self.network.address)
        records = [one for one in each.stop() if one["Kind"] == "connect"]
        self.assertEqual(len({(one["Seq"], one["TimeNs"]) for one in records}), 1, records)
        self.assertGreaterEqual(records[-1]["Attempts"], 2, records)
        self.assertGreaterEqual(records[-1]["Drops"], records[-1]["Attempts"], records)
        self.assertNotIn("InAfterNs", records[-1])

    # ---- Who does not read ----

    def reader(self, accepts_after):
        """A process that accepts a connection after that time, answers a request, and reads no more."""
        listener = self.network.listener
        return self.lab.spawn(sys.executable, "-c", READER, str(listener.fileno()), str(accepts_after),
                              pass_fds=[listener.fileno()])

    def test_a_handshake_ends_when_the_server_uses_the_socket(self):
        each = self.trace(self.network.server)
        server = self.reader(accepts_after=2.5)
        begin_ns = time.time_ns()
        with self.network.connect() as end:
            end.sendall(b"request")
            receive(end, 7)
            end_ns = time.time_ns()
        records = [one for one in each.stop() if one["Kind"] == "connect"]
        self.assertGreaterEqual(len(records), 2)
        for one in records[:-1]:
            self.assertIn("ReadyAfterNs", one)
            self.assertNotIn("ReadAfterNs", one)
            self.assertNotIn("Ended", one)
        last = records[-1]
        self.assertTrue(last["Ended"])
        self.assertEqual(last["Pid"], server.pid)
        self.assertGreaterEqual(last["ReadAfterNs"], last["ReadyAfterNs"] + 1_000_000_000)
        self.assert_between(begin_ns, last["TimeNs"] + last["ReadAfterNs"], end_ns, last)

    def check_stopped(self, server, end, each, seconds):
        """The server is stopped, and gets a byte from the client."""
        begin_ns = time.time_ns()
        end.sendall(b"x")
        time.sleep(seconds)
        end_ns = time.time_ns()
        records = each.stop()
        server.kill()
        unread = [one for one in records if one["Kind"] == "message" and one["Bytes"] == 1 and "Ended" not in one]
        self.assertGreaterEqual(len(unread), seconds - 2, records)
        for one in unread:
            self.assert_between(begin_ns, one["TimeNs"], end_ns, one)
            self.assertNotIn("ReadAfterNs", one)
            self.assertEqual(one["Pid"], server.pid)
            self.assertIn("ThreadsNs", one, unread)
            self.assertEqual(one["ThreadsNs"], [0] * 7 + [one["TotalNs"] - one["ReadyAfterNs"]] + [0] * 4)

    def stopped(self, end, each=None):
        """A server that has answered a request, and is stopped once the tracer, if any, watches its thread."""
        server = self.reader(accepts_after=0)
        end.sendall(b"request")
        receive(end, 7)
        if each:
            lab.wait_for(lambda: f'"Pid":{server.pid},' in lab.read(each.path), "a record of the server")
        server.send_signal(signal.SIGSTOP)
        lab.wait_for(lambda: lab.read(f"/proc/{server.pid}/stat").rsplit(")", 1)[1].split()[0] == "T", "its stop")
        return server

    def test_what_a_stopped_process_does_not_read_has_a_record_each_second(self):
        each = self.trace(self.network.server)
        with self.network.connect() as end:
            self.check_stopped(self.stopped(end, each), end, each, seconds=13)

    def test_who_is_stopped_before_the_trace_is_known(self):
        with self.network.connect() as end:
            server = self.stopped(end)
            self.check_stopped(server, end, self.trace(self.network.server), seconds=4)


class Opened(Trace):
    """Who opened a connection, which is older than the tracer, whatever its ports."""

    def test_direction_0_is_that_of_who_opened_it(self):
        network, ends = Network(self.lab, False, False), {}
        tracers = []
        for port in self.random.sample(range(1024, tracer.PORT), 4) + self.random.sample(range(32_000, 65_536), 4):
            with network.client:
                end = socket.create_connection(network.address, 60, (tracer.CLIENT, port))
            ends[port] = end, network.listener.accept()[0]
            for each in ends[port]:
                self.addCleanup(each.close)
        for spaces in (network.client,), (network.server,), (network.client, network.server):
            tracers.append(Tracer(self, tracer.PORT, "--show", "turns", spaces=spaces))
        for pair in ends.values():
            for end, other in pair, pair[::-1]:
                end.sendall(b"x")
                receive(other, 1)
        for each in tracers:
            found = {(one["Direction"], one["SrcPort"], one["DstPort"], one.get("Initiator")) for one in each.stop()}
            expected = {(0, port, tracer.PORT, True) for port in ends} | {(1, tracer.PORT, port, True) for port in ends}
            self.assertEqual(found, expected, f"seed {self.seed}")


class Data(SeesSockets):
    """Datagrams that IP does not identify: of IPv6, and of IPv4 if they are not to be fragmented."""

    def exchange(self, network):
        """A client and a server that answers. Of each direction, the data that were sent, and those that arrived."""
        passed = ([], []), ([], [])
        data = [b"", b"equal", bytes(1000)]
        data += [self.random.randbytes(self.random.choice((7, 8, 63, 64, 65, 1300))) for _ in range(20)]
        data += [bytes(64) + bytes([i]) * i for i in range(1, 9)] # they differ in length, before the end that is hashed
        with network.client:
            client = socket.socket(network.family, socket.SOCK_DGRAM)
        with network.server:
            server = socket.socket(network.family, socket.SOCK_DGRAM)
        with client, server:
            if network.family == socket.AF_INET:
                for end in client, server:
                    end.setsockopt(socket.IPPROTO_IP, IP_MTU_DISCOVER, IP_PMTUDISC_DO)
            server.bind(network.listener.getsockname())
            client.bind(("", 0))
            for _ in range(60):
                passed[0][0].append(self.random.choice(data))
                client.sendto(passed[0][0][-1], network.address)
                self.take(server, passed[0][1])
                if len(passed[0][1]) == len(passed[1][0]):
                    continue # it was dropped
                passed[1][0].append(passed[0][1][-1][::-1])
                server.sendto(passed[1][0][-1], self.last)
                self.take(client, passed[1][1])
        return passed

    def take(self, end, came):
        if select.select([end], [], [], .3)[0]:
            data, self.last = end.recvfrom(2000)
            came.append(data)

    @staticmethod
    def identified(records, name):
        """What identifies the datagrams that a host has sent, or read, in their order."""
        found = {one["Offset"]: one["IpId"] for one in records if one["Kind"] == "message" and one.get(name)}
        return [found[number] for number in sorted(found)]

    def check(self, network):
        """The client and the server are hosts, and the router with NAT, which drops, is the network."""
        where = f"seed {self.seed}"
        network.router.run("nft", "-f", "-", input=PASS)
        tracers = [Tracer(self, tracer.PORT, "--show", "turns", spaces=[ns], also=f"or udp port {tracer.PORT}")
                   for ns in (network.client, network.server)]
        passed = self.exchange(network)
        records = [each.stop() for each in tracers]
        for direction, (sent, came) in enumerate(passed):
            self.assertLess(len(came), len(sent), where)
            out = self.identified(records[direction], "Sends")
            into = self.identified(records[not direction], "Reads")
            known = dict(zip(sent, out))
            self.assertEqual(out, [known[data] for data in sent], where)
            self.assertEqual(into, [known[data] for data in came], where)
            self.assertEqual(len(set(out)), len(set(sent)), where)

    def test_data_of_ipv6_identify_datagrams_behind_nat(self):
        self.check(Network6(self.lab))

    def test_data_of_ipv4_identify_datagrams_without_an_identification(self):
        self.check(Network(self.lab, False, False))


if __name__ == "__main__":
    lab.main("tracepoints of TCP", lambda: features()["trace"], at_once=2)
