# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
"""Clients of a server that send noise, or nothing, and one that asks all the time, during a flood."""

import contextlib
import http.client
import os
import socket
import threading
import time

from lib import lab
from lib import traffic

MALFORMED = lab.sized(10000)
SLOW = 200 # more than there is room for


class Attacked:
    """Of a test whose server is in self.a: reach() connects to it, malformed() is what no client sends,
    ask() asks and checks, @return whether there was an answer."""

    def attack(self, count):
        for _ in range(count):
            with contextlib.suppress(OSError): # the server has closed it
                with self.reach() as client:
                    client.sendall(self.malformed())
                    if self.random.randrange(2):
                        client.shutdown(socket.SHUT_WR)

    def ask_often(self, is_over, answers, errors):
        while not is_over.is_set():
            try:
                answers.append(self.ask())
            except (OSError, http.client.HTTPException):
                pass # cut with the slow ones, where these crowd
            except Exception as error: # pylint: disable=broad-except
                errors.append(error)
                return
            time.sleep(0.01)

    def withstand(self, pid, memory, begin, *flood):
        """@memory: what the process has now. @begin: of a slow request. @return descriptors that it took at most"""
        def fds():
            return len(os.listdir(f"/proc/{pid}/fd"))

        is_over, answers, errors = threading.Event(), [], []
        self.attack(500)
        self.ask()
        had, open_before = memory(), fds()
        asker = threading.Thread(target=self.ask_often, args=(is_over, answers, errors))
        asker.start()
        flood = traffic.start_flood(self.lab, self.a, "eth0", "--rate", lab.sized(20000), *flood)
        slow = [self.reach() for _ in range(SLOW)]
        for client in slow:
            with contextlib.suppress(OSError): # it has made room
                client.send(begin)
        self.attack(MALFORMED)
        most = fds()
        for client in slow:
            client.close()
        flood.wait(timeout=60)
        is_over.set()
        asker.join()
        lab.wait_for(lambda: fds() <= open_before, "descriptors to be closed")
        grown = memory() - had
        self.assertEqual([], errors)
        self.assertGreater(sum(answers), 10)
        self.assertLess(grown, 4 << 20)
        self.note(f"{MALFORMED} malformed requests, {sum(answers)} answers: {grown >> 10} KiB more")
        return most - open_before
