# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
"""
Other people's BPF programs, and a look at what is attached: bpf(2) without a
library, as iproute2 and bpftool of Debian 12 do not know tcx yet.
"""

import contextlib
import ctypes
import errno
import json
import os
import re
import resource
import socket
import struct

from lib import lab

SYS_BPF = {"x86_64": 321, "aarch64": 280}[os.uname().machine]

# enum bpf_cmd, bpf_prog_type, bpf_attach_type of linux/bpf.h
MAP_CREATE, MAP_LOOKUP, PROG_LOAD, OBJ_PIN = 0, 1, 5, 6
PROG_QUERY, LINK_CREATE = 16, 28
PROG_TYPE_SCHED_CLS, PROG_TYPE_XDP, PROG_TYPE_NETFILTER = 3, 6, 32
ATTACH_NETFILTER = 45
XDP_DROP, XDP_PASS = 1, 2
MAP_TYPE_ARRAY = 2
TCX = {"ingress": 46, "egress": 47}
BEFORE, AFTER = 1 << 3, 1 << 4

EXPEDITED = "/sys/kernel/rcu_expedited"
EXPEDITED_MARK = "1852793459" # what netobs writes there, for a moment

NEXT = -1 # TCX_NEXT, and TC_ACT_UNSPEC
PASS, DROP = 0, 2


def bpf(command, attributes):
    """bpf(2) with a struct of bytes; returns (result, the struct after)."""
    buffer = ctypes.create_string_buffer(attributes, 128)
    result = lab.LIBC.syscall(SYS_BPF, command, buffer, 128)
    lab.check_errno(result, f"bpf command {command}")
    return result, buffer.raw


def instruction(code, dst=0, src=0, offset=0, immediate=0):
    return struct.pack("<BBhi", code, src << 4 | dst, offset, immediate)


def counting_program(map_fd, verdict, port):
    """
    Count packets whose IPv4 UDP destination port is @port (no IP options),
    and answer @verdict for them; NEXT for others.
    """
    head = [
        instruction(0xbf, 6, 1),                       # r6 = skb
        instruction(0x61, 2, 6, 76),                   # r2 = data
        instruction(0x61, 3, 6, 80),                   # r3 = data_end
        instruction(0xbf, 4, 2),
        instruction(0x07, 4, 0, 0, 38),                # up to the UDP ports
    ]
    match = [
        instruction(0x69, 5, 2, 36),                   # destination port
        ]
    count = [
        instruction(0x62, 10, 0, -4, 0),               # key 0 on the stack
        instruction(0xbf, 2, 10),
        instruction(0x07, 2, 0, 0, -4),
        instruction(0x18, 1, 1, 0, map_fd), instruction(0),
        instruction(0x85, 0, 0, 0, 1),                 # bpf_map_lookup_elem
        instruction(0x15, 0, 0, 2, 0),
        instruction(0xb7, 1, 0, 0, 1),
        instruction(0xdb, 0, 1, 0, 0),                 # atomic add
        instruction(0xb7, 0, 0, 0, verdict),
        instruction(0x95),
    ]
    other = [instruction(0xb7, 0, 0, 0, NEXT), instruction(0x95)]
    wire = int.from_bytes(port.to_bytes(2, "big"), "little")
    # Both jumps go to `other`, over what comes in between.
    head.append(instruction(0x2d, 4, 3, len(match) + 1 + len(count)))
    match.append(instruction(0x55, 5, 0, len(count), wire))
    return b"".join(head + match + count + other)


def charges_groups():
    """COMPAT(<5.11): maps count against a limit of the user, which libbpf lifts."""
    release = os.uname().release.split(".")
    return (int(release[0]), int(release[1])) >= (5, 11)


def unlock_memory():
    """COMPAT(<5.11): netobs' maps count against the same limit as ours."""
    unlimited = (resource.RLIM_INFINITY,) * 2
    with contextlib.suppress(ValueError): # may be out of this root's power
        resource.setrlimit(resource.RLIMIT_MEMLOCK, unlimited)


class Program:
    """A tc program that counts packets to a UDP port and decides on them."""

    def __init__(self, verdict, port, code=b""):
        """@code: another program than that, which counts nothing."""
        unlock_memory()
        self.map, _ = bpf(MAP_CREATE, struct.pack("<IIII", MAP_TYPE_ARRAY, 4,
                                                  8, 1))
        code = ctypes.create_string_buffer(
            code or counting_program(self.map, verdict, port))
        size = (len(code) - 1) // 8
        licence = ctypes.create_string_buffer(b"GPL")
        attributes = struct.pack("<IIQQIIQII16s", PROG_TYPE_SCHED_CLS, size,
                                 ctypes.addressof(code),
                                 ctypes.addressof(licence), 0, 0, 0, 0, 0,
                                 b"foreign")
        self.fd, _ = bpf(PROG_LOAD, attributes)
        self.links = []

    def attach(self, ns, interface, direction, where):
        """A tcx link at the head (BEFORE) or tail (AFTER) of the list."""
        ifindex = ns.ifindex(interface)
        with ns:
            link, _ = bpf(LINK_CREATE, struct.pack(
                "<IIIIIIQ", self.fd, ifindex, TCX[direction], where, 0, 0, 0))
        self.links.append(link)

    def detach(self):
        while self.links:
            os.close(self.links.pop())

    def pin(self, path):
        name = ctypes.create_string_buffer(path.encode())
        bpf(OBJ_PIN, struct.pack("<QI", ctypes.addressof(name), self.fd))

    def count(self):
        key, value = ctypes.c_uint32(0), ctypes.c_uint64(0)
        bpf(MAP_LOOKUP, struct.pack("<IIQQQ", self.map, 0,
                                    ctypes.addressof(key),
                                    ctypes.addressof(value), 0))
        return value.value

    def close(self):
        self.detach()
        os.close(self.fd)
        os.close(self.map)


