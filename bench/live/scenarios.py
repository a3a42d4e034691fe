# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
"""The traffic that agents are compared under, as data."""

import dataclasses

# A run with many flows is longer: most packets shall be of known flows.
MANY_FLOWS = 100_000


@dataclasses.dataclass(frozen=True)
class Scenario:
    name: str
    protocol: str
    direction: str # as the agent's host sees it
    flows: int
    label: str # for people
    unit: str = "packet/s" # of its throughput
    rate: int = 0 # bits per second, of all flows; 0: as many as possible
    write: int = 0 # bytes that a sender of TCP writes at a time; 0: as iperf3 does
    qdisc: str = "" # that packets of the agent's host wait in, as tc calls it

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
    return Scenario(f"udp-{direction}-{short(flows)}", "udp", direction, flows,
                    f"UDP {direction}, {short(flows)} flow{plural}")


def tcp(name, streams, more="", direction="ingress", **fields):
    return Scenario(name, "tcp", direction, streams,
                    f"TCP {direction}, {streams} connections{more}", **fields)


TCP_STREAMS = 16
# What the slowest agent can follow, so that only what it takes is different.
PACED_RATE = 1_000_000_000
FLOWS = (1, 1000, 100_000, 1_000_000)

SCENARIOS = {scenario.name: scenario for scenario in (
    *(udp("egress", flows) for flows in FLOWS),
    *(udp("ingress", flows) for flows in FLOWS),
    tcp("tcp", TCP_STREAMS, unit="bit/s"),
    # As in the paper on the published agent.
    tcp("tcp-short", 128, ", writes of 100 bytes", write=100),
    # Each packet passes the queue, whose rate is never reached.
    tcp("tcp-queue", 128, ", writes of 100 bytes, through tbf", direction="egress", write=100,
        qdisc="tbf rate 20gbit burst 1mb limit 4mb"),
    tcp("tcp-paced", TCP_STREAMS, f", {PACED_RATE / 1e9:g} Gbit/s", unit="bit/s",
        rate=PACED_RATE),
)}
DEFAULT = [name for name, scenario in SCENARIOS.items()
           if not scenario.rate and not scenario.qdisc]
QUICK = ("udp-egress-1k", "udp-egress-1M", "udp-ingress-1k", "tcp")
# What round-trip times cost: throughput at full speed, CPU at the same rate.
RTT = ("tcp", "tcp-paced")
