# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
"""
The headers of libnetobs as declarations that cffi reads. Packages make them once:

    python3 netobs/headers.py /usr/include > netobs/netobs.cdef
"""

import os
import pathlib
import re
import subprocess
import sys
import tempfile

# What cffi knows by itself.
SYSTEM = ("stddef.h", "stdint.h")


def include_directory():
    """Where <netobs/netobs.h> is: $NETOBS_INCLUDE, or where pkg-config finds it."""
    given = os.environ.get("NETOBS_INCLUDE")
    if given:
        return given
    return subprocess.run(["pkg-config", "--variable=includedir", "libnetobs"],
                          check=True, capture_output=True, text=True).stdout.strip()


def numbers(header):
    """Lines of its macros that are a number."""
    return re.findall(r"^#define NETOBS_\w+ \d+$", header.read_text(), re.M)


def declarations(include):
    """All public headers below that directory, preprocessed."""
    headers = sorted((pathlib.Path(include) / "netobs").glob("*.h"))
    if not headers:
        raise FileNotFoundError(f"{include}/netobs has no headers")
    macros = [line for header in headers for line in numbers(header)]
    with tempfile.TemporaryDirectory() as system:
        for name in SYSTEM:
            (pathlib.Path(system) / name).touch()
        done = subprocess.run(
            [os.environ.get("CC", "cc"), "-E", "-P", "-nostdinc", f"-I{system}",
             f"-I{include}", "-DNETOBS_API=", "-x", "c", "-"], check=True,
            input="".join(f"#include <netobs/{header.name}>\n" for header in headers),
            capture_output=True, text=True)
    return "\n".join([*macros, done.stdout])


if __name__ == "__main__":
    print(declarations(*sys.argv[1:] or [include_directory()]), end="")
