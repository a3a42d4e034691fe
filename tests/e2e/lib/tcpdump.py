# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
"""The end of a tcpdump that is the truth: its file has all that went by, however late it gets the CPU."""

import signal
import time

from lib import lab

QUIET_S = 0.3


def await_rest(process):
    """Until its counts, which it writes at SIGUSR1, have been the same for a while."""
    def counts():
        process.send_signal(signal.SIGUSR1)
        return process.stderr.readline()

    def is_at_rest():
        before = counts()
        time.sleep(QUIET_S)
        return before == counts()
    lab.wait_for(is_at_rest, "tcpdump to have read all packets")
