# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
"""The agents that are compared, in the order of the tables."""

from .baseline import Empty, HostInt, Nothing, V0
from .netobs import Before, Netobs, Rtt
from .pmacctd import Pmacctd
from .softflowd import Softflowd
from .tcpdump import Tcpdump

AGENTS = {agent.name: agent for agent in
          (Nothing, Empty, Netobs, Rtt, V0, HostInt, Tcpdump, Pmacctd,
           Softflowd, Before)}
DEFAULT = [name for name, agent in AGENTS.items() if agent.is_default]
# What round-trip times cost: with them, and what of the others has them or could have.
RTT = ("netobs", "netobs-rtt", "host-int", "tcpdump")
