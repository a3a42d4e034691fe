#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
"""Section 3 of the manual has all that the public headers declare: the prototypes of functions and
callbacks as they are there, members of structs, enumerators."""

import os
import re
import unittest
from pathlib import Path

HEADERS = Path(os.environ["NETOBS_SOURCE"]) / "include/netobs"
PAGES = Path.cwd() / "man"  # tests run in the build directory


def declarations():
    """Of all headers, without comments and lines of the preprocessor."""
    text = "\n".join(path.read_text() for path in sorted(HEADERS.glob("*.h")))
    text = re.sub(r"/\*.*?\*/", " ", text, flags=re.S)
    return re.sub(r"^[ \t]*#(.*\\\n)*.*$", "", text, flags=re.M)


def one_line(declaration):
    """With one space between words and none elsewhere, to compare."""
    return re.sub(r" ?([^\w ]) ?", r"\1", " ".join(declaration.split()))


class Page:
    """As scdoc makes it: its text without markup, and the words that are bold or underlined."""
    def __init__(self, path):
        roff = path.read_text().replace(r"\&", "").replace(r"\-", "-")
        self.text = re.sub(r"\\f.", "", roff)
        self.words = set(re.findall(r"\w+", self.text))
        self.marked = set(re.findall(r"\w+", " ".join(re.findall(r"\\f[BI](.*?)\\fR", roff))))
        self.lines = {one_line(line) for line in self.text.splitlines()}

    def section(self, name):
        return self.text.split(f".SH {name}")[1].split(".SH")[0]


def bodies(kind):
    """(tag, what its braces have) of each struct or enum."""
    return re.findall(rf"^{kind} (netobs_\w+) \{{\n(.*?)^\}};", declarations(), re.S | re.M)


def members(body):
    """Declarations of the members of a struct and of its unnamed structs."""
    body = re.sub(r"NETOBS_UNNAMED \w+ \{|\}\s*;", "", body)
    return [one_line(member) for member in body.split(";") if member.strip()]


def member_names(member):
    callback = re.search(r"\(\*(\w+)\)", member)
    if callback:
        return [callback[1]]
    return [re.search(r"(\w+)(\[\w+\])*$", part)[1] for part in member.split(",")]


class Tables(unittest.TestCase):
    def test_man_runs_tbl(self):
        """It does so for a page with this first line."""
        pages = [path.read_text() for path in PAGES.glob("*.[0-9]")]
        tables = [text for text in pages if "\n.TS" in text]
        self.assertTrue(tables)
        self.assertEqual(tables, [text for text in pages if text.startswith("'\\\" t\n")])


class Manual(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.pages = [Page(path) for path in sorted(PAGES.glob("*.3"))]
        assert cls.pages, f"{PAGES} has no pages: the build needs NETOBS_MAN"

    def pages_of(self, struct):
        pages = [page for page in self.pages if struct in page.words]
        self.assertTrue(pages, f"no page names struct {struct}")
        return pages

    def test_synopses_have_the_prototype_of_each_function(self):
        synopses = " ".join(one_line(page.section("SYNOPSIS")) for page in self.pages)
        functions = re.findall(r"\bNETOBS_API\b([^;]+;)", declarations())
        self.assertGreater(len(functions), 90)
        missing = [function for function in map(one_line, functions)
                   if not re.search(rf"(?<![\w*]){re.escape(function)}", synopses)]
        self.assertEqual([], missing)

    def test_references_lead_to_a_page(self):
        """Of functions by their names, of other pages by theirs."""
        pages = {path.name: Page(path) for path in PAGES.glob("*.[3578]")}
        names = {f"{name}({file[-1]})" for file, page in pages.items()
                 for name in [file[:-2], *re.findall(r"[\w-]+", page.section("NAME"))]}
        for file, page in pages.items():
            with self.subTest(file):
                references = set(re.findall(r"\bnetobs[\w.-]*\(\d\)", page.text))
                self.assertEqual([], sorted(references - names))

    def test_callbacks_have_an_entry_with_their_prototype(self):
        callbacks = [(struct, member) for struct, body in bodies("struct")
                     for member in members(body) if re.search(r"\(\*\w+\)\(", member)]
        self.assertGreater(len(callbacks), 10)
        for struct, callback in callbacks:
            with self.subTest(struct=struct, callback=callback):
                self.assertTrue(any(callback in page.lines for page in self.pages_of(struct)))

    def test_members_are_described_on_a_page_of_their_struct(self):
        structs = bodies("struct")
        self.assertGreater(len(structs), 30)
        for struct, body in structs:
            with self.subTest(struct):
                names = {name for member in members(body) for name in member_names(member)
                         if not name.startswith("reserved")}
                marked = set().union(*(page.marked for page in self.pages_of(struct)))
                self.assertEqual([], sorted(names - marked))

    def test_enumerators_are_named(self):
        enums = bodies("enum")
        self.assertGreater(len(enums), 20)
        words = set().union(*(page.words for page in self.pages))
        for enum, body in enums:
            with self.subTest(enum):
                names = {re.match(r"\w+", part.strip())[0]
                         for part in body.split(",") if part.strip()}
                self.assertEqual([], sorted(names - words))


if __name__ == "__main__":
    unittest.main(verbosity=2)
