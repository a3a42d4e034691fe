# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
"""
Processes and interfaces whose names are any bytes, in each output: a terminal gets no control
character of theirs, JSON and IPFIX are UTF-8, and metrics are what Prometheus reads.
"""

import json
import os
import re
import signal
import socket
import time
import unicodedata

from lib import bpf
from lib import ipfix
from lib import lab
from lib import metrics
from lib.service import ServiceTest
from lib.talkers import PR_SET_NAME, child, join
from lib.terminal import Terminal

OWN_ESCAPES = re.compile(r"\x1b(\[[0-9;?]*[A-Za-z]|[()][A-Z0-9]|[=>78M])")
FIXED = 15 # bytes of a name
STRING = 13 # informationElementDataType
ROUNDS = 3

# What each verb shows on a terminal of its own, beside the service.
VERBS = {
    "flows": ("flows", "-i", "/./", "--process", "-o", "table", "--interval", "0.5"),
    "flows, json": ("flows", "-i", "/./", "--process", "-o", "json", "--interval", "0.5"),
    "groups": ("flows", "-i", "/./", "--process", "--by", "process,interface", "--interval", "0.5"),
    "groups, json": ("flows", "-i", "/./", "--process", "--by", "process,interface", "-o", "json",
                     "--interval", "0.5"),
    "live": ("flows", "--live", "--socket", "{control}", "-o", "json"),
    "live, table": ("flows", "--live", "--socket", "{control}", "-o", "table"),
    "sessions": ("sessions", "-o", "table", "-v", "-B", "64M"),
    "sessions, json": ("sessions", "-o", "json", "-v", "-B", "64M"),
    "tcp": ("tcp", "-i", "/./", "--process"),
    "alerts": ("alerts", "-i", "/./", "--process", "--rule", "rate > 1bit", "-o", "table"),
    "alerts, json": ("alerts", "-i", "/./", "--process", "--rule", "rate > 1bit", "-o", "json"),
    "top": ("top", "-i", "/./", "--once", "--process"),
}
# Those that end by themselves, when all is there.
QUESTIONS = {
    "status": ("status", "-s", "{control}"),
    "status, json": ("status", "-s", "{control}", "-o", "json"),
    "metrics": ("metrics", "-s", "{control}"),
    "metrics, json": ("metrics", "-s", "{control}", "-o", "json"),
    "check": ("check",),
    "check, json": ("check", "-o", "json"),
}


def names(bad, mark):
    """All bytes but @bad ones, and U+0080 to U+009F, in names that begin with @mark and a number."""
    characters = [bytes([byte]) for byte in range(1, 256) if byte not in bad]
    characters += [chr(code).encode() for code in range(0x80, 0xa0)]
    found = [b""]
    for character in characters:
        if len(found[-1]) + len(character) > FIXED:
            found.append(b"")
        found[-1] = (found[-1] or b"%s%02d" % (mark, len(found))) + character
    return found


# /proc and the kernel refuse these for interfaces: "/", ":", blanks; "%" is a pattern.
INTERFACES = names(b"/:% \t\n\v\f\r\xa0", b"i")
PROCESSES = names(b"", b"p")


def ask(port, name):
    lab.LIBC.prctl(PR_SET_NAME, name, 0, 0, 0)
    with socket.create_connection(("127.0.0.1", port)) as connection:
        connection.sendall(b"hello")
        connection.recv(5)
        time.sleep(0.6)


