# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
"""Routes between all namespaces of a part, each with one way that is taken."""

from lib.topology_links import Links


class Routed(Links):
    """Links whose hosts reach one another."""

    DETOURS = 0.4  # how often a neighbour is reached by way of a router

    def __init__(self, *arguments):
        super().__init__(*arguments)
        self.ways = {}  # (namespace, address) -> [(device, via)]
        self.hosts = []

    def near(self, node):
        """[(device, address of a neighbour, that neighbour)]"""
        for segment in self.segments:
            mine = [device for device in segment if device.ns is node]
            for device in mine:
                for other in segment:
                    if other.ns is not node:
                        for address, at in other.ns.addresses.items():
                            if at is other:
                                yield device, address, other.ns

    def set_routes(self):
        for node in self.hosts:
            node.forwards = len({device for segment in self.segments
                                 for device in segment
                                 if device.ns is node}) > 1
            for device, address, other in self.near(node):
                mac = other.addresses[address].mac
                node.neighbours[device.name, address] = mac
        for node in self.hosts:
            for address in node.addresses:
                self.route_to(node, address)

    def route_to(self, target, address):
        reached, edge = {target: 0}, [target]
        while edge:
            node = edge.pop(0)
            if node is not target and not node.forwards:
                continue
            for _, _, other in self.near(node):
                if other not in reached:
                    reached[other] = reached[node] + 1
                    edge.append(other)
        for node in self.hosts:
            if node is not target and node in reached:
                ways = self.next_hops(node, reached, target, address)
                self.ways[node, address] = ways
                node.routes[address] = self.rng.choice(ways)

    def next_hops(self, node, reached, target, address):
        ways, detours = [], []
        for device, via, other in self.near(node):
            if (":" in via) != (":" in address):
                continue
            if other is target and (via == address or not any(
                    hop == address for _, hop, _ in self.near(node))):
                ways.append((device, via))
            elif other is not target and other.forwards and \
                    reached.get(other) == reached[node] - 1:
                ways.append((device, via))
            elif other.forwards and reached.get(other) == reached[node]:
                detours.append((device, via))
        # By way of a router that sends it out where it came in.
        if detours and not node.forwards and self.rng.random() < self.DETOURS:
            return [self.rng.choice(detours)]
        return ways
