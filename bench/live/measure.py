# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
"""What processes have used, as /proc has it, and what machine this is."""

import contextlib
import os
import re
import time

TICKS = os.sysconf("SC_CLK_TCK")


def read(*path):
    with open(os.path.join("/proc", *map(str, path)), encoding="ascii",
              errors="replace") as file:
        return file.read()


def stat_fields(pid):
    """/proc/PID/stat from the state on: the name before it may hold spaces."""
    return read(pid, "stat").rpartition(")")[2].split()


def process_cpu_seconds(pid):
    """As exactly as the kernel has it: clock_getcpuclockid(3)."""
    return time.clock_gettime(~pid << 3 | 2)


def peak_rss(pid):
    """In bytes; 0: it has ended."""
    found = re.search(r"VmHWM:\s+(\d+)", read(pid, "status"))
    return int(found.group(1)) << 10 if found else 0


def family(pid):
    """@pid and its descendants that still run."""
    children = {}
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            with contextlib.suppress(OSError):
                parent = int(stat_fields(entry)[1])
                children.setdefault(parent, []).append(int(entry))
    found = [pid]
    for member in found:
        found += children.get(member, [])
    return found


class Usage:
    """Follows a process and its descendants; what has ended still counts."""

    def __init__(self, pid):
        self.pid = pid
        self.started = {}
        self.cpu = {}
        self.peak_rss = {}
        self.kernel_bytes = None

    def look(self):
        """Take note of CPU and memory."""
        for pid in family(self.pid):
            with contextlib.suppress(OSError):
                fields = stat_fields(pid)
                self.started.setdefault(pid, fields[19])
                self.cpu[pid] = sum(map(int, fields[11:13])) / TICKS
                self.peak_rss[pid] = peak_rss(pid) or self.peak_rss.get(pid, 0)
        return self

    def look_at_maps(self):
        """Take note of what the BPF maps that are held take now."""
        maps = {}
        for pid in family(self.pid):
            with contextlib.suppress(OSError):
                maps.update(map_sizes(pid))
        if maps:
            self.kernel_bytes = max(sum(maps.values()), self.kernel_bytes or 0)

    def survivors(self):
        """Those of the processes seen that still run."""
        found = []
        for pid, started in self.started.items():
            with contextlib.suppress(OSError):
                if stat_fields(pid)[19] == started:
                    found.append(pid)
        return found

    def cpu_seconds(self):
        return sum(self.cpu.values())

    def peak_rss_bytes(self):
        return sum(self.peak_rss.values())


def numbers_of_fds(pid, key, value):
    """{number of @key: number of @value}, of file descriptors for which the kernel shows both."""
    found = {}
    for fd in os.listdir(f"/proc/{pid}/fdinfo"):
        with contextlib.suppress(OSError):
            info = dict(line.split(":\t", 1) for line in
                        read(pid, "fdinfo", fd).splitlines() if ":\t" in line)
            if key in info and value in info:
                found[int(info[key])] = int(info[value])
    return found


def map_sizes(pid):
    """{map id: bytes of kernel memory}, as far as the kernel says."""
    return numbers_of_fds(pid, "map_id", "memlock")


def program_times(pid):
    """{program id: seconds that it has run}, while kernel.bpf_stats_enabled is 1."""
    return {number: ns / 1e9 for number, ns in
            numbers_of_fds(pid, "prog_id", "run_time_ns").items()}


def host():
    """What a reader of results needs to know."""
    model = re.search(r"^model name\s*:\s*(.+)$", read("cpuinfo"), re.M)
    return {"kernel": os.uname().release, "machine": os.uname().machine,
            "cpu": model.group(1) if model else "unknown CPU",
            "cpus": os.cpu_count()}
