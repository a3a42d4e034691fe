# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
# Needs: nftables
"""Things that drop packets, and the counters of the kernel that know how many."""

import collections
import contextlib
import json
import os
import socket

from lib import bpf
from lib import frames as f
from lib import lab
from lib import observer
from lib import traffic

PREFIX = "SKB_DROP_REASON_"

CLIENT, ROUTER_IN, ROUTER_OUT, SERVER = "10.50.1.2", "10.50.1.1", "10.50.2.1", "10.50.2.2"
NOWHERE = "10.50.2.77"
IP_MTU_DISCOVER, IP_PMTUDISC_PROBE = 10, 3
NEIGHBOUR = ("NEIGH_FAILED", "NEIGH_QUEUEFULL", "NEIGH_DEAD")


def nft_packets(ns, comment):
    rules = json.loads(ns.run("nft", "-j", "list", "ruleset"))["nftables"]
    return sum(part["counter"]["packets"] for rule in rules
               if rule.get("rule", {}).get("comment") == comment
               for part in rule["rule"]["expr"] if "counter" in part)


def cause_of(record):
    return record.get("PktDropLatestDropCause", "").removeprefix(PREFIX)


PARTS = ("in_flows", "pending", "no_flow", "no_tuple", "no_room")


def check_identity(test, result):
    """@return what the statistics say of drops"""
    result.check_conservation()
    found = collections.Counter(result.stats.get("drops", {}))
    for unit, member in (("packets", "PktDropPackets"), ("bytes", "PktDropBytes")):
        test.assertEqual(found[unit], sum(found[f"{part}_{unit}"] for part in PARTS), found)
        test.assertEqual(found[f"in_flows_{unit}"],
                         sum(one.get(member, 0) for one in result.records), found)
    test.assertEqual(0, found["pending_packets"])
    return found


class Scenario:
    """Packets that one thing drops, all with a port, or an address, of their own."""

    causes = ()
    port = 0
    layer = None
    drops_all = True # that are sent

    def __init__(self, test):
        self.client, self.router, self.server = test.client, test.router, test.server
        self.test = test
        self.ns = self.server
        self.prepare()
        self.before = self.counter()

    def prepare(self):
        pass

    def send(self, count):
        """UDP from the client to the server."""
        self.send_udp(count)

    def listen(self):
        """Packets that pass have a socket, which takes them."""
        with self.server:
            receiver = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.test.addCleanup(receiver.close)
        receiver.bind(("", self.port))
        return receiver

    def send_udp(self, count, address=SERVER, size=64, options=()):
        with self.client, socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
            for option in options:
                sender.setsockopt(*option)
            with traffic.awake():
                for _ in range(count):
                    # A datagram that the path refused before is not repeated.
                    with contextlib.suppress(OSError):
                        sender.sendto(bytes(size), (address, self.port))

    def send_frames(self, interface, frame, count):
        with self.client.packet_socket(interface) as sender, traffic.awake():
            for _ in range(count):
                sender.send(frame)

    def counter(self):
        raise NotImplementedError

    def counted(self):
        return self.counter() - self.before

    def wait_for(self, count):
        if self.drops_all:
            lab.wait_for(lambda: self.counted() >= count, f"{self}: {self.counted()} of {count}")
        return self.counted()

    def is_own(self, record):
        return record.get("NetnsInode") == self.ns.inode and record.get("DstPort") == self.port \
            and record["DropKind"] != "benign"

    def __str__(self):
        return type(self).__name__


class NftInput(Scenario):
    causes, port, layer = ("NETFILTER_DROP",), 2001, "netfilter"

    def counter(self):
        return nft_packets(self.ns, str(self.port))


class NftReject(NftInput):
    port = 2002


class NftForward(NftInput):
    port = 2003

    def prepare(self):
        self.ns = self.router


class NftOutput(NftInput):
    """Of a local sender, to which the kernel says so."""
    port = 2004

    def prepare(self):
        self.ns = self.client


