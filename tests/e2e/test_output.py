# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
"""What comes out, and where: lines, tables, a terminal, several at once."""

import json
import re
import signal
import socket
import subprocess
import threading
import time

from lib import bpf
from lib import lab
from lib import observer
from lib import traffic
from lib.terminal import Terminal


class Output(lab.WiredTest):
    def start(self, *arguments, stdout=subprocess.PIPE):
        process = self.lab.spawn(
            observer.netobsctl(), "flows", "-i", "eth0", "--interval", "0.2",
            *arguments, ns=self.a, stdout=stdout, stderr=subprocess.PIPE,
            text=True)
        lab.wait_for(lambda: bpf.attached(self.a, "eth0") == 2, "netobsctl")
        return process

    def finish(self, process):
        out, errors = observer.interrupt(process)
        self.assertEqual("", errors)
        self.assertEqual(0, bpf.attached(self.a, "eth0"))
        return out

    def test_table_into_a_pipe(self):
        process = self.start("-o", "table")
        traffic.ping(self.a, "192.0.2.2", 10)
        traffic.udp(self.a, "192.0.2.1", self.b, "192.0.2.2", [972] * 30)
        lines = self.finish(process).rstrip("\n").split("\n")
        self.assertEqual(1, sum("PACKETS" in line.upper() for line in lines))
        self.assertNotIn("\x1b", "".join(lines))
        udp = [line for line in lines if ":5002" in line]
        self.assertTrue(udp)
        self.assertEqual(30, sum(int(number) for line in udp
                                 for number in [self.column(lines, line)]))
        for word in ("UDP", "192.0.2.1"):
            self.assertIn(word, udp[0])
        self.assertTrue(any("ICMP" in line for line in lines))
        self.note(udp[0])

    @staticmethod
    def column(lines, line):
        """What stands under PACKETS: numbers are aligned to the right."""
        heading = lines[0].upper()
        end = heading.index("PACKETS") + len("PACKETS")
        return line[:end].split()[-1]

    def test_json_is_the_default_without_a_terminal(self):
        process = self.start()
        traffic.ping(self.a, "192.0.2.2", 10)
        records = [json.loads(line)
                   for line in self.finish(process).splitlines()]
        self.assertEqual(20, sum(record["Packets"] for record in records))

    def test_lines_are_out_after_each_interval(self):
        path = self.lab.path("lines")
        with open(path, "w", encoding="utf-8") as file:
            process = self.start("-o", "json", stdout=file)
        for count in (1, 2, 3):
            traffic.ping(self.a, "192.0.2.2", 1)
            lab.wait_for(lambda n=count: self.packets(path) == 2 * n,
                         f"{count} pings in the file")
        self.finish(process)

    def packets(self, path):
        """All lines are whole, at any time."""
        text = lab.read(path)
        self.assertTrue(text == "" or text.endswith("\n"))
        return sum(json.loads(line)["Packets"] for line in text.splitlines())

    def test_several_outputs(self):
        paths = [self.lab.path(name) for name in ("one", "two")]
        process = self.start("-o", "table", "-o", f"json:{paths[0]}", "-o",
                             f"json:{paths[1]}")
        traffic.ping(self.a, "192.0.2.2", 25)
        out = self.finish(process)
        self.assertIn("ICMP", out)
        self.assertEqual([50, 50], [self.packets(path) for path in paths])

    def test_statistics_beside_the_flows(self):
        path = self.lab.path("lines")
        process = self.start("-o", f"json:{path}?records=flow,stats")
        traffic.ping(self.a, "192.0.2.2", 10)
        self.finish(process)
        records = lab.json_lines(path)
        stats = [record for record in records if "type" in record]
        flows = [record for record in records if "type" not in record]
        self.assertEqual({"stats"}, {record["type"] for record in stats})
        self.assertEqual(stats[-1], records[-1])
        for name, field in ("packets", "Packets"), ("bytes", "Bytes"):
            exported = sum(flow[field] for flow in flows)
            self.assertEqual(exported, stats[-1]["exported"][name])
            self.assertGreaterEqual(stats[-1]["seen"][name], exported)
        times = [record["TimeMs"] for record in stats]
        self.assertEqual(sorted(times), times)

    def time_to_end(self, sinks):
        """How long it takes to end when so many of them are away."""
        options = [part for n in range(sinks)
                   for part in ("-o", f"json:unix:{self.lab.path(f'none{n}')}")]
        process = self.start(*options)
        traffic.ping(self.a, "192.0.2.2", 10)
        time.sleep(1)
        start = time.monotonic()
        _, errors = observer.interrupt(process, 1)
        lost = re.findall(r"(none\d): \d+ records were not delivered", errors)
        self.assertEqual([f"none{n}" for n in range(sinks)], sorted(lost), errors)
        return time.monotonic() - start

    def test_sinks_that_are_away_are_waited_for_together(self):
        one, four = self.time_to_end(1), self.time_to_end(4)
        self.note(f"1 sink: {one:.1f} s, 4 sinks: {four:.1f} s")
        self.assertLess(four, 1.8 * one)

    def test_drops_are_told_when_they_begin_and_when_they_end(self):
        path = self.lab.path("socket")
        process = self.start("--interval", "0.05", "-o",
                             f"json:unix:{path}?spool.max_bytes=1M")
        flood = traffic.start_flood(self.lab, self.a, "eth0", "--flows", 500,
                                    "--seconds", 60, "--rate", 20000)
        words = []
        with open(process.stderr.fileno(), encoding="utf-8", closefd=False) as lines:
            for line in lines:
                words.append(line)
                if "records are dropped" in line:
                    break
            self.assertIn("spool_full", words[-1])
            flood.terminate()
            flood.wait()
            with socket.socket(socket.AF_UNIX) as listener:
                listener.bind(path)
                listener.listen()
                peer, _ = listener.accept()
            with peer:
                drain = threading.Thread(target=lambda: peer.makefile("rb").read())
                drain.start()
                for line in lines:
                    words.append(line)
                    if "no more records are dropped" in line:
                        break
                process.send_signal(signal.SIGINT)
                process.wait()
                drain.join()
        self.assertRegex(words[-1], r"socket: no more .* \d+ were")
        self.assertEqual(1, sum("can be written to again" in line for line in words))

    def test_terminal_that_cannot_move_its_cursor(self):
        """Nor what it shows: columns are those of the first rows, also behind intervals without any."""
        terminal = Terminal(self.lab, self.a, 24, 80, "flows", "-i", "eth0", "--interval", "0.2", TERM="dumb")
        lab.wait_for(lambda: bpf.attached(self.a, "eth0") == 2, "netobsctl")
        time.sleep(1)
        flood = traffic.start_flood(self.lab, self.a, "eth0", "--flows", 200,
                                    "--seconds", 60, "--rate", 5000)
        lab.wait_for(lambda: " 10.0.0.1:1" in terminal.text(), "enough on the terminal")
        flood.terminate()
        flood.wait()
        terminal.process.send_signal(signal.SIGINT)
        self.assertEqual((0, ""), terminal.end())
        self.assertEqual(0, bpf.attached(self.a, "eth0"))
        self.assertNotIn("\x1b", terminal.text())


if __name__ == "__main__":
    lab.main(at_once=4)
