#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
"""
Capture files of all link types and tunnels: frames with random headers, each a flow of its own or of
what is no IP, whole or cut. Two witnesses say what each is: this file, which makes it from the
specifications, and tshark. NETOBS_TEST_FRAMES says how many frames, NETOBS_TEST_SEED repeats them.
"""

import collections
import ipaddress
import os
import struct

from lib import capfile
from lib import frames as f
from lib import lab
from lib import observer
from lib import tshark

FRAMES = int(os.environ.get("NETOBS_TEST_FRAMES", lab.sized(400)))
TOGETHER = 4000  # in a file: addresses of as many tunnels have room
START = 1_600_000_000 * capfile.NS
MAC_A, MAC_B = "02:00:00:00:00:01", "02:00:00:00:00:02"
IPIP, IPV6_IN, GRE = 4, 41, 47
PPPOE, DISCOVERY, ERSPAN, ERSPAN3, LLDP, LCP = 0x8864, 0x8863, 0x88be, 0x22eb, 0x88cc, 0xc021
PPP_OF = {f.IPV4: 0x21, f.IPV6: 0x57, LCP: LCP}

PPP, SERIAL, PPP_ETHER, HDLC, WLAN, RADIOTAP, PPPD, PPI, WITH_DIR, NFLOG = \
    9, 50, 51, 104, 105, 127, 166, 192, 204, 239
OF_PPP = PPP, SERIAL, PPP_ETHER, PPPD, WITH_DIR
OF_WLAN = WLAN, RADIOTAP, PPI
KINDS = (capfile.ETHERNET, capfile.RAW, capfile.SLL, capfile.SLL2, HDLC, NFLOG, *OF_PPP, *OF_WLAN)
TUNNELS = "gre", "erspan1", "erspan2", "erspan3", "vxlan", "ipip"


