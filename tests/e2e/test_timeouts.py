# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
"""When a record is made and why: FlowEndReason, and deltas that add up."""

import contextlib
import json
import os
import signal
import socket
import subprocess
import time

from lib import lab
from lib import traffic
from lib.observer import Observer, netobsctl

IDLE, ACTIVE, DETECTED, FORCED = 1, 2, 3, 4


class Timeouts(lab.WiredTest):
    def observe(self, *arguments):
        return Observer(self.lab, self.a, "-i", "eth0", *arguments
                        ).wait_attached((self.a, "eth0"))

    def send(self, count, pause=0.0, port=9):
        """UDP with 100 octets of IP each, from one port."""
        with traffic.make_socket(self.a, socket.SOCK_DGRAM, "192.0.2.1",
                                 1234) as out, \
                traffic.make_socket(self.b, socket.SOCK_DGRAM, "192.0.2.2",
                                    port):
            for _ in range(count):
                out.sendto(bytes(72), ("192.0.2.2", port))
                time.sleep(pause)

    def reasons(self, result):
        return [r["FlowEndReason"] for r in result.records]

    def assert_sum(self, result, count):
        result.check_conservation()
        self.assertEqual((count, count * 100), result.exported())

    def test_every_interval_by_default(self):
        observer = self.observe("--interval", "0.2")
        self.send(300, 0.01)
        observer.wait_records(lambda found: sum(
            r["Packets"] for r in found) == 300, "all packets")
        result = observer.stop()
        self.assert_sum(result, 300)
        self.assertEqual({ACTIVE}, set(self.reasons(result)))
        self.assertGreater(len(result.records), 3)
        self.note(f"300 packets in {len(result.records)} records of reason 2")

    def test_active_timeout(self):
        observer = self.observe("--interval", "0.1", "--active-timeout", "1",
                                "--idle-timeout", "30")
        sent = 0
        while len(observer.lines()) < 3 and sent < 10000:
            self.send(20, 0.01)
            sent += 20
        self.send(5) # a rest, for the end
        result = observer.stop()
        self.assert_sum(result, sent + 5)
        reports = [r for r in result.records
                   if r["FlowEndReason"] == ACTIVE]
        # More, and no rest, if this process or netobsctl had to wait for a CPU at the end.
        self.assertGreaterEqual(len(reports), 3)
        self.assertLessEqual(set(self.reasons(result)), {ACTIVE, FORCED})
        # Not the ends: the last packet comes early if this process has to wait for a CPU.
        starts = [r["TimeFlowStartMs"] for r in reports]
        for before, after in zip(starts, starts[1:]):
            # A second, less the interval in which each was noticed.
            self.assertGreaterEqual(after - before, 700)
        self.note(f"reports {[r['Packets'] for r in result.records]}")

    def test_idle_timeout(self):
        # Longer than this process waits for a CPU amid its packets, or before it ends the observer.
        observer = self.observe("--interval", "0.1", "--active-timeout", "60",
                                "--idle-timeout", "3")
        for run in (1, 2):
            self.send(10)
            observer.wait_records(lambda found, n=run: len(found) == n,
                                  "the idle flow's record")
        self.send(5)
        result = observer.stop()
        self.assert_sum(result, 25)
        self.assertEqual([IDLE, IDLE, FORCED], self.reasons(result))
        self.assertEqual([10, 10, 5], [r["Packets"] for r in result.records])
        first, second, _ = result.records
        self.assertGreater(second["TimeFlowStartMs"], first["TimeFlowEndMs"])

    def test_end_of_connection(self):
        observer = self.observe("--interval", "0.1", "--active-timeout", "60",
                                "--idle-timeout", "60")
        traffic.tcp(self.a, "192.0.2.1", self.b, "192.0.2.2", 100000)
        observer.wait_records(lambda found: {r["SrcPort"] == 5001
                                             for r in found} == {True, False},
                              "both directions' records")
        with traffic.make_socket(self.a, socket.SOCK_STREAM,
                                 "192.0.2.1") as out:
            with contextlib.suppress(ConnectionRefusedError):
                out.connect(("192.0.2.2", 5999))
        observer.wait_records(lambda found: 5999 in {r["SrcPort"]
                                                     for r in found},
                              "the refusal's record")
        result = observer.stop()
        result.check_conservation()
        by_port = {}
        for record in result.records:
            by_port.setdefault(record["SrcPort"], []).append(
                record["FlowEndReason"])
        self.assertEqual(DETECTED, by_port[5001][0])
        self.assertEqual(DETECTED, by_port[5999][0])
        # FIN and RST are there to be seen.
        flags = {r["SrcPort"]: r["Flags"] for r in result.records}
        self.assertTrue(flags[5001] & 1)
        self.assertTrue(flags[5999] & 4)

    def test_shutdown(self):
        for number in (signal.SIGINT, signal.SIGTERM):
            observer = self.observe("--active-timeout", "60",
                                    "--idle-timeout", "60")
            self.send(7)
            result = observer.stop(number)
            self.assert_sum(result, 7)
            self.assertEqual([FORCED], self.reasons(result))

    def test_duration_and_count(self):
        observer = Observer(self.lab, self.a, "-i", "eth0", "-d", "1", "--interval", "0.1")
        while observer.is_running():
            self.send(1, 0.01)
        result = observer.finish()
        result.check_conservation()
        self.assertGreater(result.exported()[0], 0)
        observer = self.observe("-n", "2", "--interval", "0.1")
        for port in (11, 12, 13, 14):
            self.send(1, port=port)
        observer.process.wait(timeout=lab.PATIENCE_S)
        self.assertEqual(2, len(observer.finish().records))

    def test_time_namespace(self):
        """The programs stamp packets with the host's clock."""
        if not os.path.exists("/proc/self/ns/time"):
            self.skipTest("the kernel has no time namespaces")
        now = time.time() * 1000
        observer = self.lab.spawn(
            "unshare", "-T", "--fork", "--boottime", "86400", netobsctl(),
            "flows", "-i", "eth0", "-d", "2", "--interval", "0.2", ns=self.a,
            stdout=subprocess.PIPE, text=True)
        while observer.poll() is None:
            self.send(10, 0.01)
        records = [json.loads(line) for line in observer.stdout]
        self.assertTrue(records)
        self.assertLessEqual({r["FlowEndReason"] for r in records},
                             {ACTIVE, FORCED})
        for record in records:
            self.assertLess(abs(record["TimeFlowStartMs"] - now), 3600_000)

    def test_many_flows_with_long_timeouts_add_up(self):
        observer = self.observe("--interval", "0.1", "--active-timeout", "1",
                                "--idle-timeout", "0.4")
        sent = traffic.flood(self.lab, self.a, "eth0", "--flows", 3000,
                             "--seconds", 4, "--rate", 20000)
        result = observer.stop()
        result.check_conservation()
        self.assertEqual((sent["packets"], sent["bytes"]), result.exported())
        self.note(f"{sent['packets']} packets in {len(result.records)} "
                  f"records, reasons {sorted(set(self.reasons(result)))}")


if __name__ == "__main__":
    lab.main(at_once=4)
