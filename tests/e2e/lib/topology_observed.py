# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
"""Which interfaces of a random topology are observed, such that counts can tell the truth."""

from collections import defaultdict

from lib import topology_truth
from lib.topology import IN, OUT


def observe(topology, rng):
    """Everything of some namespaces, or single interfaces, by chance."""
    crossed = list(dict.fromkeys(
        crossing.device for _, _, walk in topology.walks()
        for crossing in walk.crossings))
    may_be_any = not has_twins(topology)
    if may_be_any and rng.random() < 0.5:
        observe_any(topology, rng, crossed)
        if not has_several_tags(topology):
            return
        topology.is_clear, topology.ways = True, (IN, OUT)
    nodes = list(dict.fromkeys(device.ns for device in crossed))
    how = rng.choice(("one namespace", "namespaces", "interfaces", "all")) \
        if may_be_any else "all"
    if how == "one namespace":
        nodes = [rng.choice(nodes)]
    elif how == "namespaces":
        nodes = rng.sample(nodes, rng.randrange(1, len(nodes) + 1))
    whole = {device for node in nodes for device in node.devices.values()}
    topology.observed = whole
    if has_one_way_each(topology):
        if how == "interfaces":
            topology.observed = set(rng.sample(
                crossed, rng.randrange(1, len(crossed) + 1)))
        if rng.random() < 0.15:
            topology.ways = (rng.choice([IN, OUT]),)
    if has_gaps(topology):
        topology.observed, topology.ways = whole, (IN, OUT)
    before = None
    while before != topology.observed: # what one adds may be new to the other
        before = set(topology.observed)
        for _, _, walk in topology.walks():
            for device in returning(walk):
                topology.ways = (IN, OUT)
                topology.observed |= set(device.ns.devices.values())
        add_returns(topology)
        add_sources(topology)
        add_actions(topology)
        add_uppers(topology)


def has_twins(topology):
    """Whether namespaces that links join send the same tuple, which no count can tell apart."""
    networks = topology.networks()
    senders = {(networks[flow.node], flow.flow, flow.node)
               for flow in topology.flows if flow.flow.src != flow.flow.dst}
    return len({one[:2] for one in senders}) < len(senders)


def has_several_tags(topology):
    """
    Whether a tuple enters by several VLANs, each of which is a flow: to which of them packets
    belong that are seen further on, without a tag, shows only if all of their way is observed.
    """
    return any(len(total.entries) > 1
               for total in topology_truth.expected(topology).values())


def observe_any(topology, rng, crossed):
    """Chosen independently of the ways that packets take, which cannot always be known then."""
    topology.is_clear = False
    topology.observed = set(rng.sample(
        crossed, rng.randrange(1, len(crossed) + 1)))
    if rng.random() < 0.15:
        topology.ways = (rng.choice([IN, OUT]),)
    topology.observed |= set(unknowable(topology))
    add_uppers(topology)


def returning(walk):
    """
    What a packet meets where it comes back over the link by which it left, and what sends it from
    one macvlan to another, so that it comes in below them twice; that one, and the one it came from.
    """
    for crossing in walk.crossings:
        before, passed = crossing.parent, []
        while before and before.device is not crossing.device:
            passed.append(before.device)
            before = before.parent
        if before and (before.way, crossing.way) == (IN, IN):
            yield from passed
            if before.parent and before.parent.device.lower is before.device:
                yield before.parent.device
        if before and (before.way, crossing.way) == (OUT, IN) and \
                crossing.device.peer:
            yield crossing.device.peer


def crossed_again(walk, first=None):
    """
    What is in the namespace of an interface that a packet, or copies of it, cross twice, with one
    tuple or several of a conversation. @first: topology_truth.conversations()
    """
    points = set()
    for crossing in walk.crossings:
        flow = (first or {}).get(crossing.flow, crossing.flow)
        point = crossing.device, crossing.way, flow
        if point in points:
            yield from crossing.device.ns.devices.values()
        points.add(point)


def unknowable(topology):
    """
    Interfaces that have to be observed for a packet to count once: those that `tc` copies packets
    at, and those of returning(), crossed_again() and known_by().
    """
    for _, _, walk in topology.walks():
        for crossing in walk.crossings:
            if crossing.action:
                topology.ways = (IN, OUT)
                yield from known_by(crossing)
        mirrored = [crossing.device for crossing in walk.crossings
                    if crossing.device.mirror and crossing.way == IN]
        for device in (*mirrored, *returning(walk), *crossed_again(walk)):
            topology.ways = (IN, OUT)
            yield device


