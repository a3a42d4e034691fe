# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
"""A collector of JSON lines at a unix socket, which comes and goes."""

import os
import socket
import threading


class Reader:
    """Takes connections until close(), and then reads the received data to its end."""

    def __init__(self, path, take):
        self.path = path
        self.take = take  # called with each whole line
        self.listener = None
        self.thread = None
        self.peer = None

    def open(self):
        if os.path.exists(self.path):
            os.unlink(self.path)
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(self.path)
        self.listener.listen()
        self.thread = threading.Thread(target=self._accept, daemon=True)
        self.thread.start()
        return self

    def close(self):
        """Wait until the connected client has gone, then do it."""
        self._refuse()
        self._join()

    def drop(self):
        """At once, even if a client is connected; received data is read to its end."""
        self._refuse()  # before the client could connect again
        if self.peer:
            self.peer.shutdown(socket.SHUT_RD)
        self._join()

    def _refuse(self):
        os.unlink(self.path)
        self.listener.shutdown(socket.SHUT_RDWR)

    def _join(self):
        self.thread.join(60)
        self.listener.close()
        if self.thread.is_alive():
            raise TimeoutError("a client is still connected")

    def _accept(self):
        while True:
            try:
                peer, _ = self.listener.accept()
            except OSError:
                return
            self.peer = peer
            with peer, peer.makefile("rb") as lines:
                for line in lines:
                    if line.endswith(b"\n"):
                        self.take(line)
