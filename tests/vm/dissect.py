# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
"""What a guest asks of tshark, answered by its host: see tests/e2e/lib/tshark.py."""

import contextlib
import glob
import os
import sys
import threading

from boot import SOURCE

sys.path.append(os.path.join(SOURCE, "tests/e2e"))
from lib import tshark # pylint: disable=wrong-import-position

PAUSE_S = 0.05


@contextlib.contextmanager
def answering(directory):
    """Requests in @directory are answered meanwhile."""
    os.makedirs(directory)
    ended = threading.Event()
    thread = threading.Thread(target=answer_all, args=(directory, ended))
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def answer_all(directory, ended):
    while not ended.wait(PAUSE_S):
        for path in glob.glob(f"{directory}/*.fields"):
            answer(path.removesuffix(".fields"))


def answer(request):
    with open(f"{request}.fields", encoding="ascii") as file:
        fields = file.read().split()
    os.unlink(f"{request}.fields")
    try:
        kind, text = "lines", tshark.run(f"{request}.pcap", fields)
    except RuntimeError as error:
        kind, text = "error", str(error)
    with open(f"{request}.part", "w", encoding="utf-8") as file:
        file.write(text)
    os.rename(f"{request}.part", f"{request}.{kind}")
