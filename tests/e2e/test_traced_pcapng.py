#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
# Needs: nftables tshark
# Alone: all datagrams of the host are traced
"""netobsctl trace -o pcapng and -o SINK, compared with the same events as JSON.

A failure prints its seed, and NETOBS_TEST_SEED=SEED repeats it.
"""

import collections
import json
import os
import signal
import socket
import subprocess

from lib import bpf
from lib import lab
from lib import observer
from lib.observer import features
from lib import traffic
from lib.tracer import Network, Trace, Tracer, bytes_of, by_connection, wait_until

FIELDS = ("frame.time_epoch", "frame.len", "frame.interface_name", "frame.interface_description",
          "frame.comment", "ip.src", "ip.dst", "ip.checksum.status", "tcp.srcport", "tcp.dstport",
          "tcp.seq_raw", "tcp.flags", "tcp.len", "udp.srcport", "udp.dstport", "udp.length",
          "icmp.seq", "_ws.malformed", "_ws.expert.severity")
NO_PACKET = {"send", "sent", "ready", "read", "acked"}
ERROR = 8 << 20 # PI_ERROR of Wireshark


def read(path):
    """Packets as tshark has them."""
    out = lab.run("tshark", "-n", "-r", path, "-o", "tcp.relative_sequence_numbers:false",
                  "-o", "ip.check_checksum:TRUE", "-T", "fields", "-E", "separator=/t",
                  *(word for name in FIELDS for word in ("-e", name)))
    packet = collections.namedtuple("Packet", [name.replace(".", "_").strip("_") for name in FIELDS])
    return [packet(*line.split("\t")) for line in out.splitlines()]


def time_ns(text):
    seconds, fraction = text.split(".")
    return int(seconds) * 10**9 + int(fraction)


