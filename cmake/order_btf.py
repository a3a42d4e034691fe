#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
"""order_btf.py OBJECT: sorts the forward declarations in the BTF of a compiled program by name.

LLVM (BTFDebug.cpp, FixupDerivedTypes) emits those that replace structs behind pointers in the order
of addresses in its heap, which follows the length of paths: the same source had other bytes in
another directory. All have one size, so they change places, and references to them follow.
"""

import struct
import sys

FWD, SIZES = 7, {1: 4, 3: 12, 14: 4, 17: 4}  # bytes behind a type, whatever its number of members
ARRAY, STRUCT, UNION, ENUM, FUNC_PROTO, DATASEC, ENUM64 = 3, 4, 5, 6, 13, 15, 19
MEMBERS = {STRUCT: 12, UNION: 12, ENUM: 8, FUNC_PROTO: 8, DATASEC: 12, ENUM64: 12}
# Where a type or a member has the number of another type.
OF_MEMBER = {STRUCT: 4, UNION: 4, FUNC_PROTO: 4, DATASEC: 0}
REFERENCES = {2, 8, 9, 10, 11, 12, 13, 14, 17, 18}


def section(data, wanted):
    """The bounds of a section of an ELF file of 64 bits, little endian."""
    at, = struct.unpack_from("<Q", data, 40)
    size, n, names = struct.unpack_from("<3H", data, 58)
    headers = [struct.unpack_from("<I20xQQ", data, at + i * size) for i in range(n)]
    for name, offset, length in headers:
        begin = headers[names][1] + name
        if data[begin:data.index(0, begin)] == wanted:
            return offset, length
    raise SystemExit(f"{sys.argv[1]}: there is no section {wanted.decode()}")


def walk(data, begin, end):
    """The kind of each type, where it is, and where it has the numbers of others."""
    while begin < end:
        _, info, _ = struct.unpack_from("<3I", data, begin)
        kind, n = info >> 24 & 31, info & 0xffff
        after = begin + 12
        places = [begin + 8] if kind in REFERENCES else []
        if kind == ARRAY:
            places += [after, after + 4]
        if kind in OF_MEMBER:
            places += [after + i * MEMBERS[kind] + OF_MEMBER[kind] for i in range(n)]
        yield kind, begin, places
        begin = after + SIZES.get(kind, 0) + n * MEMBERS.get(kind, 0)


def order(data):
    btf, _ = section(data, b".BTF")
    length, types, types_size, strings = struct.unpack_from("<4I", data, btf + 4)
    begin = btf + length
    found = list(walk(data, begin + types, begin + types + types_size))
    names = begin + strings
    forward = {}  # bytes of each, by its number
    for number, (kind, at, _) in enumerate(found, 1):
        if kind == FWD:
            forward[number] = bytes(data[at:at + 12])

    def key(number):
        name, info, _ = struct.unpack("<3I", forward[number])
        return bytes(data[names + name:data.index(0, names + name)]), info

    moved = {}
    for number, old in zip(forward, sorted(forward, key=key)):
        at = found[number - 1][1]
        data[at:at + 12] = forward[old]
        moved[old] = number
    for _, _, places in found:
        for place in places:
            number, = struct.unpack_from("<I", data, place)
            struct.pack_into("<I", data, place, moved.get(number, number))


def main():
    with open(sys.argv[1], "r+b") as file:
        data = bytearray(file.read())
        order(data)
        file.seek(0)
        file.write(data)


main()
