#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
# Needs: build-essential debhelper git lintian mmdebstrap
"""Debian packages: built twice with the same bytes, and in a clean Debian from installation
to purge."""

import glob
import hashlib
import os
import shutil
import tempfile
import unittest
from pathlib import Path

from lib import chroot

SOURCE = Path(os.environ["NETOBS_SOURCE"])
# Where the service leaves its programs when it stops; "service" removes them.
WITH_BPFFS = "mount -t bpf bpf /sys/fs/bpf && systemd-tmpfiles --create netobs.conf && exec $0"
STATE = ("var/log/netobs", "var/lib/netobs", "etc/netobs")


def build(directory):
    chroot.run(SOURCE / "packaging/build.sh", "deb", directory)
    return sorted(glob.glob(f"{directory}/*.deb"))


def digests(paths):
    return {os.path.basename(path): hashlib.sha256(Path(path).read_bytes()).hexdigest()
            for path in paths}


class Deb(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        directory = tempfile.TemporaryDirectory(prefix="netobs-deb-")
        cls.addClassCleanup(directory.cleanup)
        cls.path = directory.name
        cls.packages = build(f"{cls.path}/first")  # lintian is part of it

    def test_they_are_reproducible(self):
        again = build(f"{self.path}/somewhere/else")
        self.assertEqual(digests(self.packages), digests(again))

    def test_from_installation_to_purge(self):
        root = chroot.Chroot(f"{self.path}/root", "iproute2", "iputils-ping", "gcc",
                             "libc6-dev", "pkg-config")
        self.addCleanup(root.remove)
        before = root.find("*netobs*")
        os.mkdir(root.file("packages"))
        for package in self.packages:
            if "-dbgsym_" not in package:
                shutil.copy(package, root.file("packages"))
        root.run("apt-get", "update", "-q")
        root.run("sh", "-c", "apt-get install -q -y --no-install-recommends /packages/*.deb")
        for name in "command", "service", "build":
            with self.subTest(name):
                shutil.copy(SOURCE / "packaging/debian/tests" / name, root.file("packages"))
                out = root.run("sh", "-ec", WITH_BPFFS, f"/packages/{name}")
                print(out, flush=True)
                self.assertEqual(name == "service", "removed programs at 2 hooks" in out)
        for name in STATE:
            self.assertTrue(os.path.isdir(root.file(name)), name)
        shutil.rmtree(root.file("packages"))
        names = root.run("dpkg-query", "-f", "${Package} ", "-W", "*netobs*").split()
        root.run("apt-get", "purge", "-q", "-y", *names)
        self.assertEqual(before, root.find("*netobs*"))
        self.assertEqual([], root.find("-user", "netobs"))


if __name__ == "__main__":
    chroot.main()
