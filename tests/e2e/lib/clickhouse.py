# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
# Needs: python3-pip
"""ClickHouse in a process of its own: the chdb-core package from PyPI, got once and kept in the user's
cache directory."""

import contextlib
import json
import os
import subprocess
import sys
import tempfile

from lib import lab

VERSION = "26.9.0"
RUN = """
import sys
sys.path.insert(0, sys.argv[1])
import chdb.session
session = chdb.session.Session(sys.argv[2])
for line in sys.stdin.read().split("\\0"):
    result = session.query(line, "JSONEachRow")
sys.stdout.write(str(result))
"""


def package():
    home = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    target = os.path.join(home, "netobs", f"chdb-core-{VERSION}")
    if not os.path.isdir(target):
        os.makedirs(os.path.dirname(target), exist_ok=True)
        with tempfile.TemporaryDirectory(dir=os.path.dirname(target)) as work:
            lab.run(sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--target",
                    f"{work}/chdb", f"chdb-core=={VERSION}")
            with contextlib.suppress(OSError):  # another run was first
                os.rename(f"{work}/chdb", target)
    return target


def statements(text):
    """Of a file: a semicolon at the end of a line ends each."""
    return [part for part in text.replace(";\n", ";\n\0").split("\0") if part.strip(" \n")]


def query(directory, *queries):
    """Run them in this database, one after the other. @return the rows of the last one"""
    result = subprocess.run([sys.executable, "-c", RUN, package(), directory],
                            input="\0".join(queries), text=True, check=False,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=300)
    if result.returncode:
        raise RuntimeError(result.stderr[-3000:])
    return [json.loads(line) for line in result.stdout.splitlines() if line]
