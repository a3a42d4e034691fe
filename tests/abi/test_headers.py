#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
# Needs: g++
"""Each public header stands alone, in strict C and C++, without a warning."""

import os
import shutil
import subprocess
import unittest
from pathlib import Path

INCLUDE = Path(os.environ["NETOBS_SOURCE"]) / "include"
STRICT = ["-pedantic-errors", "-Wall", "-Wextra", "-Werror", "-fsyntax-only"]
DIALECTS = [("c", "c11"), ("c", "c17"), ("c++", "c++11"), ("c++", "c++17")]
COMPILERS = {"c": ["gcc", "clang"], "c++": ["g++", "clang++"]}

# What a caller writes; a header's macros are only seen when they are used.
USE = """
#include <netobs/netobs.h>
int use(struct netobs **ret_ctx);
int use(struct netobs **ret_ctx)
{
	NETOBS_OPTS(opts);
	opts.interval_ms = 1000;
	return netobs_new(&opts, ret_ctx);
}
"""


# A record's direction is no option.
ASSIGN = """
#include <netobs/netobs.h>
void assign(struct netobs_opts *opts);
void assign(struct netobs_opts *opts)
{{
	opts->direction = {direction};
}}
"""


class Headers(unittest.TestCase):
    def results(self, language, dialect, code, what):
        """What each compiler says, one after the other."""
        for compiler in COMPILERS[language]:
            self.assertTrue(shutil.which(compiler), f"{compiler} is missing")
            with self.subTest(header=what, compiler=compiler, dialect=dialect):
                yield subprocess.run(
                    [compiler, "-x", language, f"-std={dialect}", *STRICT,
                     f"-I{INCLUDE}", "-"], input=code, text=True,
                    capture_output=True)

    def compile(self, language, dialect, code, what):
        for done in self.results(language, dialect, code, what):
            self.assertEqual(0, done.returncode, done.stderr)

    def test_each_header_alone_and_twice(self):
        headers = sorted((INCLUDE / "netobs").glob("*.h"))
        self.assertTrue(headers)
        for header in headers:
            code = f"#include <netobs/{header.name}>\n" * 2
            for language, dialect in DIALECTS:
                self.compile(language, dialect, code, header.name)

    def test_options_macro(self):
        for language, dialect in DIALECTS:
            self.compile(language, dialect, USE, "NETOBS_OPTS")

    def test_directions_of_records_are_no_options(self):
        for language, dialect in DIALECTS:
            self.compile(language, dialect,
                         ASSIGN.format(direction="NETOBS_DIRECTION_EGRESS"), "option")
            for direction in "NETOBS_INGRESS", "NETOBS_EGRESS":
                code = ASSIGN.format(direction=direction)
                for done in self.results(language, dialect, code, direction):
                    self.assertNotEqual(0, done.returncode)
                    self.assertIn("netobs_direction", done.stderr)


if __name__ == "__main__":
    unittest.main(verbosity=2)
