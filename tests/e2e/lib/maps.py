# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
"""What netobsctl map shows of a router with NAT, and a service there that knows it."""

import json
import re

from lib import lab
from lib import nat
from lib import observer
from lib.service import end_service, launch


def faces_of(record):
    """(original before translation, after it)"""
    return nat.tuple_of(record), nat.other_of(record, "Xlat")


def mapped(text):
    return [json.loads(line) for line in text.splitlines()]


def entries(router):
    """(original before translation, after it, zone) of all entries that translate."""
    found = set()
    for family in "ipv4", "ipv6":
        for line in router.run("conntrack", "-L", "-o", "extended", "-f", family).splitlines():
            found |= set(translated(line))
    return found


def translated(line):
    if not (" src=" in line and line.split()[2] in nat.NUMBERS):
        return
    original, reply, _ = nat.read_entry(line)
    zone = re.search(r"zone(?:-orig)?=(\d+)", line)
    if original != reply.back():
        yield original, reply.back(), int(zone.group(1)) if zone else 0


class MapTest(nat.RandomNatTest):
    """A service of the router may be started, with its socket and records in files."""

    def setUp(self):
        super().setUp()
        self.socket, self.records = self.lab.path("control.sock"), self.lab.path("records")
        self.translators = [self.router]

    def map(self, *arguments, check=True, release=False):
        result = observer.run("map", *arguments, ns=self.router, code=None,
                              program=observer.netobsctl(release))
        if check:
            self.assertEqual(0, result.returncode, result.stderr)
            self.assertEqual("", result.stderr)
        return result

    service_log = None

    def start_service(self, *more, has_nat="yes", within=(), capture=(), flows=(),
                      records="mapping"):
        self.service = launch(self, self.router, (
            "[capture]", f"nat = {has_nat}", *capture, "[flows]", "interval = 500ms", *flows, "[control]",
            f"path = {self.socket}", '[sink "a"]', f"output = json:{self.records}",
            f"records = {records}", *more), within, stderr=self.service_log)

    def stop_service(self, kind="mapping"):
        """@return its records of that type"""
        end_service(self, self.service)
        return [one for one in lab.json_lines(self.records) if one.get("type", "flow") == kind]

    def of_service(self, release=False):
        return mapped(self.map("--once", "-o", "json", "-s", self.socket, release=release).stdout)

    def wanted(self):
        """{(original before translation, after it)} of all entries that translate."""
        return {(before, after) for one in self.translators for before, after, _ in entries(one)}

    def check_map(self, *arguments):
        """It has the entries of the kernel, once each; @return its lines."""
        wanted = self.wanted()
        lines = mapped(self.map("--once", "-o", "json", *arguments).stdout)
        active = [faces_of(one) for one in lines if one["State"] == "active"]
        self.assertEqual(wanted, set(active))
        self.assertEqual(len(wanted), len(active))
        return lines

    def check_lookup(self, before, after, *arguments):
        """From either side, of either direction."""
        for face in before, after, before.back(), after.back():
            query = nat.query_of(face).replace(">", " > ")
            found = mapped(self.map("-o", "json", *arguments, "lookup", query).stdout)
            self.assertEqual([(before, after)], [faces_of(one) for one in found], query)
            self.assertEqual("active", found[0]["State"])
