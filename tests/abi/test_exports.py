#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
# Needs: binutils
"""The ABI is what the headers declare, the map lists and the library exports."""

import os
import re
import subprocess
import unittest
from pathlib import Path

SOURCE = Path(os.environ["NETOBS_SOURCE"])
RELEASE = Path(os.environ["NETOBS_RELEASE"])


def declared():
    """Names of all NETOBS_API functions of the public headers."""
    names = set()
    for header in (SOURCE / "include/netobs").glob("*.h"):
        text = re.sub(r"/\*.*?\*/", "", header.read_text(), flags=re.S)
        names.update(re.findall(r"^NETOBS_API\s[^;(]*?(\w+)\(", text, re.M))
    return names


def mapped():
    """Symbol -> version node, of the version script."""
    text = (SOURCE / "packaging/libnetobs.map").read_text()
    text = re.sub(r"/\*.*?\*/", "", text, flags=re.S)
    symbols = {}
    for node, body in re.findall(r"(NETOBS_[\d.]+)\s*{(.*?)}", text, re.S):
        for name in body.split("local:")[0].replace("global:", "").split(";"):
            if name.strip():
                symbols[name.strip()] = node
    return symbols


def dynamic_symbols(path, *options):
    out = subprocess.run(["nm", "-D", *options, str(path)], check=True,
                         capture_output=True, text=True).stdout
    return [line.split()[-1] for line in out.splitlines()]


class Exports(unittest.TestCase):
    def test_map_lists_what_headers_declare(self):
        self.assertTrue(declared())
        self.assertEqual(declared(), set(mapped()))

    def test_library_exports_the_map(self):
        exported = {}
        for symbol in dynamic_symbols(RELEASE / "libnetobs.so", "--defined-only"):
            name, _, node = symbol.partition("@@")
            if name != node and node:
                exported[name] = node
            elif not name.startswith("NETOBS_"):
                self.fail(f"{name} is exported without a version")
        self.assertEqual(mapped(), exported)

    def test_command_uses_the_public_api_alone(self):
        undefined = dynamic_symbols(RELEASE / "netobsctl", "--undefined-only")
        used = {symbol.partition("@")[0] for symbol in undefined}
        ours = {name for name in used if name.startswith("netobs_")}
        self.assertTrue(ours)
        self.assertLessEqual(ours, set(mapped()))
        foreign = {name for name in used
                   if re.match(r"(bpf_|btf_|libbpf_|pcap_|elf_|gelf_)", name)}
        self.assertEqual(set(), foreign)


if __name__ == "__main__":
    unittest.main(verbosity=2)
