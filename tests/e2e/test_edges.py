#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
# Needs: nftables
"""
netobsctl map --services: each edge once, from records of many hosts and live.

Of records, the truth is a model of hosts that report; of traffic between namespaces through NAT, it is what
nftables counts where packets arrive, and what the processes that talked have noted. Both are random; a
failure prints its seed, and NETOBS_TEST_SEED=SEED repeats it.
"""

import collections
import json
import os
import random
import re
import signal
import socket
import subprocess
import time
import xml.dom.minidom

from lib import lab
from lib import observer
from lib import traffic
from lib.service import Supervisor
from lib.talkers import features

EDGES = 1000
SYN, ACK = 2, 16
SYN_ACK = 1
TCP, UDP = 6, 17


def key_of(edge):
    return (edge["ClientAddr"], edge["ServerAddr"], edge.get("ServerPort", 0), edge["Proto"])


class MapTest(lab.LabTest):
    def setUp(self):
        super().setUp()
        self.seed = int(os.environ.get("NETOBS_TEST_SEED", time.time_ns() % (1 << 32)))
        self.random = random.Random(self.seed)
        print(f"    NETOBS_TEST_SEED={self.seed}", flush=True)

    def run_map(self, *arguments, text=None, code=0):
        """@return standard output and standard error"""
        result = subprocess.run([observer.netobsctl(), "map", "--services", *arguments],
                                input=text, check=False, stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, text=True, timeout=240)
        observer.check_sanitizer(result.stderr)
        self.assertEqual(code, result.returncode, result.stderr)
        return result.stdout, result.stderr

    def read_map(self, *arguments, **options):
        """@return {key: edge}, the others and the total"""
        out, errors = self.run_map("-o", "json", *arguments, **options)
        found = [json.loads(line) for line in out.splitlines()]
        edges = [edge for edge in found if edge["type"] == "edge"]
        self.assertEqual("total", found[-1]["type"])
        others = [edge for edge in found if edge["type"] == "others"]
        self.assertEqual(len(found), len(edges) + len(others) + 1)
        return {key_of(edge): edge for edge in edges}, others, found[-1], errors


class Model:
    """Hosts that talk, and what their agents write."""

    def __init__(self, chance):
        self.chance = chance
        self.truth = collections.defaultdict(collections.Counter)
        self.lines = collections.defaultdict(list)  # of each host
        self.hosts = [f"10.{i // 200}.0.{1 + i % 200}" for i in range(60)]
        self.port = 20000

    def edge(self):
        client, server = self.chance.sample(self.hosts, 2)
        port = self.chance.choice((53, 80, 443, 9092, 61000))
        key = (client, server, port, UDP if port == 53 else TCP)
        for _ in range(self.chance.randint(1, 4)):
            self.port = 20000 + (self.port - 19999) % 40000
            self.conversation(key, self.port)

    def conversation(self, key, sport):
        client, server, port, proto = key
        before, at = self.chance.choice((None, "10.9.9.9")), 1700000000000
        ends = {"Sent": (client, sport, server, port), "Back": (server, port, client, sport)}
        for way, (src, sp, dst, dp) in ends.items():
            complete = self.chance.choice((client, server))
            for i in range(self.chance.randint(1, 5)):
                packets, octets = self.chance.randint(1, 1000), self.chance.randint(40, 1 << 20)
                self.truth[key][f"{way}Packets"] += packets
                self.truth[key][f"{way}Bytes"] += octets
                record = {"SrcAddr": src, "DstAddr": dst, "SrcPort": sp, "DstPort": dp,
                          "Proto": proto, "Packets": packets, "Bytes": octets,
                          "TimeFlowStartMs": at + 1000 * i, "TimeFlowEndMs": at + 1000 * i + 900}
                if proto == TCP:
                    record["Flags"] = ACK | (SYN if not i else 0)
                    if not i:
                        record["TcpCombined"] = SYN_ACK if way == "Back" else 0
                for host in filter(None, (client, server, before)):
                    if host == complete or self.chance.random() < 0.6:
                        self.lines[host].append(json.dumps(
                            record | {"AgentIP": host, "HostName": f"host-{host}"}))
        if proto == TCP:
            self.session(key, sport)

    def session(self, key, sport):
        client, server, port, _ = key
        ended = self.chance.choice(("fin", "reset", "aborted", "timeout", "refused", "failed"))
        self.truth[key]["Connections"] += 1
        self.truth[key][{"reset": "Resets", "aborted": "Resets", "timeout": "Timeouts",
                         "refused": "Refused", "failed": "Failed", "fin": "Fine"}[ended]] += 1
        for host, peer, ports, opened in (
                (client, server, (sport, port), "active"),
                (server, client, (port, sport), "passive")):
            if opened == "active" or self.chance.random() < 0.5:
                self.lines[host].append(json.dumps({
                    "type": "session", "SrcAddr": host, "DstAddr": peer, "SrcPort": ports[0],
                    "DstPort": ports[1], "Proto": TCP, "Opened": opened, "Ended": ended,
                    "TimeFlowEndMs": 1700000000000, "AgentIP": host, "HostName": f"host-{host}"}))