class NoListener(Scenario):
    causes, port = ("NO_SOCKET",), 2005

    def counter(self):
        return self.server.snmp("Udp", "NoPorts")


class FullBuffer(Scenario):
    causes, port, drops_all = ("SOCKET_RCVBUFF", "PROTO_MEM"), 2006, False

    def prepare(self):
        self.listen().setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)

    def counter(self):
        return self.server.snmp("Udp", "RcvbufErrors")


class BadChecksum(Scenario):
    causes, port = ("UDP_CSUM",), 2007

    def prepare(self):
        self.listen()

    def send(self, count):
        datagram = bytearray(f.udp(4000, self.port, b"wrong"))
        datagram[6:8] = b"\x12\x34"
        frame = f.ether(self.test.macs[1], self.test.macs[0], 0x0800,
                        f.ipv4(CLIENT, SERVER, 17, bytes(datagram)))
        self.send_frames("c0", frame, count)

    def counter(self):
        return self.server.snmp("Udp", "InCsumErrors")


class TimeToLive(Scenario):
    causes, port = ("IP_INHDR",), 2008

    def prepare(self):
        self.ns = self.router

    def send(self, count):
        self.send_udp(count, options=[(socket.IPPROTO_IP, socket.IP_TTL, 1)])

    def counter(self):
        return self.router.snmp("Ip", "InHdrErrors")


class ReversePath(Scenario):
    """Sources that are behind another interface."""
    causes, port = ("IP_RPFILTER",), 2009

    def prepare(self):
        self.ns = self.router
        self.router.sysctl("ipv4/conf/rc/rp_filter", 1)

    def send(self, count):
        frame = f.ether(self.test.macs[1], self.test.macs[0], 0x0800,
                        f.ipv4(SERVER, "10.50.2.9", 17, f.udp(4000, self.port)))
        self.send_frames("c0", frame, count)

    def counter(self):
        return self.router.snmp("TcpExt", "IPReversePathFilter", "netstat")


class TooBig(Scenario):
    causes, port = ("PKT_TOO_BIG",), 2010

    def prepare(self):
        self.ns = self.router
        self.router.ip("link", "set", "rs", "mtu", "1200")

    def send(self, count):
        self.send_udp(count, size=1300, options=[
            (socket.IPPROTO_IP, IP_MTU_DISCOVER, IP_PMTUDISC_PROBE)])

    def counter(self):
        return self.router.snmp("Ip", "FragFails")


class NoNeighbour(Scenario):
    """
    All that the router forwards there. A timer may interrupt any task, and some hosts run no tracing
    program while their process 1 is the current task, so a command gives the neighbour up.
    """
    causes, port = NEIGHBOUR, 2011

    def prepare(self):
        self.ns = self.router
        self.router.sysctl("ipv4/neigh/rs/retrans_time_ms", 600_000)
        self.router.sysctl("ipv4/neigh/rs/unres_qlen", 5)

    def send(self, count):
        before = self.counted()
        self.send_udp(count, address=NOWHERE)
        self.wait_for(before + count)
        self.give_up()

    def give_up(self):
        """The command ends after the kernel has dropped the packets that waited."""
        self.router.ip("neigh", "del", NOWHERE, "dev", "rs")

    def counter(self):
        return nft_packets(self.router, str(self.port))


class LateNeighbour(NoNeighbour):
    """A timer gives it up."""

    def prepare(self):
        super().prepare()
        self.router.sysctl("ipv4/neigh/rs/mcast_solicit", 1)
        self.router.sysctl("ipv4/neigh/rs/retrans_time_ms", 100)

    def give_up(self):
        lab.wait_for(lambda: "FAILED" in self.router.ip("neigh", "show", "to", NOWHERE),
                     "the neighbour to fail")
        super().give_up()