def has_gaps(topology):
    """
    Whether packets pass a namespace unseen, of which only other interfaces are
    observed, and are seen on both sides of it: whether they are the same then,
    no count can tell.
    """
    inside = {device.ns for device in topology.observed}
    for _, _, walk in topology.walks():
        for crossing in walk.crossings:
            passed, before = set(), crossing.parent
            while before and not topology_truth.is_seen(topology, before):
                passed.add(before.device.ns)
                before = before.parent
            if before and topology_truth.is_seen(topology, crossing) and \
                    inside & passed - {before.device.ns, crossing.device.ns}:
                return True
    return False


def returns(topology):
    """
    Namespaces that send by a macvlan what they received by it, unobserved, out of
    the lower interface. Its own namespace may have done that as well: the kernel
    keeps with a packet the number of the interface it came in by, not whose.
    """
    inside = {device.ns for device in topology.observed}
    for _, _, walk in topology.walks():
        for crossing in walk.crossings:
            passed, before = set(), crossing.parent
            while before and before.device.ns not in inside:
                passed.add(before.device.ns)
                before = before.parent
            if passed and before and before.device is crossing.device and \
                    (before.way, crossing.way) == (IN, OUT):
                yield from passed


def senders_above(topology):
    """
    Namespaces, not observed, that send by a macvlan, where packets take several ways: whether these are those
    that were seen on another way, no count can tell.
    """
    inside = {device.ns for device in topology.observed}
    for _, _, walk in topology.walks():
        for crossing in walk.crossings:
            upper = crossing.parent
            if upper and upper.way == OUT and upper.device.lower is crossing.device and \
                    upper.device.ns not in inside:
                yield upper.device.ns


def returns_or_new(topology):
    """
    Namespaces, not observed, that packets come from which were not seen before, while others of their
    tuple, or copies of these, go there: whether those that come out are those, no count can tell.
    """
    inside = {device.ns for device in topology.observed}
    regions = topology.networks([node for node in topology.nodes if node not in inside])
    entered, came = set(), defaultdict(set)
    for _, _, walk in topology.walks():
        for crossing in walk.crossings:
            before = crossing.parent
            if not before:
                continue
            if crossing.device.ns in regions and topology_truth.is_seen(topology, before):
                entered.add((crossing.flow, regions[crossing.device.ns]))
            if before.device.ns in regions and topology_truth.is_seen(topology, crossing) and \
                    not is_seen_before(topology, before):
                came[crossing.flow, regions[before.device.ns]].add(before.device.ns)
    for key in entered & set(came):
        yield from came[key]


def hidden(topology):
    """Namespaces of which something has to be observed."""
    yield from returns(topology)
    if not has_one_way_each(topology):
        yield from senders_above(topology)
        yield from returns_or_new(topology)


def add_returns(topology):
    while nodes := set(hidden(topology)):
        topology.ways = (IN, OUT)
        for node in nodes:
            topology.observed |= set(node.devices.values())


def has_one_way_each(topology):
    """
    Whether all packets of a tuple take one way, and pass each namespace once.
    Otherwise, what single interfaces or directions see has several explanations:
    two of them that have a packet each may have had the same one.
    """
    networks = topology.networks()
    taken = {}
    for _, _, walk in topology.walks():
        places = [crossing for crossing in walk.crossings
                  if crossing.device.kind != "lo"]
        for crossing in places:
            way = [(one.device, one.way) for one in places
                   if one.flow == crossing.flow]
            network = networks[crossing.device.ns]
            if taken.setdefault((crossing.flow, network), way) != way or \
                    comes_back(crossing):
                return False
    return True


def joins_behind_bridges(topology):
    """
    Whether packets of a tuple come by several ways from where they are not seen, and a bridge is there: they may
    be copies that it made, of which the largest part counts.
    """
    ways = defaultdict(set)
    for _, _, walk in topology.walks():
        for crossing in walk.crossings:
            before = crossing.parent
            if before and topology_truth.is_seen(topology, crossing) and \
                    not topology_truth.is_seen(topology, before):
                ways[crossing.flow].add(crossing.device)
    return any(len(devices) > 1 for devices in ways.values()) and any(
        any(device.kind == "bridge" for device in node.devices.values()) and
        not topology.observed.issuperset(node.devices.values()) for node in topology.nodes)


def is_copy(crossing):
    """Whether tc sends it, while what it is a copy of goes on."""
    before = crossing.parent
    return bool(before) and (before.device.mirror is crossing.device or bool(before.action) and
                             before.action.kind == "mirror" and
                             before.action.target is crossing.device)


def above(crossing):
    """Where the packet, or what it is a copy of, was before; the latest first."""
    while crossing := crossing.parent:
        yield crossing


