# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
"""The traffic that agents are compared under, as data."""

import dataclasses

# A run with many flows is longer: most packets shall be of known flows.
MANY_FLOWS = 100_000


@dataclasses.dataclass(frozen=True)
class Scenario:
    protocol: str
    direction: str # as the agent's host sees it
    flows: int
    label: str # for people
    rate: int = 0 # bits per second, of all flows; 0: as many as possible

    @property
    def name(self):
        if self.protocol == "tcp":
            return "tcp-paced" if self.rate else "tcp"
        return f"udp-{self.direction}-{short(self.flows)}"

    def seconds(self, unit):
        return unit * 2 if self.flows >= MANY_FLOWS else unit


def short(number):
    """1000 -> 1k, 1000000 -> 1M"""
    for unit, suffix in ((1_000_000, "M"), (1000, "k")):
        if number >= unit and number % unit == 0:
            return f"{number // unit}{suffix}"
    return str(number)


def udp(direction, flows):
    plural = "s" if flows > 1 else ""
    return Scenario("udp", direction, flows,
                    f"UDP {direction}, {short(flows)} flow{plural}")


TCP_STREAMS = 16
# What the slowest agent can follow, so that only what it takes is different.
PACED_RATE = 1_000_000_000
FLOWS = (1, 1000, 100_000, 1_000_000)

SCENARIOS = {scenario.name: scenario for scenario in (
    *(udp("egress", flows) for flows in FLOWS),
    *(udp("ingress", flows) for flows in FLOWS),
    Scenario("tcp", "ingress", TCP_STREAMS,
             f"TCP ingress, {TCP_STREAMS} connections"),
    Scenario("tcp", "ingress", TCP_STREAMS,
             f"TCP ingress, {TCP_STREAMS} connections, "
             f"{PACED_RATE / 1e9:g} Gbit/s", PACED_RATE),
)}
DEFAULT = [name for name, scenario in SCENARIOS.items() if not scenario.rate]
QUICK = ("udp-egress-1k", "udp-egress-1M", "udp-ingress-1k", "tcp")
# What round-trip times cost: throughput at full speed, CPU at the same rate.
RTT = ("tcp", "tcp-paced")
