# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
"""What the tests of packages use of tests/chroot.py."""

import os
import sys
import unittest

sys.path.append(os.path.join(os.environ["NETOBS_SOURCE"], "tests"))
from chroot import Chroot, run, tree  # pylint: disable=unused-import,wrong-import-position
from fetch import own_suite  # pylint: disable=unused-import,wrong-import-position


def main():
    if os.geteuid():
        sys.exit("these tests install packages in a directory: run them as root")
    unittest.main(module="__main__", verbosity=2)