class Frame:
    """
    Bytes from the innermost header outwards, and what these are: @stages, of the outer flow and the
    inner one, each (octets that it takes, flow), or the reason why there is none.
    """

    def __init__(self, number, kind, chance):
        self.number, self.kind, self.chance = number, kind, chance
        self.reason, self.needs = None, 0  # and the octets that say so
        self.stages = []
        self.data = b""
        self.has_witness = kind not in (NFLOG, PPPD)  # tshark knows no PPPD
        ethertype = self.network()
        self.link(ethertype)

    def put(self, header):
        self.data = header + self.data
        self.needs += len(header) if self.reason else 0
        self.stages = [(need + len(header), flow) for need, flow in self.stages]

    def addresses(self, version, end):
        number = self.number
        if version == 4:
            return [f"10.{end + 2 * side}.{number >> 8 & 255}.{number & 255}" for side in (0, 1)]
        return [str(ipaddress.ip_address(f"2001:db8:{end + 2 * side}:1:{number >> 16:x}::{number & 0xffff:x}"))
                for side in (0, 1)]

    def ip(self, version, proto, end):
        src, dst = self.addresses(version, end)
        header = (f.ipv4 if version == 4 else f.ipv6)(src, dst, proto, self.data)
        self.put(header[:len(header) - len(self.data)])
        return src, dst

    def packet(self):
        """A datagram or segment, at most with tags in front."""
        version, self.proto = self.chance.choice((4, 6)), self.chance.choice((f.TCP, f.UDP))
        ports = 1024 + self.number % 60000, self.chance.randrange(1, 1024)
        payload = bytes(self.chance.randrange(60))
        self.data = (f.tcp(*ports, f.ACK, payload) if self.proto == f.TCP else
                     f.udp(*ports, payload))
        need = 4 - len(self.data)
        src, dst = self.ip(version, self.proto, 0)
        self.inner = (src, dst, self.proto, *ports)
        self.stages = [(len(self.data) + need, self.inner)]
        return f.IPV4 if version == 4 else f.IPV6

    def network(self):
        ethertype = self.packet()
        choice = self.chance.random()
        if choice < 0.5:
            return self.tunnel(ethertype, self.chance.choice(TUNNELS))
        self.stages = [(need, (flow, len(self.data), None)) for need, flow in self.stages]
        return ethertype

    def tags(self, ethertype):
        for _ in range(self.chance.choice((0, 0, 1, 2))):
            self.put(f.vlan(self.chance.randrange(4095), ethertype, b""))
            ethertype = f.VLAN
        return ethertype

    def tunnel(self, ethertype, name):
        chance, vni, is_lost = self.chance, 0, False
        if name == "gre":
            key = chance.random() < 0.5
            vni = key and chance.randrange(1, 1 << 32)
            self.put(struct.pack("!HH", 0x2000 * key, ethertype) + (struct.pack("!I", vni) if key else b""))
        elif name != "ipip":
            self.put(f.ether(MAC_B, MAC_A, self.tags(ethertype), b""))
        if name == "erspan1":
            self.put(struct.pack("!HH", 0, ERSPAN))
        elif name.startswith("erspan"):
            vni = chance.randrange(1, 1024)
            header = struct.pack("!HHI", (int(name[-1]) - 1) << 12 | chance.randrange(4096),
                                 chance.randrange(64) << 10 | vni, chance.randrange(1 << 20))
            if name == "erspan3":
                is_lost = chance.random() < 0.2  # what is mirrored is not Ethernet
                has_platform = chance.random() < 0.5
                header += struct.pack("!HH", chance.randrange(1 << 16), is_lost << 11 | has_platform) + \
                    bytes(8 * has_platform)
            self.put(struct.pack("!HHI", 0x1000, ERSPAN if name == "erspan2" else ERSPAN3, 1) + header)
        elif name == "vxlan":
            vni = chance.randrange(1, 1 << 24)
            self.put(struct.pack("!II", 0x08000000, vni << 8))
            self.put(f.udp(40000, 4789, self.data)[:8])
        return self.outside(ethertype, name, vni, is_lost)

    def outside(self, ethertype, name, vni, is_lost):
        proto = {"vxlan": f.UDP, "ipip": IPIP if ethertype == f.IPV4 else IPV6_IN}.get(name, GRE)
        version = self.chance.choice((4, 6))
        before = len(self.data)
        ends = self.ip(version, proto, 1)
        ports = (40000, 4789) if name == "vxlan" else (None, None)
        length = len(self.data)
        outer = (*ends, proto, *ports), length, None
        kind = name.rstrip("123")
        inner = [(need, (flow, length, (kind, vni, *ends))) for need, flow in self.stages]
        self.stages = [(length - before + 4 * (name == "vxlan"), outer)] + ([] if is_lost else inner)
        return f.IPV4 if version == 4 else f.IPV6

    def link(self, ethertype):
        """The headers in front, and what is no IP."""
        chance, kind = self.chance, self.kind
        other = chance.random() < 0.25
        if kind == NFLOG:
            self.reason = "link_type"
        elif kind in OF_PPP:
            self.link_ppp(ethertype, other)
        elif kind in OF_WLAN:
            self.link_wlan(ethertype, other)
        elif kind != capfile.RAW:
            if other:
                ethertype, self.reason = chance.choice(
                    ((f.ARP, "arp"), (LLDP, "not_ip"), (DISCOVERY, "ppp"), (PPPOE, "ppp")))
            elif kind == HDLC:
                pass
            elif chance.random() < 0.2:
                self.put(f.mpls(range(16, 16 + chance.randrange(1, 9)), b""))
                ethertype = f.MPLS
            elif chance.random() < 0.2:
                self.put(struct.pack("!BBHHH", 0x11, 0, 1, len(self.data) + 2, PPP_OF[ethertype]))
                ethertype = PPPOE
            if self.reason == "ppp":
                self.put(struct.pack("!BBHHH", 0x11, ethertype == DISCOVERY and 9, 0, len(self.data) + 2, LCP))
                self.needs = 0 if ethertype == DISCOVERY else 8
            if kind != HDLC:
                ethertype = self.tags(ethertype)
            self.put({capfile.ETHERNET: f.ether(MAC_B, MAC_A, ethertype, b""),
                      capfile.SLL: struct.pack("!HHH8xH", 0, 1, 6, ethertype),
                      capfile.SLL2: struct.pack("!H2xIHBB8x", ethertype, 3, 1, 0, 6),
                      HDLC: struct.pack("!BBH", 0x0f, 0, ethertype)}[kind])

    def link_ppp(self, ethertype, other):
        if other:
            ethertype, self.reason = LCP, "ppp"
        protocol = PPP_OF[ethertype]
        is_short = protocol < 256 and self.kind != PPP_ETHER and self.chance.random() < 0.3
        self.put(struct.pack("!B" if is_short else "!H", protocol))
        if self.kind == PPP_ETHER:
            self.put(struct.pack("!BBHH", 0x11, 0, 1, len(self.data)))
        elif self.kind == SERIAL or self.chance.random() < 0.5:
            self.put(b"\xff\3")
        if self.kind in (PPPD, WITH_DIR):
            self.put(bytes([self.chance.randrange(2)]))

    def link_wlan(self, ethertype, other):
        chance = self.chance
        has_four, has_qos, has_ht = (chance.random() < 0.3 for _ in range(3))
        fate = chance.choice(("encrypted", "empty", "beacon", "fragment")) if other else None
        flags = (3 if has_four else chance.randrange(3)) | 0x80 * (has_qos and has_ht) | \
            0x40 * (fate == "encrypted")
        kind = 0x80 if fate == "beacon" else 8 | 0x80 * has_qos | 0x40 * (fate == "empty")
        self.has_witness = fate != "fragment"  # tshark takes it for the first one
        self.reason = None if self.has_witness else "wlan"
        self.put(b"\xaa\xaa\3\0\0\0" + struct.pack("!H", ethertype))
        header = bytes([kind, flags]) + struct.pack("<H", 0) + 3 * f.mac(MAC_A) + \
            struct.pack("<H", 16 * 7 + (fate == "fragment"))
        header += f.mac(MAC_B) * has_four + bytes(2 * has_qos) + bytes(4 * (has_qos and has_ht))
        self.put(header)
        if other and not self.reason:
            self.reason, self.needs = "wlan", 2  # the frame control
        if self.kind == RADIOTAP:
            self.put(struct.pack("<BBHI", 0, 0, 8, 0))
        if self.kind == PPI:
            self.put(struct.pack("<BBHI", 0, 0, 8, WLAN))

    def outcome(self, kept):
        """What it is with so many octets of it."""
        if self.reason:
            return self.reason if kept >= self.needs else "short"
        return next((flow for need, flow in reversed(self.stages) if need <= kept), "short")


