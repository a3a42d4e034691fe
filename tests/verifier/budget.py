# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
"""
What the programs cost the kernel's verifier, against what is written down in
baseline.txt: no figure may grow by more than a fifth without a new baseline, and no
program that a kernel has loaded may be refused by it.
"""

import os
import re
from dataclasses import dataclass

BASELINE = os.path.join(os.path.dirname(os.path.abspath(__file__)),
                        "baseline.txt")
HEADER = """\
# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
# kernel, clang, object/program, instructions walked, bytes of stack
# `./dev vm --update-baseline` writes this file.
"""
GROWTH = 1.2


@dataclass(frozen=True, order=True)
class Cost:
    """What a program costs one kernel's verifier."""

    kernel: tuple
    clang: int
    program: str
    instructions: int
    stack: int

    def line(self):
        kernel = ".".join(map(str, self.kernel))
        return (f"{kernel:<6} {self.clang:<3} {self.program:<24} "
                f"{self.instructions:>7} {self.stack:>4}\n")


def kernel_of(release):
    """6.1.0-50-amd64 -> (6, 1)"""
    return tuple(int(part) for part in
                 re.match(r"(\d+)\.(\d+)", release).groups())


def parse(text, release, clang):
    """The lines of `verifier`."""
    costs = []
    for line in text.splitlines():
        program, instructions, stack = line.split()
        costs.append(Cost(kernel_of(release), clang, program,
                          int(instructions), int(stack)))
    return costs


def read_baseline():
    costs = []
    with open(BASELINE, encoding="ascii") as file:
        for line in file:
            if not line.startswith("#"):
                kernel, clang, program, instructions, stack = line.split()
                costs.append(Cost(kernel_of(kernel), int(clang), program,
                                  int(instructions), int(stack)))
    return costs


def write_baseline(costs):
    """@costs, and the file's costs of other kernels and compilers."""
    known = {(cost.kernel, cost.clang) for cost in costs}
    kept = [cost for cost in read_baseline()
            if (cost.kernel, cost.clang) not in known]
    with open(BASELINE, "w", encoding="ascii") as file:
        file.write(HEADER)
        file.writelines(cost.line() for cost in sorted([*kept, *costs]))


def allowed(cost, baseline):
    """
    The limit of (instructions, stack): by the costs with the same kernel and compiler.
    A program that is not listed may take as much as the costliest one.
    """
    same = [known for known in baseline if known.program == cost.program]
    for key in ("kernel", "clang"):
        exact = [known for known in same
                 if getattr(known, key) == getattr(cost, key)]
        same = exact or same
    return tuple(int(GROWTH * max((getattr(known, what) for known in same),
                                  default=0))
                 for what in ("instructions", "stack"))


def jumps(costs, baseline):
    """What grew too much, in words."""
    found = []
    for cost in costs:
        instructions, stack = allowed(cost, baseline)
        if cost.instructions > instructions or cost.stack > stack:
            found.append(f"{cost.program}: {cost.instructions} instructions, "
                         f"{cost.stack} bytes of stack; the baseline allows "
                         f"{instructions} and {stack}")
    return found


def refused(costs, baseline):
    """The programs of the baseline that the same kernel has not loaded, in words."""
    loaded = {(cost.kernel, cost.clang, cost.program) for cost in costs}
    here = {cost[:2] for cost in loaded}
    return [f"{known.program}: the kernel refuses it, and did not before"
            for known in baseline if (known.kernel, known.clang) in here and
            (known.kernel, known.clang, known.program) not in loaded]
