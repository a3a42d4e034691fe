# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
"""The agents that are compared, in the order of the tables."""

from .baseline import Empty, Nothing, V0
from .netobs import Netobs, Rtt
from .pcap import Pmacctd, Softflowd, Tcpdump

AGENTS = {agent.name: agent for agent in
          (Nothing, Empty, Netobs, Rtt, V0, Tcpdump, Pmacctd, Softflowd)}
# What round-trip times cost: with them, and what of the others has them or could have.
RTT = ("netobs", "netobs-rtt", "tcpdump")
