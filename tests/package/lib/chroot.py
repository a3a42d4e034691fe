# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
"""A clean Debian in a directory."""

import os
import shutil
import subprocess
import sys
import unittest

# Mounts are those of a namespace that ends with the command.
ENTER = """
root=$1; shift
mount --bind /sys "$root/sys"; mount -t proc proc "$root/proc"
exec "$@"
"""
ENVIRONMENT = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/root", "LC_ALL": "C.UTF-8",
               "DEBIAN_FRONTEND": "noninteractive"}


def run(*command, **options):
    """The output of a command, which may be nothing but successful."""
    done = subprocess.run([str(part) for part in command], text=True, check=False,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, **options)
    if done.returncode:
        raise AssertionError(f"{' '.join(map(str, command))}:\n{done.stdout[-20000:]}")
    return done.stdout


class Chroot:
    def __init__(self, path, *packages):
        self.path = path
        run("mmdebstrap", "--quiet", "--mode=root", "--variant=minbase",
            "--dpkgopt=force-unsafe-io",
            f"--include={','.join(packages)}", "bookworm", path)
        for name in "etc/resolv.conf", "etc/hosts":
            shutil.copy(f"/{name}", self.file(name))
        # No service starts in there.
        with open(self.file("usr/sbin/policy-rc.d"), "w", encoding="ascii") as file:
            file.write("#!/bin/sh\nexit 101\n")
        os.chmod(self.file("usr/sbin/policy-rc.d"), 0o755)

    def file(self, name):
        return os.path.join(self.path, name)

    def run_outside(self, *command):
        """A command of this system, while the root has /proc and /sys."""
        return run("unshare", "--mount", "sh", "-ec", ENTER, "sh", self.path, *command)

    def run(self, *command):
        return self.run_outside("env", "-i", *(f"{name}={value}" for name, value
                                               in ENVIRONMENT.items()),
                                "chroot", self.path, *command)

    def find(self, *tests):
        """Paths by their name, or by other tests of find(1)."""
        if len(tests) == 1:
            tests = ("-name", *tests)
        return run("chroot", self.path, "find", "/", "-xdev", *tests).split()

    def remove(self):
        shutil.rmtree(self.path)


def main():
    if os.geteuid():
        sys.exit("these tests install packages in a directory: run them as root")
    unittest.main(module="__main__", verbosity=2)
