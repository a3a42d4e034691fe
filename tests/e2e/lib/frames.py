# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
"""Frames that the kernel here does not make by itself, byte by byte."""

import socket
import struct

IPV4, IPV6, ARP, ERSPAN = 0x0800, 0x86dd, 0x0806, 0x88be
VLAN, QINQ, MPLS = 0x8100, 0x88a8, 0x8847
ICMP, TCP, UDP, ICMPV6 = 1, 6, 17, 58
IPIP, IP6, GRE = 4, 41, 47
HOP_BY_HOP, ROUTING, FRAGMENT, DEST_OPTIONS = 0, 43, 44, 60

FIN, SYN, RST, PSH, ACK, URG, ECE, CWR = (1 << bit for bit in range(8))


def mac(text):
    return bytes.fromhex(text.replace(":", ""))


def ether(dst, src, kind, payload):
    return mac(dst) + mac(src) + struct.pack("!H", kind) + payload


def vlan(tag, kind, payload, priority=0):
    """What follows the ethertype VLAN or QINQ."""
    return struct.pack("!HH", priority << 13 | tag, kind) + payload


def mpls(labels, payload):
    out = b""
    for at, label in enumerate(labels):
        bottom = at == len(labels) - 1
        out += struct.pack("!I", label << 12 | bottom << 8 | 64)
    return out + payload


def checksum(data):
    data += b"\0" * (len(data) % 2)
    total = sum(struct.unpack(f"!{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xffff) + (total >> 16)
    return ~total & 0xffff


def ipv4(src, dst, proto, payload, ttl=64, tos=0, options=b"", ident=0,
         fragment=0):
    """@fragment: the flags and offset field as it is."""
    words = 5 + len(options) // 4
    def header(check):
        return struct.pack("!BBHHHBBH4s4s", 0x40 | words, tos,
                           words * 4 + len(payload), ident, fragment, ttl,
                           proto, check, socket.inet_aton(src),
                           socket.inet_aton(dst)) + options
    return header(checksum(header(0))) + payload


def ipv6(src, dst, proto, payload, hops=64, tclass=0):
    return struct.pack("!IHBB16s16s", 6 << 28 | tclass << 20, len(payload),
                       proto, hops, socket.inet_pton(socket.AF_INET6, src),
                       socket.inet_pton(socket.AF_INET6, dst)) + payload


def ip(src, dst, proto, payload):
    """An ethertype and the packet."""
    if ":" in src:
        return IPV6, ipv6(src, dst, proto, payload)
    return IPV4, ipv4(src, dst, proto, payload)


def extension(following, size=8):
    """A hop-by-hop or destination options header: one PadN option."""
    return struct.pack("!BBBB", following, size // 8 - 1, 1, size - 4) + \
        bytes(size - 4)


def routing(following, address):
    """A segment routing header that has arrived (segments left 0)."""
    return struct.pack("!BBBBI", following, 2, 4, 0, 0) + \
        socket.inet_pton(socket.AF_INET6, address)


def fragment6(following, offset, more, ident):
    return struct.pack("!BBHI", following, 0, offset | more, ident)


def udp(sport, dport, payload=b""):
    return struct.pack("!HHHH", sport, dport, 8 + len(payload), 0) + payload


def vxlan(vni, frame):
    return struct.pack("!II", 1 << 27, vni << 8) + frame


def geneve(vni, kind, payload):
    return struct.pack("!HHI", 0, kind, vni << 8) + payload


def gtpu(teid, packet):
    return struct.pack("!BBHI", 0x30, 255, len(packet), teid) + packet


def gre(key, kind, payload):
    return struct.pack("!HHI", 0x2000, kind, key) + payload


# Tunnels over UDP: their ports, and what makes a packet the payload, by its ethertype.
UDP_TUNNELS = {
    "vxlan": (4789, lambda kind, packet: vxlan(7, ether(*INNER_MACS, kind, packet))),
    "geneve": (6081, lambda kind, packet: geneve(7, kind, packet)),
    "gtpu": (2152, lambda _, packet: gtpu(7, packet)),
}
INNER_MACS = "02:00:00:00:ff:01", "02:00:00:00:ff:02"


def tcp(sport, dport, flags, payload=b"", options=b""):
    words = 5 + len(options) // 4
    return struct.pack("!HHIIHHHH", sport, dport, 1, 1, words << 12 | flags,
                       512, 0, 0) + options + payload


def icmp(kind, code, payload=b"\0\1\0\1"):
    return struct.pack("!BBH", kind, code, 0) + payload


def arp(src_mac, src, dst):
    return struct.pack("!HHBBH6s4s6s4s", 1, IPV4, 6, 4, 1, mac(src_mac),
                       socket.inet_aton(src), bytes(6), socket.inet_aton(dst))
