# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
"""Capture files, written from their specifications: pcap and pcapng."""

import socket
import struct

from lib import frames

NULL, ETHERNET, RAW, LOOP, SLL, SLL2 = 0, 1, 101, 108, 113, 276
NFLOG = 239
NS = 10 ** 9


# AF_INET6 differs between the systems that write the type NULL.
AF_INET6_BSD, AF_INET6_FREEBSD, AF_INET6_DARWIN = 24, 28, 30


def link(kind, frame, af_inet6=AF_INET6_BSD):
    """An Ethernet frame as a capture of another link type would hold it."""
    ether, packet = frame[:14], frame[14:]
    proto = ether[12:]
    family = socket.AF_INET if proto == b"\x08\x00" else af_inet6
    if kind == ETHERNET:
        return frame
    if kind == RAW:
        return packet
    if kind == NULL:  # the writing host's byte order
        return struct.pack("=I", family) + packet
    if kind == LOOP:
        return struct.pack("!I", family) + packet
    if kind == SLL:
        return struct.pack("!HHH6s2x", 0, 1, 6, ether[6:12]) + proto + packet
    if kind == SLL2:
        return proto + struct.pack("!2xIHBB6s2x", 3, 1, 0, 6, ether[6:12]) + \
            packet
    raise ValueError(kind)


def pcap(kind, packets, nanoseconds=False, order="<", snap=65535):
    """@packets: [(ns since 1970, bytes)]"""
    magic = 0xa1b23c4d if nanoseconds else 0xa1b2c3d4
    unit = 1 if nanoseconds else 1000
    out = [struct.pack(order + "IHHiIII", magic, 2, 4, 0, 0, snap, kind)]
    for at, data in packets:
        kept = data[:snap]
        out.append(struct.pack(order + "IIII", at // NS, at % NS // unit,
                               len(kept), len(data)) + kept)
    return b"".join(out)


def queries(path):
    """A file with a datagram each second for a minute, from three hosts in turn to port 53 of another."""
    packets = [(n * NS, frames.ether(
        "02:00:00:00:00:01", "02:00:00:00:00:02", frames.IPV4,
        frames.ipv4(f"10.0.{n % 3}.1", "10.1.0.1", frames.UDP, frames.udp(40000 + n, 53, b"?"))))
               for n in range(60)]
    with open(path, "wb") as file:
        file.write(pcap(ETHERNET, packets))
    return path


def _block(order, kind, body):
    body += b"\0" * (-len(body) % 4)
    length = struct.pack(order + "I", len(body) + 12)
    return struct.pack(order + "I", kind) + length + body + length


def pcapng(interfaces, packets, order="<", snap=0, names=()):
    """
    @interfaces: [(link type, decimal digits of a second's fraction)], and a third part if its
    snapshot length is not @snap;
    @names: of interfaces; @packets: [(ns since 1970, interface number, bytes)] or, with
    epb_flags, [(ns since 1970, interface number, bytes, flags)]
    """
    out = [_block(order, 0x0a0d0d0a, struct.pack(
        order + "IHHq", 0x1a2b3c4d, 1, 0, -1))]
    for i, (kind, digits, *own) in enumerate(interfaces):
        resolution = struct.pack(order + "HHB3x", 9, 1, digits)
        if names:
            name = names[i].encode()
            resolution += struct.pack(order + "HH", 2, len(name)) + name + \
                b"\0" * (-len(name) % 4)
        resolution += struct.pack(order + "HH", 0, 0)
        out.append(_block(order, 1, struct.pack(order + "HHI", kind, 0,
                                                  own[0] if own else snap) +
                          resolution))
    for at, number, data, *flags in packets:
        stamp = at // 10 ** (9 - interfaces[number][1])
        kept = data[:(interfaces[number][2:] or [snap])[0] or None]
        options = bytes(-len(kept) % 4) + struct.pack(
            order + "HHIHH", 2, 4, *flags, 0, 0) if flags else b""
        out.append(_block(order, 6, struct.pack(
            order + "IIIII", number, stamp >> 32, stamp & 0xffffffff,
            len(kept), len(data)) + kept + options))
    return b"".join(out)
