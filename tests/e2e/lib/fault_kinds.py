# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
"""
The kinds of faults. Each is a function that is called as the fault begins; it returns at once, or when the
window is over. The run has x, the host at the chosen side, and app, its application; y and other, of the other side.
"""

import collections
import os
import signal
import socket

from lib import fault_net
from lib import lab

PLAIN = "rpc", "http", "pool", "loop"
TURNS = *PLAIN, "h2", "upload", "download", "udp"
OUTWARD = {"a": ("upload", "stream up"), "b": ("download", "stream down")} # the side sends much
INWARD = {"a": OUTWARD["b"], "b": OUTWARD["a"]}
Kind = collections.namedtuple("Kind", "function truths workloads sides options")
KINDS = {}
SINK_PORT = 5300


def kind(*truths, workloads=TURNS, sides="ab", **options):
    """
    @truths: (place, cause) of which one is to be said; "process" and "host" are those of the side
    @workloads: of which one is chosen; by side, if they differ
    @options: of the applications, and prepare: called before anything is traced; contained: sides with a container;
    sink: the host that rivals send to, "x" is that of the side
    """
    def add(function):
        KINDS[function.__name__.rstrip("_")] = Kind(function, truths, workloads, sides, options)
        return function
    return add


@kind(("process", "stopped"), workloads=(*PLAIN, "h2", "upload", "download", "udp"))
def stopped(run):
    run.undo(os.kill, run.app.pid, signal.SIGCONT)
    while run.is_on():
        os.kill(run.app.pid, signal.SIGSTOP)
        run.wait(run.random.uniform(.08, .25))
        os.kill(run.app.pid, signal.SIGCONT)
        run.wait(run.random.uniform(.06, .2))


@kind(("process", "reads slowly"), workloads={
    "a": (*PLAIN, "download", "stream down"), "b": (*PLAIN, "upload", "stream up")})
def reads(run):
    run.app.set(read_ms=run.random.uniform(20, 50), read_bytes=16384)


@kind(("process", "thinks"), workloads={"a": (*TURNS, "stream up"), "b": (*TURNS, "stream down")})
def thinks(run):
    run.app.set(think_ms=run.random.uniform(30, 100) if "stream" not in run.workload else run.random.uniform(15, 40))


@kind(("server process", "accept queue"), workloads=("rpc",), sides="b", clients=8, backlog=3)
def accept(run):
    run.app.set(accept_ms=run.random.uniform(80, 250))


@kind(("host", "receive buffer"), workloads=INWARD, least_us=4000)
def rcvbuf(run):
    run.app.set(rcvbuf=run.random.randint(1500, 5000))


def send_segments(run):
    """One by one: else a send buffer takes 64 KiB, however small it is."""
    run.x.inside.offload("c0" if run.x.has_container else "up0", "tso", "gso", on=False)


@kind(("host", "send buffer"), workloads=OUTWARD, prepare=send_segments, least_us=6000)
def sndbuf(run):
    run.app.set(sndbuf=run.random.randint(1500, 4000))


@kind(("server host", "receive buffer"), workloads=("udp",), sides="b", requests=(4, 6))
def udpbuf(run):
    run.app.set(rcvbuf=1)


@kind(("host", "cpu"), workloads=TURNS)
def cpu(run):
    """A neighbour in the control group of the application uses what the group may use."""
    group = run.groups[run.side]
    neighbour = run.spawn(run.x.inside, "spin", enter=group.join, busy_ms=100)
    quota_ms = run.random.randint(4, 10)
    group.limit(quota_ms)
    run.undo(group.limit, 0)
    run.say(group=group.name, quota_ms=quota_ms, culprits=[{"pid": neighbour.pid}])


@kind(("host", "qdisc"), workloads=OUTWARD)
def tbf(run):
    kbit = run.random.randint(1500, 4000)
    run.x.shape(kbit)
    run.undo(run.x.shape)
    run.say(kbit=kbit)


def start_rival(run, host, proto, **options):
    """To the host that has a sink. @return its flows at the host's uplink, with its process"""
    to = run.sink
    ns = host.inside if host.has_container and run.random.random() < .5 else host.ns
    app = run.spawn(ns, "rival", proto=proto, address=to.address, port=SINK_PORT, **options)
    return [{"pid": app.pid, "Proto": socket.IPPROTO_UDP if proto == "udp" else socket.IPPROTO_TCP,
             "SrcAddr": host.address, "SrcPort": int(port), "DstAddr": to.address, "DstPort": SINK_PORT}
            for port in app.said.split()]


@kind(("host", "qdisc"), workloads={"a": (*TURNS, "stream up"), "b": (*TURNS, "stream down")}, sink="c")
def rival(run):
    """In the queue of the own uplink, of which TCP gives each connection of the host a few packets only."""
    proto = run.random.choice(("tcp", "udp"))
    rate = {"tcp": 0, "udp": fault_net.UPLINK_KBIT * 1000 * run.random.uniform(1, 1.2)}[proto]
    run.say(culprits=start_rival(run, run.x, proto, rate=rate, flows=16 if proto == "tcp" else 1))


@kind(("host", "qdisc"), sink="c")
def bursts(run):
    rate = fault_net.UPLINK_KBIT * 1000 * run.random.uniform(.5, .8)
    run.say(culprits=start_rival(run, run.x, "udp", rate=rate, burst=run.random.randint(60_000, 95_000)))


