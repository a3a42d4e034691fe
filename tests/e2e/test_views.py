# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
# Needs: netbase
"""Groups of flows: exact sums, the live table on a terminal, its keys, and names."""

import collections
import re
import signal
import socket

from lib import bpf
from lib import capfile
from lib import lab
from lib import observer
from lib import traffic
from lib.terminal import Terminal

ESCAPE = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
HOME, HIDE, SHOW, RED = "\x1b[H", "\x1b[?25l", "\x1b[?25h", "\x1b[1;31m"
PORTS = (22, 80, 443)
MANY = max(lab.sized(400_000), 100_000) # more than 32 MiB have room for


class LiveTable(Terminal):
    """`netobsctl flows`, and each of its refreshes."""

    def __init__(self, where, ns, rows, columns, *arguments, **environment):
        super().__init__(where, ns, rows, columns, "flows", "-i", "eth0", "--interval",
                         "0.3", *arguments, **environment)
        lab.wait_for(lambda: bpf.attached(ns, "eth0") == 2 and self.screens(),
                     "the live table")

    def screens(self):
        """Lines of each refresh that has come as a whole."""
        return [ESCAPE.sub("", screen).replace("\r", "").split("\n")
                for screen in self.text().split(HOME)[1:] if SHOW in screen]

    def wait(self, condition, what):
        """The lines of a screen with this condition."""
        def find():
            return next((lines for lines in reversed(self.screens())
                         if condition(lines)), None)
        return lab.wait_for(find, what)


