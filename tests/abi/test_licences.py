#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
"""Each file has a licence and an owner, in itself or in REUSE.toml."""

import fnmatch
import pathlib
import subprocess
import tomllib
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
LICENCE, OWNER = "SPDX-License-Identifier", "SPDX-FileCopyrightText"


def annotations():
    """[(patterns, licence)]; only the last entry that matches a file counts."""
    tables = tomllib.loads((ROOT / "REUSE.toml").read_text())["annotations"]
    return [(table["path"] if isinstance(table["path"], list) else [table["path"]],
             table) for table in tables]


def is_match(name, pattern):
    if "/" not in pattern and "**" not in pattern and "/" in name:
        return False
    return fnmatch.fnmatchcase(name, pattern)


class Licences(unittest.TestCase):
    def files(self):
        done = subprocess.run(["git", "-C", ROOT, "ls-files", "-z"],
                              capture_output=True, text=True)
        if done.returncode:
            return [str(path.relative_to(ROOT)) for folder in ("src", "include", "man")
                    for path in (ROOT / folder).rglob("*") if path.is_file()]
        return [name for name in done.stdout.split("\0") if name]

    def test_each_file_has_both(self):
        for name in self.files():
            if name.startswith("LICENSES/") or not (ROOT / name).is_file():
                continue
            said = {}
            for patterns, table in annotations():
                if any(is_match(name, pattern) for pattern in patterns):
                    said = table
            has_licence = LICENCE in (ROOT / name).read_bytes()[:4096].decode(errors="replace")
            self.assertTrue(has_licence or LICENCE in said, f"{name}: no licence")
            self.assertIn(OWNER, said, f"{name}: no owner")


if __name__ == "__main__":
    unittest.main(verbosity=2)
