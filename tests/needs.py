#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
"""
ctest --show-only=json-v1 ... | needs.py: the Debian packages that these tests need
besides those of the build. A script and each module of lib have a line "# Needs:"
with those of the programs and modules that they use themselves.
"""

import functools
import json
import pathlib
import re
import subprocess
import sys

TESTS = pathlib.Path(__file__).resolve().parent
E2E = TESTS / "e2e"
sys.path.append(str(TESTS / "vm"))
from job import NOT_HERE  # pylint: disable=wrong-import-position

OF_LABEL = {
    "unit": {"openssl", "gzip", "zstd"},
    "bpf": {"iproute2"},
    "vm": {"qemu-system-x86", "busybox-static", "kmod", "debian-archive-keyring"},
}


def needs(script, visited):
    """The packages of a script and of all modules that it imports from lib."""
    if script in visited or not script.exists():
        return set()
    visited.add(script)
    text = script.read_text(encoding="utf-8")
    found = set(" ".join(re.findall(r"^# Needs: (.*)$", text, re.M)).split())
    imports = re.findall(r"^from lib import (\w+)|^from lib\.(\w+) import", text, re.M)
    for module in ("".join(names) for names in imports):
        found |= needs(E2E / "lib" / f"{module}.py", visited)
    return found


@functools.cache
def of_compilers():
    return set(subprocess.run([TESTS / "verifier/compilers.py", "--ends", "--packages"], check=True,
                              text=True, stdout=subprocess.PIPE).stdout.split())


def test_needs(test):
    labels = {label for one in test["properties"] if one["name"] == "LABELS"
              for label in one["value"]}
    found = set().union(*(OF_LABEL.get(label, set()) for label in labels))
    if labels & {"vm"} or test["name"] == "bpf.compilers":
        found |= of_compilers()
    scripts = [TESTS / test["command"][-1]]
    if "vm" in labels:  # a guest runs the tests with the programs of its host
        scripts = [path for path in E2E.glob("test_*.py")
                   if not re.match(NOT_HERE, "e2e." + path.stem.removeprefix("test_"))]
    for script in scripts:
        if script.suffix in (".py", ".sh"):
            found |= needs(script, set())
    return found


for package in sorted(set().union(*map(test_needs, json.load(sys.stdin)["tests"]))):
    print(package)
