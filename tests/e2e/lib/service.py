# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
"""netobsctl run under what stands for systemd."""

import json
import os
import signal
import socket
import subprocess
import threading
import time

from lib import lab
from lib import observer
from lib.configuration import Configured
from lib.exact import ExactTest

AGAIN = "the configuration has been read again"
NOBODY = 65534


class Supervisor:
    """What systemd listens with."""

    def __init__(self, where):
        self.path = where.path("notify")
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(self.path)
        os.chmod(self.path, 0o777)
        self.lines = []
        self.noted = {} # times, by line
        self.changed = threading.Condition()
        self.thread = threading.Thread(target=self.read)
        self.thread.start()

    def read(self):
        """All the time: the kernel keeps ten messages and no more."""
        while message := self.socket.recv(4096).decode():
            with self.changed:
                self.lines += message.split("\n")
                for line in self.noted.keys() & set(message.split("\n")):
                    self.noted[line].append(time.monotonic())
                self.changed.notify_all()

    def note_times(self, line):
        """Of each such line from now on, in a list that grows."""
        with self.changed:
            return self.noted.setdefault(line, [])

    def take(self, start):
        for at, line in enumerate(self.lines):
            if line.startswith(start):
                del self.lines[:at + 1]
                return line
        return None

    def wait(self, start, seconds=lab.PATIENCE_S):
        """The next line that begins so."""
        with self.changed:
            found = self.changed.wait_for(lambda: self.take(start), seconds)
        if not found:
            raise TimeoutError(f"waited {seconds} s in vain for {start}")
        return found

    def close(self):
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as end:
            end.sendto(b"", self.path)
        self.thread.join()
        self.socket.close()


def launch(test, ns, lines, within=(), release=False, **options):
    """
    A service in a namespace, with these lines of a configuration, once it is ready.

    @within: what runs it; @options: of Lab.spawn()
    """
    path = test.lab.path("netobs.conf")
    lab.write(path, "\n".join(lines) + "\n")
    if not hasattr(test, "supervisor"):
        test.supervisor = Supervisor(test.lab)
        test.addCleanup(test.supervisor.close)
    service = test.lab.spawn(
        *within, observer.netobsctl(release), "run", "-c", path, ns=ns,
        env=os.environ | {"NOTIFY_SOCKET": test.supervisor.path},
        **{"stdout": subprocess.DEVNULL} | options)
    test.supervisor.wait("READY=1")
    return service


def end_service(test, service):
    """Of one that was launched: it must end well."""
    service.send_signal(signal.SIGTERM)
    test.assertEqual(0, service.wait(lab.PATIENCE_S))


def status_of(control):
    """What the service at this socket answers."""
    return json.loads(observer.run("status", "-s", control, "-o", "json").stdout)


class ServiceTest(Configured, ExactTest):
    """A service in namespace a, and its configuration."""

    def setUp(self):
        super().setUp()
        self.path = self.lab.path("netobs.conf")
        self.control = self.lab.path("control.sock")
        self.join(offload=False, ipv6=False)
        self.supervisor = Supervisor(self.lab)
        self.addCleanup(self.supervisor.close)

    def write(self, *parts, sinks=("a",), interfaces=("eth0",), more=""):
        """@sinks have a file each."""
        lines = ["[capture]", *(f"interface = {name}" for name in interfaces), more,
                 "[flows]", "interval = 200ms", "[service]", "log_level = info", *parts]
        for name in sinks:
            lines += [f'[sink "{name}"]', f"output = json:{self.lab.path(name)}"]
        lines += ["[control]", f"path = {self.control}"]
        lab.write(self.path, "\n".join(lines) + "\n")

    def spawn(self, *command, program=None, release=False, **environment):
        """Start without waiting for it."""
        with open(self.lab.path("messages"), "wb") as messages:
            self.process = self.lab.spawn(
                *command, program or observer.netobsctl(release), "run", "-c", self.path,
                ns=self.a, stderr=messages, stdout=-3,
                env=os.environ | {"NOTIFY_SOCKET": self.supervisor.path} | environment)

    def start(self, *command, program=None, release=False, **environment):
        """@command: what runs it; strace stays its parent."""
        self.spawn(*command, program=program, release=release, **environment)
        try:
            self.supervisor.wait("READY=1")
        except TimeoutError as error:
            raise RuntimeError(self.messages()) from error
        self.pid = self.process.pid
        if "strace" in command:
            self.pid = int(lab.read(f"/proc/{self.pid}/task/{self.pid}/children"))

    def start_as_nobody(self, rights, *before, release=False):
        """With these rights only. @before: what runs it"""
        self.start(*before, "setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups",
                   f"--bounding-set={rights}", f"--inh-caps={rights}", f"--ambient-caps={rights}",
                   "--no-new-privs", program=observer.program_for_all(self.lab, release))

    def messages(self):
        return lab.read(self.lab.path("messages"))

    def status(self):
        return status_of(self.control)

    def reload(self, *expected):
        before = [self.messages().count(words) for words in expected]
        os.kill(self.pid, signal.SIGHUP)
        os.kill(self.pid, signal.SIGCONT) # the test may have stopped it
        self.supervisor.wait("RELOADING=1")
        self.assertGreater(int(self.supervisor.wait("MONOTONIC_USEC=")[15:]), 0)
        self.supervisor.wait("READY=1")
        for words, count in zip(expected, before):
            self.assertGreater(self.messages().count(words), count, self.messages())

    def stop(self, code=0):
        os.kill(self.pid, signal.SIGTERM)
        self.supervisor.wait("STOPPING=1")
        self.process.wait(lab.PATIENCE_S)
        observer.check_sanitizer(self.messages())
        self.assertEqual(code, self.process.returncode, self.messages())

    def memory(self):
        """What is the process's own, in KiB."""
        return int(lab.status_of(self.pid)["RssAnon"])

    def stats(self):
        """The totals, of the last lines."""
        lines = [line for line in self.messages().split("\n") if '{"seen"' in line]
        return json.loads(lines[-1][lines[-1].index("{"):])

    def packets(self, *names):
        """Of records in the files of these sinks."""
        total = 0
        for name in names:
            with open(self.lab.path(name), encoding="utf-8") as file:
                total += sum(json.loads(line)["Packets"] for line in file)
        return total

    def exported(self):
        stats = self.stats()
        self.assertEqual(0, sum(part["packets"] for part in stats["lost"].values()))
        self.assertEqual(stats["seen"]["packets"],
                         stats["exported"]["packets"] + stats["filtered"]["packets"] +
                         sum(part["packets"] for part in stats["unparsed"].values()))
        return stats["exported"]["packets"]
