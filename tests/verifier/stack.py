#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
"""
stack.py OBJECT...: the stack that the programs of BPF objects may need, read from their
code, without a kernel. A line for each program, of the chain of calls that needs most:

    OBJECT/PROGRAM BYTES PROGRAM FRAME > FUNCTION FRAME > ...

The verifier adds up the frames of a chain of calls, each rounded up to 32 bytes (to 16
since Linux 6.10), and refuses more than 512: check_max_stack_depth() in the kernel's
kernel/bpf/verifier.c. It counts what it walks with one configuration; this counts all code.
"""

import os
import struct
import sys

ROUNDED = 32
INSTRUCTION = struct.Struct("<BBhi")  # opcode, registers, offset, immediate
FRAME_POINTER = 10
SYMBOL_TABLE, RELOCATIONS, FUNCTION = 2, 9, 2  # of elf.h
# What src/lib/filter/translate.c puts in the place of a function takes that.
GENERATED = {"judge": 120}
MOVE, ADD_IMMEDIATE, CALL, PSEUDO_CALL = 0xbf, 0x07, 0x85, 1
# Helpers that programs of these sections have since Linux 6.10 or later, or not at all.
LATE = {14: "bpf_get_current_pid_tgid", 15: "bpf_get_current_uid_gid",
        16: "bpf_get_current_comm", 80: "bpf_get_current_cgroup_id",
        120: "bpf_get_ns_current_pid_tgid"}
LATE_IN = ("netfilter", "sockops", "tc")


class Elf:
    """The sections of an object of 64 bits, little endian, and its functions."""

    def __init__(self, path):
        with open(path, "rb") as file:
            self.bytes = file.read()
        start, = struct.unpack_from("<Q", self.bytes, 0x28)
        size, n = struct.unpack_from("<HH", self.bytes, 0x3a)
        self.sections = [
            struct.unpack_from("<IIQQQQIIQQ", self.bytes, start + i * size)
            for i in range(n)]
        self.symbols = []
        self.names = b""
        for section in self.sections:
            if section[1] == SYMBOL_TABLE:
                self.names = self.content(self.sections[section[6]])
                self.symbols = list(struct.iter_unpack(
                    "<IBBHQQ", self.content(section)))

    def content(self, section):
        return self.bytes[section[4]:section[4] + section[5]]

    def section_name(self, section):
        index, = struct.unpack_from("<H", self.bytes, 0x3e)
        names = self.content(self.sections[index])[self.sections[section][0]:]
        return names[:names.index(b"\0")].decode()

    def functions(self):
        """(section, offset) -> (name, is global, size)"""
        found = {}
        for name, info, _, section, value, size in self.symbols:
            if info & 15 == FUNCTION:
                text = self.names[name:self.names.index(b"\0", name)]
                found[section, value] = text.decode(), info >> 4, size
        return found

    def relocations(self):
        """(section, offset) -> (section, value) of the symbol there"""
        found = {}
        for section in self.sections:
            if section[1] == RELOCATIONS:
                for offset, info in struct.iter_unpack(
                        "<QQ", self.content(section)):
                    symbol = self.symbols[info >> 32]
                    found[section[7], offset] = symbol[3], symbol[4]
        return found


def frame_of(instructions):
    """
    The bytes below the frame pointer that the code reads, writes or takes the address of.
    """
    depth = 0
    copies = set()  # registers that hold the frame pointer, until something is added
    for opcode, registers, offset, immediate in instructions:
        to, source = registers & 15, registers >> 4
        used = source if opcode & 7 == 1 else to  # LDX reads, ST and STX write
        if opcode & 7 in (1, 2, 3) and used == FRAME_POINTER:
            depth = max(depth, -offset)
        if opcode == MOVE and source == FRAME_POINTER:
            copies.add(to)
        elif opcode == ADD_IMMEDIATE and to in copies:
            depth = max(depth, -immediate)
            copies.discard(to)
    return depth


def calls_of(place, instructions, relocations):
    """The functions that the code at @place calls."""
    section, start = place
    for i, (opcode, registers, _, immediate) in enumerate(instructions):
        at = start + i * INSTRUCTION.size
        if opcode == CALL and registers >> 4 == PSEUDO_CALL:
            to, base = relocations.get((section, at), (section, at))
            if to:  # not one of the kernel
                yield to, base + (immediate + 1) * INSTRUCTION.size


def deepest_chain(place, graph):
    """[(name, frame), ...] from @place on; the verifier refuses recursion."""
    name, frame, calls = graph[place]
    chains = [deepest_chain(to, graph) for to in calls]
    return [(name, frame), *max(chains, key=chain_bytes, default=[])]


def chain_bytes(chain):
    return sum(-(-max(frame, 1) // ROUNDED) * ROUNDED for _, frame in chain)


def chains_of(path):
    """The deepest chain of each program of an object."""
    elf = Elf(path)
    relocations = elf.relocations()
    graph = {}
    called = set()
    for place, (name, is_global, size) in elf.functions().items():
        code = elf.content(elf.sections[place[0]])[place[1]:place[1] + size]
        instructions = list(INSTRUCTION.iter_unpack(code))
        calls = set(calls_of(place, instructions, relocations))
        called |= calls
        graph[place] = name, GENERATED.get(name) or frame_of(instructions), calls
    return [deepest_chain(place, graph) for place in graph
            if place not in called]


def late_calls(path):
    """(program, helper) that older kernels refuse."""
    elf = Elf(path)
    for (section, value), (name, _, size) in elf.functions().items():
        if elf.section_name(section) not in LATE_IN:
            continue
        code = elf.content(elf.sections[section])[value:value + size]
        for opcode, registers, _, immediate in INSTRUCTION.iter_unpack(code):
            if opcode == CALL and not registers >> 4 and immediate in LATE:
                yield name, LATE[immediate]


def words(chain):
    return " > ".join(f"{function} {frame}" for function, frame in chain)


def main(*objects):
    for path in objects:
        name = os.path.basename(path).split(".")[0]
        for chain in chains_of(path):
            print(f"{name}/{chain[0][0]} {chain_bytes(chain)} {words(chain)}")


if __name__ == "__main__":
    main(*sys.argv[1:])
