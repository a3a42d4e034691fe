# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
# Needs: tshark
"""The processes of captured packets, as tshark shows them, compared with what these note.

Who talks to whom, and how, is random.
"""

import collections
import os
import re
import socket
import struct
import subprocess

from lib import lab
from lib import packets
from lib import talkers
from lib import traffic
from lib.observer import features

FIELDS = ("ip.src", "ip.dst", "ipv6.src", "ipv6.dst", "tcp.srcport", "tcp.dstport",
          "udp.srcport", "udp.dstport", "tcp.len", "frame.comment")
COMMENT = re.compile(r"(source|destination) process: (.{1,15})\[(\d+)\]")
MOST = 0.9
UDP = talkers.PROTOCOLS[socket.SOCK_DGRAM]
Packet = collections.namedtuple("Packet", "source destination payload ends")


def dissect(line):
    """The keys of the sockets at both ends, as talkers.Notes has them."""
    values = dict(zip(FIELDS, line.split("\t")))
    kind = "tcp" if values["tcp.srcport"] else "udp"
    here = (values["ip.src"] or values["ipv6.src"], int(values[kind + ".srcport"]))
    there = (values["ip.dst"] or values["ipv6.dst"], int(values[kind + ".dstport"]))
    protocol = talkers.PROTOCOLS[socket.SOCK_STREAM if kind == "tcp" else socket.SOCK_DGRAM]
    ends = {end: (int(pid), command)
            for end, command, pid in COMMENT.findall(values["frame.comment"])}
    return Packet((protocol, *here, *there), (protocol, *there, *here),
                  int(values["tcp.len"] or 0), ends)


def dissect_all(path):
    lines = subprocess.run(
        ["tshark", "-n", "-r", path, "-Y", "(tcp or udp) and not icmp and not icmpv6", "-T",
         "fields", "-E", "occurrence=a", "-E", "aggregator=;",
         *(word for field in FIELDS for word in ("-e", field))],
        stdout=subprocess.PIPE, check=True, text=True).stdout.splitlines()
    return [dissect(line) for line in lines]


class Named(talkers.TalkTest):
    def setUp(self):
        super().setUp()
        self.path = self.lab.path("who.pcapng")
        self.wire_all()

    def capture(self, *arguments):
        return packets.Capture(self.lab, self.host, "--process", "-w", self.path,
                               *arguments).wait_attached()

    def check_end(self, key, found, users):
        """@found is a process that had the socket, or none."""
        if key in users and found:
            self.assertIn(found[0], (*users[key], *self.pids), (key, found))

    def test_packets_have_the_processes_of_their_sockets(self):
        capture = self.capture()
        count = self.talk_at_random()
        stats = capture.stop()
        self.assertEqual(0, stats["lost"])
        notes, last, ends, sent, named = self.notes.read(), {}, 0, 0, 0
        users = self.notes.users()
        for packet in dissect_all(self.path):
            source = packet.ends.get("source")
            self.check_end(packet.source, source, users)
            self.check_end(packet.destination, packet.ends.get("destination"), users)
            ends += len(packet.ends)
            if packet.source in notes and (packet.payload or packet.source[0] == UDP):
                last[packet.source] = source
                sent += 1
                named += bool(source)
        right = sum(last[key] == note[:2] for key, note in notes.items())
        self.note(f"{count} questions, {ends} ends of {stats['captured']} packets; {named} of "
                  f"{sent} with data have a source, {right} of {len(notes)} sockets at last")
        # In an emulated guest, a process may return from sending after sockets were listed.
        most = 0.5 if lab.is_shrunk() else MOST
        self.assertGreaterEqual(named, most * sent)
        self.assertGreaterEqual(right, most * len(notes))

    def test_what_is_nobodys_has_none(self):
        """Packets of the kernel, and forwarded packets."""
        self.host.sysctl("ipv4/ip_forward", 1)
        for i, container in enumerate(self.containers):
            container.ip("route", "add", "default", "via", f"10.0.{i}.1")
        capture = self.capture("-i", "v0")
        traffic.ping(self.containers[0], "10.0.0.1", 3)
        with self.containers[0]:
            sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
            for port in range(7000, 7010):
                sock.sendto(b"x", ("10.0.1.2", port))
            sock.close()
        capture.stop()
        contents = packets.read(self.path)
        self.assertLess(10, len(contents.packets))
        for packet in contents.packets:
            is_ours = packet.data[12:14] == b"\x08\x00" and packet.data[23] == 17
            # The container's socket is known there; the one it is sent to is not there.
            self.assertNotIn("destination", packet.comment)
            if not is_ours:
                self.assertEqual((packet.comment, packet.process), ("", None))

    def test_the_option_has_the_source(self):
        """epb_processid_threadid of the draft: the process, and no thread."""
        capture = self.capture("udp")
        self.talk_at_random()
        capture.stop()
        named = 0
        for packet in packets.read(self.path).packets:
            source = re.search(r"source process: .*?\[(\d+)\]", packet.comment)
            wanted = struct.pack("<II", int(source[1]), 0) if source else None
            self.assertEqual(packet.process, wanted)
            named += bool(source)
        self.assertLess(0, named if self.has_io else 1)

    def test_readers_get_them(self):
        """By then privileges have been given up."""
        capture = packets.Capture(self.lab, self.host, "--process", "-i", "v0", "--listen",
                                  "127.0.0.1:0")
        port = capture.wait_listening()
        with self.host:
            reader = socket.create_connection(("127.0.0.1", port))
        capture.wait_attached()
        with self.containers[0]:
            listener = socket.create_server(("10.0.0.2", 0))
        with self.host:
            client = socket.create_connection(listener.getsockname())
        reader.settimeout(lab.PATIENCE_S)
        data, ours = b"", f"[{os.getpid()}]".encode()
        while ours not in data:
            data += reader.recv(65536)
        for one in client, listener, reader:
            one.close()
        capture.stop()

    def test_without_it_nothing_is_named(self):
        capture = packets.Capture(self.lab, self.host, "-w", self.path).wait_attached()
        self.talk_at_random()
        capture.stop()
        for packet in packets.read(self.path).packets:
            self.assertEqual((packet.comment, packet.process), ("", None))


if __name__ == "__main__":
    lab.main("TCP sockets that programs follow", lambda: features().get("sessions"))
