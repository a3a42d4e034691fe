#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
"""Programs of another age than the library: what grows works, what differs is refused."""

import json
import os
import re
import shutil
import socket
import struct
import subprocess
import tempfile
import unittest
from pathlib import Path

SOURCE = Path(os.environ["NETOBS_SOURCE"])
RELEASE = Path(os.environ["NETOBS_RELEASE"])
LABEL = 0xbeef5

# Those that a program allocates, or reads from an array of its own.
GROWING = {
    "alert.h": ["netobs_alert_counts", "netobs_alert_rule"],
    "capture.h": ["netobs_capture_opts", "netobs_capture_stats"],
    "connection.h": ["netobs_connection_stats"],
    "drop.h": ["netobs_drops_opts", "netobs_drops_stats"],
    "flow.h": ["netobs_flow", "netobs_point"],
    "group.h": ["netobs_group_keys", "netobs_groups_opts", "netobs_groups_top"],
    "journeys.h": ["netobs_journey_sums"],
    "names.h": ["netobs_names_opts"],
    "networks.h": ["netobs_network"],
    "netobs.h": ["netobs_opts", "netobs_rule"],
    "persist.h": ["netobs_persisted"],
    "probe.h": ["netobs_feature"],
    "series.h": ["netobs_series_opts"],
    "services.h": ["netobs_services_opts", "netobs_services_stats"],
    "session.h": ["netobs_sessions_opts", "netobs_sessions_stats"],
    "sink.h": ["netobs_sink_opts", "netobs_sink_stats"],
    "stats.h": ["netobs_stats", "netobs_engine_stats"],
}
# Newest members that have no size of their own: they fill what was padding without.
FILLED = {"netobs_flow": 1}
# Nothing can be cut off: all of it is needed.
WHOLE = {"netobs_alert_rule", "netobs_network", "netobs_point", "netobs_rule"}


def run(*command, code=0, **options):
    done = subprocess.run([str(part) for part in command], text=True, timeout=120,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, **options)
    if done.returncode != code:
        raise AssertionError(f"{' '.join(map(str, command))}: {done.returncode}\n"
                             f"{done.stdout}")
    return done.stdout


def cut(name, body):
    """Without its newest member, and the reserved space behind that."""
    if name in WHOLE:
        return body
    body = re.sub(r"/\*.*?\*/", "", body, flags=re.S).rstrip()
    for _ in range(1 + FILLED.get(name, 0)):
        while re.search(r"\breserved\d*(\[\d+\])?;$", body):
            body = body[:body[:-1].rindex(";") + 1].rstrip()
        body = body[:body[:-1].rindex(";") + 1]
    return body


def grow(_name, body):
    return f"{body}\n\tuint64_t later;"


def headers(directory, change):
    """A copy of the public headers in which @change made each struct's members."""
    shutil.copytree(SOURCE / "include/netobs", directory / "netobs")
    for file, names in GROWING.items():
        path = directory / "netobs" / file
        text = path.read_text()
        for name in names:
            text, n = re.subn(
                rf"(^struct {name} {{\n)(.*?)(^}};)",
                lambda match, name=name: match[1] + change(name, match[2].rstrip()) +
                "\n" + match[3], text, flags=re.S | re.M)
            assert n == 1, name
        path.write_text(text)
    return directory


def capture(path):
    """A datagram of IPv6 with a flow label."""
    addresses = b"".join(socket.inet_pton(socket.AF_INET6, address)
                         for address in ("2001:db8::1", "2001:db8::2"))
    udp = struct.pack("!HHHH", 1000, 2000, 12, 0) + b"grow"
    frame = bytes([2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1]) + struct.pack(
        "!HIHBB", 0x86dd, 6 << 28 | LABEL, len(udp), 17, 64) + addresses + udp
    path.write_bytes(struct.pack("<IHHiIII", 0xa1b2c3d4, 2, 4, 0, 0, 65535, 1) +
                     struct.pack("<IIII", 1700000000, 0, len(frame), len(frame)) + frame)


