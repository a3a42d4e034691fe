#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
# Cost: 300
# Needs: abigail-tools binutils git mandoc
"""
A release: the same commit gives the same archive, the script that comes with it notices each
change of it, and an ABI that breaks the programs of the last release is refused.
"""

import hashlib
import json
import os
import re
import shutil
import subprocess
import tarfile
import tempfile
import unittest
from pathlib import Path

SOURCE = Path(os.environ["NETOBS_SOURCE"])
HEADER = "include/netobs/version.h"
STRUCT = "include/netobs/flow.h"
AUTHOR = ["-c", "user.name=nobody", "-c", "user.email=nobody@localhost"]


def run(*command, **options):
    done = subprocess.run([str(part) for part in command], text=True, check=False,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, **options)
    return done.returncode, done.stdout


class Release(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        directory = tempfile.TemporaryDirectory(prefix="netobs-release-")
        cls.addClassCleanup(directory.cleanup)
        cls.path = Path(directory.name)
        cls.tree = cls.path / "tree"
        cls.git("clone", "--quiet", SOURCE, cls.tree, where=None)
        # Only what is committed is released, and a version that is tagged is in the changelog.
        text = (cls.tree / "CHANGELOG.md").read_text()
        (cls.tree / "CHANGELOG.md").write_text(text.replace(" (unreleased)", ""))
        cls.git("commit", "--quiet", "--allow-empty", "--all", "--message", "release")
        cls.version = re.search(r'NETOBS_VERSION "(.*)"',
                                (cls.tree / HEADER).read_text())[1]
        for tag in cls.git("tag").split():
            cls.git("tag", "--delete", tag)
        cls.git("tag", f"v{cls.version}")
        cls.made = cls.path / "made"
        cls.release(cls.made)

    @classmethod
    def git(cls, *arguments, where="tree"):
        place = ["-C", cls.tree] if where else []
        code, text = run("git", *AUTHOR, *place, *arguments)
        if code:
            raise AssertionError(text)
        return text

    @classmethod
    def release(cls, directory, *options, fails=False):
        code, text = run(cls.tree / "packaging/release.sh", *options, directory)
        if bool(code) != fails:
            raise AssertionError(text)
        return text

    def verify(self, directory, *repository):
        return run(directory / "verify-release.sh", directory, *repository)

    def copy(self):
        directory = Path(tempfile.mkdtemp(dir=self.path))
        shutil.copytree(self.made, directory, dirs_exist_ok=True)
        self.addCleanup(shutil.rmtree, directory)
        return directory

    def archive(self, directory):
        return directory / f"netobs-{self.version}.tar.gz"

    def sign(self, directory):
        """The sums of what is there now."""
        names = sorted(str(path.relative_to(directory)) for path in directory.rglob("*")
                       if path.is_file() and path.name != "SHA256SUMS")
        (directory / "SHA256SUMS").write_text("".join(
            f"{hashlib.sha256((directory / name).read_bytes()).hexdigest()}  {name}\n"
            for name in names))

    def test_it_is_verified(self):
        code, text = self.verify(self.made, self.tree)
        self.assertEqual(0, code, text)
        self.assertIn(f"archive: it has the bytes of v{self.version}", text)
        self.assertIn("There is no release before this one.",
                      (self.made / f"netobs-{self.version}.abi.txt").read_text())

    def test_the_archive_is_complete_and_reproducible(self):
        self.release(self.path / "again", "--source")
        self.assertEqual(self.archive(self.made).read_bytes(),
                         self.archive(self.path / "again").read_bytes())
        with tarfile.open(self.archive(self.made)) as archive:
            names = {name.split("/", 1)[1] for name in archive.getnames()}
        self.assertLessEqual(set(self.git("ls-files").split("\n")) - {""}, names)
        pages = {Path(name).name for name in names if name.startswith("man/pages/")}
        self.assertLess({"netobsctl.8", "netobs.3", "netobs.conf.5"}, pages)
        self.assertEqual({f"{page}.html" for page in pages},
                         set(os.listdir(self.made / "html")))

    def test_a_byte_that_changes_is_noticed(self):
        for path in sorted(self.made.rglob("*")):
            if not path.is_file():
                continue
            with self.subTest(path.name):
                directory = self.copy()
                changed = directory / path.relative_to(self.made)
                data = bytearray(changed.read_bytes())
                data[len(data) // 2] ^= 1
                changed.write_bytes(data)
                # Not by the script that is changed.
                code, text = run(SOURCE / "packaging/verify-release.sh", directory)
                self.assertNotEqual(0, code, text)

    def test_files_that_are_added_or_missing_are_noticed(self):
        directory = self.copy()
        (directory / "more").touch()
        self.assertNotEqual(0, self.verify(directory)[0])
        (directory / "more").unlink()
        self.assertEqual(0, self.verify(directory)[0])
        (directory / "html/netobsctl.8.html").unlink()
        self.assertNotEqual(0, self.verify(directory)[0])

    def test_the_sbom_has_each_file(self):
        directory = self.copy()
        sbom = directory / f"netobs-{self.version}.spdx.json"
        document = json.loads(sbom.read_text())
        self.assertEqual({"SPDX-2.3"}, {document["spdxVersion"]})
        self.assertEqual(set(), {one["fileName"] for one in document["files"]
                                 if not one["licenseConcluded"]})
        ids = [one["SPDXID"] for one in document["files"] + document["packages"]]
        self.assertEqual(len(ids), len(set(ids)))
        for relation in document["relationships"]:
            self.assertIn(relation["relatedSpdxElement"], ids)
        needed = {(one["spdxElementId"], one["relatedSpdxElement"])
                  for one in document["relationships"] if one["relationshipType"] == "DEPENDS_ON"}
        for package, other in ("libnetobs0.2", "libbpf1"), ("netobsctl", "libnetobs0.2"), \
                ("netobs-sink-kafka", "librdkafka1"), ("netobs", "netobsctl"), \
                ("python3-netobs", "python3-cffi"):
            self.assertIn((f"SPDXRef-Package-{package}", f"SPDXRef-Package-{other}"), needed)

        del document["files"][0]
        sbom.write_text(json.dumps(document))
        self.sign(directory)
        code, text = self.verify(directory)
        self.assertNotEqual(0, code)
        self.assertIn("the SBOM is not that of", text)

    def test_an_archive_of_another_commit_is_noticed(self):
        """Also where the sums are of what is there."""
        directory = self.copy()
        archive = self.archive(directory)
        data = bytearray(archive.read_bytes())
        data[4] ^= 1  # its time, which gzip does not look at
        archive.write_bytes(data)
        self.sign(directory)
        self.assertEqual(0, self.verify(directory)[0])
        code, text = self.verify(directory, self.tree)
        self.assertNotEqual(0, code)
        self.assertIn(f"is not that of v{self.version}", text)

    def test_an_abi_that_breaks_programs_is_refused(self):
        path = self.tree / STRUCT
        before = path.read_text()
        self.addCleanup(self.git, "reset", "--quiet", "--hard", f"v{self.version}")
        # At the end, a struct may grow.
        end = re.search(r"\nstruct netobs_flow \{.*?\n(\};\n)", before, re.S).start(1)
        for added, fails in (before[:end] + "\tuint64_t one_more;\n" + before[end:], False), \
                (before.replace("\tint64_t end_ns;", "\tuint64_t one_more;\n\tint64_t end_ns;", 1),
                 True):
            with self.subTest(fails=fails):
                self.assertNotEqual(before, added)
                path.write_text(added)
                self.git("commit", "--quiet", "--all", "--message", "change the ABI")
                text = self.release(self.path / "next", "--abi", fails=fails)
                self.assertEqual(fails, "programs of the last release would break" in text, text)
                self.git("reset", "--quiet", "--hard", f"v{self.version}")

    def test_what_is_not_committed_is_not_released(self):
        path = self.tree / HEADER
        before = path.read_text()
        path.write_text(before + "\n")
        self.addCleanup(path.write_text, before)
        self.assertIn("not committed", self.release(self.path / "dirty", "--source", fails=True))


if __name__ == "__main__":
    unittest.main(verbosity=2)
