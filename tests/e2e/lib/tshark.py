# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
# Needs: tshark
"""
Capture files as tshark sees them. It takes seconds to start in an emulated machine, so a
guest passes its files to its host (tests/vm/dissect.py).
"""

import itertools
import os
import shutil

from lib import lab

ABSENT = "/nonexistent"
AT_HOST = os.environ.get("NETOBS_TEST_TSHARK") # a directory that guest and host share
numbers = itertools.count()


def dissect(file, fields):
    """A line for each packet: all values of @fields, separated by tabs and commas."""
    return ask(file, fields) if AT_HOST else run(file, fields)


def run(file, fields):
    """Reassembling nothing."""
    command = ["tshark", "-r", "-", "-n", "-T", "fields", "-E",
               "occurrence=a", "-E", "separator=/t",
               "-o", "ip.defragment:FALSE", "-o", "ipv6.defragment:FALSE",
               "-o", "tcp.desegment_tcp_streams:FALSE",
               "-o", "tcp.analyze_sequence_numbers:FALSE"]
    for field in fields:
        command += ["-e", field]
    # It starts in half the time without its tables of names, but not for root.
    environment = {**os.environ, "HOME": ABSENT, "WIRESHARK_DATA_DIR": ABSENT}
    with open(file, "rb") as packets:
        return lab.run(*command, stdin=packets, env=environment, user="nobody",
                       group="nogroup", extra_groups=[])


def ask(file, fields):
    request = os.path.join(AT_HOST, f"{os.getpid()}-{next(numbers)}")
    shutil.copyfile(file, f"{request}.pcap")
    lab.write(f"{request}.part", "\n".join(fields))
    os.rename(f"{request}.part", f"{request}.fields")
    answer = lab.wait_for(lambda: find_answer(request), "the host's tshark", 120)
    with open(answer, encoding="utf-8") as text:
        if answer.endswith(".error"):
            raise RuntimeError(text.read())
        return text.read()


def find_answer(request):
    return next((path for path in (f"{request}.lines", f"{request}.error")
                 if os.path.exists(path)), None)
