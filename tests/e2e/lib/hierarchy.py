# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
"""Control groups that a test makes."""

import contextlib
import os
import shutil
import tempfile

from lib import lab


class Hierarchy:
    """Control groups, of version 2, or of version 1 where its controller memory is in use."""

    def __init__(self, test, kind, options):
        self.directory, self.made = tempfile.mkdtemp(prefix="nobs-cgroup-"), []
        test.addCleanup(shutil.rmtree, self.directory)
        lab.run("mount", "-t", kind, *options, "none", self.directory)
        test.addCleanup(lab.run, "umount", self.directory)
        test.addCleanup(self.remove)

    def add(self, path, pid):
        """A process to a group, which is made."""
        directory = self.directory
        for part in path.split("/"):
            directory = os.path.join(directory, part)
            if not os.path.exists(directory):
                os.mkdir(directory)
                self.made.append(directory)
        lab.write(f"{directory}/cgroup.procs", str(pid))

    def remove(self):
        for directory in reversed(self.made):
            lab.wait_for(lambda one=directory: self.is_removed(one), "an empty group")

    @staticmethod
    def is_removed(directory):
        with contextlib.suppress(OSError):
            os.rmdir(directory)
        return not os.path.exists(directory)