class Records(MapTest):
    def make_files(self):
        """@return a model, and paths of files: of hosts, or of several each, some with lines again"""
        model = Model(self.random)
        for _ in range(EDGES):
            model.edge()
        paths = []
        for host, lines in model.lines.items():
            again = [line for line in lines if self.random.random() < 0.2]
            lines = lines + again
            self.random.shuffle(lines)
            if not paths or self.random.random() < 0.5:
                paths.append(self.lab.path(f"records-{host}"))
            with open(paths[-1], "a", encoding="utf-8") as file:
                file.writelines(line + "\n" for line in lines)
        return model, paths

    def check(self, model, edges):
        self.assertEqual(set(model.truth), set(edges))
        for key, truth in model.truth.items():
            edge = edges[key]
            self.assertEqual(
                (truth["SentPackets"], truth["SentBytes"],
                 truth["SentPackets"] + truth["BackPackets"],
                 truth["SentBytes"] + truth["BackBytes"]),
                (edge["SentPackets"], edge["SentBytes"], edge["Packets"], edge["Bytes"]), edge)
            for name in "Connections", "Resets", "Timeouts", "Refused", "Failed":
                self.assertEqual(truth[name], edge[name], edge)

    def test_each_edge_counts_once(self):
        model, paths = self.make_files()
        edges, others, total, errors = self.read_map(*paths)
        self.check(model, edges)
        self.assertEqual([], others)
        self.assertIn(" lines came again", errors)
        self.assertIn("reported by several, and count once", errors)
        for name in "Packets", "Bytes", "Connections":
            self.assertEqual(sum(edge[name] for edge in edges.values()), total[name])
        # In another order, and twice, from standard input.
        text = ""
        for path in self.random.sample(paths, len(paths)) * 2:
            with open(path, encoding="utf-8") as file:
                text += file.read()
        again, _, total_again, _ = self.read_map("-", text=text)
        self.check(model, again)
        self.assertEqual((total["Packets"], total["Bytes"]),
                         (total_again["Packets"], total_again["Bytes"]))
        self.note(f"{len(edges)} edges of {len(model.hosts)} hosts, {total['Packets']} packets, "
                  f"{total['RepeatedPackets']} of reports that do not count")

    def test_what_is_not_shown_is_in_the_others(self):
        model, paths = self.make_files()
        edges, others, total, _ = self.read_map("-n", "7", *paths)
        self.assertEqual((7, 1), (len(edges), len(others)))
        for name, parts in (("Packets", ("SentPackets", "BackPackets")),
                            ("Bytes", ("SentBytes", "BackBytes"))):
            truth = sum(edge[part] for edge in model.truth.values() for part in parts)
            self.assertEqual(truth, total[name])
            self.assertEqual(truth, others[0][name] + sum(edge[name] for edge in edges.values()))
        least = min(edge["Bytes"] for edge in edges.values())
        self.assertEqual(7, sum(edge["SentBytes"] + edge["BackBytes"] >= least
                                for edge in model.truth.values()))

    def test_pictures(self):
        _, paths = self.make_files()
        svg = self.lab.path("map.svg")
        out, _ = self.run_map("-n", "20", "-o", "dot", "--svg", svg, *paths)
        self.assertEqual(20, out.count(" -> "))
        self.assertTrue(out.startswith("digraph services {") and out.endswith("}\n"))
        with open(svg, encoding="utf-8") as file:
            picture = xml.dom.minidom.parseString(file.read())
        self.assertEqual(20, len(picture.getElementsByTagName("path")))
        table, _ = self.run_map("-n", "20", *paths)
        rows = table.splitlines()
        self.assertEqual(23, len(rows))
        self.assertRegex(rows[0], "^CLIENT +SERVICE +RATE +BYTES +PACKETS +CONNECTIONS")
        self.assertRegex(rows[21], r"^\d+ others +- ")
        self.assertRegex(rows[22], r"^total +- ")

    def test_faults_are_reported_with_their_place(self):
        good = {"SrcAddr": "192.0.2.1", "DstAddr": "192.0.2.2", "SrcPort": 40000, "DstPort": 80,
                "Proto": 6, "Packets": 3, "Bytes": 300, "TimeFlowStartMs": 1, "TimeFlowEndMs": 2}
        bad = ("nonsense", "[1]", "{}", "{" * 50, json.dumps(good | {"SrcAddr": "192.0.2"}),
               json.dumps(good | {"Bytes": 1 << 63}), "\0", '{"SrcAddr":"192.0.2.1"', "x" * (1 << 21),
               json.dumps({key: good[key] for key in good if key != "Proto"}))
        path = self.lab.path("hostile")
        with open(path, "w", encoding="utf-8") as file:
            file.write(json.dumps(good) + "\n\n")
            file.writelines(line + "\n" for line in bad)
            file.write(json.dumps({"type": "stats", "TimeMs": 5}) + "\n")
            file.write(json.dumps(good | {"HostName": "\x1b]0;x\x07\u202e<&\"'>",
                                          "AgentIP": "192.0.2.9", "Packets": 4}))
        edges, _, _, errors = self.read_map(path, code=1)
        self.assertEqual([("192.0.2.1", "192.0.2.2", 80, 6)], list(edges))
        self.assertEqual(4, edges["192.0.2.1", "192.0.2.2", 80, 6]["Packets"])
        for line in range(3, 3 + len(bad)):
            self.assertRegex(errors, f"(?m)^netobsctl map: {re.escape(path)}:{line}: ")
        self.assertIn(f"{len(bad)} lines are no records", errors)
        self.assertIn("1 records of other types", errors)
        _, errors = self.run_map(path, self.lab.path("none"), code=1)
        self.assertIn("none: No such file", errors)
        for arguments, word in ((("--once", path), "--once: it has no effect with --services of f"),
                                (("-d", "1", path), "-d: it has no effect"),
                                (("--netns", "x"), "--netns: it has no effect with --services")):
            _, errors = self.run_map(*arguments, code=2)
            self.assertIn(word, errors)
        for arguments in (("-o", "dot"), ("--svg", "x")):
            result = subprocess.run([observer.netobsctl(), "map", "--once", *arguments],
                                    check=False, stderr=subprocess.PIPE, text=True, timeout=60)
            self.assertEqual(2, result.returncode, result.stderr)

    def test_records_without_hosts_are_of_their_file(self):
        flow = {"SrcAddr": "192.0.2.1", "DstAddr": "192.0.2.2", "SrcPort": 40000, "DstPort": 80,
                "Proto": 6, "Bytes": 300, "TimeFlowStartMs": 1, "TimeFlowEndMs": 2}
        paths = [self.lab.path(name) for name in ("one", "other")]
        for path, packets in zip(paths, (5, 9)):
            with open(path, "w", encoding="utf-8") as file:
                file.write(json.dumps(flow | {"Packets": packets}))
        edges, _, total, _ = self.read_map(*paths)
        edge = edges["192.0.2.1", "192.0.2.2", 80, 6]
        self.assertEqual((9, 2, paths[1], "port"), (edge["Packets"], edge["Hosts"],
                                                    edge["CountedBy"], edge["ServerBy"]))
        self.assertEqual(5, total["RepeatedPackets"])


