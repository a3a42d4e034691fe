#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
# Needs: golang-go
"""The manifest has only fields of the API's own types, from the Go modules of Kubernetes."""

import os
import subprocess
import tempfile
import unittest
from pathlib import Path

SOURCE = Path(os.environ["NETOBS_SOURCE"])
MANIFEST = SOURCE / "packaging/k8s/netobs.yaml"


class Manifest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        directory = tempfile.TemporaryDirectory(prefix="netobs-k8s-")
        cls.addClassCleanup(directory.cleanup)
        cls.path = Path(directory.name)
        done = subprocess.run(["go", "build", "-o", cls.path / "k8s", "."],
                              cwd=SOURCE / "tests/package/k8s", text=True,
                              capture_output=True, check=False)
        if done.returncode:
            raise AssertionError(done.stderr)

    def check(self, path):
        return subprocess.run([self.path / "k8s", path], text=True, capture_output=True,
                              timeout=60, check=False)

    def test_it_is_accepted(self):
        done = self.check(MANIFEST)
        self.assertEqual(0, done.returncode, done.stderr)
        self.assertEqual(["ConfigMap", "ServiceAccount", "DaemonSet"], done.stdout.split())

    def test_a_wrong_field_is_found(self):
        for right, wrong in ("hostNetwork: true", "hostNetworks: true"), \
                            ("periodSeconds: 30", "periodSeconds: soon"):
            path = self.path / "wrong.yaml"
            text = MANIFEST.read_text()
            self.assertIn(right, text)
            path.write_text(text.replace(right, wrong))
            self.assertNotEqual(0, self.check(path).returncode, wrong)


if __name__ == "__main__":
    unittest.main(verbosity=2)
