# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
"""Outputs that do not accept records: others neither wait for them nor lose records."""

import json
import os
import signal
import subprocess

from lib import bpf
from lib import lab
from lib import observer
from lib import traffic

FLOWS = 1000


class OutputFaults(lab.WiredTest):
    def setUp(self):
        super().setUp()
        self.good = self.lab.path("good")

    def start(self, *outputs, stdout=subprocess.DEVNULL):
        arguments = [word for output in outputs for word in ("-o", output)]
        with open(self.lab.path("messages"), "wb") as messages:
            process = self.lab.spawn(
                observer.netobsctl(), "flows", "-i", "eth0", "--interval",
                "0.2", "--stats", *arguments, ns=self.a, stdout=stdout,
                stderr=messages)
        lab.wait_for(lambda: bpf.attached(self.a, "eth0") == 2, "netobsctl")
        return process

    def packets(self):
        """In the file that works, so far."""
        total = 0
        with open(self.good, encoding="utf-8") as file:
            for line in file:
                if line.endswith("\n"):
                    total += json.loads(line)["Packets"]
        return total

    def send(self, packets):
        """And see all of it in the file, while the command runs."""
        before = self.packets()
        sent = self.a.counters("eth0")["tx"]["packets"]
        traffic.flood(self.lab, self.a, "eth0", "--flows", FLOWS, "--packets",
                      packets, "--rate", 20000)
        sent = self.a.counters("eth0")["tx"]["packets"] - sent
        lab.wait_for(lambda: self.packets() == before + sent,
                     f"{sent} packets in the file", 30)

    def messages(self):
        return lab.read(self.lab.path("messages"))

    def finish(self, process):
        process.send_signal(signal.SIGINT)
        process.wait(60)
        errors = self.messages()
        observer.check_sanitizer(errors)
        result = observer.Result(process.returncode, None, errors)
        result.check_identity()
        return result

    def test_reader_of_standard_output_that_stops(self):
        """A pipe that is full: its records wait, the file's do not."""
        unread, pipe = os.pipe()
        self.lab.defer(os.close, unread)
        process = self.start("json", f"json:{self.good}", stdout=pipe)
        os.close(pipe)
        for _ in range(5):
            self.send(5000)
        result = self.finish(process)
        stuck, good = result.stats["sinks"]
        self.assertGreater(stuck["pending"]["records"], 0)
        self.assertEqual(0, good["pending"]["records"])
        self.note(f"{stuck['pending']['records']} records waited at the end")

    def test_named_pipe_that_nobody_reads(self):
        fifo = self.lab.path("fifo")
        os.mkfifo(fifo)
        process = self.start(f"json:{fifo}?spool.max_bytes=1M",
                             f"json:{self.good}")
        for _ in range(5):
            self.send(5000)
        result = self.finish(process)
        stuck, good = result.stats["sinks"]
        self.assertGreater(stuck["dropped"]["spool_full"]["records"], 0)
        self.assertEqual(0, good["pending"]["records"])

    def test_one_that_fails_disturbs_no_other(self):
        """Away, on a full disk, with a spool that is full: the file has all."""
        self.lab.small_disk(self.lab.path("full"), "64k")
        process = self.start(
            f"json:unix:{self.lab.path('away')}?spool.max_bytes=1M",
            f"json:{self.lab.path('full')}/records?spool.max_bytes=1M",
            f"json:unix:{self.lab.path('away')}?spool=disk:"
            f"{self.lab.path('full')}/spool",
            f"json:{self.good}")
        for _ in range(5):
            self.send(5000)
        result = self.finish(process)
        *bad, good = result.stats["sinks"]
        self.assertEqual(1, result.code)
        self.assertEqual(0, good["pending"]["records"])
        self.assertEqual(result.total("exported")[0],
                         good["delivered"]["packets"])
        for sink in bad:
            lost = sum(count["records"] for count in sink["dropped"].values())
            self.assertGreater(lost, 0, sink)
        # Once each, not once for each record or attempt.
        self.assertLess(len(result.errors.splitlines()), 20, result.errors)


if __name__ == "__main__":
    lab.main(at_once=3)