class Views(lab.WiredTest):
    def connect(self, times):
        """Short connections to a few services."""
        for _ in range(times):
            for port in PORTS:
                traffic.tcp(self.a, "192.0.2.1", self.b, "192.0.2.2", 100,
                            port=port, answer=5000)

    def send(self):
        self.connect(3)
        traffic.udp(self.a, "192.0.2.1", self.b, "192.0.2.2", [972] * 30, port=53)
        traffic.ping(self.a, "192.0.2.2", 10)

    def groups(self, *runs):
        """The objects of each run, of the same traffic, by keys' values, and the totals."""
        watches = [observer.Observer(self.lab, self.a, "-i", "eth0", "--interval", "0.3", "--by",
                                     *arguments).wait_attached((self.a, "eth0")) for arguments in runs]
        self.send()
        results = [watch.stop() for watch in watches]
        for result in results:
            result.check_identity()
        return results

    def sums(self, result, packets="Packets", octets="Bytes"):
        return (sum(group[packets] for group in result.records),
                sum(group[octets] for group in result.records))

    def test_groups_have_the_totals_of_the_flows(self):
        keys = ("src", "dst", "client,service", "pair", "port", "proto", "interface,direction", "vlan,tunnel")
        for one, result in zip(keys, self.groups(*((key,) for key in keys))):
            with self.subTest(one):
                self.assertEqual(result.total("exported"), self.sums(result))
                self.assertEqual({"group"}, {group["type"] for group in result.records})

    def test_groups_are_those_of_the_traffic(self):
        hosts, services, largest = self.groups(("host",), ("service",),
                                               ("service", "--top", "1", "--sort", "packets"))
        self.assertEqual(hosts.total("exported"), self.sums(hosts, "SentPackets", "SentBytes"))
        packets, octets = hosts.total("exported")
        self.assertEqual((2 * packets, 2 * octets), self.sums(hosts))
        self.assertEqual({"192.0.2.1", "192.0.2.2"}, {one["HostAddr"] for one in hosts.records})
        expected = {("192.0.2.2", 6, port) for port in PORTS}
        expected |= {("192.0.2.2", 17, 53), ("192.0.2.2", 1, None)}
        self.assertEqual(expected, {(one["ServerAddr"], one["Proto"], one.get("ServerPort"))
                                    for one in services.records})
        self.assertEqual(20, sum(one["Packets"] for one in services.records if one["Proto"] == 1))
        # What is left out is in the sum.
        self.assertEqual(largest.total("exported"), self.sums(largest))
        by_time = collections.defaultdict(list)
        for one in largest.records:
            by_time[one["TimeMs"]].append(one["type"])
        for types in by_time.values():
            self.assertIn(types, (["group"], ["group", "others"]))

    def test_groups_of_a_file_are_of_one_interval(self):
        path = capfile.queries(self.lab.path("file.pcap"))
        run = observer.flows(self.lab, "-r", path, "--by", "src,service", "-o", "json")
        self.assertEqual([20, 20, 20], [one["Flows"] for one in run.records])
        self.assertEqual({53}, {one["ServerPort"] for one in run.records})
        run = observer.flows(self.lab, "-r", path, "--by", "src", "--sort", "src",
                             "--top", "2", "-o", "table")
        with run.lines() as file:
            lines = [line.split() for line in file]
        self.assertEqual(["SOURCE", "10.0.0.1", "10.0.1.1", "(others)"],
                         [lines[0][1]] + [line[2] for line in lines[1:4]])
        self.assertEqual(["60", "flows,"], lines[4][:2])

    def check_fits(self, screens, rows, columns):
        for lines in screens:
            # It never scrolls away, and no line wraps.
            self.assertLessEqual(len(lines), rows)
            self.assertLessEqual(max(map(len, lines)), columns)

    def test_the_live_table_shows_services_of_many_connections(self):
        for rows, columns in ((24, 80), (60, 200), (8, 40)):
            with self.subTest(f"{rows} x {columns}"):
                terminal = LiveTable(self.lab, self.a, rows, columns)
                self.connect(30)
                lines = terminal.wait(lambda lines: any(":443/TCP" in line
                                                        for line in lines),
                                      "a service")
                self.assertRegex(lines[0], "eth0, .*  p pause  q quit$")
                self.assertRegex(lines[1], r"^\d+ flows, \d+ packets")
                self.assertEqual(["CLIENT", "SERVICE"], lines[2].split()[:2])
                self.assertLessEqual(len(lines), 3 + len(PORTS) + 1)
                self.assertEqual((0, ""), terminal.quit())
                self.check_fits(terminal.screens(), rows, columns)
                self.assertGreater(terminal.text().rfind(SHOW), terminal.text().rfind(HIDE))
                if columns == 80:
                    self.assertIn("; 0 lost", lines[1])
                    self.assertIn("eth0, every 0.3 s", lines[0])
                    for line in lines:
                        self.note(line)

    def test_more_rows_than_the_screen_has_are_left_out(self):
        terminal = LiveTable(self.lab, self.a, 8, 80, "--by", "flow")
        self.connect(30)
        terminal.wait(lambda lines: any("192.0.2.2:" in line for line in lines), "flows")
        self.assertEqual((0, ""), terminal.quit())
        self.check_fits(terminal.screens(), 8, 80)

    def test_a_pause_keeps_the_screen_and_all_counts(self):
        terminal = LiveTable(self.lab, self.a, 24, 80, "--by", "proto")
        traffic.ping(self.a, "192.0.2.2", 2)
        terminal.wait(lambda lines: "ICMP" in str(lines), "a ping")
        terminal.type("xp")
        terminal.wait(lambda lines: "PAUSED" in lines[0], "the pause")
        shown = len(terminal.screens())
        self.send()
        self.assertEqual(shown, len(terminal.screens()))
        terminal.type("p")
        lines = terminal.wait(lambda lines: any(line.startswith("UDP") for line in lines),
                              "all that came in the pause")
        udp = next(line for line in lines if line.startswith("UDP"))
        self.assertEqual("30", udp.split()[2])
        self.assertEqual((0, ""), terminal.quit())

    def test_another_size_is_used_at_once(self):
        terminal = LiveTable(self.lab, self.a, 24, 80, "--by", "flow", "--interval", "60")
        terminal.resize(6, 30)
        terminal.process.send_signal(signal.SIGWINCH)
        terminal.wait(lambda lines: max(map(len, lines)) <= 30, "a smaller table")
        self.assertEqual((0, ""), terminal.quit())

    def test_losses_are_on_the_screen(self):
        for environment, is_red in ({}, True), ({"NO_COLOR": "1"}, False):
            terminal = LiveTable(self.lab, self.a, 24, 80, "--max-memory", "32M",
                                **environment)
            terminal.process.send_signal(signal.SIGSTOP)  # tables fill up
            traffic.flood(self.lab, self.a, "eth0", "--flows", MANY,
                          "--packets", MANY)
            terminal.process.send_signal(signal.SIGCONT)
            terminal.wait(lambda lines: re.match(r"[1-9]\w* lost", lines[1]), "a loss")
            self.assertEqual(is_red, RED in terminal.text())
            self.assertEqual(0, terminal.quit()[0])

    def test_an_outage_of_a_sink_stays_on_the_screen(self):
        with self.a:
            free = socket.create_server(("127.0.0.1", 0))
            port = free.getsockname()[1]
            free.close()
        self.a.up("lo")
        spec = f"ipfix:tcp://127.0.0.1:{port}"
        live = LiveTable(self.lab, self.a, 24, 100, "-o", "table", "-o", spec)
        words = f"{spec}: nothing delivered since "
        traffic.ping(self.a, "192.0.2.2", 1)
        live.wait(lambda lines: any(words in line for line in lines), "the outage")
        before = len(live.screens())
        lab.wait_for(lambda: len(live.screens()) > before + 3, "further refreshes")
        for lines in live.screens()[before:]:
            self.assertRegex("\n".join(lines), words + r"\d\d:\d\d:\d\d.*\d+ records wait")
        with self.a:
            server = socket.create_server(("127.0.0.1", port))
        live.wait(lambda lines: not any(words in line for line in lines), "its end")
        live.type("q")
        live.end()
        server.close()

    def test_names_take_the_place_of_numbers(self):
        self.a.hosts("192.0.2.1 client.example", "192.0.2.2 web.example")
        terminal = LiveTable(self.lab, self.a, 24, 80, "-N")
        self.connect(3)
        terminal.wait(lambda lines: "client.example" in str(lines) and
                      "web.example:https/TCP" in str(lines), "names")
        self.assertEqual((0, ""), terminal.quit())


if __name__ == "__main__":
    lab.main(at_once=4)
