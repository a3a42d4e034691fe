#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
# Needs: podman runc busybox-static
# Lock: sockets, it names the owners of short-lived sockets, and lists all sockets of the host.
"""Names of containers that Podman runs, with storage of its own below a directory."""

import contextlib
import glob
import os
import shutil
import subprocess
import tempfile

from lib import lab
from lib import observer

IMAGE = "localhost/nobs/box:1.0"
# Not more than a container of tests has itself.
LIMITS = ("--ulimit", "nofile=1024:1024", "--ulimit", "nproc=1000:1000")


def remove_groups():
    """What Podman leaves in each hierarchy, unless others have containers there."""
    for path in glob.glob("/sys/fs/cgroup/libpod_parent") + glob.glob(
            "/sys/fs/cgroup/*/libpod_parent"):
        with contextlib.suppress(OSError):
            for name in os.listdir(path):
                if os.path.isdir(f"{path}/{name}"):
                    os.rmdir(f"{path}/{name}")
            os.rmdir(path)


class Podman(lab.LabTest):
    def setUp(self):
        super().setUp()
        # Paths of sockets below it are short.
        self.root = tempfile.mkdtemp(prefix="nobs-")
        self.addCleanup(shutil.rmtree, self.root)
        self.addCleanup(remove_groups)
        self.addCleanup(self.podman, "rm", "--all", "--force", "--time", "0")
        self.netns = self.lab.ns("p")
        self.podman("import", self.box(), IMAGE)

    def podman(self, *arguments):
        done = subprocess.run(
            ["podman", "--root", f"{self.root}/var/lib/containers/storage", "--runroot",
             f"{self.root}/run/containers/storage", "--tmpdir", f"{self.root}/tmp",
             "--storage-driver", "vfs", "--cgroup-manager", "cgroupfs", "--runtime", "runc",
             *arguments], capture_output=True, text=True, timeout=120, check=False)
        self.assertEqual(0, done.returncode, (arguments, done.stderr))
        return done.stdout.strip()

    def box(self):
        """An image with a shell."""
        directory = f"{self.root}/box"
        os.makedirs(f"{directory}/bin")
        shutil.copy("/bin/busybox", f"{directory}/bin")
        for name in "sh", "nc", "sleep":
            os.symlink("busybox", f"{directory}/bin/{name}")
        subprocess.run(["tar", "-C", directory, "-cf", f"{directory}.tar", "."], check=True)
        return f"{directory}.tar"

    def run_box(self, name, script, *options):
        """@return its ID"""
        return self.podman("run", "--detach", "--name", name, *options, *LIMITS, "--network",
                           f"ns:/run/netns/{self.netns.name}", IMAGE, "/bin/sh", "-c", script)

    def test_containers_have_their_names(self):
        """Also one that Podman has removed before its flow is reported."""
        watch = observer.Observer(
            self.lab, self.netns, "--container-names", "--container-root", self.root,
            "--interval", "3", "-i", "lo").wait_attached((self.netns, "lo"))
        expected = {
            self.run_box("box-server", "nc -l -p 7777 | while read line; do :; done"): "box-server",
            self.run_box("box-client", "until (echo a; sleep 1) | nc 127.0.0.1 7777; do :; done",
                         "--rm"): "box-client"}

        def names(records):
            return {record[end + "ContainerId"]: (record.get(end + "ContainerName"),
                                                  record.get(end + "ContainerImage"))
                    for record in records for end in ("Src", "Dst")
                    if end + "ContainerId" in record}

        watch.wait_records(lambda lines: names(lines).keys() >= expected.keys(), "both")
        records = watch.stop().records
        self.assertEqual({one: (name, IMAGE) for one, name in expected.items()}, names(records))


if __name__ == "__main__":
    lab.main()