class AnyBytes(ServiceTest):
    def setUp(self):
        super().setUp()
        self.a.up("lo")
        for i, name in enumerate(map(os.fsdecode, INTERFACES)):
            self.a.ip("link", "add", name, "type", "veth", "peer", "name", f"peer{i}", "netns",
                      self.b.name)
            self.a.ip("addr", "add", f"10.0.{i}.1/24", "dev", name)
            self.a.ip("link", "set", name, "arp", "off", "up")
            self.b.up(f"peer{i}")

    def serve(self, listener):
        lab.LIBC.prctl(PR_SET_NAME, b"server", 0, 0, 0)
        while True:
            connection, _ = listener.accept()
            connection.sendall(connection.recv(5))
            connection.close()

    def talk(self):
        """Each process, and a packet on each interface."""
        with self.a:
            listener = socket.create_server(("127.0.0.1", 0), backlog=100)
            sender = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        server = child(self.serve, listener, ns=self.a)
        for _ in range(ROUNDS):
            for i in range(len(INTERFACES)):
                sender.sendto(b"hello", (f"10.0.{i}.2", 9))
            join([child(ask, listener.getsockname()[1], name, ns=self.a) for name in PROCESSES])
        lab.run("kill", "-9", server)
        listener.close()
        sender.close()

    def check_terminal(self, terminal):
        text = OWN_ESCAPES.sub("", b"".join(terminal.chunks).decode())  # all of it is UTF-8
        bad = {character for character in text
               if unicodedata.category(character) == "Cc" and character not in "\r\n\b\t"}
        self.assertEqual(set(), bad)
        return text

    def arguments(self, verb):
        return [part.format(control=self.control) for part in verb]

    def read_strings(self, path):
        """Each text of an IPFIX file, by its element; netobs describes its own ones."""
        session, found, types = ipfix.Session(), [], {82: STRING}
        with open(path, "rb") as file:
            for message in ipfix.split(file.read()):
                found += [one.fields for one in session.read(message).sets
                          if isinstance(one, ipfix.Record)]
        for fields in found:
            if 339 in fields:
                key = tuple(ipfix.number(fields[element]) for element in (346, 303))
                types[key[0], key[1] & 0x7fff] = ipfix.number(fields[339])
        return {element: {ipfix.text(fields[element]) for fields in found if element in fields}
                for element, kind in types.items() if kind == STRING}

    def show(self, verb):
        return Terminal(self.lab, self.a, 50, 200, *self.arguments(verb), shows_errors=True)

    def await_all(self, terminals):
        """Until they observe: their programs are beside those of the service, or they say so."""
        beside = [what for what in terminals if not what.startswith(("live", "sessions"))]
        for name in map(os.fsdecode, INTERFACES):
            lab.wait_for(lambda one=name: bpf.attached(self.a, one) == 2 * (1 + len(beside)),
                         "all to observe")
        for what in "sessions", "sessions, json":
            lab.wait_for(lambda one=what: "following the TCP sockets" in terminals[one].text(),
                         what)
        for what in "live", "live, table":
            lab.wait_for(lambda one=what: self.is_connected(terminals[one].process.pid), what)

    @staticmethod
    def is_connected(pid):
        """It has no socket but the one of its request."""
        directory = f"/proc/{pid}/fd"
        return any(os.readlink(f"{directory}/{fd}").startswith("socket:")
                   for fd in os.listdir(directory))

    def test_names_of_any_bytes(self):
        self.write("[sessions]", "enabled = yes",
                   '[sink "ipfix"]', f"output = ipfix:file:{self.lab.path('ipfix')}",
                   "record = extended", "records = flow,session",
                   '[sink "all"]', f"output = json:{self.lab.path('all')}",
                   "records = flow,session",
                   "[metrics]", f"listen = unix:{self.lab.path('metrics')}",
                   interfaces=("/./",), more="process = yes")
        self.start()
        terminals = {what: self.show(verb) for what, verb in VERBS.items() if what != "top"}
        self.await_all(terminals)
        terminals["top"] = self.show(VERBS["top"])
        self.talk()
        for what, verb in QUESTIONS.items():
            terminals[what] = self.show(verb)
        scraped = metrics.get(self.lab.path("metrics"))
        for what in VERBS.keys() - {"tcp", "top"}:
            terminals[what].process.send_signal(signal.SIGINT)
        terminals["tcp"].type("q")
        shown = {}
        for what, terminal in terminals.items():
            terminal.end()
            with self.subTest(what):
                shown[what] = self.check_terminal(terminal)
        self.stop()
        self.check_files(scraped)
        self.check_shown(shown)

    def check_files(self, scraped):
        with open(self.lab.path("all"), "rb") as file:
            text = file.read().decode()
        self.assertEqual(set(), {c for c in text if unicodedata.category(c) == "Cc"} - {"\n"})
        records = [json.loads(line) for line in text.splitlines()]
        expected = {name.decode(errors="replace") for name in PROCESSES}
        seen = {record.get("Process") for record in records} | \
            {record.get("SrcProcess") for record in records}
        self.assertEqual(expected, {name.encode("utf-8", "replace").decode() for name in seen
                                    if name and re.match(r"p\d\d", name)})
        interfaces = {name for record in records for name in record.get("Interfaces", ())}
        self.assertEqual({name.decode(errors="replace") for name in INTERFACES},
                         {name for name in interfaces if re.match(r"i\d\d", name)})
        texts = self.read_strings(self.lab.path("ipfix"))
        for names_of, mark in ((PROCESSES, "p"), (INTERFACES, "i")):
            numbers = {name[:3].decode() for name in names_of}
            self.assertLessEqual(numbers, {one[:3] for all_of in texts.values() for one in all_of},
                                 mark)
        self.assertNotRegex(scraped.decode() if isinstance(scraped, bytes) else str(scraped),
                            "[\x00-\x09\x0b-\x1f\x7f-\x9f]")

    def check_shown(self, shown):
        """Names were there to be shown."""
        for what, mark in (("flows, json", "p"), ("groups", "p"), ("groups, json", "i"),
                           ("live", "p"), ("sessions", "p"), ("sessions, json", "p"),
                           ("status, json", "i"), ("metrics", "i"),
                           ("metrics, json", "i")):
            with self.subTest(what):
                self.assertGreater(len(set(re.findall(rf"\b{mark}\d\d", shown[what]))), 5)


if __name__ == "__main__":
    lab.main()
