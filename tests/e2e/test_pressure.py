#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
# Label: measure
# Alone: it measures memory while a flood takes all CPUs.
"""
Nothing is lost under pressure, or it is counted to the packet and the byte.

The flood goes out of a packet socket in one namespace, addressed to no host in
the other, so that each packet passes one observation point and then is gone.
"""

import functools
import mmap
import os
import signal
import struct
import time

from lib import lab
from lib import traffic
from lib.observer import Observer, in_mib

MILLION = lab.sized(1_000_000)
FLOWS = lab.sized(20000)
MIB = 1 << 20


class Pressure(lab.WiredTest):
    def observe(self, *arguments, **options):
        return Observer(self.lab, self.a, "-i", "eth0", *arguments,
                        **options).wait_attached((self.a, "eth0"))

    def flood(self, *arguments):
        return traffic.flood(self.lab, self.a, "eth0", "--cpus",
                             traffic.two_cpus(), *arguments)

    def assert_sent_is_seen(self, sent, result):
        self.assertEqual((sent["packets"], sent["bytes"]),
                         result.total("seen"))

    def test_hot_flow_while_generations_flip(self):
        observer = self.observe("--interval", "0.02")
        sent = self.flood("--seconds", 10)
        result = observer.stop()
        result.check_conservation()
        self.assert_sent_is_seen(sent, result)
        self.assertEqual((sent["packets"], sent["bytes"]), result.exported())
        # A record per flip that had traffic: far more than a few.
        self.assertGreater(len(result.records), 50)
        self.note(f"{sent['packets']} packets sent, as many exported in "
                  f"{len(result.records)} records")

    def test_many_flows_while_generations_flip(self):
        observer = self.observe("--interval", "0.02")
        sent = self.flood("--seconds", 5, "--flows", FLOWS)
        result = observer.stop()
        result.check_conservation()
        self.assert_sent_is_seen(sent, result)
        self.assertEqual((sent["packets"], sent["bytes"]), result.exported())
        self.assertEqual(FLOWS, len({(r["SrcAddr"], r["SrcPort"])
                                     for r in result.records}))
        self.note(f"{sent['packets']} packets of {FLOWS} flows, all exported in "
                  f"{len(result.records)} records")

    def test_million_flows_in_one_interval(self):
        observer = self.observe(release=True)
        sent = self.flood("--flows", MILLION, "--packets", MILLION,
                          "--rate", lab.sized(400000))
        # The drain has come when the records are out; memory is at its peak.
        lab.wait_for(lambda: count_lines(observer.out) >= MILLION,
                     "a million records", 60)
        memory = observer.memory()
        result = observer.stop()
        result.check_identity()
        tuples, packets, octets = set(), 0, 0
        for record in result.each():
            tuples.add((record["SrcAddr"], record["SrcPort"]))
            packets += record["Packets"]
            octets += record["Bytes"]
        self.assertEqual((MILLION, MILLION * 46), (packets, octets))
        self.assertEqual(MILLION, len(tuples))
        self.assertEqual(MILLION, count_lines(observer.out))
        self.assert_sent_is_seen(sent, result)
        self.assertEqual((0, 0), result.total("lost"))
        self.note(f"{MILLION} tuples, each in one record; sent in "
                  f"{sent['seconds']} s; memory {in_mib(memory)}")
        self.assertLess(memory["peak"], 120 * MIB)

    def test_memory_in_a_flood_that_is_drained(self):
        """
        New flows come while the earlier ones are read. How many of both there are at once
        depends on how fast the host reads: at most all of two intervals, with 96 bytes each, and
        those that came in the last 250 ms, with 144. Of a million, at this rate: 165 and 31 MiB.
        """
        for flows, most in (lab.sized(100_000), 50), (MILLION, 230):
            with self.subTest(flows=flows):
                measure = functools.partial(self.peak_in_a_flood, flows)
                self.assertLess(lab.least(measure, most * MIB), most * MIB)

    def peak_in_a_flood(self, flows):
        observer = self.observe("--interval", "1", release=True)
        sent = self.flood("--seconds", 4, "--flows", flows, "--rate", lab.sized(900_000))
        memory = observer.memory()
        result = observer.stop()
        result.check_identity()
        self.assert_sent_is_seen(sent, result)
        self.assertEqual((0, 0), result.total("lost"))
        self.note(f"{sent['packets']} packets of {flows} flows; memory {in_mib(memory)}")
        return memory["peak"]

    def test_sigterm_in_the_middle_of_a_flood(self):
        progress = self.lab.path("progress")
        observer = self.observe()
        flood = traffic.start_flood(
            self.lab, self.a, "eth0", "--cpus", traffic.two_cpus(), "--flows",
            50000, "--progress", progress)
        time.sleep(1)
        before = read_progress(progress)
        result = observer.stop(signal.SIGTERM)
        after = read_progress(progress)
        self.assertIsNone(flood.poll(), "the flood must outlast the observer")
        flood.terminate()
        flood.communicate()
        result.check_conservation()
        packets, octets = result.exported()
        self.assertGreater(before, 0)
        self.assertGreaterEqual(packets, before)
        # What a sender has handed over and not yet reported: its last batch.
        self.assertLessEqual(packets, after + 64 * os.cpu_count())
        self.assertEqual(packets * 46, octets)
        self.note(f"{before} sent before SIGTERM, {packets} exported, {after} "
                  "sent when the observer had gone")


def read_progress(path):
    with open(path, "rb") as file:
        with mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ) as counts:
            return sum(struct.unpack(f"{len(counts) // 8}Q", counts[:]))


def count_lines(path):
    count = 0
    with open(path, "rb") as file:
        while block := file.read(1 << 24):
            count += block.count(b"\n")
    return count


if __name__ == "__main__":
    lab.main()
