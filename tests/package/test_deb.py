#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
# Needs: git mmdebstrap
"""Debian packages, of each release: built twice with the same bytes and without a warning in a
clean Debian, and from installation to purge in another."""

import glob
import hashlib
import os
import shutil
import re
import tempfile
import unittest
from pathlib import Path

from lib import chroot

SOURCE = Path(os.environ["NETOBS_SOURCE"])
# Where the service leaves its programs when it stops; "service" removes them.
WITH_BPFFS = "systemd-tmpfiles --create netobs.conf && exec $0"
WARNING = re.compile(r"^.*(?:warning: .*\[-W|^[EW]: ).*$", re.M) # of compilers, and lintian
STATE = ("var/log/netobs", "var/lib/netobs", "etc/netobs")
COMMAND = ("libnetobs0.2", "netobsctl")
# The package that contained what others have now.
FORMER = """\
Package: netobs
Version: 0.2.0~
Architecture: {arch}
Maintainer: nobody <nobody@localhost>
Description: files that other packages have now
"""


def digests(paths):
    return {os.path.basename(path): hashlib.sha256(Path(path).read_bytes()).hexdigest()
            for path in paths}


class Bookworm(unittest.TestCase):
    release = "bookworm"

    @classmethod
    def setUpClass(cls):
        directory = tempfile.TemporaryDirectory(prefix="netobs-deb-")
        cls.addClassCleanup(directory.cleanup)
        cls.path = directory.name
        cls.builder = chroot.Chroot(cls.release, shared=chroot.tree(cls.release))
        cls.addClassCleanup(cls.builder.remove)
        cls.log = cls.builder.run("./dev", "package", "deb", directory=SOURCE)
        cls.packages = cls.find_packages(SOURCE / "build" / cls.release / "package/deb")

    @staticmethod
    def find_packages(directory):
        return sorted(glob.glob(f"{directory}/*.deb"))

    def test_they_are_reproducible(self):
        self.builder.run("packaging/build.sh", "deb", "/somewhere/else", directory=SOURCE)
        again = self.find_packages(self.builder.file("somewhere/else"))
        self.assertEqual(digests(self.packages), digests(again))

    def make_former(self, root):
        """A package of that name with these files, in /former.deb."""
        tree = Path(self.path, "former")
        for package in self.packages:
            if os.path.basename(package).startswith(("netobs_", "netobsctl_", "netobs-bench_")):
                chroot.run("dpkg-deb", "--extract", package, tree)
        control = tree / "DEBIAN/control"
        control.parent.mkdir()
        control.write_text(FORMER.format(arch=chroot.run("dpkg", "--print-architecture").strip()))
        shutil.rmtree(tree / "usr/share/doc")
        self.assertTrue((tree / "usr/sbin/netobsctl").is_file())
        chroot.run("dpkg-deb", "--build", tree, root.file("former.deb"))

    def check_command_alone(self, root, install):
        """There is no service, and netobsctl names the package that has the benchmarks."""
        root.run("sh", "-c", " ".join([install, *(f"/packages/{name}_*.deb" for name in COMMAND)]))
        self.assertIn("netobsctl ", root.run("netobsctl", "--version"))
        self.assertEqual([], root.find("netobs.service"))
        self.assertFalse(os.path.exists(root.file("etc/netobs")))
        self.assertNotIn("netobs:", Path(root.file("etc/passwd")).read_text())
        with self.assertRaisesRegex(AssertionError, "install the package netobs-bench"):
            root.run("netobsctl", "bench", "-h")
        root.run("apt-get", "purge", "-q", "-y", *COMMAND)
    def test_they_are_built_without_a_warning(self):
        self.assertIn("dh_builddeb", self.log)
        self.assertEqual([], WARNING.findall(self.log))

    def test_from_installation_to_purge(self):
        root = chroot.Chroot(self.release, "iproute2", "iputils-ping", "gcc", "libc6-dev",
                             "pkgconf")
        self.addCleanup(root.remove)
        before = root.find("*netobs*")
        os.mkdir(root.file("packages"))
        for package in self.packages:
            if "-dbgsym_" not in package:
                shutil.copy(package, root.file("packages"))
        root.run("apt-get", "update", "-q")
        install = "apt-get install -q -y --no-install-recommends"
        self.check_command_alone(root, install)
        self.make_former(root)
        root.run("dpkg", "--install", "/former.deb")
        os.unlink(root.file("former.deb"))
        root.run("sh", "-c", f"{install} /packages/*.deb")
        for name in "command", "service", "build", "python":
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
