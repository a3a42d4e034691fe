# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
# Needs: nftables
"""Maps of services, and what is true of them: by a model of hosts that report, or by nftables and the
processes that talk through a router with NAT."""

import collections
import json
import os
import signal
import socket
import subprocess
import time

from lib import lab
from lib import observer
from lib import traffic
from lib.service import Supervisor

SYN, ACK = 2, 16
SYN_ACK = 1
TCP, UDP = 6, 17


def key_of(edge):
    return (edge["ClientAddr"], edge["ServerAddr"], edge.get("ServerPort", 0), edge["Proto"])


class MapTest(lab.LabTest):
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

    def make_files(self, edges):
        """@return a model, and paths of files: of hosts, or of several each, some with lines again"""
        model = Model(self.random)
        for _ in range(edges):
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
                    record |= self.names("Src", src) | self.names("Dst", dst)
                    record["Flags"] = ACK | (SYN if not i else 0)
                    if not i:
                        record["TcpCombined"] = SYN_ACK if way == "Back" else 0
                    if way == "Sent":
                        record["ResponseTimeNs"] = self.chance.randint(1, 10 ** 9)
                        record["AppResponses"] = self.chance.randint(0, 100)
                if self.chance.random() < 0.1: # of a reporter without clocks, or with a wrong one
                    record["TimeFlowStartMs"] = self.chance.choice((0, at + 10 ** 9))
                for host in filter(None, (client, server, before)):
                    if host == complete or self.chance.random() < 0.6:
                        self.lines[host].append(json.dumps(
                            record | {"AgentIP": host, "HostName": f"host-{host}"}))
        if proto == TCP:
            self.session(key, sport)

    @staticmethod
    def workloads(host):
        """All that have this address: a fifth of the hosts have two."""
        number = int(host.rpartition(".")[2])
        names = [f"web-{number}", f"db-{number}"][:1 if number % 5 else 2]
        return names if number % 2 else [f"shop/{name}" for name in names]

    def names(self, end, host):
        """The members that name the workload at an end; half of the records lack them."""
        namespace, _, name = self.chance.choice(self.workloads(host)).rpartition("/")
        if self.chance.random() < 0.5:
            return {}
        if not namespace:
            return {f"{end}ContainerName": name}
        return {f"{end}ContainerName": "box", f"{end}PodName": name, f"{end}PodNamespace": namespace}

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
                    "TimeFlowEndMs": 1700000000000, "AgentIP": host, "HostName": f"host-{host}",
                    **self.names("", host)}))


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
# Of this process: sessions are of the whole host, and tests run side by side.
NET = f"10.{64 + os.getpid() % 190}"
VIP = f"{NET}.9.9"
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


class RoutedTest(MapTest):
    """Clients c0, c1 and servers s0, s1 at a router, which translates some."""

    def setUp(self):
        super().setUp()
        self.router = self.lab.ns("r")
        self.router.sysctl("ipv4/ip_forward", 1)
        self.clients = [self.leaf(f"c{i}", i) for i in range(2)]
        self.servers = [self.leaf(f"s{i}", 2 + i) for i in range(2)]
        self.address = {ns: f"{NET}.{i}.2" for i, ns in enumerate(self.clients + self.servers)}
        self.truth = collections.defaultdict(collections.Counter)
        self.udp = set()
        self.masked = self.hidden = None
        self.agents = []
        self.addCleanup(self.stop_agents)

    def leaf(self, name, number):
        ns = self.lab.ns(name)
        self.lab.wire(ns, "eth0", [f"{NET}.{number}.2/24"], self.router, name,
                      [f"{NET}.{number}.1/24"], offload=False)
        ns.ip("route", "add", "default", "via", f"{NET}.{number}.1")
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

    def start_agents(self, of_router=""):
        """@of_router: more of its configuration"""
        supervisor = Supervisor(self.lab)
        self.addCleanup(supervisor.close)
        names = [("r", self.router, f"{NET}.0.1")]
        names += [(f"c{i}", ns, self.address[ns]) for i, ns in enumerate(self.clients)]
        names += [(f"s{i}", ns, self.address[ns]) for i, ns in enumerate(self.servers)]
        for name, ns, address in names:
            path = self.lab.path(f"conf-{name}")
            with open(path, "w", encoding="utf-8") as file:
                file.write(CONFIGURATION.format(dir=self.lab.dir, name=name, address=address))
                if ns is self.router:
                    file.write(of_router)
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

    def talk(self, kinds="tturR"):
        """An edge, and what the ends know of it."""
        client, server = self.random.choice(self.clients), self.random.choice(self.servers)
        asked = VIP if server is self.hidden and self.random.random() < 0.5 else self.address[server]
        port, kind = self.random.randint(1000, 60000), self.random.choice(kinds)
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
            if not self.random.randrange(4):
                time.sleep(0.6) # the answer is in another interval of a live map
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
                    end.settimeout(lab.PATIENCE_S)
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
        return {key: edge for key, edge in edges.items() if key[0].startswith(f"{NET}.")}
