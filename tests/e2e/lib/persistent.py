# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
"""A service that leaves its programs and tables in a BPF file system while it is stopped."""

import os
import signal

from lib import bpf
from lib.service import ServiceTest


class PersistentTest(ServiceTest):
    def setUp(self):
        super().setUp()
        self.bpffs = bpf.mount_bpffs(self.lab)
        self.set = f"{self.bpffs}/set"

    def persist(self):
        """For [service], as ServiceTest.write() takes it."""
        return "persist = yes", f"persist_dir = {self.set}"

    def kill(self):
        os.kill(self.pid, signal.SIGKILL)
        self.process.wait(timeout=60)

    def lost(self):
        """By the restart; nothing else is."""
        stats = self.stats()
        self.assertEqual(stats["lost"]["restart"]["packets"],
                         sum(part["packets"] for part in stats["lost"].values()))
        self.assertEqual(stats["seen"]["packets"], stats["exported"]["packets"] +
                         stats["lost"]["restart"]["packets"])
        return stats["lost"]["restart"]["packets"]
