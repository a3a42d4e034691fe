#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
# Needs: git mmdebstrap
"""What test_deb.py tests, in Debian 13."""

import test_deb
from lib import chroot


class Trixie(test_deb.Bookworm):
    release = "trixie"


if __name__ == "__main__":
    chroot.main()