def drop_rule(run, share, is_inward):
    hook, way = ("prerouting", "iifname") if is_inward else ("postrouting", "oifname")
    port = "dport" if (run.side == "b") == is_inward else "sport"
    run.x.ns.run("nft", "-f", "-", input=f"""
        table inet fault {{ chain drops {{ type filter hook {hook} priority {-300 if is_inward else 200}
            {way} "up0" meta l4proto {{ tcp, udp }} th {port} {fault_net.PORT} numgen random mod 1000 < {share} drop
        }}
        }}""")
    run.undo(run.x.ns.run, "nft", "delete", "table", "inet", "fault")
    run.say(share=share / 1000, hook=hook)


@kind(("host", "drop"))
def nft(run):
    drop_rule(run, run.random.randint(60, 200), is_inward=run.side == "b" or run.random.random() < .5)


def fill_early(run):
    run.table = fault_net.Table(run.x.ns)
    run.table.fill(2000)


@kind(("host", "conntrack"), workloads=("rpc",), prepare=fill_early, contained="x")
def conntrack(run):
    while run.is_on():
        run.table.fill(0)
        run.wait(.02)
    run.table.end.close()


@kind(("network", "queue"), workloads={"a": (*TURNS, "stream down"), "b": (*TURNS, "stream up")}, sink="x")
def rival_net(run):
    """Host C sends to the host of the side."""
    proto = run.random.choice(("tcp", "udp"))
    rate = {"tcp": 0, "udp": fault_net.LINK_KBIT * 1000 * run.random.uniform(.97, 1.05)}[proto]
    run.say(culprits=start_rival(run, run.c, proto, rate=rate, flows=1 if proto == "udp" else run.random.randint(1, 3)))


@kind(("network", "delay"))
def delay(run):
    add_us = run.random.randint(20_000, 60_000)
    run.path("delay", run.net.delays[run.y.number, run.x.number] + add_us)
    run.say(delay_us=add_us)


@kind(("network", "loss"), workloads={"a": (*TURNS, "stream down"), "b": (*TURNS, "stream up")})
def loss(run):
    share = run.random.randint(40_000, 120_000)
    run.path("loss", share)
    run.say(share=share / 1e6)


@kind(("network", "reordering"), workloads=INWARD)
def reordering(run):
    share = run.random.randint(150_000, 400_000)
    run.path("late", share)
    run.say(share=share / 1e6)


@kind(("network", "mtu"), workloads=INWARD, timeout_s=.8)
def mtu(run):
    size = run.random.randint(600, 1300)
    run.path("mtu", size)
    run.say(bytes=size)


@kind(("network", "link"))
def flap(run):
    run.undo(run.net.link, run.x, True)
    while run.is_on():
        run.net.link(run.x, False)
        run.wait(run.random.uniform(.1, .4))
        run.net.link(run.x, True)
        run.wait(run.random.uniform(.3, .8))


@kind(("server process", "reads slowly"), ("client host", "qdisc"), workloads=("upload",), sides="b")
def reads_and_tbf(run):
    run.app.set(read_ms=run.random.uniform(15, 30), read_bytes=16384)
    run.y.shape(run.random.randint(3000, 6000))
    run.undo(run.y.shape)


@kind(("host", "cpu"), ("network", "loss"), workloads=PLAIN)
def cpu_and_loss(run):
    cpu(run)
    loss(run)


@kind(("process", "thinks"), ("network", "delay"), workloads=PLAIN)
def thinks_and_delay(run):
    run.app.set(think_ms=run.random.uniform(20, 60))
    delay(run)


@kind(("none", "none"))
def none(_run):
    pass


@kind(("none", "none"), contained="ab", workloads=PLAIN)
def none_nat(_run):
    pass


@kind(("none", "none"), workloads=("stream up", "stream down"))
def none_stream(_run):
    pass


@kind(("none", "none"), workloads=(*PLAIN, "udp"), sink="c")
def none_varies(run):
    """Another process of the host computes, and another one sends, both less than would be felt."""
    run.spawn(run.x.ns, "spin", busy_ms=run.random.randint(10, 30))
    start_rival(run, run.x, "udp", rate=fault_net.UPLINK_KBIT * 1000 * .1)


class Group:
    """A control group, whose processes may be limited to some of each 100 ms; of either version."""

    V1, V2 = "/sys/fs/cgroup/cpu", "/sys/fs/cgroup"

    def __init__(self, where, name):
        self.name, self.is_v1 = name, os.path.exists(f"{self.V1}/cpu.shares")
        self.path = f"{self.V1 if self.is_v1 else self.V2}/{name}"
        if not self.is_v1:
            lab.write(f"{self.V2}/cgroup.subtree_control", "+cpu")
        os.mkdir(self.path)
        where.defer(self.remove)

    def join(self):
        lab.write(f"{self.path}/cgroup.procs", "0")

    def limit(self, ms):
        """@ms: 0: no limit"""
        if self.is_v1:
            lab.write(f"{self.path}/cpu.cfs_quota_us", str(ms * 1000 or -1))
        else:
            lab.write(f"{self.path}/cpu.max", f"{ms * 1000 or 'max'} 100000")

    def remove(self):
        lab.wait_for(lambda: not lab.read(f"{self.path}/cgroup.procs"), "an empty group")
        os.rmdir(self.path)
