#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
# Needs: git
"""Each file has a licence and an owner, in itself or in REUSE.toml."""

import pathlib
import subprocess
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "packaging"))

import sbom  # noqa: E402


class Licences(unittest.TestCase):
    def files(self):
        done = subprocess.run(["git", "-C", ROOT, "ls-files", "-z"],
                              capture_output=True, text=True)
        if done.returncode:
            return [str(path.relative_to(ROOT)) for folder in ("src", "include", "man")
                    for path in (ROOT / folder).rglob("*") if path.is_file()]
        return [name for name in done.stdout.split("\0") if name]

    def test_each_file_has_both(self):
        tables = sbom.annotations(ROOT)
        for name in self.files():
            if name.startswith("LICENSES/") or not (ROOT / name).is_file():
                continue
            licence, owner = sbom.rights(ROOT, name, tables)
            self.assertTrue(licence, f"{name}: no licence")
            self.assertTrue(owner, f"{name}: no owner")


if __name__ == "__main__":
    unittest.main(verbosity=2)
