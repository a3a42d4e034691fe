#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
"""IPFIX in files: full disks, files that rotate, and what crashes leave of them."""

import collections
import os

from lib import ipfix
from lib import ipfix_lab
from lib import lab
from lib.ipfix_lab import numbers


class Files(ipfix_lab.IpfixTest):
    def files(self, where=None):
        """What is in the files, by their names; each is whole and stands alone."""
        where = where or self.lab.dir
        found = {}
        for name in sorted(os.listdir(where)):
            if not name.startswith("flows"):
                continue
            found[name] = numbers(ipfix.read_file(os.path.join(where, name)))
        return found

    def test_files_that_rotate_have_all_and_stand_alone(self):
        path = self.lab.path("flows.ipfix")
        self.feed(f"ipfix:file:{path}?rotate.bytes=64K", "--records", 10000)
        self.end()
        files = self.files()
        self.assertGreater(len(files), 5)
        for name in files:
            self.assertRegex(name, r"^flows-\d{8}T\d{6}Z(_\d{3})?\.ipfix$")
            self.assertLessEqual(os.path.getsize(self.lab.path(name)), 64 << 10)
        self.assertEqual(collections.Counter(range(10000)),
                         sum(files.values(), collections.Counter()))

    def test_restart_appends_behind_the_last_whole_message(self):
        path = self.lab.path("plain.ipfix")
        self.feed(f"ipfix:file:{path}", "--records", 1000)
        self.end()
        self.assertEqual(0o640, os.stat(path).st_mode & 0o777)
        with open(path, "rb+") as file:
            size = file.seek(0, os.SEEK_END)
            file.write(b"\0\x0a\1\0half a message")
        self.feed(f"ipfix:file:{path}", "--records", 500)
        self.end()
        with open(path, "rb") as file:
            data = file.read()
        found = collections.Counter()
        for part in (data[:size], data[size:]):
            session = ipfix.Session()
            for message in ipfix.split(part):
                found += ipfix_lab.numbers(session.follow(session.read(message)))
        self.assertEqual(1000, len(found))
        self.assertEqual(1500, sum(found.values()))

    def test_file_that_is_damaged_in_the_middle_is_left_alone(self):
        path = self.lab.path("plain.ipfix")
        self.feed(f"ipfix:file:{path}", "--records", 5000)
        self.end()
        with open(path, "rb+") as file:
            second = int.from_bytes(file.read(4)[2:], "big")
            file.seek(second)
            file.write(b"\xff")
        size = os.path.getsize(path)
        self.feed(f"ipfix:file:{path}", "--records", 1)
        self.assertNotEqual(0, self.process.wait(lab.PATIENCE_S))
        self.assertEqual(size, os.path.getsize(path))
        self.assert_once("something else")

    def test_disk_that_is_full_costs_nothing(self):
        for options in ("", "?rotate.bytes=64K"):
            with self.subTest(options):
                self.check_full_disk(options)

    def check_full_disk(self, options):
        where = self.lab.small_disk(self.lab.path(f"disk{len(options)}"), "256k")
        self.feed(f"ipfix:file:{where}/flows.ipfix{options}", "--records", 10000)
        lab.wait_for(self.log, "a word about it")
        lab.run("mount", "-o", "remount,size=64m", where)
        self.end()
        self.assertEqual(collections.Counter(range(10000)),
                         sum(self.files(where).values(), collections.Counter()))
        self.assert_once("No space left", "again")

    def test_file_that_a_crash_has_left_is_cut_and_finished(self):
        path = self.lab.path("flows.ipfix")
        spec = f"ipfix:file:{path}?rotate.bytes=1G" # files of an interval also end at a full hour
        self.feed(spec, "--rate", 10000)
        part = f"{path}.part"
        lab.wait_for(lambda: os.path.exists(part) and
                     os.path.getsize(part) > 200_000, "a large file")
        self.process.kill()
        self.process.wait()
        with open(part, "ab") as file:
            file.write(b"\0\x0a\x01\0half a message")
        self.feed(spec, "--records", 100)
        self.end()
        files = self.files()
        self.assertEqual(2, len(files))
        for name in files:
            self.assertRegex(name, r"\.ipfix$")
        crashed = max(files.values(), key=len)
        self.assertEqual(collections.Counter(range(len(crashed))), crashed)
        self.assertGreater(len(crashed), 1000)


if __name__ == "__main__":
    lab.main()
