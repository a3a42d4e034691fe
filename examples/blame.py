#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
"""
blame.py: two hosts, which are network namespaces, a client and a server on them, one fault after the other, and
what netobsctl diagnose says of it. It ends by itself, or on ^C.
"""

import atexit
import os
import select
import signal
import sys
import time

sys.path.append(os.path.join(os.path.dirname(__file__), "..", "tests", "e2e"))
# pylint: disable=wrong-import-position
from lib import fault_run
from lib import lab

SEED = 1 # of which the rival sends by UDP
BEFORE_S, FAULT_S = 5, 5
EXIT_INTERRUPTED = 130
FAULTS = (
    ("thinks", "b", "The server takes longer to answer."),
    ("cpu", "b", "A neighbour uses up the CPU quota of the server's control group."),
    ("rival", "a", "Another process of the client's host fills its uplink."),
    ("nft", "b", "A firewall rule of the server's host drops some packets."),
    ("loss", "b", "The network loses some packets."),
)
# Stands for ssh: host B is namespaces of this machine, with a name of their own.
SSH = """#!/bin/sh
for command; do :; done
command=$(echo "$command" | sed 's/--collect/& {spaces}/')
PATH={directory}:$PATH exec unshare --uts sh -c "hostname hostb; exec $command"
"""


class Fault(fault_run.Run):
    def trace(self):
        """Diagnose does."""

    def spaces(self, host):
        return " ".join(f"--netns {ns.name}" for ns in host.spaces())

    def diagnose(self):
        """@return the command, which collects by now"""
        program, ssh = os.environ["NETOBSCTL"], self.lab.path("ssh")
        lab.write(ssh, SSH.format(directory=os.path.dirname(program), spaces=self.spaces(self.b)))
        os.chmod(ssh, 0o755)
        terminal, errors = os.openpty()
        process = self.lab.spawn(
            "unshare", "--uts", "sh", "-c",
            f"hostname hosta; exec {program} diagnose {self.spaces(self.a)} --ssh {ssh} --with hostb "
            f"--before {BEFORE_S} --for {FAULT_S} {fault_run.EXPRESSION}", stdin=-3, stderr=errors)
        os.close(errors)
        if not select.select([terminal], [], [], lab.PATIENCE_S)[0]:
            raise TimeoutError("netobsctl diagnose does not begin")
        text = os.read(terminal, 1000).decode()
        if "collecting" not in text:
            raise RuntimeError(text)
        return process

    def show(self):
        self.start_apps()
        process = self.diagnose()
        time.sleep(BEFORE_S)
        self.until = time.time() + FAULT_S
        self.kind.function(self)
        process.wait()


def main():
    signal.signal(signal.SIGTERM, lab.interrupt)
    atexit.register(lab.close_all)
    lab.remove_stale()
    print(f"A client asks a server at port {fault_run.PORT}. After {BEFORE_S} seconds without a fault, one begins.")
    for number, (name, side, text) in enumerate(FAULTS, 1):
        print(f"\n{number} of {len(FAULTS)}: {text}\n"
              f"$ netobsctl diagnose --with hostb --before {BEFORE_S} --for {FAULT_S} {fault_run.EXPRESSION}",
              flush=True)
        where = lab.Lab()
        Fault(where, name, SEED, FAULT_S, side=side, workloads=("http",), contained={"b"}, is_ipv6=False).show()
        where.close()


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        sys.exit(EXIT_INTERRUPTED)