CONFIGURATION = """
[capture]
interface = /./
nat = yes
rtt = yes
[flows]
interval = 500ms
[sessions]
enabled = yes
[control]
path = {dir}/control-{name}
[sink "a"]
output = json:{dir}/records-{name}
agent_ip = {address}
records = flow,session
"""
VIP = "10.77.9.9"
COUNT = """
table ip truth {{
	set edges {{ type ipv4_addr . ipv4_addr . inet_proto . inet_service; flags dynamic; size 4096; counter; }}
	chain pass {{
		type filter hook {hook} priority -350; policy accept;
		meta l4proto {{ tcp, udp }} add @edges {{ {key} counter }}
	}}
}}
"""
NAT = """
table ip nat {{
	chain pre {{
		type nat hook prerouting priority dstnat;
		ip daddr {vip} {dnat}
	}}
	chain post {{
		type nat hook postrouting priority srcnat;
		ip saddr {masked} oifname "s*" masquerade
	}}
}}
"""


class Live(MapTest):
    """Clients c0, c1 and servers s0, s1 at a router, which translates some."""

    def setUp(self):
        super().setUp()
        self.router = self.lab.ns("r")
        self.router.sysctl("ipv4/ip_forward", 1)
        self.clients = [self.leaf(f"c{i}", i) for i in range(2)]
        self.servers = [self.leaf(f"s{i}", 2 + i) for i in range(2)]
        self.address = {ns: f"10.77.{i}.2" for i, ns in enumerate(self.clients + self.servers)}
        self.truth = collections.defaultdict(collections.Counter)
        self.agents = []
        self.addCleanup(self.stop_agents)

    def leaf(self, name, number):
        ns = self.lab.ns(name)
        self.lab.wire(ns, "eth0", [f"10.77.{number}.2/24"], self.router, name,
                      [f"10.77.{number}.1/24"], offload=False)
        ns.ip("route", "add", "default", "via", f"10.77.{number}.1")
        return ns

    # ---- Who knows -----------------------------------------------------------------------

    def nft(self, ns, text):
        subprocess.run(ns.command("nft", "-f", "-"), input=text, text=True, check=True, timeout=60)

    def count_packets(self):
        """Where packets come in: requests at the router before NAT, answers at the clients behind it."""
        self.nft(self.router, COUNT.format(
            hook="prerouting", key="ip saddr . ip daddr . meta l4proto . th dport"))
        for client in self.clients:
            self.nft(client, COUNT.format(
                hook="input", key="ip daddr . ip saddr . meta l4proto . th sport"))

    def counted(self, ns):
        """{(client, service, port, protocol): (packets, bytes)}"""
        listed = json.loads(ns.run("nft", "-j", "list", "set", "ip", "truth", "edges"))
        found = {}
        for part in listed["nftables"]:
            for element in part.get("set", {}).get("elem", []):
                client, service, proto, port = element["elem"]["val"]["concat"]
                counter = element["elem"]["counter"]
                number = {"tcp": TCP, "udp": UDP}[proto]
                found[client, service, port, number] = counter["packets"], counter["bytes"]
        return found

    # ---- Agents --------------------------------------------------------------------------

    def start_agents(self):
        supervisor = Supervisor(self.lab)
        self.addCleanup(supervisor.close)
        names = [("r", self.router, "10.77.0.1")]
        names += [(f"c{i}", ns, self.address[ns]) for i, ns in enumerate(self.clients)]
        names += [(f"s{i}", ns, self.address[ns]) for i, ns in enumerate(self.servers)]
        for name, ns, address in names:
            path = self.lab.path(f"conf-{name}")
            with open(path, "w", encoding="utf-8") as file:
                file.write(CONFIGURATION.format(dir=self.lab.dir, name=name, address=address))
            self.agents.append(self.lab.spawn(
                observer.netobsctl(), "run", "-c", path, ns=ns, stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL, env=os.environ | {"NOTIFY_SOCKET": supervisor.path}))
            supervisor.wait("READY=1")
        return [self.lab.path(f"records-{name}") for name, _, _ in names]

    def stop_agents(self):
        for agent in self.agents:
            agent.send_signal(signal.SIGTERM)
        codes = [agent.wait(60) for agent in self.agents]
        self.agents = []
        return codes

    # ---- Who talks -----------------------------------------------------------------------

    def translate(self):
        """One service has another address, and one client is masked."""
        self.masked = self.random.choice(self.clients)
        self.hidden = self.random.choice(self.servers)
        self.nft(self.router, NAT.format(vip=VIP, dnat=f"dnat to {self.address[self.hidden]}",
                                         masked=self.address[self.masked]))

    def talk(self):
        """An edge, and what the ends know of it."""
        client, server = self.random.choice(self.clients), self.random.choice(self.servers)
        asked = VIP if server is self.hidden and self.random.random() < 0.5 else self.address[server]
        port, kind = self.random.randint(1000, 60000), self.random.choice("tturR")
        if kind == "u":
            self.talk_udp(client, server, asked, port)
        else:
            self.talk_tcp(client, server, asked, port, kind)

    def talk_udp(self, client, server, asked, port):
        with traffic.make_socket(server, socket.SOCK_DGRAM, self.address[server], port) as service, \
                traffic.make_socket(client, socket.SOCK_DGRAM, self.address[client]) as sock:
            sock.connect((asked, port))
            sock.send(b"question")
            _, peer = service.recvfrom(2000)
            # From now on it is told who asks: the lower port could be either's.
            for _ in range(self.random.randint(1, 20)):
                service.sendto(bytes(self.random.randint(1, 1000)), peer)
                sock.recv(2000)
            self.udp.add((self.address[client], asked, port, UDP, sock.getsockname()[1]))

    def talk_tcp(self, client, server, asked, port, kind):
        key = self.address[client], asked, port, TCP
        self.truth[key]["Connections"] += 1
        with traffic.make_socket(client, socket.SOCK_STREAM, self.address[client]) as sock:
            if kind == "r":
                with self.assertRaises(ConnectionRefusedError):
                    sock.connect((asked, port))
                self.truth[key]["Refused"] += 1
                return
            with traffic.make_socket(server, socket.SOCK_STREAM, self.address[server],
                                     port) as listener:
                listener.listen()
                sock.connect((asked, port))
                end, _ = listener.accept()
                with end:
                    end.settimeout(20)
                    self.exchange(sock, end)
                    if kind == "R":
                        self.truth[key]["Resets"] += 1
                        end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
                if kind == "R":
                    with self.assertRaises(ConnectionResetError):
                        sock.recv(1)

    def exchange(self, sock, end):
        for _ in range(self.random.randint(1, 5)):
            for one, other in ((sock, end), (end, sock)):
                data = bytes(self.random.randint(1, 20000))
                one.sendall(data)
                left = len(data)
                while left:
                    left -= len(other.recv(left))

    # ---- Tests ---------------------------------------------------------------------------

    def check_edges(self, edges):
        """@return how many"""
        sent, back = self.counted(self.router), {}
        for client in self.clients:
            back.update(self.counted(client))
        asked = {key: value for key, value in sent.items() if key[0] in self.address.values() and
                 key[1] in (VIP, *self.address.values()) and key[0] in
                 [self.address[ns] for ns in self.clients]}
        for key, (packets, octets) in asked.items():
            edge = edges.get(key)
            self.assertIsNotNone(edge, f"{key} of {list(edges)}")
            packets_back, octets_back = back.get(key, (0, 0))
            self.assertEqual((packets, octets, packets + packets_back, octets + octets_back),
                             (edge["SentPackets"], edge["SentBytes"], edge["Packets"],
                              edge["Bytes"]), edge)
        return len(asked)

    def check_sessions(self, edges):
        for key, truth in self.truth.items():
            edge = edges[key]
            for name in "Connections", "Refused", "Resets", "Timeouts", "Failed":
                self.assertEqual(truth[name], edge[name], edge)

    def own(self, edges):
        return {key: edge for key, edge in edges.items() if key[0].startswith("10.77.")}

    def test_two_agents_and_a_router_report_each_edge(self):
        self.udp = set()
        self.count_packets()
        self.translate()
        paths = self.start_agents()
        for _ in range(40):
            self.talk()
        time.sleep(1)  # sessions end after the exchange
        self.assertEqual([0] * 5, self.stop_agents())
        edges, _, _, errors = self.read_map(*paths)
        edges = self.own(edges)
        # Of a datagram, it is the port that shows the service: some are the other way round.
        for client, service, port, proto, sport in self.udp:
            if port > sport:
                edge = edges.pop((service, client, sport, proto))
                edge |= {"SentPackets": edge["Packets"] - edge["SentPackets"],
                         "SentBytes": edge["Bytes"] - edge["SentBytes"]}
                edges[client, service, port, proto] = edge
        count = self.check_edges(edges)
        self.assertEqual(count, len(edges))
        self.assertLess(15, count)
        self.check_sessions(edges)
        self.note(f"{count} edges: {errors.splitlines()[-1]}")

    def test_this_host_live(self):
        path = self.lab.path("live")
        with open(path, "w", encoding="utf-8") as file:
            live = self.lab.spawn(observer.netobsctl(), "map", "--services", "-o", "json", "-d", "8",
                                  "--interval", "0.5", ns=self.router, stdout=file,
                                  stderr=subprocess.PIPE)
        self.udp = set()
        self.masked = self.hidden = None
        lab.wait_for(lambda: os.path.getsize(path), "the first interval")
        self.count_packets()
        for _ in range(15):
            self.talk()
        _, errors = live.communicate(timeout=60)
        observer.check_sanitizer(errors.decode())
        self.assertEqual(0, live.returncode, errors)
        sums = collections.defaultdict(collections.Counter)
        with open(path, encoding="utf-8") as file:
            for edge in map(json.loads, file):
                if edge["type"] == "edge" and edge["Proto"] == TCP:
                    sums[key_of(edge)].update({name: value for name, value in edge.items()
                                               if isinstance(value, int)})
        for key, truth in self.truth.items():
            packets, octets = self.counted(self.router)[key]
            self.assertEqual((packets, octets), (sums[key]["SentPackets"], sums[key]["SentBytes"]))
            self.assertEqual(truth["Connections"], sums[key]["Connections"], key)
            self.assertEqual(truth["Refused"], sums[key]["Refused"], key)
        self.assertTrue(self.truth)


if __name__ == "__main__":
    lab.main("TCP sockets that programs follow", lambda: features().get("sessions"))
