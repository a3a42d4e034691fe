# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
"""
Memory that is refused anywhere in a run, once or many times, costs no packet its place in
the books: the start fails with a message, or all packets are exported or counted as lost.
NETOBS_TEST_REFUSALS=N tries so many runs, NETOBS_TEST_SEED=SEED those from that seed on.
"""

import json
import os
import random
import signal
import subprocess
import time

from lib import lab
from lib import observer
from lib import traffic

RUNS = 24
FLOWS, PACKETS = 3000, 30000
COUNTS = 1, 1, 3, 30, 1000
ATTACHED = "observing 1 interface"
NO_MEMORY = "emory" # "Cannot allocate memory", "out of memory"


class Run:
    """netobsctl under a flood, with requests for memory refused."""

    def __init__(self, place, a, first=0, count=0):
        self.requests = place.path("requests")
        self.records = place.path("records")
        self.messages = place.path("messages")
        for path in self.requests, self.records:
            if os.path.exists(path):
                os.unlink(path)
        with open(self.messages, "wb") as file:
            self.process = place.spawn(
                observer.netobsctl(release=True), "flows", "-v", "-i", "eth0",
                "--interval", "0.1", "-o", f"json:{self.records}", "--stats", ns=a,
                stdout=subprocess.DEVNULL, stderr=file, env={
                    **os.environ, "LD_PRELOAD": lab.tool("refuse.so"),
                    "NETOBS_REFUSE": f"{first},{count}", "NETOBS_REQUESTS": self.requests})
        self.wait_for_start()
        self.sent = None
        if self.is_attached():
            self.sent = traffic.flood(place, a, "eth0", "--flows", FLOWS, "--packets", PACKETS)
            time.sleep(0.15) # a drain
        self.ends_itself = self.process.poll() is not None or self.has_failed()
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)
        self.process.wait(timeout=60)
        self.code = self.process.returncode

    def text(self):
        return lab.read(self.messages)

    def is_attached(self):
        return ATTACHED in self.text()

    def has_failed(self):
        """It has logged an error that ends it; others are warnings."""
        return any(NO_MEMORY in line and ": warning: " not in line
                   for line in self.text().splitlines())

    def wait_for_start(self):
        lab.wait_for(lambda: self.process.poll() is not None or self.is_attached(), "a start")

    def total(self):
        return int(lab.read(self.requests))

    def result(self):
        return observer.Result(self.code, lambda: open(self.records, encoding="utf-8"),
                               self.text())


class Allocations(lab.WiredTest):
    def check_failed(self, run, what):
        """It may end between the programs and the outputs, in the flood, or at its end."""
        text = run.text()
        self.assertEqual(1, run.code, f"{what}: {text}")
        self.assertIn(NO_MEMORY, text, what)
        if '{"seen"' not in text:
            return "no start"
        result = run.result()
        result.check_identity()
        if run.sent and not run.ends_itself:
            self.assertEqual((run.sent["packets"], run.sent["bytes"]),
                             result.total("seen"), f"{what}: {text}")
            return "failed at the end"
        seen, sent = result.total("seen")[0], (run.sent or {"packets": 0})["packets"]
        self.assertLessEqual(seen, sent, f"{what}: {text}")
        return "failed in the flood" if run.sent else "no start"

    def check(self, run, what):
        text = run.text()
        observer.check_sanitizer(text)
        self.assertIn(run.code, (0, 1), f"{what}: {text}")
        if not run.sent or run.code:
            return self.check_failed(run, what)
        self.assertIn('{"seen"', text, f"{what}, no statistics: {text}")
        result = run.result()
        result.check_identity()
        self.assertEqual((run.sent["packets"], run.sent["bytes"]), result.total("seen"),
                         f"{what}: {text}")
        for sink in result.stats["sinks"]: # none if memory was refused for that list
            self.assertEqual(sink["delivered"]["packets"], result.exported()[0], what)
        return "lost" if result.total("lost")[0] else "exported"

    def test_each_packet_is_accounted_for(self):
        runs = int(os.environ.get("NETOBS_TEST_REFUSALS", lab.sized(RUNS)))
        whole = Run(self.lab, self.a)
        self.assertEqual("exported", self.check(whole, "nothing is refused"))
        total = whole.total()
        self.note(f"{total} requests in a run, seed {self.seed}")
        outcomes = {}
        for number in range(runs):
            chance = random.Random(self.seed + number)
            first, count = chance.randrange(total), chance.choice(COUNTS)
            what = f"NETOBS_TEST_SEED={self.seed + number}: requests {first} to {first + count - 1}"
            with self.subTest(what):
                outcome = self.check(Run(self.lab, self.a, first, count), what)
                outcomes[outcome] = outcomes.get(outcome, 0) + 1
        self.assertEqual(runs, sum(outcomes.values()))
        self.note(json.dumps(outcomes))


if __name__ == "__main__":
    lab.main()
