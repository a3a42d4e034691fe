# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
"""What a spool's directory holds, read independently: spool.h."""

import os
import re
import struct

SEGMENT = re.compile(r"[0-9a-f]{16}\.seg")
SEGMENT_HEAD = struct.Struct("=8sII3Qq")
RECORD_HEAD = struct.Struct("=II3Q3Q")
ACKED = struct.Struct("=8s3Q3QII")
PACKED = struct.Struct("=HHIQQqqQQQ16s16sHH")  # of any.h, and netobs_flow


def crc_table():
    table = []
    for value in range(256):
        for _ in range(8):
            value = value >> 1 ^ (0x82f63b78 if value & 1 else 0)
        table.append(value)
    return table


TABLE = crc_table()


def crc32c(data):
    crc = 0xffffffff
    for byte in data:
        crc = crc >> 8 ^ TABLE[(crc ^ byte) & 0xff]
    return crc ^ 0xffffffff


def address(packed):
    if packed[:12] == bytes(10) + b"\xff\xff":
        return ".".join(map(str, packed[12:]))
    raise ValueError("not IPv4")


def key_of_json(record):
    return (record["TimeFlowStartMs"], record["TimeFlowEndMs"],
            record["SrcAddr"], record["DstAddr"], record.get("SrcPort", 0),
            record.get("DstPort", 0), record["Packets"], record["Bytes"])


def key_of_packed(payload):
    (_, _, _, _, _, start, end, packets, octets, _, src, dst, sport,
     dport) = PACKED.unpack_from(payload)
    return (start // 1000000, end // 1000000, address(src), address(dst),
            sport, dport, packets, octets)


def acked(directory):
    """The number of the first record that is not acknowledged."""
    try:
        with open(os.path.join(directory, "acked"), "rb") as file:
            data = file.read()
    except FileNotFoundError:
        return 0
    fields = ACKED.unpack(data)
    if fields[0] != b"netobsAK" or crc32c(data[:56]) != fields[7]:
        raise ValueError("the file 'acked' is damaged")
    return fields[1]


def records_of(data):
    """(number, payload) of the whole records in a segment."""
    if len(data) < SEGMENT_HEAD.size:
        return
    magic, version, _, number, *_ = SEGMENT_HEAD.unpack_from(data)
    if magic != b"netobsSP" or version != 1:
        raise ValueError("not a segment")
    at = SEGMENT_HEAD.size
    while at + RECORD_HEAD.size <= len(data):
        crc, length, before, *_ = RECORD_HEAD.unpack_from(data, at)
        end = at + RECORD_HEAD.size + (length + 7) // 8 * 8
        if before != number or end > len(data) or \
                crc32c(data[at + 4:end]) != crc:
            return
        start = at + RECORD_HEAD.size
        yield number, data[start:start + length]
        number, at = number + 1, end


def pending(directory):
    """The keys of the records that are there and not acknowledged."""
    first = acked(directory)
    keys = []
    for name in sorted(filter(SEGMENT.fullmatch, os.listdir(directory))):
        with open(os.path.join(directory, name), "rb") as file:
            data = file.read()
        keys += [key_of_packed(payload) for number, payload
                 in records_of(data) if number >= first]
    return keys
