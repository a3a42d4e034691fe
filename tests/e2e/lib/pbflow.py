# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
"""Reads pbflow.Record from its bytes, with the names that JSON lines have."""

import ipaddress
import struct

VARINT, BYTES, FIXED32 = 0, 2, 5


def varint(data, at):
    value = shift = 0
    while True:
        value |= (data[at] & 0x7f) << shift
        shift += 7
        at += 1
        if data[at - 1] < 0x80:
            return value, at


def fields(data):
    """{number: [values]}: integers, or bytes."""
    found, at = {}, 0
    while at < len(data):
        tag, at = varint(data, at)
        kind = tag & 7
        if kind == VARINT:
            value, at = varint(data, at)
        elif kind == BYTES:
            size, at = varint(data, at)
            value, at = data[at:at + size], at + size
            if len(value) != size:
                raise ValueError("cut off")
        elif kind == FIXED32:
            (value,), at = struct.unpack_from("<I", data, at), at + 4
        else:
            raise ValueError(f"wire type {kind}")
        found.setdefault(tag >> 3, []).append(value)
    return found


def message(found, number):
    """A message that has to be there."""
    (data,) = found[number]
    return fields(data)


def number(found, index):
    (value,) = found.get(index, [0])
    return value


def address(data):
    found = fields(data)
    if 1 in found:
        return str(ipaddress.IPv4Address(found[1][0]))
    return str(ipaddress.IPv6Address(found[2][0]))


def mac(value):
    return ":".join(f"{byte:02x}" for byte in value.to_bytes(6, "big"))


def milliseconds(found, index):
    time = message(found, index)
    seconds = number(time, 1)
    seconds -= (seconds >> 63) << 64  # negative ones are of 64 bits
    return seconds * 1000 + number(time, 2) // 1000000


def decode(data):
    found = fields(data)
    link, network, transport = (message(found, index) for index in (5, 6, 7))
    message(found, 24)  # the RTT is always there
    points = [fields(entry) for entry in found[26]]
    return {
        "Etype": number(found, 1),
        "TimeFlowStartMs": milliseconds(found, 3),
        "TimeFlowEndMs": milliseconds(found, 4),
        "SrcMac": mac(number(link, 1)),
        "DstMac": mac(number(link, 2)),
        "SrcAddr": address(network[1][0]),
        "DstAddr": address(network[2][0]),
        "Dscp": number(network, 3),
        "SrcPort": number(transport, 1),
        "DstPort": number(transport, 2),
        "Proto": number(transport, 3),
        "Bytes": number(found, 1000),
        "L2Bytes": number(found, 8),
        "Packets": number(found, 9),
        "AgentIP": address(found[12][0]) if 12 in found else None,
        "Flags": number(found, 1001),
        "TtlMin": number(found, 1004),
        "TtlMax": number(found, 1005),
        "FlowEndReason": number(found, 1007),
        "IcmpType": number(found, 14),
        "IcmpCode": number(found, 15),
        "Interfaces": [point[1][0].decode() for point in points],
        "IfDirections": [number(point, 2) for point in points],
        "IfIndexes": [number(point, 1000) for point in points],
        "Sampling": number(found, 29),
    }
