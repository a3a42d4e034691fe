# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
"""
What the programs cost the kernel's verifier, and the stack of their chains of calls, against
what is written down in baseline.txt: no figure may grow by more than a fifth without a new
baseline, no chain may come near what the verifier refuses, and no program that a kernel has
loaded may be refused by it.
"""

import os
import re
from dataclasses import dataclass

import stack

BASELINE = os.path.join(os.path.dirname(os.path.abspath(__file__)),
                        "baseline.txt")
HEADER = """\
# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
# Of each object/program, by kernel and clang: instructions walked / bytes of stack in a chain of calls.
# `./dev vm --update-baseline` writes this file.
"""
GROWTH = 1.2
# Bytes of stack in a chain of calls, of 512. Other compilers and kernels count a little more.
LIMIT = 416
# A frame may take another step of what frames are rounded up to, or two.
STEPS = 2 * stack.ROUNDED


@dataclass(frozen=True)
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


def chains_of(objects):
    """{object/program: its deepest chain of calls, [(function, frame), ...]}"""
    return {f"{os.path.basename(path).split('.')[0]}/{chain[0][0]}": chain
            for path in objects for chain in stack.chains_of(path)}


def parse(text, release, clang, chains):
    """The lines of `verifier`, and chains_of() the same objects."""
    costs = []
    for line in text.splitlines():
        program, instructions = line.split()
        chain = chains[program.replace("+all/", "/")]
        costs.append(Cost(kernel_of(release), clang, program,
                          int(instructions), stack.chain_bytes(chain)))
    return costs


def read_baseline():
    """A row for each program, a column for each kernel and compiler."""
    with open(BASELINE, encoding="ascii") as file:
        head, *rows = (line.split() for line in file if not line.startswith("#"))
    return [Cost(kernel_of(kernel), int(clang), row[0], *map(int, cell.split("/")))
            for row in rows
            for (kernel, clang), cell in zip((name.split("/") for name in head), row[1:])
            if cell != "-"]


def write_baseline(costs):
    """@costs of what was loaded, and the file's costs of other kernels and compilers."""
    known = {(cost.kernel, cost.clang) for cost in costs}
    costs = [cost for cost in read_baseline() if (cost.kernel, cost.clang) not in known] + \
            [cost for cost in costs if cost.instructions]
    columns = sorted({(cost.kernel, cost.clang) for cost in costs})
    cells = {(cost.program, cost.kernel, cost.clang): f"{cost.instructions}/{cost.stack}"
             for cost in costs}
    rows = [("", [f"{major}.{minor}/{clang}" for (major, minor), clang in columns])]
    rows += [(program, [cells.get((program, *column), "-") for column in columns])
             for program in sorted({cost.program for cost in costs})]
    with open(BASELINE, "w", encoding="ascii") as file:
        file.write(HEADER)
        for program, row in rows:
            file.write(" ".join([f"{program:<30}", *(f"{cell:>10}" for cell in row)]) + "\n")


def like(baseline, program, **of):
    """The costs of @program that are like @of, as far as there are any."""
    same = [known for known in baseline if known.program == program]
    for key, value in of.items():
        same = [known for known in same if getattr(known, key) == value] or same
    return same


def jumps(costs, baseline):
    """
    Where too many instructions are walked, in words: against the costs with the same kernel and
    compiler. What is not listed may take as much as the costliest that is.
    """
    found = []
    for cost in costs:
        same = like(baseline, cost.program, kernel=cost.kernel, clang=cost.clang)
        most = int(GROWTH * max((known.instructions for known in same), default=0))
        if cost.instructions > most:
            found.append(f"{cost.program}, clang {cost.clang}: {cost.instructions} "
                         f"instructions; the baseline allows {most}")
    return found


def deep(chains, clang, baseline):
    """Which chains take too much stack, in words: against those of the same compiler."""
    found = []
    for program, chain in chains.items():
        depth = stack.chain_bytes(chain)
        known = [cost.stack for cost in like(baseline, program, clang=clang)]
        most = min(LIMIT, max(int(GROWTH * max(known)), max(known) + STEPS)
                   if known else LIMIT)
        if depth > most:
            found.append(f"{program}, clang {clang}: {depth} bytes of stack, in "
                         f"{stack.words(chain)}; allowed are {most}")
    return found


def refused(costs, baseline):
    """The programs of the baseline that the same kernel has not loaded, in words."""
    loaded = {(cost.kernel, cost.clang, cost.program) for cost in costs}
    here = {cost[:2] for cost in loaded}
    return [f"{known.program}: the kernel refuses it, and did not before"
            for known in baseline if (known.kernel, known.clang) in here and
            (known.kernel, known.clang, known.program) not in loaded]


def wrong(costs, chains, clang):
    """Whatever is beyond the baseline, in words."""
    baseline = read_baseline()
    return jumps(costs, baseline) + refused(costs, baseline) + deep(chains, clang, baseline)
