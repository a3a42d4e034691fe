# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
"""
A service in a hostile world: no DNS, and a configuration of noise. It goes on, and each packet is counted.
"""

import os
import subprocess

from lib import lab
from lib import metrics
from lib import observer
from lib import traffic
from lib.service import ServiceTest

FLOWS = 1000
NOISE = 1 << 20 # bytes, which a configuration may have
REFUSED = "the new configuration is not in use"


class Hostile(ServiceTest):
    def observe(self, *parts, release=False):
        self.metrics = self.lab.path("metrics")
        self.write(*parts, "[metrics]", f"listen = unix:{self.metrics}")
        self.start(release=release)
        self.sent = 0

    def scrape(self):
        with self.a:
            samples = metrics.scrape(self.metrics)
        samples.check_identity()
        return samples

    def flood(self):
        self.sent += traffic.flood(self.lab, self.a, "eth0", "--flows", FLOWS, "--packets", FLOWS)["packets"]

    def await_exported(self):
        def is_all(samples):
            return {self.sent} == {samples.value(f"netobs_{term}_packets_total")
                                   for term in ("seen", "exported")}
        lab.wait_for(lambda: is_all(self.scrape()), "all packets to be exported")
        samples = self.scrape()
        self.assertEqual(0, samples.total("netobs_lost_packets_total"))

    def open_files(self):
        return len(os.listdir(f"/proc/{self.pid}/fd"))

    def settled_files(self):
        return len(lab.fewest(lambda: os.listdir(f"/proc/{self.pid}/fd")))

    def test_no_dns(self):
        self.observe('[sink "away"]', "output = ipfix:tcp://collector.invalid:4739",
                     '[sink "away2"]', "output = kafka://broker.invalid/flows")
        before = self.open_files()
        for _ in range(5):
            self.flood()
            self.await_exported()
        self.assertLess(self.open_files() - before, 20)
        # What is delivered nowhere is reported.
        self.stop(1)
        self.assertEqual(self.sent, self.exported())
        self.assertEqual(self.sent, self.packets("a"))
        self.assertRegex(self.messages(), r"collector\.invalid")

    def noise(self, good):
        """Any bytes, printable ones in lines, and a configuration with wrong bytes."""
        yield self.random.randbytes(NOISE)
        yield bytes(self.random.choices(b"\n" * 3 + bytes(range(32, 127)), k=NOISE))
        text = bytearray((good * (NOISE // len(good) + 1))[:NOISE])
        for at in self.random.choices(range(NOISE), k=NOISE // 100):
            text[at] = self.random.randrange(256)
        yield bytes(text)

    def reload_noise(self, good):
        for text in self.noise(good):
            with open(self.path, "wb") as file:
                file.write(text)
            self.reload(REFUSED)
            self.flood()
            done = subprocess.run([observer.netobsctl(), "config", "check", self.path],
                                  capture_output=True, timeout=60, check=False)
            observer.check_sanitizer(done.stderr.decode(errors="replace"))
            self.assertEqual((1, b""), (done.returncode, done.stdout))

    def test_a_configuration_of_noise(self):
        self.observe(release=True)
        with open(self.path, "rb") as file:
            good = file.read()
        self.reload_noise(good)
        self.await_exported()
        files, memory = self.settled_files(), self.memory()
        self.reload_noise(good)
        self.await_exported()
        self.assertEqual(files, self.settled_files())
        self.assertLess(self.memory() - memory, 2048)
        with open(self.path, "wb") as file:
            file.write(good)
        self.reload("the configuration has been read again")
        self.stop()
        self.assertEqual(self.sent, self.exported())
        self.assertEqual(self.sent, self.packets("a"))


if __name__ == "__main__":
    lab.main(at_once=3)