class Queue(Scenario):
    """The queueing discipline is on a veth pair that nothing else uses."""
    causes, port, drops_all = ("QDISC_DROP", "QDISC_OVERLIMIT"), 2012, False

    def prepare(self):
        self.ns = self.router
        self.listen()
        self.test.lab.wire(self.router, "q0", ["10.50.3.1/24"], self.server, "q1",
                           ["10.50.3.2/24"])
        self.router.tc("qdisc", "add", "dev", "q0", "root", "tbf", "rate", "8kbit", "burst",
                       "2000", "limit", "3000")

    def send(self, count):
        self.send_udp(count, address="10.50.3.2", size=500)

    def counter(self):
        return json.loads(self.router.tc("-s", "-j", "qdisc", "show", "dev", "q0"))[0]["drops"]


class Policer(Scenario):
    causes, port, drops_all = ("TC_INGRESS",), 2013, False

    def prepare(self):
        self.listen()
        self.test.lab.wire(self.router, "p0", ["10.50.4.1/24"], self.server, "p1",
                           ["10.50.4.2/24"])
        self.server.tc("qdisc", "add", "dev", "p1", "clsact")
        self.server.tc("filter", "add", "dev", "p1", "ingress", "matchall", "action", "police",
                       "rate", "8kbit", "burst", "2000", "conform-exceed", "drop")

    def send(self, count):
        self.send_udp(count, address="10.50.4.2", size=500)

    def counter(self):
        shown = json.loads(self.server.tc("-s", "-j", "filter", "show", "dev", "p1", "ingress"))
        return sum(action["stats"]["drops"] for one in shown
                   for action in one.get("options", {}).get("actions", ()))


def has_policer():
    """Whether the kernel has the classifier and the action."""
    with contextlib.closing(lab.Lab()) as trial:
        ns = trial.ns("p")
        ns.tc("qdisc", "add", "dev", "lo", "clsact")
        try:
            ns.tc("filter", "add", "dev", "lo", "ingress", "matchall", "action", "police", "rate",
                  "8kbit", "burst", "2000", "conform-exceed", "drop")
        except RuntimeError:
            return False
        return True


class Xfrm(Scenario):
    """A policy of IPsec that lets nothing pass."""
    causes, port, layer = ("XFRM_POLICY",), 2018, "xfrm"

    def prepare(self):
        self.ns = self.router
        self.listen()
        self.router.ip("xfrm", "policy", "add", "src", f"{CLIENT}/32", "dst", f"{SERVER}/32",
                       "proto", "udp", "dport", str(self.port), "dir", "fwd", "action", "block")

    def counter(self):
        with self.router, open("/proc/thread-self/net/xfrm_stat", encoding="ascii") as text:
            return int(dict(line.split() for line in text)["XfrmInPolBlock"])


def has_xfrm():
    """Whether the kernel has policies, and their counters."""
    with contextlib.closing(lab.Lab()) as trial:
        ns = trial.ns("x")
        try:
            ns.ip("xfrm", "policy", "list")
        except RuntimeError:
            return False
        with ns:
            return os.path.exists("/proc/thread-self/net/xfrm_stat")


class Bridge(Scenario):
    """A port that is off. Only the client's interface knows how many it had."""
    causes, port = ("BRIDGE_INGRESS_STP_STATE", "NOT_SPECIFIED"), 2014

    def prepare(self):
        self.mac, _ = self.test.lab.veth(self.client, "b0", self.server, "b1")
        self.server.ip("link", "add", "bridge0", "type", "bridge")
        self.server.up("bridge0")
        self.server.ip("link", "set", "b1", "master", "bridge0")
        # It begins to forward with its carrier, at some time.
        lab.wait_for(lambda: "state forwarding" in
                     self.server.ip("-d", "link", "show", "dev", "b1"), "the port")
        lab.run("bridge", "-n", self.server.name, "link", "set", "dev", "b1", "state", "0")

    def send(self, count):
        self.send_frames("b0", f.ether("02:00:00:00:99:99", self.mac, 0x0800,
                                       f.ipv4(CLIENT, SERVER, 17, f.udp(4000, self.port))), count)

    def counter(self):
        return self.server.counters("b1")["rx"]["packets"]