def of_record(record):
    tunnel = record.get("TunnelType")
    return ((record["SrcAddr"], record["DstAddr"], record["Proto"], record.get("SrcPort"), record.get("DstPort")),
            record["Bytes"], tunnel and (tunnel, record.get("Vni", 0),
                                         record["OuterSrcAddr"], record["OuterDstAddr"]))


class LinkTypes(lab.LabTest):
    def check_witness(self, path, frames):
        """Each whole frame has the addresses that tshark finds last, and its kinds of headers."""
        lines = tshark.dissect(path, ("frame.protocols", "ip.src", "ipv6.src", "tcp.srcport", "udp.srcport"))
        for frame, line in zip(frames, lines.split("\n"), strict=False):
            names, *values = line.split("\t")
            sources = {text for value in values[:2] for text in value.split(",") if text}
            ports = {text for value in values[2:] for text in value.split(",") if text}
            if not frame.has_witness:
                continue
            if frame.reason:
                self.assertEqual(set(), sources, (frame.kind, frame.reason, names))
                continue
            flow, _, tunnel = frame.stages[-1][1]
            self.assertIn(flow[0], sources, (frame.kind, names))
            if flow[3]:
                self.assertIn(str(flow[3]), ports, (frame.kind, names))
            if tunnel:
                self.assertIn(tunnel[2], sources, (frame.kind, names))

    def replay(self, path):
        result = observer.flows(self.lab, "-r", path, "-o", "json", "--stats")
        result.check_conservation()
        return result

    def test_random_frames(self):
        chance = self.random
        for first in range(0, FRAMES, TOGETHER):
            frames = [Frame(number, chance.choice(KINDS), chance)
                      for number in range(first, min(first + TOGETHER, FRAMES))]
            self.check(frames, [0] * len(KINDS))
            self.check(frames, [chance.randrange(24, 160) for _ in KINDS])

    def check(self, frames, snaps):
        path = self.lab.path("frames.pcapng")
        with open(path, "wb") as file:
            file.write(capfile.pcapng(
                [(kind, 9, snap) for kind, snap in zip(KINDS, snaps)],
                [(START + at, KINDS.index(frame.kind), frame.data) for at, frame in enumerate(frames)]))
        if not any(snaps):
            self.check_witness(path, frames)
        wanted = [frame.outcome(snaps[KINDS.index(frame.kind)] or len(frame.data)) for frame in frames]
        result = self.replay(path)
        self.assertEqual(len(frames), result.total("seen")[0])
        reasons = collections.Counter(one for one in wanted if isinstance(one, str))
        self.assertEqual(reasons, collections.Counter(
            {name: leaf["packets"] for name, leaf in result.stats["unparsed"].items() if leaf["packets"]}))
        flows = collections.Counter(one for one in wanted if not isinstance(one, str))
        self.assertEqual(flows, collections.Counter(map(of_record, result.records)))


if __name__ == "__main__":
    lab.main()
