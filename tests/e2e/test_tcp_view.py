# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
"""Where round-trip times, application latency and retransmissions of TCP are shown, and that they are.

e2e.rtt has whether the times are right.
"""

import itertools
import json
import re
import signal
import subprocess

from lib import bpf
from lib import lab
from lib import observer
from lib import relay
from lib.terminal import Terminal

COUNTS = {"Retransmits", "BytesRetransmitted", "OutOfOrder", "LateUnknown", "DuplicateAcks", "ZeroWindows"}


class Shown(relay.LinkTest):
    def test_without_the_option_records_have_nothing_of_it(self):
        link = relay.Link(self.lab, 0)
        link.serve()
        process = self.start(link, "flows", "--interval", "60")
        link.talk("pingpong", 0.5)
        records = [record for record in self.finish(process) if record["Proto"] == 6]
        self.assertEqual(2, len(records))
        for record in records:
            self.assertFalse([name for name in record
                              if "Rtt" in name or "App" in name or "Response" in name
                              or name in COUNTS], record)

    def test_a_table_a_screen_and_keys(self):
        link = relay.Link(self.lab, 20_000)
        link.serve()
        client = self.lab.spawn("python3", relay.CHAT, "pingpong",
                                relay.ADDRESSES[4][1], relay.PORT, 600, ns=link.a,
                                stdout=subprocess.DEVNULL)
        terminal = Terminal(self.lab, link.a, 24, 80, "tcp", "-i", "eth0", "--interval",
                            "0.3")

        def shows(*words):
            return terminal.wait_for(
                lambda lines: all(re.search(word, "\n".join(lines)) for word in words),
                f"{words}")
        lines = shows("CLIENT → SERVER", "RTT →", r"192\.0\.2\.1:\d+ → 192\.0\.2\.2:7000 ",
                      r"2\d\.\d ms", "1 connections by rate")
        self.assertTrue(all(len(line) <= 80 for line in lines))
        for key, order in (("r", "rtt"), ("x", "retransmits"), ("a", "app"), ("B", "bytes"),
                           ("o", "age"), ("b", "rate")):
            terminal.type(key)
            shows(f"1 connections by {order}")
        terminal.type("h")
        shows("sort by round-trip time", "any key goes back")
        terminal.type("x")
        terminal.type("p")
        shows("PAUSED")
        code, errors = terminal.quit()
        self.assertEqual(0, code, errors)

        once = self.lab.spawn(observer.netobsctl(), "tcp", "-i", "eth0", "--once", "--interval",
                              "1", ns=link.a, stdout=subprocess.PIPE, text=True)
        out, _ = once.communicate(timeout=lab.PATIENCE_S)
        heading, row, *others = out.splitlines()
        self.assertRegex(heading, r"^CLIENT → SERVER +RTT → .* SEEN AT$")
        self.assertRegex(row, r"^192\.0\.2\.1:\d+ → 192\.0\.2\.2:7000 .*kb/s.* established +eth0$")
        self.assertEqual([], others)
        client.kill()

    def test_statistics_have_the_places_of_connections(self):
        link = relay.Link(self.lab, 0)
        link.serve()
        for verb, output in itertools.product((("tcp",), ("flows", "--rtt")), ("json", "table")):
            process = self.lab.spawn(
                observer.netobsctl(), *verb, "--stats", "--max-connections", 1000, "-i",
                "eth0", "-o", output, ns=link.a, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                text=True)
            lab.wait_for(lambda: bpf.attached(link.a, "eth0") == 2, "netobsctl")
            link.talk("pingpong", 0.3)
            process.send_signal(signal.SIGINT)
            _, errors = process.communicate(timeout=lab.PATIENCE_S)
            observer.check_sanitizer(errors)
            found = json.loads(errors.splitlines()[-1])["connections"]
            self.assertEqual(1024, found["max"])
            self.assertGreater(found["used"], 0)
            self.assertEqual(found["created"], found["used"])


if __name__ == "__main__":
    lab.main(at_once=2)
