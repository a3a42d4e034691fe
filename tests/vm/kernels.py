# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
"""The kernels of the matrix, and where unpacked ones are kept."""

import os
from dataclasses import dataclass

# Name, and the Debian suite that has it.
SUITES = {"5.10": "bullseye", "6.1": "bookworm", "6.12": "trixie",
          "newest": "sid"}
# Its guest has a root of its own. Functions can be traced there since Linux 6.4.
ARM64, ARM64_SUITE = "arm64", "trixie"


@dataclass
class Kernel:
    """A kernel that lies unpacked in a directory, and the root of its guests."""

    name: str
    directory: str
    suite: str
    architecture: str = "amd64"
    root: str = "/"

    @property
    def modules(self):
        return os.path.join(self.directory, "lib/modules")

    @property
    def release(self):
        """What uname -r will say."""
        (release,) = os.listdir(self.modules)
        return release

    @property
    def image(self):
        return os.path.join(self.directory, "vmlinuz")


def cache_directory():
    home = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return os.path.join(home, "netobs")


def cached(name):
    directory = os.path.join(cache_directory(), "kernels", name)
    if name == ARM64:
        return Kernel(name, directory, ARM64_SUITE, "arm64",
                      os.path.join(cache_directory(), "arm64"))
    return Kernel(name, directory, SUITES[name])
