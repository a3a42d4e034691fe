# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
"""The round-trip times of segments, from all packets at one end and those that were lost.

A segment that arrived is answered by the first packet that acknowledges all of it,
cumulatively or selectively (RFC 2018), after it was sent. Of one that was sent again those count
that arrived, so no answer is ambiguous.
"""

import collections
import struct

SYN, FIN, ACK = 2, 1, 16
SACK_OPTION = 5
ETHERNET, IPV4, IPV6 = 14, 0x0800, 0x86dd

Segment = collections.namedtuple("Segment", "ns ports seq end flags ack blocks data")


def selective(options):
    """The blocks of a SACK option."""
    at = 0
    while at < len(options) and options[at]:
        if options[at] == 1:
            at += 1
            continue
        length = options[at + 1]
        if options[at] == SACK_OPTION:
            edges = struct.unpack_from(f"!{(length - 2) // 4}I", options, at + 2)
            return tuple(zip(edges[::2], edges[1::2]))
        at += length
    return ()


def segment(packet):
    """A frame of TCP over IP without options, or None."""
    data = packet.data
    kind, = struct.unpack_from("!H", data, 12)
    if kind == IPV4 and data[ETHERNET + 9] == 6:
        at = ETHERNET + 20
        total, = struct.unpack_from("!H", data, ETHERNET + 2)
    elif kind == IPV6 and data[ETHERNET + 6] == 6:
        at = ETHERNET + 40
        total = 40 + struct.unpack_from("!H", data, ETHERNET + 4)[0]
    else:
        return None
    source, target, seq, ack, offset, flags = struct.unpack_from("!HHIIBB", data, at)
    payload = at + (offset >> 4) * 4
    length = ETHERNET + total - payload + bool(flags & SYN) + bool(flags & FIN)
    return Segment(packet.ns, (source, target), seq, (seq + length) & 0xffffffff, flags, ack,
                   selective(data[at + 20:payload]), data)


def is_from(value, start):
    """Whether a sequence number is @start or after it."""
    return (value - start) & 0xffffffff < 1 << 31


def is_covered(sent, answer):
    if answer.flags & ACK and is_from(answer.ack, sent.end):
        return True
    return any(is_from(sent.seq, left) and is_from(right, sent.end)
               for left, right in answer.blocks)


def arrived(segments, dropped):
    """Without those that were lost: of equal frames, the newest one before."""
    places, lost = collections.defaultdict(list), set()
    for i, one in enumerate(segments):
        places[one.data].append(i)
    for frame in dropped:
        same = [i for i in places[frame.data] if segments[i].ns < frame.ns]
        lost.update(same[-1:])
    return [one for i, one in enumerate(segments) if i not in lost]


def round_trips(packets, dropped, port):
    """Of the segments that the end with @port sent: nanoseconds."""
    segments = [one for one in map(segment, packets) if one and port in one.ports]
    sent = arrived([one for one in segments if one.ports[0] == port and one.end != one.seq],
                   [frame for frame in dropped if segment(frame)])
    answers = [one for one in segments if one.ports[1] == port]
    times, waiting, following = [], [], collections.deque(sent)
    for answer in answers:
        while following and following[0].ns < answer.ns:
            waiting.append(following.popleft())
        covered = [one for one in waiting if is_covered(one, answer)]
        times += [answer.ns - one.ns for one in covered]
        if covered:
            waiting = [one for one in waiting if not is_covered(one, answer)]
    return times
