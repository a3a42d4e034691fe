# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
"""Commands without root's powers."""

NEEDED = ("bpf", "net_admin", "perfmon")


def with_only(capabilities):
    """The prefix of a command that runs as root without root's powers."""
    some = "-all" + "".join(f",+{name}" for name in capabilities)
    return ["setpriv", "--securebits=+noroot", f"--bounding-set={some}",
            f"--inh-caps={some}", f"--ambient-caps={some}"]
