#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
# Lock: drops, its flows fill the table of drops of the whole host.
"""
Flows that were chosen to collide cost no more than flows at random.

They differ in the highest bits of the four lanes of their addresses only, and in
such a way that folding a lane's halves onto each other cancels the lower part:
with factors instead of NH the 65,536 of them have 16 hashes, whatever the factors.
"""

import os
import random
import resource

from lib import frames
from lib import lab
from lib import traffic
from lib.observer import Observer

FLOWS = 65536
RATE = 60000
SECONDS = 2
ROUNDS = 2
SOURCE = bytes.fromhex("20010db8112233445566778899aabbcc")
DEST = bytes.fromhex("20010db8000000000000000000000001")


def chosen(number):
    """4 bits of @number at the top of each lane, and at that of its lower half."""
    lanes = bytearray(SOURCE + DEST)
    for lane in range(4):
        bits = (number >> 4 * lane & 15) << 4
        lanes[lane * 8 + 7] ^= bits
        lanes[lane * 8 + 3] ^= bits
    return bytes(lanes)


class HashAttack(lab.WiredTest):
    def frames_of(self, addresses, name):
        """One per pair of addresses, in a file; its path and a frame's size."""
        head = b"\x02\xff\xff\xff\xff\xff\x02\0\0\0\0\1\x86\xdd" + \
            frames.ipv6("::", "::", 17, frames.udp(1000, 53))
        path = self.lab.path(name)
        with open(path, "wb") as file:
            for pair in addresses:
                file.write(head[:22] + pair + head[54:])
        return path, len(head)

    def flood(self, path, size):
        """Packets sent, packets lost, and CPU seconds of the observer's own."""
        observer = Observer(self.lab, self.a, "-i", "eth0", "--interval", "1",
                            release=True).wait_attached((self.a, "eth0"))
        sent = traffic.flood(self.lab, self.a, "eth0", "--frames", path,
                             "--frame-size", size, "--rate", RATE, "--seconds",
                             SECONDS)
        before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
        result = observer.stop()
        cpu = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before
        result.check_conservation()
        self.assertEqual((sent["packets"], sent["bytes"]),
                         result.total("seen"))
        return sent["packets"], result.total("lost")[0], cpu

    def test_chosen_flows_are_like_any_others(self):
        seed = int.from_bytes(os.urandom(4), "little")
        self.note(f"seed {seed}")
        draw = random.Random(seed)
        kinds = {
            "random": self.frames_of(
                (draw.randbytes(32) for _ in range(FLOWS)), "random"),
            "chosen": self.frames_of(map(chosen, range(FLOWS)), "chosen"),
        }
        sums = {kind: [0, 0, 0.0] for kind in kinds}
        for _ in range(ROUNDS):
            for kind, (path, size) in kinds.items():
                for i, value in enumerate(self.flood(path, size)):
                    sums[kind][i] += value
        for kind, (sent, lost, cpu) in sums.items():
            self.note(f"{kind}: {lost} of {sent} packets lost, {cpu:.2f} s")
        # With factors: a tenth to a third of them lost, 50 times the CPU.
        self.assertLessEqual(sums["chosen"][1],
                             sums["random"][1] + sums["chosen"][0] // 1000)
        self.assertLess(sums["chosen"][2], 3 * sums["random"][2])


if __name__ == "__main__":
    lab.main()
