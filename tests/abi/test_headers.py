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
#include <netobs/sink.h>
int use(struct netobs **ret_ctx);
int use(struct netobs **ret_ctx)
{
	NETOBS_OPTS(netobs_opts, opts);
	opts.interval_ms = 1000;
	return netobs_new(&opts, ret_ctx);
}
int sink(struct netobs_sink **ret_sink, void *user);
int sink(struct netobs_sink **ret_sink, void *user)
{
#ifdef __cplusplus
	NETOBS_OPTS(netobs_sink_opts, opts);
	opts.user = user;
#else
	const NETOBS_OPTS(netobs_sink_opts, opts, .user = user, .on_log = NULL);
#endif
	return netobs_sink_open("json:-", &opts, ret_sink);
}
"""


class Headers(unittest.TestCase):
    def compile(self, language, dialect, code, what):
        for compiler in COMPILERS[language]:
            self.assertTrue(shutil.which(compiler), f"{compiler} is missing")
            with self.subTest(header=what, compiler=compiler, dialect=dialect):
                done = subprocess.run(
                    [compiler, "-x", language, f"-std={dialect}", *STRICT,
                     f"-I{INCLUDE}", "-"], input=code, text=True,
                    capture_output=True)
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


if __name__ == "__main__":
    unittest.main(verbosity=2)
