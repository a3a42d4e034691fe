#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
"""
test_stack.py CLANG-VERSION CLANG FLAGS...: a function of a chain of calls that takes 200 bytes
of stack more is found, and named with the chain and the compiler.
"""

import os
import re
import subprocess
import sys
import tempfile
import unittest

import budget

SOURCES = os.path.join(os.environ["NETOBS_SOURCE"], "src/bpf")
ROOM = "volatile __u64 room[25]; for (int i = 0; i < 25; i++) room[i] = i;"
# Functions of small chains: a program, and one that is called.
MUTATED = (("stub.bpf.c", r"^int netobs_stub\(.*\n{", "stub/netobs_stub"),
           ("capture.bpf.c", r"^int netobs_capt_in\(.*\n{", "capture/netobs_capt_in"))


def compile_text(text, name):
    """Chains of the object, as check.py gets them."""
    with tempfile.TemporaryDirectory() as directory:
        source, target = f"{directory}/{name}", f"{directory}/{name[:-2]}.o"
        with open(source, "w", encoding="utf-8") as file:
            file.write(text)
        subprocess.run([CLANG, *FLAGS, "-c", source, "-o", target], check=True)
        return budget.chains_of([target])


class Stack(unittest.TestCase):
    """Of objects that are compiled here."""

    def test_200_bytes_more_are_found(self):
        baseline = budget.read_baseline()
        for name, beginning, program in MUTATED:
            with open(f"{SOURCES}/{name}", encoding="utf-8") as file:
                text = file.read()
            mutated, n = re.subn(beginning, r"\g<0>" + ROOM, text, flags=re.M)
            self.assertEqual(n, 1)
            self.assertEqual(budget.deep(compile_text(text, name), VERSION, baseline), [])
            found = budget.deep(compile_text(mutated, name), VERSION, baseline)
            self.assertEqual(len(found), 1, found)
            self.assertRegex(found[0], rf"^{program}, clang {VERSION}: \d+ bytes of stack, in "
                             rf"{program.split('/')[1]} 2\d\d")
            print(found[0])

    def test_a_chain_near_the_limit_is_found_without_a_baseline(self):
        chains = {"a/b": [("b", 400), ("c", 30)]}
        self.assertEqual(budget.deep(chains, VERSION, []), [
            f"a/b, clang {VERSION}: 448 bytes of stack, in b 400 > c 30; "
            f"allowed are {budget.LIMIT}"])


if __name__ == "__main__":
    VERSION, CLANG, FLAGS = int(sys.argv[1]), sys.argv[2], sys.argv[3:]
    unittest.main(argv=sys.argv[:1])
