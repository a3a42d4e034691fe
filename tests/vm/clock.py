# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
"""How fast this machine's time stamp counter is, which guests read too."""

import ctypes
import mmap
import time

# rdtsc; shl $32,%rdx; or %rdx,%rax; ret
READ_TSC = bytes.fromhex("0f31 48c1e220 4809d0 c3")
NS = 10 ** 9


def tsc_khz():
    """Measured: a guest would do so itself, but on a busy machine gets it wrong."""
    page = mmap.mmap(-1, mmap.PAGESIZE, prot=mmap.PROT_READ | mmap.PROT_WRITE |
                     mmap.PROT_EXEC)
    page.write(READ_TSC)
    address = ctypes.addressof(ctypes.c_char.from_buffer(page))
    read = ctypes.CFUNCTYPE(ctypes.c_uint64)(address)
    start_ticks, start = read(), time.monotonic_ns()
    time.sleep(0.2)
    ticks, elapsed = read() - start_ticks, time.monotonic_ns() - start
    return ticks * (NS // 1000) // elapsed
