# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
# Needs: tcpdump
"""
What really went over an interface: a tcpdump capture taken at the same point,
dissected by tshark, summed per flow.

tcpdump taps an interface after tc egress and before tc ingress, and after the
kernel has segmented what the interface cannot (GSO): so on an interface with
its offloads off, the capture has the packets of the wire where the tc hook
still has the large buffers they are made from.
"""

import ipaddress
import re
import signal
import subprocess
from collections import defaultdict

from lib import tcpdump
from lib import tshark

FIELDS = (
    "frame.len", "frame.protocols", "eth.src", "eth.dst", "vlan.id",
    "ieee8021ad.id",
    "ip.src", "ip.dst", "ip.proto", "ip.len", "ip.id", "ip.frag_offset",
    "ipv6.src", "ipv6.dst", "ipv6.nxt", "ipv6.plen", "ipv6.fraghdr.ident",
    "ipv6.fraghdr.offset", "ipv6.fraghdr.nxt",
    "tcp.srcport", "tcp.dstport", "tcp.flags",
    "udp.srcport", "udp.dstport", "sctp.srcport", "sctp.dstport",
    "icmp.type", "icmp.code", "icmpv6.type", "icmpv6.code",
    "ip.dsfield.dscp", "ip.dsfield.ecn", "ipv6.tclass.dscp",
    "ipv6.tclass.ecn", "ip.ttl", "ipv6.hlim", "ipv6.flow",
    "vxlan.vni",
)
PROTOCOLS = {"icmp": 1, "tcp": 6, "udp": 17, "icmpv6": 58, "sctp": 132}
# Headers behind which a packet is another one, and the port of those over UDP.
TUNNELS = {"vxlan": "4789", "gtp": "2152", "ipv6.routing": None}
# Multicast listener reports and router solicitations come when the kernel
# likes; a test that starts and stops things around its traffic leaves them out.
NOISE = {130, 131, 132, 133, 134, 143}


class Sum:
    """Totals of one flow."""

    def __init__(self):
        self.packets = self.bytes = self.l2_bytes = 0
        self.flags = self.ecn = 0
        self.dscps, self.labels, self.ttls, self.macs = [], [], set(), set()

    def counts(self):
        return (self.packets, self.bytes)


class Capture:
    """tcpdump on an interface, from construction until stop()."""

    def __init__(self, where, ns, interface, expression=""):
        self.file = where.path(f"{ns.name}-{interface}.pcap")
        self.process = where.spawn(
            "tcpdump", "-i", interface, "-n", "-Z", "root", "-U",
            "--immediate-mode", "-s", "160", "-B", "65536", "-w", self.file,
            *expression.split(), ns=ns, stderr=subprocess.PIPE, text=True)
        self.log = ""
        while "listening on" not in self.log:
            line = self.process.stderr.readline()
            if not line:
                raise RuntimeError(f"tcpdump: {self.log}")
            self.log += line

    def stop(self):
        """End the capture when it has gone quiet."""
        tcpdump.await_rest(self.process)
        self.process.send_signal(signal.SIGINT)
        self.log += self.process.communicate()[1]
        dropped = re.search(r"(\d+) packets dropped by kernel", self.log)
        if not dropped or int(dropped.group(1)):
            raise RuntimeError(f"the capture is no truth: {self.log}")


def split(text):
    return text.split(",") if text else []


def dissect(file):
    """tshark's view of each packet, reassembling nothing: {field: [values]}."""
    for line in tshark.dissect(file, FIELDS).split("\n"):
        if line:
            yield dict(zip(FIELDS, map(split, line.split("\t"))))


def layers(fields):
    """Of the outermost first. tshark 4.4 leaves out the IP header behind MPLS."""
    names = fields["frame.protocols"][0].split(":")
    if "mpls" in names and not {"ip", "ipv6"} & set(names):
        behind = len(names) - names[::-1].index("mpls")
        names[behind:behind] = ["ip" if fields["ip.src"] else "ipv6"]
    return names


