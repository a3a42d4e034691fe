#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
# Needs: binutils
"""The service can be a program of its own, without a terminal library and without the command."""

import os
import re
import subprocess
import tempfile
import unittest
from pathlib import Path

SOURCE = Path(os.environ["NETOBS_SOURCE"])
RELEASE = Path(os.environ["NETOBS_RELEASE"])
CC = os.environ.get("CC", "cc")


def run(*command, **options):
    return subprocess.run([str(part) for part in command], text=True, check=False,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, **options)


def symbols(archive, *options):
    lines = run("nm", *options, archive).stdout.splitlines()
    return {line.split()[-1] for line in lines if len(line.split()) > 1}


class Daemon(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.program = Path(directory.name) / "daemon"
        # All of the archive, not what the program needs.
        self.link("-Wl,--whole-archive", RELEASE / "libnetobs_service.a", "-Wl,--no-whole-archive")

    def link(self, *service):
        done = run(CC, "-D_GNU_SOURCE", "-std=gnu11", '-DNETOBS_CONFIG_DIR="/etc/netobs"',
                   f"-I{SOURCE}/include", f"-I{SOURCE}/src", f"-I{SOURCE}/src/lib",
                   SOURCE / "tests/abi/daemon.c", "-o", self.program, *service,
                   f"-L{RELEASE}", "-lnetobs", "-pthread", "-ldl")
        self.assertEqual(0, done.returncode, done.stdout)

    def test_needs_all_of_the_service(self):
        """What service_run() does not reach is the command's."""
        archive, map_file = RELEASE / "libnetobs_service.a", self.program.with_suffix(".map")
        self.link(archive, f"-Wl,-Map,{map_file}")
        linked = set(re.findall(r"libnetobs_service\.a\((.+?)\)", map_file.read_text()))
        self.assertGreater(len(linked), 50)
        self.assertEqual(linked, set(run("ar", "t", archive).stdout.split()))

    def test_loads_the_library_alone(self):
        needed = set(re.findall(r"NEEDED.*\[(.*?)\.so", run("readelf", "-d", self.program).stdout))
        self.assertIn("libnetobs", needed)
        self.assertLessEqual(needed, {"libnetobs", "libc", "libpthread", "libdl"})

    def test_runs(self):
        done = run(self.program, "/nonexistent/netobs.conf",
                   env=dict(os.environ, LD_LIBRARY_PATH=str(RELEASE)))
        self.assertEqual(2, done.returncode, done.stdout)
        self.assertIn("/nonexistent/netobs.conf: No such file", done.stdout)


class Wings(unittest.TestCase):
    def test_only_views_use_the_terminal_library(self):
        of_ncurses = {"newterm", "delscreen", "endwin", "curs_set", "tigetstr"}
        for wing in "service", "cli":
            used = symbols(RELEASE / f"libnetobs_{wing}.a", "--undefined-only")
            self.assertFalse(used & of_ncurses, wing)
        used = symbols(RELEASE / "libnetobs_view.a", "--undefined-only")
        self.assertLessEqual(of_ncurses, used)


if __name__ == "__main__":
    unittest.main(verbosity=2)
