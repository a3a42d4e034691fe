#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
"""The README and docs/ name tests, files and numbers that exist."""

import fnmatch
import os
import re
import shlex
import unittest
from pathlib import Path

SOURCE = Path(os.environ["NETOBS_SOURCE"])
README = (SOURCE / "README.md").read_text()
DOCS = SOURCE / "docs"


def tests():
    """Their names in ctest, as cmake/NetobsTest.cmake makes them of paths, and those that it has itself."""
    yield from re.findall(r"netobs_test\((bpf\.\w+) ",
                          (SOURCE / "cmake/NetobsTest.cmake").read_text())
    for path in (SOURCE / "tests").rglob("*"):
        match = re.fullmatch(r"(?:test|fuzz)_(\w+)\.(?:c|py|sh)", path.name)
        if match:
            label, *folders = path.relative_to(SOURCE / "tests").parts[:-1]
            part = folders[-1] if label == "sinks" else folders[0] if folders else ""
            named = label == "sinks" or part in {"cli", "service", "bench"}
            yield f"{label}.{part + '_' if named else ''}{match[1]}"


def selects(pattern, name):
    """As ./dev test does: a label, or else a part of names."""
    return name.startswith("package.") if pattern == "package" else re.search(pattern, name)


def rows(text):
    """The cells of each line of its tables, without heads."""
    for line in text.splitlines():
        if line.startswith("| ") and not re.match(r"\| (---|promise)", line):
            yield [cell.strip() for cell in line.strip("| ").split(" | ")]


class Promises(unittest.TestCase):
    def test_each_names_its_tests_and_the_command_that_runs_them(self):
        names = set(tests())
        self.assertLess({"e2e.exact", "unit.sink", "sinks.pbflow_fields", "fuzz.conf"}, names)
        promises = list(rows((DOCS / "promises.md").read_text()))
        self.assertGreater(len(promises), 30)
        for promise, listed, command in promises:
            with self.subTest(promise):
                held_by = set()
                for pattern in re.findall(r"`([^`]+)`", listed):
                    self.assertTrue(fnmatch.filter(names, pattern), pattern)
                    held_by.update(fnmatch.filter(names, pattern))
                dev, test, *patterns = shlex.split(command.strip("`"))
                self.assertEqual(("./dev", "test"), (dev, test))
                self.assertEqual(held_by, {name for name in names for one in patterns
                                           if selects(one, name)})


class Security(unittest.TestCase):
    def test_what_holds_names_its_tests(self):
        names = set(tests())
        parts = (SOURCE / "SECURITY.md").read_text().split("\n### ")[1:]
        self.assertGreater(len(parts), 8)
        for part in parts:
            with self.subTest(part.split("\n")[0]):
                holds, rest = part.split("- Holds: ")[1].split("- Does not: ")
                held_by = re.findall(r"`((?:unit|sinks|bpf|fuzz|abi|e2e)\.[\w*]+)`", holds)
                self.assertTrue(held_by)
                self.assertTrue(rest.strip())
                for pattern in held_by:
                    self.assertTrue(fnmatch.filter(names, pattern), pattern)


class Documents(unittest.TestCase):
    def test_links_lead_to_files(self):
        for path in *SOURCE.glob("*.md"), *DOCS.glob("*.md"):
            for link in re.findall(r"\]\((?!https?:)([^)#]+)", path.read_text()):
                with self.subTest(file=path.name, link=link):
                    self.assertTrue((path.parent / link).exists())

    def test_index_lists_each_once(self):
        listed = re.findall(r"\]\(([\w-]+\.md)\)", (DOCS / "README.md").read_text())
        self.assertEqual(sorted(path.name for path in DOCS.glob("*.md")
                                if path.name != "README.md"), sorted(listed))


class Numbers(unittest.TestCase):
    def test_of_the_readme_are_those_that_were_measured(self):
        """The bold ones of its table; ./dev bench report writes docs/performance.md."""
        cells = {number for row in rows((DOCS / "performance.md").read_text()) for cell in row
                 for number in re.findall(r"[\d.,]*\d", cell)}
        table = README.split("| measured |")[1].split("\n\n")[0]
        numbers = re.findall(r"\*\*([\d.,]+)\*\*", table)
        self.assertGreater(len(numbers), 3)
        for number in numbers:
            self.assertIn(number, cells)


if __name__ == "__main__":
    unittest.main(verbosity=2)
