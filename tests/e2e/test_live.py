#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
# Needs: procps
"""What goes on until it is stopped, on terminals of several widths: what it waits for, its keys,
and the terminal after it."""

import os
import re
import shlex
import subprocess
import termios
import time

from lib import lab
from lib import observer
from lib import traffic
from lib.observer import features
from lib.terminal import Terminal

WIDTHS = 40, 60, 80, 120
PORT = 5943 # of no other test: traces are of all namespaces
DRAWN = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b[78]")


class Live(lab.WiredTest):
    def commands(self, path):
        """
        Arguments, and whether a screen is drawn in place. Those that print lines of all namespaces have
        filters, so that other tests do not scroll the keys away.
        """
        found = {
            "drops": True, "map": True, "trace": True, "map --services": True,
            f"trace --show journeys 'tcp port {PORT}'": False,
            "drops -o json 'host 192.0.2.77'": False,
            "flows -i eth0": True, "flows -i eth0 -o json": False,
            "alerts -i eth0 --rule rate>1Gbit": False, f"capture -i eth0 -w {path}": False,
            "top -i eth0": True, "tcp -i eth0": True,
        }
        if features()["sessions"]:
            found["sessions --comm nobody"] = False
        return found

    def modes(self, terminal):
        return termios.tcgetattr(terminal.leader)[:4]

    def check_lines(self, terminal, columns, where):
        """What is drawn line by line: none is wider than the terminal."""
        for line in DRAWN.sub("", terminal.text()).splitlines():
            self.assertLessEqual(len(line), columns, where)

    def test_q_ends_each_and_the_terminal_is_as_before(self):
        """At once, as most of the time is theirs to start."""
        running = []
        for i, (command, is_screen) in enumerate(
                self.commands(self.lab.path("captured.pcap")).items()):
            columns = WIDTHS[i % 4 if is_screen else i % 2 + 2]
            terminal = Terminal(self.lab, self.a, 20, columns, *shlex.split(command),
                                shows_errors=not is_screen)
            running.append((command, is_screen, columns, terminal))
        for command, is_screen, columns, terminal in running:
            where = f"{command} in {columns} columns"
            lines = terminal.wait_for(lambda lines: any("q quit" in line for line in lines), where)
            if is_screen and command not in ("flows -i eth0", "top -i eth0", "tcp -i eth0"):
                terminal.type("p")
                lines = terminal.wait_for(lambda lines: "PAUSED" in lines[0], where)
                terminal.type("p")
                terminal.wait_for(lambda lines: "PAUSED" not in lines[0], where)
                self.check_lines(terminal, columns, where)
            self.assertNotIn("q", lines, where)
        for command, _, columns, terminal in running:
            terminal.type("q")
            terminal.process.wait(60)
            self.assertEqual(self.modes(terminal), terminal.modes[:4], command)
            code, errors = terminal.end()
            self.assertEqual(code, 0, f"{command} in {columns} columns: {errors}")

    def test_a_terminal_gets_the_summary(self):
        """Drawn anew, and once more at the end."""
        terminal = Terminal(self.lab, self.a, 30, 80, "trace", f"tcp port {PORT}")
        terminal.wait_for(lambda lines: f"tracing tcp port {PORT}, every 1 s" in lines[0], "the beginning")
        traffic.tcp(self.a, "192.0.2.1", self.b, "192.0.2.2", 100, port=PORT)
        terminal.wait_for(lambda lines: any(re.match("client > server  total +1 ", line)
                                            for line in lines), "the journey")
        self.assertEqual(terminal.quit()[0], 0)
        self.check_lines(terminal, 80, "trace")

    def test_no_process_is_refused(self):
        child = subprocess.Popen(["true"])
        child.wait()
        done = observer.run("trace", "--pid", f"{child.pid}", code=None)
        if os.readlink("/proc/self/ns/pid") == "pid:[4026531836]":
            self.assertEqual((done.returncode, done.stderr.splitlines()[0]),
                             (1, f"netobsctl trace: --pid {child.pid}: there is no such process"))

    def test_headings_come_without_drops(self):
        """In a pipe, too, and at once."""
        with self.lab.spawn(observer.netobsctl(), "drops", "-d", "60", "host 192.0.2.77",
                            stdout=subprocess.PIPE, text=True) as process:
            before = time.monotonic()
            self.assertRegex(process.stdout.readline(), "^PACKETS +BYTES +REASON +LARGEST FLOW ")
            self.assertLess(time.monotonic() - before, 50)
            process.terminate()
            self.assertEqual(process.stdout.read(), "")


if __name__ == "__main__":
    lab.main()
