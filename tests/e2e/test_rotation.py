#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
# Needs: gzip zstd
"""Files of JSON lines that are rotated: nothing is lost, nothing is half done."""

import glob
import json
import os
import re
import signal

from lib import lab
from lib import observer
from lib import traffic

NAME = re.compile(r"flows-\d{8}T\d{6}Z(_\d{3})?\.json(\.gz|\.zst)?$")
UNPACK = {"none": ["cat"], "gzip": ["gzip", "-dc"], "zstd": ["zstd", "-dcq"]}
FLOWS = 12000


class Rotation(lab.WiredTest):
    def setUp(self):
        super().setUp()
        self.dir = self.lab.path("out")
        os.mkdir(self.dir)

    def start(self, options):
        return observer.Observer(
            self.lab, self.a, "-i", "eth0", "--interval", "0.2", "-o",
            f"json:{self.dir}/flows.json?{options}").wait_attached((self.a, "eth0"))

    def flood(self, flows=FLOWS):
        traffic.flood(self.lab, self.a, "eth0", "--flows", lab.sized(flows),
                      "--packets", lab.sized(2 * flows))

    def files(self):
        """Those with a final name, in order."""
        paths = sorted(glob.glob(f"{self.dir}/flows-*"))
        return [path for path in paths if not path.endswith(".part")]

    def parts(self):
        return glob.glob(f"{self.dir}/*.part")

    def read(self, path, compress="none"):
        """Its records: all of it can be decompressed, and each line is whole."""
        self.assertRegex(os.path.basename(path), NAME)
        text = lab.run(*UNPACK[compress], path)
        self.assertTrue(text.endswith("\n"), path)
        return [json.loads(line) for line in text.splitlines()]

    def check_all(self, result, compress="none"):
        """The files have what the sink says that it delivered."""
        sink = result.stats["sinks"][1]
        records = [record for path in self.files()
                   for record in self.read(path, compress)]
        result.check_conservation()
        self.assertEqual(sink["delivered"], {
            "records": len(records),
            "packets": sum(record["Packets"] for record in records),
            "bytes": sum(record["Bytes"] for record in records)})
        self.assertEqual(sink["taken"], sink["delivered"])
        self.assertEqual([], self.parts())
        self.note(f"{compress}: {len(records)} records in {len(self.files())} files")

    def test_all_records_are_in_the_files(self):
        for compress in UNPACK:
            with self.subTest(compress):
                watch = self.start(f"rotate.bytes=1M&compress={compress}")
                self.flood()
                self.check_all(watch.stop(), compress)
                for path in self.files():
                    self.assertLessEqual(os.path.getsize(path), 1 << 20)
                    os.remove(path)

    def packets(self):
        return sum(record["Packets"] for path in self.files() for record in self.read(path))

    def written(self):
        """Bytes of files that are not complete; one turns every now and then."""
        return sum(os.path.getsize(path) for path in self.parts()
                   if os.path.exists(path))

    def test_files_turn_while_nothing_happens(self):
        watch = self.start("rotate.interval=1s")
        traffic.ping(self.a, "192.0.2.2", 10)
        # Where the interval ends amid the packets, there are two files.
        lab.wait_for(lambda: self.packets() == 20, "their files' final names")
        self.check_all(watch.stop())

    def test_killed(self):
        for compress, tool in UNPACK.items():
            with self.subTest(compress):
                watch = self.start(f"rotate.bytes=1M&compress={compress}&"
                                   f"spool=disk:{self.lab.path(compress)}")
                flood = traffic.start_flood(self.lab, self.a, "eth0", "--flows",
                                            lab.sized(FLOWS), "--seconds", "30")
                lab.wait_for(lambda: self.files() or compress != "none" and
                             self.written() > 100000, "something in the files")
                watch.process.kill()
                watch.process.wait()
                flood.kill()
                flood.wait()
                self.assertTrue(self.parts())
                before = sum(len(self.read(path, compress)) for path in self.files())

                # The next process completes the file, and has the records that were not written.
                watch = self.start(f"rotate.bytes=1M&compress={compress}&"
                                   f"spool=disk:{self.lab.path(compress)}")
                watch.stop()
                records = [record for path in self.files()
                           for record in self.read(path, compress)]
                self.assertEqual([], self.parts())
                self.assertGreater(len(records), before)
                self.note(f"{compress}, by {tool[0]}: {before} records before, "
                          f"{len(records)} after")
                for path in self.files():
                    os.remove(path)

    def test_oldest_are_removed(self):
        watch = self.start("rotate.bytes=1M&rotate.keep=2")
        self.flood()
        first = lab.wait_for(self.files, "a file")[0]
        self.flood()
        lab.wait_for(lambda: first not in self.files(), "the end of the first file")
        counters = watch.stop().stats["sinks"][1]["counters"]
        self.assertEqual(2, len(self.files()))
        self.assertGreater(counters["files"], 2)

    def test_disk_that_is_full_for_a_while(self):
        self.lab.small_disk(self.dir, "3M")
        watch = self.start("rotate.bytes=1M")
        self.flood()
        lab.wait_for(lambda: "No space left" in watch.messages(), "a full disk")
        lab.run("mount", "-o", "remount,size=100M", self.dir)
        lab.wait_for(lambda: "can be written to again" in watch.messages(),
                     "an end of that")
        self.flood(1000)
        result = watch.stop()
        self.assertEqual(1, result.errors.count("No space left"), result.errors)
        self.check_all(result)

    def test_directory_that_goes_and_comes(self):
        away = self.lab.path("away")
        watch = self.start("rotate.bytes=1M")
        traffic.ping(self.a, "192.0.2.2", 10)
        lab.wait_for(lambda: os.path.getsize(f"{self.dir}/flows.json.part"), "lines")
        os.rename(self.dir, away)

        def complains():
            traffic.ping(self.a, "192.0.2.2", 1)
            return "No such file" in watch.messages()
        lab.wait_for(complains, "a word about the directory")
        os.mkdir(self.dir)
        lab.wait_for(lambda: "can be written to again" in watch.messages(),
                     "an end of that")
        result = watch.stop(signal.SIGTERM)
        self.assertEqual([], self.parts())
        sink = result.stats["sinks"][1]
        records = [record for path in self.files() for record in self.read(path)]
        records += lab.json_lines(f"{away}/flows.json.part")
        self.assertEqual(sink["delivered"]["packets"],
                         sum(record["Packets"] for record in records))
        self.assertEqual(sink["taken"], sink["delivered"])


if __name__ == "__main__":
    lab.main()