class Packet:
    """One packet as tshark sees it; of a tunnelled one @inner or outer."""

    def __init__(self, fields, inner=True):
        self.fields = fields
        self.names = layers(fields)
        self.start = next(filter(None, map(self.inside, TUNNELS)), 0) if inner else 0
        self.family = self.layer(("ip", "ipv6"))

    def inside(self, tunnel):
        """Where the headers of the packet in it begin; 0: there is none."""
        if tunnel not in self.names:
            return 0
        start = self.names.index(tunnel) + 1
        # tshark dissects by either port; a tunnel has it as its destination.
        is_here = TUNNELS[tunnel] in (None, *self.fields["udp.dstport"][:1])
        return start if is_here and {"ip", "ipv6"} & set(self.names[start:]) else 0

    def layer(self, candidates):
        """The first of @candidates, from where the flow's headers start."""
        return next((name for name in self.names[self.start:]
                     if name in candidates), None)

    def number(self, protocol, field, occurrence=None):
        if occurrence is None:
            occurrence = self.names[:self.start].count(protocol)
        values = self.fields[f"{protocol}.{field}"]
        return int(values[occurrence], 0) if values else None

    def addresses(self):
        index = self.names[:self.start].count(self.family)
        return tuple(str(ipaddress.ip_address(
            self.fields[f"{self.family}.{end}"][index]))
            for end in ("src", "dst"))

    def fragment(self):
        """Which datagram this is a part of, and the part's offset."""
        if self.family == "ip":
            return self.number("ip", "id"), self.number("ip", "frag_offset")
        if self.fields["ipv6.fraghdr.ident"]:
            return (self.number("ipv6", "fraghdr.ident", 0),
                    self.number("ipv6", "fraghdr.offset", 0))
        return None, 0

    def transport(self):
        """(protocol, source port, destination port, type, code)"""
        name = self.layer(PROTOCOLS)
        if name is None:
            field = "proto" if self.family == "ip" else "nxt"
            return (self.number(self.family, field), *[None] * 4)
        if name.startswith("icmp"):
            return (PROTOCOLS[name], None, None,
                    self.number(name, "type"), self.number(name, "code"))
        return (PROTOCOLS[name], self.number(name, "srcport"),
                self.number(name, "dstport"), None, None)

    def vlans(self):
        """(innermost, outermost when there are several)"""
        tags = [int(tag) for name in ("ieee8021ad.id", "vlan.id")
                for tag in self.fields[name]]
        return (tags[-1] if tags else None, tags[0] if tags[1:] else None)

    def length(self, whole=True):
        """Octets from the outermost IP header on; not @whole: the flow's."""
        outer = next(n for n in self.names if n in ("ip", "ipv6"))
        family = outer if whole else self.family
        occurrence = 0 if whole else None
        if family == "ip":
            return self.number("ip", "len", occurrence)
        return self.number("ipv6", "plen", occurrence) + 40

    def is_noise(self):
        return self.layer(("icmpv6",)) and \
            self.number("icmpv6", "type") in NOISE


def add(total, packet, whole):
    ip_fields = "dsfield" if packet.family == "ip" else "tclass"
    total.packets += 1
    total.bytes += packet.length(whole)
    total.l2_bytes += packet.number("frame", "len", 0)
    total.flags |= packet.number("tcp", "flags", 0) or 0
    total.ecn |= 1 << packet.number(packet.family, f"{ip_fields}.ecn")
    total.dscps.append(packet.number(packet.family, f"{ip_fields}.dscp"))
    total.labels.append(packet.number("ipv6", "flow")
                        if packet.family == "ipv6" else 0)
    total.ttls.add(packet.number(
        packet.family, "ttl" if packet.family == "ip" else "hlim"))
    total.macs.add(tuple(packet.fields["eth.src"] + packet.fields["eth.dst"]))


def sums(file, inner=True, whole=True):
    """
    {key: Sum}. Of tunnelled packets the @inner or the outer tuple is the key,
    and the octets are those of the @whole packet or of the inner one.
    """
    totals = defaultdict(Sum)
    datagrams = {}  # a datagram's transport header is in its first fragment
    for fields in dissect(file):
        packet = Packet(fields, inner)
        if not packet.family or packet.is_noise() or \
                not fields[f"{packet.family}.dst"]:  # cut off
            continue
        ends = packet.addresses()
        ident, offset = packet.fragment()
        if not offset:
            datagrams[ends, ident] = packet.transport()
        add(totals[ends + datagrams[ends, ident] + packet.vlans()], packet,
            whole)
    return dict(totals)


def frames_and_bytes(file):
    """Everything in the file, IP or not."""
    lengths = [int(fields["frame.len"][0]) for fields in dissect(file)]
    return len(lengths), sum(lengths)


def record_key(record):
    return tuple(record.get(name) for name in (
        "SrcAddr", "DstAddr", "Proto", "SrcPort", "DstPort", "IcmpType",
        "IcmpCode", "VlanId", "OuterVlanId"))


def record_sums(records):
    """The same totals from netobsctl's records."""
    totals = defaultdict(Sum)
    for record in records:
        if record["Proto"] == 58 and record.get("IcmpType") in NOISE:
            continue
        total = totals[record_key(record)]
        total.packets += record["Packets"]
        total.bytes += record["Bytes"]
        total.l2_bytes += record.get("L2Bytes", 0)
        total.flags |= record.get("Flags", 0)
    return dict(totals)


def differences(records, truth):
    """What differs between two {key: Sum}, in words; [] means exact."""
    found = []
    for key in sorted(set(records) | set(truth), key=str):
        ours = records[key].counts() if key in records else (0, 0)
        real = truth[key].counts() if key in truth else (0, 0)
        if ours != real:
            found.append(f"{key}: {ours[0]} packets {ours[1]} bytes, "
                         f"really {real[0]} packets {real[1]} bytes")
    return found


def summary(totals):
    return (f"{len(totals)} flows, "
            f"{sum(t.packets for t in totals.values())} packets, "
            f"{sum(t.bytes for t in totals.values())} bytes")
