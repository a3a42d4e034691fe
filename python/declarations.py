#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
"""
declarations.py INCLUDE: the headers of libnetobs below that directory, as declarations that cffi
reads. Builds make netobs/netobs.cdef of them, without a compiler: the headers use little of the
preprocessor, and what is not known here is an error.
"""

import pathlib
import re
import sys

COMMENTS = re.compile(r"/\*.*?\*/|//[^\n]*", re.S)
DEFINED = {"NETOBS_API", "NETOBS_UNNAMED"}  # as nothing
NUMBER = re.compile(r"#define NETOBS_\w+ \d+")


def is_taken(condition, macro):
    """Whether lines after #ifdef or #ifndef are C that is read once."""
    if macro != "__cplusplus" and not re.fullmatch(r"NETOBS_\w+_H|NETOBS_API", macro):
        raise ValueError(f"#{condition} {macro}")
    return (macro in DEFINED) == (condition == "ifdef")


def preprocess(header, seen):
    """Lines of C, and of macros that are a number: of headers that it includes first."""
    if header in seen:
        return
    seen.add(header)
    taken = [True]
    for line in COMMENTS.sub("", header.read_text()).replace("\\\n", " ").splitlines():
        line = line.strip()
        word, _, rest = line[1:].partition(" ")
        if not line.startswith("#"):
            if all(taken) and line:
                yield line
        elif word in ("ifdef", "ifndef"):
            taken.append(is_taken(word, rest))
        elif word == "else":
            taken[-1] = not taken[-1]
        elif word == "endif":
            taken.pop()
        elif word == "include":
            if rest.startswith("<netobs/"):
                yield from preprocess(header.parent / rest[8:-1], seen)
        elif word != "define":
            raise ValueError(f"{header}: {line}")
        elif all(taken) and NUMBER.fullmatch(line):
            yield line


def declarations(include):
    """All public headers below that directory."""
    headers = sorted((pathlib.Path(include) / "netobs").glob("*.h"))
    if not headers:
        raise FileNotFoundError(f"{include}/netobs has no headers")
    seen = set()
    text = "".join(f"{line}\n" for header in headers for line in preprocess(header, seen))
    return re.sub(rf"\b(?:{'|'.join(sorted(DEFINED))})\s+", "", text)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__.strip())
    print(declarations(sys.argv[1]), end="")
