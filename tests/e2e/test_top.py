# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
# Needs: netbase
"""netobsctl top: its screen, its keys, and the terminal after it; --once; files."""

import json
import re
import signal
import subprocess
import termios

from lib import bpf
from lib import capfile
from lib import lab
from lib import observer
from lib import traffic
from lib.observer import features
from lib.terminal import Terminal

PORTS = (22, 80, 443)
FLOWS = 10_000
MANY = max(lab.sized(400_000), 100_000) # more than 32 MiB have room for
TITLE, LAST, TOTAL, HEADING, ROWS = range(5)
NORMAL_SCREEN, SHOW_CURSOR = "\x1b[?1049l", "\x1b[?12l\x1b[?25h"
UP, END = "\x1bOA", "\x1bOF"


class Top(lab.WiredTest):
    def start(self, *arguments, rows=24, columns=80, **environment):
        terminal = Terminal(self.lab, self.a, rows, columns, "top", "-v", "-i", "eth0",
                            "--interval", "0.3", *arguments, **environment)
        lab.wait_for(lambda: observer.ATTACHED.search(terminal.messages()),
                     "top to observe")
        return terminal

    def check_end(self, code, errors):
        self.assertEqual(0, code, errors)
        self.assertNotRegex(errors, "warning|error|cannot")

    def connect(self, times=1):
        for _ in range(times):
            for port in PORTS:
                traffic.tcp(self.a, "192.0.2.1", self.b, "192.0.2.2", 100,
                            port=port, answer=5000)

    def shows(self, terminal, *words):
        """A screen that has all of these."""
        return terminal.wait_for(
            lambda lines: all(re.search(word, "\n".join(lines)) for word in words),
            f"{words}")

    def quit(self, terminal):
        self.check_end(*terminal.quit())
        # The other screen, as it was, with a cursor.
        self.assertIn(NORMAL_SCREEN, terminal.text())
        self.assertIn(SHOW_CURSOR, terminal.text())

    def test_every_table_and_every_order(self):
        terminal = self.start()
        self.connect()
        traffic.ping(self.a, "192.0.2.2", 3)
        terminal.type("t")
        self.shows(terminal, "talkers by bytes, since the start", r"\d+ records",
                   r"192\.0\.2\.1 +192\.0\.2\.2:443/TCP", r"; 0 lost")
        for key, words in (
                ("2", ("flows by bytes", "SOURCE → DESTINATION",
                       r"192\.0\.2\.2:443 → 192\.0\.2\.1:\d+/TCP",
                       r"192\.0\.2\.2 → 192\.0\.2\.1 ICMP")),
                ("3", ("hosts by bytes", "HOST .*SENT", r"192\.0\.2\.1 ", r"192\.0\.2\.2 ")),
                ("4", ("pairs by bytes", r"192\.0\.2\.1 ↔ 192\.0\.2\.2")),
                ("5", ("services by bytes", r"192\.0\.2\.2:22/TCP")),
                ("6", ("ports by bytes", r"\n22/TCP", r"\nICMP +\d+ +6 ")),
                ("7", ("interfaces by bytes", r"\neth0 +out ", r"\neth0 +in ")),
                ("8", ("protocols by bytes", r"\nTCP ", r"\nICMP +\d+ +6 ")),
                ("k", ("protocols by packets", r"PACKETS/S")),
                ("f", ("protocols by flows",)),
                ("n", ("protocols by name", r"(?s)\nICMP .*\nTCP ")),
                ("r", ("protocols by name", r"\nStart with --rtt to see round-trip times")),
                ("s", ("protocols by bytes, since",)),
                ("3", ("hosts by bytes sent, since",)),
                ("8", ("protocols by bytes, since",)),
                ("9", ("protocols by", r"\nStart with --process to see processes")),
                ("\t", ("talkers by",)),
                ("\x1b[Z", ("protocols by",)),
                ("h", ("b k f   sort by bytes", "q       quit")),
                ("x", ("protocols by bytes", r"\nTCP "))):
            with self.subTest(key):
                terminal.type(key)
                self.shows(terminal, *words)
        self.quit(terminal)

    def test_what_is_measured_has_columns_and_orders(self):
        """With --rtt and --drops, in each table."""
        has_drops = features()["drops"]
        terminal = self.start("--rtt", *["--drops"] * has_drops, columns=200)
        self.connect()
        terminal.type("t")
        columns = "DROPS +RATE" if has_drops else "RATE"
        for key, words in (("1", "talkers"), ("3", "hosts")):
            terminal.type(key)
            self.shows(terminal, f"{words} by", f" RTT +RETR +{columns}")
        terminal.type("x")
        self.shows(terminal, "hosts by retransmissions")
        terminal.type("d")
        self.shows(terminal, "hosts by drops" if has_drops else "Start with --drops to see drops")
        self.quit(terminal)

    def test_it_fits_any_size(self):
        terminal = self.start(rows=60, columns=200)
        self.connect()
        self.shows(terminal, r"CLIENT +SERVICE +FLOWS +PACKETS +PACKETS/S +BYTES +RATE")
        for rows, columns in (24, 80), (8, 40), (4, 20), (1, 1), (60, 200), (24, 80):
            terminal.resize(rows, columns)
            terminal.process.send_signal(signal.SIGWINCH)
            if columns >= 40:
                self.shows(terminal, "talkers by bytes", "\nCLIENT ", "h help  q quit$")
            terminal.type("hx2" + UP + "1")
        terminal.type("t")
        lines = self.shows(terminal, "since the start", ":443/TCP", "q quit$")
        for line in lines:
            self.note(line)
        self.quit(terminal)

    def test_sampling_is_named_once(self):
        """In the title, or if that has no room, in each row."""
        terminal = self.start("--sampling", "2", "icmp")
        traffic.ping(self.a, "192.0.2.2", 20)
        terminal.type("t")
        self.shows(terminal, r"192\.0\.2\.2 ICMP")
        for columns, is_in_title in (80, True), (40, False):
            terminal.resize(24, columns)
            terminal.process.send_signal(signal.SIGWINCH)
            row = "ICMP  " if is_in_title else r"\(1:2\)"
            lines = self.shows(terminal, "since the start\n", row)
            self.assertEqual(is_in_title, "1 of 2 packets of eth0" in lines[TITLE])
            self.assertEqual(is_in_title, "(1:2)" not in "\n".join(lines))
        self.quit(terminal)

    def test_frozen_it_counts_on(self):
        terminal = self.start("--by", "proto")
        traffic.ping(self.a, "192.0.2.2", 2)
        terminal.type("t")
        self.shows(terminal, r"\nICMP +\d+ +4 ")
        terminal.type("p")
        self.shows(terminal, "PAUSED")
        traffic.ping(self.a, "192.0.2.2", 5)
        terminal.type("k")
        self.shows(terminal, "by packets", r"\nICMP +\d+ +4 ")
        terminal.type(" ")
        lines = self.shows(terminal, r"\nICMP +\d+ +14 ")
        self.assertNotIn("PAUSED", lines[TITLE])
        self.quit(terminal)

    def test_search(self):
        terminal = self.start("--by", "service")
        self.connect()
        terminal.type("tn")
        self.shows(terminal, ":22/TCP", ":443/TCP")
        terminal.type("/22x\x7f/T")
        self.shows(terminal, "Rows that contain: 22/T_")
        terminal.type("\r")
        lines = self.shows(terminal, "with 22/T")
        self.assertNotIn(":443/TCP", str(lines))
        self.assertIn(":22/TCP", lines[ROWS])
        terminal.type("\x1b")
        self.shows(terminal, ":443/TCP")
        self.quit(terminal)

    def test_ten_thousand_flows(self):
        terminal = self.start("ip")
        sent = traffic.flood(self.lab, self.a, "eth0", "--flows", FLOWS, "--packets",
                             2 * FLOWS)
        terminal.type("t2k")
        lines = self.shows(terminal, rf" {sent['packets']} packets \(\d+/s\)",
                           rf"\nand {FLOWS - 18} more: {2 * (FLOWS - 18)} packets")
        self.assertEqual(ROWS + 18, next(at for at, line in enumerate(lines)
                                         if line.startswith("and ")))
        terminal.type(END)
        lines = terminal.wait_for(lambda lines: "more:" not in str(lines), "the last rows")
        self.assertEqual(18, sum("/UDP" in line for line in lines))
        self.quit(terminal)

    def test_losses_are_on_the_screen(self):
        for environment, colour in ({}, "red"), ({"NO_COLOR": "1"}, "default"):
            terminal = self.start("--max-memory", "32M", **environment)
            terminal.process.send_signal(signal.SIGSTOP)  # tables fill up
            traffic.flood(self.lab, self.a, "eth0", "--flows", MANY,
                          "--packets", MANY)
            terminal.process.send_signal(signal.SIGCONT)
            terminal.wait_for(lambda lines: re.match(r"[1-9]\S* lost; In", lines[TOTAL]),
                              "a loss")
            self.assertIn(colour, terminal.colours(TOTAL))
            code, errors = terminal.quit()
            self.assertEqual(0, code, errors)

    def test_names(self):
        self.a.hosts("192.0.2.1 client.example", "192.0.2.2 web.example")
        terminal = self.start("-N")
        self.connect(3)
        terminal.type("t")
        self.shows(terminal, "client.example", "web.example:https/TCP")
        terminal.type("N")
        self.shows(terminal, "192.0.2.2:443/TCP")
        self.quit(terminal)

    def test_the_terminal_is_as_before(self):
        for numbers, code in (([signal.SIGTERM], 0), ([signal.SIGINT], 0),
                              ([signal.SIGHUP], 0), ([signal.SIGQUIT], -signal.SIGQUIT),
                              ([signal.SIGABRT], -signal.SIGABRT)):
            with self.subTest(numbers):
                terminal = self.start()
                self.connect()
                terminal.type("t")
                self.shows(terminal, ":443/TCP")
                for number in numbers:
                    terminal.process.send_signal(number)
                terminal.process.wait(60)
                self.assertEqual(terminal.modes, termios.tcgetattr(terminal.leader))
                self.assertEqual(code, terminal.end()[0])
                self.assertIn(NORMAL_SCREEN, terminal.text())
                self.assertIn(SHOW_CURSOR, terminal.text())

    def test_it_ends_with_its_terminal(self):
        terminal = self.start()
        terminal.close()
        terminal.process.wait(60)
        observer.check_sanitizer(terminal.messages())
        lab.wait_for(lambda: not bpf.attached(self.a, "eth0"), "programs to be detached")

    def test_messages_are_on_the_last_line_and_come_again_after_the_screen(self):
        terminal = Terminal(self.lab, self.a, 24, 80, "top", "-v", "-i", "/eth/",
                            "--interval", "0.3", shows_errors=True)
        self.shows(terminal, "talkers by bytes")
        self.a.ip("link", "add", "eth1", "up", "type", "veth", "peer", "name", "p")
        terminal.wait_for(lambda lines: lines[-1].endswith("eth1: observing"), "the message")
        self.assertEqual(0, terminal.quit()[0])
        _, text = terminal.text().split(NORMAL_SCREEN)
        self.assertIn("netobsctl top: eth1: observing", text)

    def once(self, *arguments):
        process = self.lab.spawn(observer.netobsctl(), "top", "-i", "eth0", "--once",
                                 "--interval", "2", *arguments, ns=self.a, text=True,
                                 stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        while process.poll() is None:
            self.connect()
        out, errors = process.communicate(timeout=60)
        observer.check_sanitizer(errors)
        self.assertEqual(0, process.returncode, errors)
        return out, errors

    def test_once(self):
        out, errors = self.once("--by", "port", "-o", "json", "--stats")
        groups = [json.loads(line) for line in out.splitlines()]
        self.assertEqual(set(PORTS), {one["ServerPort"] for one in groups})
        self.assertEqual(1, len({one["TimeMs"] for one in groups}))
        stats = json.loads(errors.splitlines()[-1])
        self.assertEqual(stats["exported"]["packets"],
                         sum(one["Packets"] for one in groups))
        self.assertGreater(stats["exported"]["packets"], 0)
        out, _ = self.once("-n", "1", "--by", "flow", "tcp", "port", "443")
        lines = out.splitlines()
        self.assertRegex(lines[0], "^TIME +SOURCE → DESTINATION +FLOWS")
        self.assertRegex(lines[1], r" 192\.0\.2\.2:443 → 192\.0\.2\.1:\d+/TCP +1 ")
        self.assertEqual([1], [line.count("(others)") for line in lines[2:]])

    def test_a_reader_that_leaves_ends_it(self):
        process = self.lab.spawn(observer.netobsctl(), "top", "-i", "eth0", "--interval",
                                 "0.2", ns=self.a, text=True, stdout=subprocess.PIPE,
                                 stderr=subprocess.PIPE)
        self.assertRegex(process.stdout.readline(), "CLIENT +SERVICE")
        process.stdout.close()
        self.assertEqual(0, process.wait(60))
        self.assertEqual("", process.stderr.read())

    def test_a_dumb_terminal_gets_lines(self):
        terminal = self.start("--by", "port", TERM="dumb")
        self.connect()
        terminal.wait_for(lambda lines: any(" 443/TCP " in line for line in lines),
                          "a table")
        terminal.process.send_signal(signal.SIGTERM)
        self.check_end(*terminal.end())
        self.assertNotIn("\x1b", terminal.text())

    def test_a_file(self):
        path = capfile.queries(self.lab.path("file.pcap"))
        terminal = Terminal(self.lab, self.a, 24, 80, "top", "-r", path)
        self.shows(terminal, "file.pcap", "In 59.0 s: 60 records, 60 packets",
                   r"10\.0\.0\.1 +10\.1\.0\.1:53/UDP +20 +20 ")
        terminal.type("3")
        self.shows(terminal, r"10\.1\.0\.1 +60 +60 ")
        self.quit(terminal)
        done = observer.run("top", "--once", "-r", path, "-o", "json", "--by", "host")
        self.assertEqual([60, 20, 20, 20], [json.loads(line)["Packets"]
                                            for line in done.stdout.splitlines()])


if __name__ == "__main__":
    lab.main(at_once=4)
