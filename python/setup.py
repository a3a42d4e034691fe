# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
"""Makes netobs/netobs.cdef of the headers: in the tree those beside it; an sdist has it."""

import os
import pathlib
import sys

from setuptools import setup
from setuptools.command.build_py import build_py
from setuptools.command.sdist import sdist

HERE = pathlib.Path(__file__).resolve().parent
MADE = pathlib.Path("netobs", "netobs.cdef")
sys.path.insert(0, str(HERE))

from declarations import declarations  # noqa: E402 pylint: disable=wrong-import-position


def text():
    """The declarations: of $NETOBS_INCLUDE, the tree, an sdist, or the system's headers."""
    given = os.environ.get("NETOBS_INCLUDE")
    if given:
        return declarations(given)
    if (HERE.parent / "include/netobs/netobs.h").is_file():
        return declarations(HERE.parent / "include")
    if (HERE / MADE).is_file():
        return (HERE / MADE).read_text()
    if pathlib.Path("/usr/include/netobs/netobs.h").is_file():
        return declarations("/usr/include")
    sys.exit("netobs: the headers of libnetobs were not found: pip before 21.3 does not see them in the "
             "source tree. Set NETOBS_INCLUDE to the directory that has netobs/netobs.h.")


class Build(build_py):
    """With the declarations; of an editable package, beside its source."""

    def run(self):
        super().run()
        directory = HERE if getattr(self, "editable_mode", False) else pathlib.Path(self.build_lib)
        (directory / MADE).write_text(text())


class Source(sdist):
    """With the declarations, because the headers are not below this directory."""

    def make_release_tree(self, base_dir, files):
        super().make_release_tree(base_dir, files)
        (pathlib.Path(base_dir) / MADE).write_text(text())


setup(cmdclass={"build_py": Build, "sdist": Source})
