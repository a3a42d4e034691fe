# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
# Needs: python3-pyte
"""netobsctl on a terminal of its own, and what that shows."""

import fcntl
import os
import pty
import select
import struct
import termios
import threading

import pyte

from lib import lab
from lib import observer


def take_over():
    os.setsid()
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


class Terminal:
    def __init__(self, where, ns, rows, columns, *arguments, shows_errors=False, **environment):
        self.leader, follower = pty.openpty()
        self.is_closed = False
        self.shows_errors = shows_errors
        self.chunks = []
        self.screen = pyte.Screen(columns, rows)
        self.stream = pyte.ByteStream(self.screen)
        self.drawing = threading.Lock()
        self.resize(rows, columns)
        self.modes = termios.tcgetattr(self.leader)
        self.reader = threading.Thread(target=self.read, daemon=True)
        self.reader.start()
        self.errors = where.path(f"errors-{follower}")
        with open(self.errors, "w", encoding="utf-8") as errors:
            self.process = where.spawn(
                observer.netobsctl(), *arguments, ns=ns, enter=take_over, stdin=follower,
                stdout=follower, stderr=follower if shows_errors else errors,
                env=dict(os.environ, TERM="xterm") | environment)
        os.close(follower)

    def resize(self, rows, columns):
        fcntl.ioctl(self.leader, termios.TIOCSWINSZ,
                    struct.pack("HHHH", rows, columns, 0, 0))
        with self.drawing:
            self.screen.resize(rows, columns)

    def read(self):
        try:
            while not self.is_closed:
                if not select.select([self.leader], [], [], 0.05)[0]:
                    continue
                chunk = os.read(self.leader, 1 << 16)
                self.chunks.append(chunk)
                with self.drawing:
                    self.stream.feed(chunk)
        except OSError:  # the other side is closed
            pass

    def type(self, keys):
        os.write(self.leader, keys.encode())

    def text(self):
        return b"".join(self.chunks).decode(errors="replace")

    def lines(self):
        """What it shows."""
        with self.drawing:
            return [line.rstrip() for line in self.screen.display]

    def colours(self, line):
        with self.drawing:
            return {self.screen.buffer[line][column].fg
                    for column in range(self.screen.columns)}

    def wait_for(self, condition, what):
        """Its lines, once they have this condition."""
        def find():
            lines = self.lines()
            return lines if condition(lines) else None
        try:
            return lab.wait_for(find, what)
        except TimeoutError as error:
            raise AssertionError("\n".join([what, *self.lines()])) from error

    def end(self):
        """Wait for the end: (exit status, standard error)."""
        self.process.wait(60)
        self.close()
        errors = self.messages()
        observer.check_sanitizer(errors)
        return self.process.returncode, errors

    def messages(self):
        if self.shows_errors:
            return self.text()
        return lab.read(self.errors)

    def close(self):
        """Hang up, if the process has not ended."""
        self.is_closed = self.process.poll() is None
        self.reader.join(10)
        os.close(self.leader)

    def quit(self):
        self.type("q")
        return self.end()
