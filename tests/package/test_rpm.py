#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
# Needs: git mmdebstrap rpm
"""
RPM packages: what they contain, require and run, and their installation and removal. No
distribution of RPM packages can be had here, so they go into a clean Debian.
"""

import glob
import os
import re
import shutil
import tempfile
import unittest
from pathlib import Path

from lib import chroot

SOURCE = Path(os.environ["NETOBS_SOURCE"])
NAMES = {"libnetobs", "libnetobs-devel", "netobs", "netobs-bench", "netobs-sink-grpc",
         "netobs-sink-http", "netobs-sink-ipfix", "netobs-sink-json", "netobs-sink-kafka",
         "netobsctl", "python3-netobs"}
# They need netobsctl alone, which needs the library.
WITH_COMMAND = {"netobs", "netobs-bench"}
# What the sonames of their libraries begin with, beside those of all.
LIBRARIES = {
    "libnetobs": {"libbpf", "libelf", "libz", "libpcap"},
    "netobs": set(),
    "netobs-bench": {"libbpf", "libelf", "libz", "libpcap", "libm"},
    "netobsctl": {"libmicrohttpd", "libncursesw", "libtinfo"},
    "netobs-sink-grpc": {"libnghttp2", "libssl", "libcrypto"},
    "netobs-sink-http": {"libcurl"},
    "netobs-sink-ipfix": {"libfixbuf", "libglib-2.0", "libssl", "libcrypto"},
    "netobs-sink-json": {"libz", "libzstd", "libssl", "libcrypto"},
    "netobs-sink-kafka": {"librdkafka"},
}
OWN = {"libc", "libnetobs", "ld-linux-x86-64", "ld-linux-aarch64"}


class Rpm(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        directory = tempfile.TemporaryDirectory(prefix="netobs-rpm-")
        cls.addClassCleanup(directory.cleanup)
        cls.path = directory.name
        chroot.run(SOURCE / "packaging/build.sh", "rpm", f"{cls.path}/rpm")
        cls.packages = {chroot.run("rpm", "-qp", "--qf", "%{NAME}", path): path for path in
                        glob.glob(f"{cls.path}/rpm/*.rpm") if not path.endswith(".src.rpm")}

    def query(self, name, *options):
        return chroot.run("rpm", "-qp", *options, self.packages[name]).split("\n")

    def test_each_file_is_in_one_of_them(self):
        self.assertEqual(NAMES, set(self.packages))
        files = [line for name in NAMES for line in self.query(name, "-l")
                 if line and "/.build-id" not in line]
        self.assertEqual(len(files), len(set(files)))
        self.assertIn("/usr/sbin/netobsctl", files)
        self.assertEqual(["/etc/netobs/netobs.conf"],
                         [line for line in self.query("netobs", "-c") if line])

    def test_they_require_what_they_use(self):
        for name, libraries in LIBRARIES.items():
            sonames = {line.split(".so")[0]
                       for line in self.query(name, "--requires") if ".so" in line}
            self.assertLessEqual(sonames, libraries | OWN, name)
            self.assertLessEqual(libraries - {"libcrypto", "libelf", "libz", "libglib-2.0",
                                              "libtinfo"},
                                 sonames, name)
        self.assertIn("libnetobs.so.0.2(NETOBS_0.2)(64bit)", self.query("netobsctl", "--requires"))
        for name in NAMES - {"libnetobs"}:
            needed = "netobsctl" if name in WITH_COMMAND else "libnetobs"
            self.assertTrue(any(re.match(rf"{needed}(\(\S+\))? = ", line)
                                for line in self.query(name, "--requires")), name)
        for name in NAMES - {"libnetobs", "netobs", "libnetobs-devel"}:
            self.assertFalse([line for line in self.query(name, "--provides") if ".so" in line])

    def test_from_installation_to_removal(self):
        root = chroot.Chroot(chroot.own_suite(), "rpm", "systemd", "libbpf1", "libpcap0.8",
                             "libmicrohttpd12", "libncursesw6", "libssl3")
        self.addCleanup(root.remove)
        Path(root.file("etc/ld.so.conf.d/lib64.conf")).write_text("/usr/lib64\n")
        before = root.find("*netobs*")
        names = "libnetobs", "netobsctl", "netobs"
        for name in names:
            shutil.copy(self.packages[name], root.file(f"{name}.rpm"))
        rpm = ["rpm", "--dbpath", "/rpmdb"]
        root.run(*rpm, "-i", "--nodeps", *(f"/{name}.rpm" for name in names))
        root.run("netobsctl", "config", "check")
        self.assertIn("netobs:", Path(root.file("etc/passwd")).read_text())
        self.assertTrue(os.path.isdir(root.file("var/log/netobs")))
        root.run(*rpm, "-e", "--nodeps", *reversed(names))
        for name in names:
            os.unlink(root.file(f"{name}.rpm"))
        state = ["/var/lib/netobs", "/var/log/netobs", "/run/netobs"]
        self.assertLessEqual(set(root.find("*netobs*")), {*before, *state})


if __name__ == "__main__":
    chroot.main()
