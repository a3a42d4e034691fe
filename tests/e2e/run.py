# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
"""
Runs a test of this folder: run.py FILE [CLASS[.TEST]]... A file has a call of lab.main() only if
there is something to say to it.
"""

import sys

from lib import lab

if __name__ == "__main__":
    del sys.argv[0]
    __file__ = sys.argv[0]
    exec(compile(lab.read(__file__), __file__, "exec")) # pylint: disable=exec-used
    lab.main()