def returns_copies(topology):
    """
    Whether tc sends copies to a namespace that is not observed and that the packets came from, by one of
    several ways: what came by the other ones may have been these, for all that counts tell.
    """
    inside = {device.ns for device in topology.observed}
    return not has_one_way_each(topology) and any(
        is_copy(crossing) and crossing.device.peer and crossing.device.peer.ns not in inside and
        crossing.device.peer.ns in {one.device.ns for one in above(crossing)}
        for _, _, walk in topology.walks() for crossing in walk.crossings)


def ways_beside_copies(topology):
    """
    Interfaces, not observed, by which packets leave that are seen again, when copies of them leave by one
    that is observed: these look like all that came in.
    """
    for _, _, walk in topology.walks():
        seen_below = with_seen_below(topology, walk)
        sources = {(one.parent.device.ns, one.device) for one in walk.crossings
                   if is_copy(one) and topology_truth.is_seen(topology, one)}
        for crossing in walk.crossings:
            if crossing.way == OUT and crossing in seen_below and \
                    not topology_truth.is_seen(topology, crossing) and \
                    any(node is crossing.device.ns and copy is not crossing.device
                        for node, copy in sources):
                yield crossing.device


def comes_back(crossing):
    """Whether the packet left this namespace, if only by a veth back into it."""
    here, parent = crossing.device.ns, crossing.parent
    if not parent or parent.device.ns is here:
        return bool(parent) and parent.device is crossing.device.peer
    while parent and parent.device.ns is not here:
        parent = parent.parent
    return bool(parent)


def with_seen_below(topology, walk):
    """What packets, or copies of them, that are seen later have crossed before."""
    found = set()
    for crossing in reversed(walk.crossings):
        if crossing in found or topology_truth.is_seen(topology, crossing):
            found.add(crossing.parent)
    return found


def unseen_sources(topology):
    """Points that packets are copied at, not observed, whose copies are."""
    for _, _, walk in topology.walks():
        seen_below = with_seen_below(topology, walk)
        for crossing in walk.crossings:
            if crossing.is_copied and crossing in seen_below and \
                    not topology_truth.is_seen(topology, crossing):
                yield crossing


def unseen_uppers(topology):
    """
    Namespaces, not observed, of macvlans that get packets of which copies leave below them, and send
    them on: there, counts do not tell copies from packets that are forwarded, and did not get there.
    """
    inside = {device.ns for device in topology.observed}
    for _, _, walk in topology.walks():
        seen_below = with_seen_below(topology, walk)
        for crossing in walk.crossings:
            lower = crossing.device.lower
            if crossing.way == IN and crossing in seen_below and lower and \
                    lower.mirror in topology.observed and crossing.device.ns not in inside:
                yield crossing.device.ns


def add_uppers(topology):
    while nodes := set(unseen_uppers(topology)):
        topology.ways = (IN, OUT)
        for node in nodes:
            topology.observed |= set(node.devices.values())
    while devices := set(ways_beside_copies(topology)):
        topology.ways = (IN, OUT)
        topology.observed |= devices


def add_sources(topology):
    """
    Copies made before the first observed point count each: not here. A namespace
    that copies is observed as a whole then, for the sake of has_one_way_each().
    """
    while sources := list(unseen_sources(topology)):
        topology.ways = (IN, OUT)
        for crossing in sources:
            topology.observed |= set(crossing.device.ns.devices.values())


def known_by(crossing):
    """
    What shows netobs that tc sent a packet on: the interface where it did; an ifb, or any interface by
    which it goes on from its way out; and on the way in, of which the packet itself says nothing, the
    other end of the interface that it comes in by.
    """
    yield crossing.device
    if crossing.action.target.kind == "ifb" or crossing.way == OUT:
        yield crossing.action.target
    if crossing.action.way == IN:
        yield from (crossing.action.target, crossing.action.target.peer)


def unknown_actions(topology):
    """Points where tc sends packets on that are seen before and behind, but not known_by()."""
    for _, _, walk in topology.walks():
        seen_below = with_seen_below(topology, walk)
        for crossing in walk.crossings:
            if crossing.action and crossing in seen_below and \
                    is_seen_before(topology, crossing) and \
                    not (topology.observed.issuperset(known_by(crossing)) and
                         topology.ways == (IN, OUT)):
                yield crossing


def is_seen_before(topology, crossing):
    while crossing and not topology_truth.is_seen(topology, crossing):
        crossing = crossing.parent
    return bool(crossing)


def add_actions(topology):
    while unknown := list(unknown_actions(topology)):
        topology.ways = (IN, OUT)
        for crossing in unknown:
            for device in known_by(crossing):
                topology.observed |= set(device.ns.devices.values())
