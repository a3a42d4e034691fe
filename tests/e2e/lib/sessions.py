# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
"""Runs `netobsctl sessions` and reads its output."""

import json
import signal
import struct
import subprocess
import tempfile

from lib import observer

RESET = struct.pack("ii", 1, 0)  # SO_LINGER


class Sessions:
    """netobsctl sessions, for all namespaces."""

    def __init__(self, test, *arguments):
        self.test = test
        if "--buffer" not in arguments:  # other tests of this host may make many connections
            arguments = "--buffer", "64M", *arguments
        self.out = tempfile.TemporaryFile()
        test.addCleanup(self.out.close)
        self.process = test.lab.spawn(
            observer.netobsctl(), "sessions", "-o", "json", "--stats", "-v", *arguments,
            stdout=self.out, stderr=subprocess.PIPE, text=True)
        line = self.process.stderr.readline()
        while "following the TCP sockets" not in line:
            assert line, "netobsctl ended"
            line = self.process.stderr.readline()

    def records(self, keep=lambda record: record):
        """
        Complete ones so far, or what to @keep of each. The process writes at the offset of the file, so
        that stays.
        """
        with open(f"/proc/self/fd/{self.out.fileno()}", "rb") as lines:
            return [keep(json.loads(line)) for line in lines if line.endswith(b"\n")]

    def stop(self, **options):
        """The records, and the totals."""
        self.process.send_signal(signal.SIGTERM)
        errors = self.process.communicate(timeout=60)[1]
        self.test.assertEqual(self.process.returncode, 0, errors)
        observer.check_sanitizer(errors)
        totals = json.loads(errors.splitlines()[-1])
        self.test.assertEqual(totals["ended"], totals["reported"] + totals["lost"])
        return self.records(**options), totals
