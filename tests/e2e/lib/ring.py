# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
"""Sends and receives by io_uring(7), one call at a time, without its library."""

import ctypes
import mmap
import os
import struct

from lib import lab

SYS_SETUP, SYS_ENTER = 425, 426
SINGLE_MMAP, GET_EVENTS = 1, 1
OFF_SQES = 0x10000000
OP_SEND, OP_RECV = 26, 27
ASYNC = 1 << 4  # by a worker


class Ring:
    def __init__(self):
        params = ctypes.create_string_buffer(120)
        self.fd = lab.check_errno(lab.LIBC.syscall(SYS_SETUP, 1, params), "io_uring_setup")
        entries, cq_entries = struct.unpack_from("II", params)
        self.sq = struct.unpack_from("7I", params, 40)  # head, tail, mask, entries, flags, dropped, array
        self.cq = struct.unpack_from("7I", params, 80)  # head, tail, mask, entries, overflow, cqes, flags
        assert struct.unpack_from("I", params, 20)[0] & SINGLE_MMAP
        size = max(self.sq[6] + 4 * entries, self.cq[5] + 16 * cq_entries)
        self.rings = mmap.mmap(self.fd, size, mmap.MAP_SHARED | mmap.MAP_POPULATE)
        self.sqes = mmap.mmap(self.fd, 64 * entries, mmap.MAP_SHARED | mmap.MAP_POPULATE, offset=OFF_SQES)

    def close(self):
        self.rings.close()
        self.sqes.close()
        os.close(self.fd)

    def call(self, operation, sock, buffer, flags=0):
        """@return as the system call's"""
        struct.pack_into("BBHiQQI", self.sqes, 0, operation, flags, 0, sock.fileno(), 0,
                         ctypes.addressof(buffer), len(buffer))
        tail, = struct.unpack_from("I", self.rings, self.sq[1])
        struct.pack_into("I", self.rings, self.sq[1], tail + 1)
        lab.check_errno(lab.LIBC.syscall(SYS_ENTER, self.fd, 1, 1, GET_EVENTS, None, 0), "io_uring_enter")
        head, = struct.unpack_from("I", self.rings, self.cq[0])
        mask, = struct.unpack_from("I", self.rings, self.cq[2])
        result, = struct.unpack_from("i", self.rings, self.cq[5] + 16 * (head & mask) + 8)
        struct.pack_into("I", self.rings, self.cq[0], head + 1)
        assert result >= 0, f"io_uring: {result}"
        return result

    def send(self, sock, data, by_worker=False):
        self.call(OP_SEND, sock, (ctypes.c_char * len(data))(*data), by_worker * ASYNC)

    def recv(self, sock, size):
        """By this thread."""
        buffer = ctypes.create_string_buffer(size)
        count = self.call(OP_RECV, sock, buffer)
        return buffer.raw[:count]


def is_there():
    """Whether this kernel has it, and administrators allow it."""
    try:
        Ring().close()
    except OSError:
        return False
    return True