class NetfilterProgram:
    """A program that accepts all packets of IPv4 at hooks of netfilter, Linux 6.4."""

    def __init__(self):
        code = ctypes.create_string_buffer(instruction(0xb7, 0, 0, 0, 1) + instruction(0x95))
        licence = ctypes.create_string_buffer(b"GPL")
        self.fd, _ = bpf(PROG_LOAD, struct.pack(
            "<IIQQIIQII16sII", PROG_TYPE_NETFILTER, 2, ctypes.addressof(code),
            ctypes.addressof(licence), 0, 0, 0, 0, 0, b"foreign", 0, ATTACH_NETFILTER))
        self.links = []

    def attach(self, ns, hook, priority):
        with ns:
            link, _ = bpf(LINK_CREATE, struct.pack(
                "<IIIIIIiI", self.fd, 0, ATTACH_NETFILTER, 0, socket.AF_INET, hook, priority, 0))
        self.links.append(link)

    def detach(self):
        while self.links:
            os.close(self.links.pop())

    def close(self):
        self.detach()
        os.close(self.fd)


def pin_xdp(path, verdict=XDP_PASS):
    """An XDP program that has one verdict for all packets, pinned at @path."""
    code = ctypes.create_string_buffer(
        instruction(0xb7, 0, 0, 0, verdict) + instruction(0x95))
    licence = ctypes.create_string_buffer(b"GPL")
    fd, _ = bpf(PROG_LOAD, struct.pack(
        "<IIQQIIQII16s", PROG_TYPE_XDP, 2, ctypes.addressof(code),
        ctypes.addressof(licence), 0, 0, 0, 0, 0, b"shield"))
    name = ctypes.create_string_buffer(path.encode())
    bpf(OBJ_PIN, struct.pack("<QI", ctypes.addressof(name), fd))
    os.close(fd)


def tcx_programs(ns, interface, direction):
    """Ids of the programs on an interface's tcx hook, first to last."""
    ifindex = ns.ifindex(interface)
    ids = (ctypes.c_uint32 * 64)()
    query = struct.pack("<IIIIQII", ifindex, TCX[direction], 0, 0,
                        ctypes.addressof(ids), 64, 0)
    try:
        with ns:
            _, after = bpf(PROG_QUERY, query)
    except OSError as error:
        if error.errno != errno.EINVAL:
            raise
        return [] # a kernel without tcx
    count = struct.unpack_from("<I", after, 24)[0]
    return list(ids[:count])


def has_tcx():
    """Whether this kernel has tcx, without asking netobs."""
    loopback = 1
    try:
        bpf(PROG_QUERY, struct.pack("<IIIIQII", loopback, TCX["ingress"], 0, 0,
                                    0, 0, 0))
    except OSError as error:
        if error.errno != errno.EINVAL:
            raise
        return False
    return True


def await_unexpedited():
    lab.wait_for(lambda: lab.read(EXPEDITED).strip() != EXPEDITED_MARK, "the knob to be taken back")


def mount_bpffs(where):
    """A BPF file system of the test's own, to pin programs for tc in."""
    path = where.path("bpffs")
    os.mkdir(path)
    lab.run("mount", "-t", "bpf", "bpf", path)
    where.defer(lab.run, "umount", path)
    return path


def fdinfos(pid):
    """What the kernel says of each descriptor of a process: links, programs and maps."""
    found = []
    for fd in os.listdir(f"/proc/{pid}/fdinfo"):
        with contextlib.suppress(OSError), \
                open(f"/proc/{pid}/fdinfo/{fd}", encoding="utf-8") as file:
            found.append(file.read())
    return found


def programs():
    """{id: name} of all programs of the host."""
    return {one["id"]: one.get("name", "") for one in json.loads(lab.run("bpftool", "-j", "prog", "show"))}


def programs_of(pid):
    """{id: name} of the programs that a process holds; other tests may have programs of their own."""
    held = {int(one) for text in fdinfos(pid)
            for one in re.findall(r"^prog_id:\s*(\d+)", text, re.MULTILINE)}
    return {number: name for number, name in programs().items() if number in held}


def attached(ns, interface):
    """How many programs are on tc hooks of an interface, of either kind."""
    count = 0
    for direction in TCX:
        count += len(tcx_programs(ns, interface, direction))
        count += len(filters(ns, interface, direction))
    return count


def filters(ns, interface, direction):
    """The lines of `tc filter show` that name a BPF program."""
    text = ns.tc("filter", "show", "dev", interface, direction, check=False)
    return [line.strip() for line in text.split("\n") if " bpf " in line
            and " handle " in line]


def snapshot(ns, *interfaces):
    """What hangs on the interfaces, to be compared before and after."""
    found = {}
    for name in interfaces:
        found[name] = {
            "qdisc": ns.tc("qdisc", "show", "dev", name),
            **{f"tcx {way}": tcx_programs(ns, name, way) for way in TCX},
            **{f"filter {way}": ns.tc("filter", "show", "dev", name, way,
                                      check=False) for way in TCX},
        }
    found["bpftool net"] = ns.run("bpftool", "net", "show")
    return found