class TcFilter(Scenario):
    """A filter of clsact, which counts what it drops."""
    causes, port = ("TC_INGRESS", "QDISC_DROP"), 2016

    def prepare(self):
        self.program = bpf.Program(bpf.DROP, self.port)
        self.test.addCleanup(self.program.close)
        path = f"{self.test.bpffs}/tc"
        self.program.pin(path)
        self.server.tc("qdisc", "add", "dev", "s0", "clsact")
        self.server.tc("filter", "add", "dev", "s0", "ingress", "bpf", "da", "object-pinned", path)

    def counter(self):
        return self.program.count()


class Xdp(Scenario):
    """A generic program, which gets what the kernel has made of a frame."""
    causes, port = ("XDP", "NOT_SPECIFIED"), 2015
    kind, interface, layer = "xdpgeneric", "x", "xdp"

    def prepare(self):
        self.mac, _ = self.test.lab.veth(self.client, f"{self.interface}0", self.server,
                                         f"{self.interface}1")
        path = f"{self.test.bpffs}/{self.kind}"
        bpf.pin_xdp(path, bpf.XDP_DROP)
        self.server.ip("link", "set", "dev", f"{self.interface}1", self.kind, "pinned", path)

    def send(self, count):
        self.send_frames(f"{self.interface}0",
                         f.ether("02:00:00:00:99:99", self.mac, 0x0800,
                                 f.ipv4(CLIENT, SERVER, 17, f.udp(4000, self.port))), count)

    def counter(self):
        return self.client.counters(f"{self.interface}0")["tx"]["packets"]

class XdpOfVeth(Xdp):
    """A program in the driver. A packet socket's frame is a packet of the kernel there already."""
    port, kind, interface = 2017, "xdpdrv", "y"


SCENARIOS = (NftInput, NftReject, NftForward, NftOutput, NoListener, FullBuffer, BadChecksum,
             TimeToLive, ReversePath, TooBig, NoNeighbour, Queue, Policer, Xfrm, Bridge, TcFilter,
             Xdp, XdpOfVeth)
LACKING = {Policer: has_policer, Xfrm: has_xfrm} # not all kernels have them


def random_plan(generator, least, most):
    """Each scenario twice, in any order, with the packets that it is sent."""
    kinds = [kind for kind in SCENARIOS if LACKING.get(kind, lambda: True)()]
    plan = [(kind, generator.randrange(least, most)) for kind in kinds * 2]
    generator.shuffle(plan)
    return plan


RULES = """
table inet drops {{
    chain {hook} {{
        type filter hook {hook} priority 0;
        {rules}
    }}
}}
"""


class DropsTest(lab.LabTest):
    """A client, a router and a server, of which each drops what rules say."""

    def setUp(self):
        super().setUp()
        self.client, self.router, self.server = (self.lab.ns(tag) for tag in "crs")
        self.macs = self.lab.wire(self.client, "c0", [f"{CLIENT}/24"], self.router, "rc",
                                  [f"{ROUTER_IN}/24"])
        self.lab.wire(self.router, "rs", [f"{ROUTER_OUT}/24"], self.server, "s0", [f"{SERVER}/24"])
        self.client.ip("route", "add", "default", "via", ROUTER_IN)
        self.server.ip("route", "add", "default", "via", ROUTER_OUT)
        self.router.sysctl("ipv4/ip_forward", 1)
        for ns, hook, verdicts in ((self.server, "input", {2001: "drop", 2002: "reject"}),
                                   (self.router, "forward", {2003: "drop", 2011: "accept"}),
                                   (self.client, "output", {2004: "drop"})):
            ns.run("nft", "-f", "-", input=RULES.format(hook=hook, rules="\n".join(
                f'udp dport {port} counter {verdict} comment "{port}"'
                for port, verdict in verdicts.items())))
        self.bpffs = bpf.mount_bpffs(self.lab)
        self.has_reasons = observer.features()["drop_reasons"]