class Directory(unittest.TestCase):
    def setUp(self):
        made = tempfile.TemporaryDirectory(prefix="netobs-growth-")
        self.addCleanup(made.cleanup)
        self.root = Path(made.name)
        self.environment = {**os.environ, "LD_LIBRARY_PATH": str(RELEASE)}


class Growth(Directory):
    def run_program(self, include, *options):
        """Its output, and the records as a sink got them from it."""
        program, lines = self.root / "growth", self.root / "lines"
        run("cc", "-Wall", "-Wextra", "-Werror", *options, f"-I{include}",
            SOURCE / "tests/abi/growth.c", "-o", program, f"-L{RELEASE}", "-lnetobs")
        capture(self.root / "flow.pcap")
        out = run(program, self.root / "flow.pcap", lines, env=self.environment)
        records = [json.loads(line) for line in lines.read_text().splitlines()]
        lines.unlink()
        return out, records

    def test_programs_of_any_age_work(self):
        out, (today,) = self.run_program(SOURCE / "include")
        flow = int(re.search(r"flow (\d+) of \1\n", out)[1])
        stats = int(re.search(r"stats (\d+) of \1\n", out)[1])
        self.assertEqual((LABEL, "2001:db8::1", [7, 7]), (
            today["Ipv6FlowLabel"], today["SrcAddr"], today["IfIndexes"]))

        with self.subTest("older than the library"):
            out, (older,) = self.run_program(headers(self.root / "older", cut))
            self.assertLess(int(re.search(rf"flow (\d+) of {flow}\n", out)[1]), flow)
            self.assertLess(int(re.search(r"stats (\d+) of \1\n", out)[1]), stats)
            self.assertIn("SrcAddr", older)
            self.assertEqual({key: today[key] for key in older}, older)

        with self.subTest("newer than the library"):
            out, (newer,) = self.run_program(headers(self.root / "newer", grow),
                                             "-DNEWER")
            self.assertIn(f"flow {flow + 8} of {flow}\n", out)
            self.assertIn(f"stats {stats} of {stats + 8}\n", out)
            self.assertIn("refused\n", out)
            self.assertEqual(today, newer)


class Soname(Directory):
    """What the dynamic linker makes of a program that was linked with another one."""

    def link(self, soname, node, name):
        """A program that calls @name of a library like that."""
        (self.root / "stub.c").write_text(f"int {name}(void) {{ return 1; }}\n")
        (self.root / "main.c").write_text(
            f"int {name}(void);\nint main(void) {{ return !{name}(); }}\n")
        (self.root / "stub.map").write_text(f"{node} {{ global: {name}; local: *; }};\n")
        run("cc", "-shared", "-fPIC", f"-Wl,-soname,{soname}",
            f"-Wl,--version-script={self.root / 'stub.map'}", self.root / "stub.c",
            "-o", self.root / "libstub.so")
        run("cc", self.root / "main.c", "-o", self.root / "main", f"-L{self.root}",
            "-lstub")
        return self.root / "main"

    def test_today_s_is_found(self):
        run(self.link("libnetobs.so.0.2", "NETOBS_0.2", "netobs_version"),
            env=self.environment)

    def test_another_minor_release_is_refused(self):
        for soname in "libnetobs.so.0", "libnetobs.so.0.9", "libnetobs.so.1":
            out = run(self.link(soname, "NETOBS_0.2", "netobs_version"), code=127,
                      env=self.environment)
            self.assertIn(f"{soname}: cannot open shared object file", out)

    def test_functions_of_a_later_release_are_refused(self):
        out = run(self.link("libnetobs.so.0.2", "NETOBS_0.9", "netobs_later"), code=1,
                  env=self.environment)
        self.assertIn("version `NETOBS_0.9' not found", out)


if __name__ == "__main__":
    unittest.main(verbosity=2)