class Outputs(Trace):
    def setUp(self):
        super().setUp()
        self.where = f"seed {self.seed}"
        self.net = Network(self.lab, self.random.random() < .5, False)

    def talk_all(self, sizes):
        network = self.net
        with network.connect() as client, network.listener.accept()[0] as server:
            for size in sizes:
                traffic.send(client, server, size)
        with network.client:
            end = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        with end:
            end.sendto(bytes(100), network.address)
        network.client.run("ping", "-q", "-c", "2", "-i", ".05", network.address[0])

    def check_packet(self, packet, event):
        where = f"{self.where}: {packet} {event}"
        self.assertFalse(packet.ws_malformed, where)
        severities = [int(one) for one in packet.ws_expert_severity.split(",") if one]
        self.assertTrue(all(one < ERROR for one in severities), where)
        self.assertEqual(packet.frame_interface_name, event.get("Interface", f"({event['Layer']})"))
        self.assertIn(f"netns:{event.get('NetnsInode', 0)}/", packet.frame_interface_description, where)
        comment = packet.frame_comment
        self.assertTrue(comment.startswith(f"{event['Layer']} {event['Point']}, process "), where)
        self.assertIn(f"[{event['Pid']}]", comment, where)
        self.assertIn(event.get("DropCause", ""), comment, where)
        self.assertEqual((packet.ip_src, packet.ip_dst), (event["SrcAddr"], event["DstAddr"]), where)
        self.assertEqual(packet.ip_checksum_status, "1", where) # good
        header = 20 + (20 if event["Proto"] == 6 else 0)
        self.assertEqual(int(packet.frame_len), header + event["Bytes"], where)
        if event["Proto"] == 6:
            self.assertEqual((int(packet.tcp_srcport), int(packet.tcp_dstport)),
                             (event["SrcPort"], event["DstPort"]), where)
            self.assertEqual((int(packet.tcp_seq_raw), int(packet.tcp_len)),
                             (event["Seq"], event["Bytes"]), where)
            self.assertEqual(int(packet.tcp_flags, 16), event.get("Flags", 0), where)
        elif event["Proto"] == 17:
            self.assertEqual((int(packet.udp_srcport), int(packet.udp_dstport), int(packet.udp_length)),
                             (event["SrcPort"], event["DstPort"], event["Bytes"]), where)
        else:
            self.assertEqual(int(packet.icmp_seq), event["Seq"], where)

    def test_each_event_with_a_packet_is_one(self):
        path = self.lab.path("packets")
        tracer = Tracer(self, self.net.address[1], "-o", f"pcapng:{path}", "--show", "events",
                        also="or udp or icmp")
        self.talk_all(self.random.randint(1, 30_000) for _ in range(10))
        events = collections.defaultdict(list)
        for one in tracer.stop():
            if one["Point"] not in NO_PACKET:
                events[one["TimeNs"], one["Point"]].append(one)
        self.assertEqual({6, 17, 1}, {one["Proto"] for own in events.values() for one in own}, self.where)
        packets = collections.defaultdict(list)
        for packet in read(path):
            point = packet.frame_comment.split(",")[0].split(" ")[1]
            packets[time_ns(packet.frame_time_epoch), point].append(packet)
        for key, own in events.items():
            for event in own:
                same = [one for one in packets[key] if one.ip_src == event["SrcAddr"]
                        and f"connection {event['Connection']}," in one.frame_comment
                        and f"offset {event['Offset']}," in one.frame_comment]
                self.assertEqual(len(same), 1, f"{self.where}: {event}")
                self.check_packet(same[0], event)
        lost = [key for key, own in packets.items() if own and key not in events]
        # Of other tests, and markers.
        inodes = [str(ns.inode) for ns in self.lab.namespaces if not ns.name.endswith(Tracer.MARKER)]
        for key in lost:
            for one in packets[key]:
                self.assertFalse(any(inode in one.frame_interface_description for inode in inodes),
                                 f"{self.where}: {one}")

    def trace(self, *options, **streams):
        """Of the server's port."""
        return self.lab.spawn(observer.netobsctl(), "trace", *options, f"tcp port {self.net.address[1]}",
                              **streams)

    def run_to_end(self, *options, **streams):
        """While connections are made; its standard output is a file, which is returned."""
        path = self.lab.path("stdout")
        with open(path, "wb") as out:
            process = self.trace(*options, stdout=out, **streams)
        wait_until(process, lambda: self.talk_all([1000] * 10))
        return path

    def test_packets_alone_stop_by_count(self):
        path = self.lab.path("counted")
        self.run_to_end("-o", f"pcapng:{path}", "-n", 30)
        self.assertEqual(len(read(path)), 30)
        self.assertEqual(len(read(self.run_to_end("-o", "pcapng", "-n", 10))), 10)

    def test_a_sink_of_events_alone_stops_by_count(self):
        path, count = self.lab.path("few"), 20
        self.run_to_end("-o", f"json:{path}?records=trace", "-n", count)
        with open(path, encoding="utf-8") as file:
            self.assertEqual(["trace"] * count, [json.loads(line)["type"] for line in file])

    def test_a_sink_of_alerts_alone_is_no_mistake(self):
        done = observer.run("trace", "-d", ".2", "--rule", "slow=app_latency > 1s", "-i", "lo", "-o",
                            f"json:{self.lab.path('alerts')}?records=alert", code=None)
        self.assertEqual((0, ""), (done.returncode, done.stderr))

    def summarize(self, *outputs):
        return lab.read(self.run_to_end("--show", "summary", "-n", 20, *outputs))

    def test_a_summary_is_printed_beside_other_outputs(self):
        packets, journeys = self.lab.path("packets"), self.lab.path("journeys")
        text = self.summarize("-o", f"pcapng:{packets}", "-o", f"json:{journeys}")
        self.assertRegex(text, r"P50 +P90 +P99 +MAX", self.where)
        self.assertTrue(read(packets), self.where)
        with open(journeys, encoding="utf-8") as file:
            self.assertEqual(20, len(file.readlines()), self.where)
        summary = json.loads(self.summarize("-o", "json", "-o", f"pcapng:{packets}"))
        self.assertEqual(20, sum(one["Journeys"] for one in summary["Directions"]), self.where)

    def test_nothing_is_attached_before_a_pipe_has_a_reader(self):
        path = self.lab.path("pipe")
        os.mkfifo(path)
        for option in (("-o", f"pcapng:{path}"), ("--svg", path)):
            process = self.trace(*option, "-d", "30", stderr=subprocess.PIPE)
            lab.wait_for(lambda process=process: self.is_opening(process), "the command at its pipe")
            self.assertFalse(any("raw_tracepoint" in text for text in bpf.fdinfos(process.pid)), option)
            process.send_signal(signal.SIGINT)
            self.assertEqual((0, b""), (process.wait(60), process.stderr.read()), option)
        process = self.trace("-o", f"pcapng:{path}", "-n", 10)
        with open(path, "rb") as pipe:
            wait_until(process, lambda: self.talk_all([1000] * 10))
            self.assertEqual(pipe.read(4), b"\x0a\x0d\x0d\x0a") # a section header

    @staticmethod
    def is_opening(process):
        """It waits in open(2) for the other end of a FIFO."""
        return lab.read(f"/proc/{process.pid}/wchan") in ("wait_for_partner", "fifo_open")

    def test_sinks_get_journeys_and_events(self):
        paths = {name: self.lab.path(name) for name in ("journeys", "events")}
        tracer = Tracer(self, self.net.address[1], "-o", f"json:{paths['journeys']}?host=no",
                        "-o", f"json:{paths['events']}?host=no&records=trace")
        self.talk_all([self.random.randint(1, 5000)])
        own = tracer.stop()
        connections = {one["Connection"] for one in own}
        found = {}
        for name, path in paths.items():
            found[name] = [one for one in lab.json_lines(path) if one["Connection"] in connections]
        self.assertEqual(found["journeys"], own, self.where)
        self.assertEqual({one["type"] for one in found["events"]}, {"trace"}, self.where)
        self.assertEqual({one["Connection"] for one in found["events"]}, connections, self.where)
        for journeys in by_connection(own).values():
            self.assertEqual(bytes_of(journeys, 0)[1], 0, self.where)


if __name__ == "__main__":
    lab.main("tracepoints of TCP", lambda: features()["trace"])
