#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
"""
check.py VERIFIER CLANG-VERSION OBJECT...: this kernel's figures, the stack, the baseline, and
helpers that older kernels lack.
"""

import os
import subprocess
import sys

import budget
import stack


def main(verifier, clang, *objects):
    release = os.uname().release
    text = subprocess.run([verifier, *objects], check=True, text=True,
                          stdout=subprocess.PIPE).stdout
    chains = budget.chains_of(objects)
    costs = budget.parse(text, release, int(clang), chains)
    print("kernel, clang, program, instructions, stack:")
    for cost in costs:
        print(cost.line(), end="")
    found = budget.wrong(costs, chains, int(clang))
    late = [call for path in objects for call in stack.late_calls(path)]
    for program, helper in late:
        print(f"{program} calls {helper}: kernels before Linux 6.10 refuse that")
    if found:
        print(*found, "If it must be: ./dev vm --update-baseline", sep="\n")
    sys.exit(bool(found or late))


if __name__ == "__main__":
    main(*sys.argv[1:])
