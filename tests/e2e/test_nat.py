#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
# Cost: 60
"""Flows and their translation by NAT, compared with the kernel's table of connections.

Rules, protocols and traffic are random.
"""

import collections
import itertools
import json
import os
import signal
import socket
import time

from lib import bpf
from lib import frames as f
from lib import lab
from lib import nat
from lib import observer

CONNECTIONS = int(os.environ.get("NETOBS_TEST_NAT", "10000"))
NAT_FIELDS = ("XlatSrcAddr", "XlatDstAddr", "XlatSrcPort", "XlatDstPort", "OrigSrcAddr",
              "OrigDstAddr", "OrigSrcPort", "OrigDstPort", "ZoneId")
BASE, ZONES = nat.BASE, nat.ZONES
# By which name records have a tunnel, its protocol and port, and what makes a packet the payload.
TUNNELS = (
    *((name, f.UDP, *tunnel) for name, tunnel in f.UDP_TUNNELS.items()),
    ("gre", f.GRE, 0, lambda kind, packet: f.gre(7, kind, packet)),
    ("erspan", f.GRE, 0, lambda kind, packet: f.gre(7, f.ERSPAN, f.ether(
        *f.INNER_MACS, kind, packet))),
    ("ipip", f.IPIP, 0, lambda _, packet: packet),
    ("ipip", f.IP6, 0, lambda _, packet: packet),
)
TRANSLATED_CLIENTS = {"masquerade": ("10.0.1.10", "fd01::10"), "snat": ("10.0.1.11", "fd01::11"),
                      "dnat": ("10.0.1.12", "fd01::12")}


class Nat(nat.RandomNatTest):
    def watch(self, *arguments):
        return observer.Observer(self.lab, self.router, "--nat", *arguments).wait_attached(
            (self.router, "rc"), (self.router, "rs"), (self.router, "lo"))

    def check_conversations(self, records, known):
        """All faces of an entry have one id, no other entry has it, and each packet counts once."""
        entries = {}
        for entry in known.entries:
            for face in entry.faces():
                entries.setdefault(face, []).append(entry)
        ids, packets = collections.defaultdict(set), collections.Counter()
        for record in records:
            face = nat.tuple_of(record)
            if len(entries.get(face, ())) != 1:
                continue
            entry = entries[face][0]
            ids[entry.original].add(record["ConversationId"])
            packets[entry.original, face in (entry.original, entry.reply.back())] += \
                record["Packets"]
        self.assertEqual({}, {one: found for one, found in ids.items() if len(found) != 1})
        self.assertEqual(len(ids), len(set.union(*ids.values())))
        for entry in known.entries:
            # Between equal ends, conntrack takes packets for answers, or for invalid ones.
            if entry.original in ids and entry.original.proto in (6, 17) and \
                    entry.original != entry.original.back():
                counted = packets[entry.original, True], packets[entry.original, False]
                self.assertEqual(entry.packets, counted, entry)
        return len(ids)

    def test_each_flow_has_the_addresses_of_its_connection(self):
        services = self.make_services(40)
        watch = self.watch("--interval", "1")
        self.talk(services, lab.sized(CONNECTIONS))
        known = nat.connections(self.router)
        result = watch.stop()
        result.check_conservation()
        named, missed = self.check_faces(result.records, known)
        self.assertEqual([], missed)
        self.assertEqual(known.translated(), named)
        conversations = self.check_conversations(result.records, known)
        self.note(f"{len(named)} of {len(known.before)} flows are translated, of "
                  f"{conversations} conversations")

    @staticmethod
    def end_text(address, port):
        return f"[{address}]:{port}" if nat.is_ipv6(address) else f"{address}:{port}"

    def test_a_table_names_the_ends_that_change(self):
        services = [one for one in self.make_services(30) if one.proto in ("tcp", "udp")]
        command = (observer.netobsctl(), "flows", "--nat", "-i", "rc", "-i", "rs", "-i", "lo", "-o",
                   "table", "--interval", "1")
        with open(self.lab.path("table"), "w+", encoding="utf-8") as file:
            process = self.lab.spawn(*command, ns=self.router, stdout=file)
            # A clsact qdisc that comes or goes has the kernel drop what is sent meanwhile.
            lab.wait_for(lambda: all(bpf.attached(self.router, name) == 2
                                     for name in ("rc", "rs", "lo")), "netobsctl to attach", 120)
            for _ in range(10):
                self.talk(services, 10)
                time.sleep(0.2)
            process.send_signal(signal.SIGINT)
            self.assertEqual(0, process.wait(60))
            file.seek(0)
            lines = file.read().splitlines()
        self.assertRegex(lines[0], "SOURCE → DESTINATION +NAT +INFO")
        named = 0
        for face, other in nat.connections(self.router).translated():
            wanted = ", ".join(f"{name} {self.end_text(*end)}" for name, own, end in (
                ("src", (face.src, face.sport), (other.src, other.sport)),
                ("dst", (face.dst, face.dport), (other.dst, other.dport))) if own != end)
            tuple_text = " → ".join((self.end_text(face.src, face.sport),
                                     self.end_text(face.dst, face.dport)))
            for line in lines:
                # Those that begin before it is attached may have none.
                if f" {tuple_text} " in line and ("src " in line or "dst " in line):
                    self.assertIn(wanted, line)
                    named += 1
        self.assertLess(0, named)
        self.note(f"{named} rows")

    def test_a_first_packet_without_an_answer(self):
        """Of a flow without an answer, in an interval with no other packet."""
        services = [one for one in self.make_services(60) if one.proto == "udp" and
                    one.kind in ("dnat", "snat", "masquerade", "both", "hairpin", "local")]
        watch = self.watch("--interval", "60")
        for service in services:
            service.ask(False)
        known = nat.connections(self.router)
        named, missed = self.check_faces(watch.stop().records, known)
        self.assertEqual([], missed)
        asked = {one.port for one in services}
        self.assertEqual({(face, other) for face, other in known.translated()
                          if face.dport in asked}, named)
        self.assertTrue(named)

    def test_more_translations_in_an_interval_than_the_ring_buffer_holds(self):
        services = [one for one in self.make_services(40)
                    if one.proto == "udp" and one.kind in ("dnat", "masquerade", "both")]
        watch = self.watch("--interval", "60")
        for number in range(lab.sized(12000)):
            services[number % len(services)].ask(True)
        known = nat.connections(self.router)
        records = watch.stop().records
        named, missed = self.check_faces(records, known)
        self.assertEqual([], missed)
        self.assertEqual(known.translated(), named)
        conversations = self.check_conversations(records, known)
        self.note(f"{len(named)} flows are translated, of {conversations} conversations")

    def offload(self):
        """Packets of open connections take the fast path; @return whether the kernel has one."""
        try:
            self.rules("""
                add table inet fast
                add flowtable inet fast open { hook ingress priority 0; devices = { rc, rs };
                                               counter; }
                add chain inet fast forward { type filter hook forward priority 0; }
                add rule inet fast forward ip protocol { tcp, udp } flow add @open
                add rule inet fast forward ip6 nexthdr { tcp, udp } flow add @open
            """)
        except RuntimeError:
            return False
        return True

    def open_connections(self, services):
        for service in services:
            sock = service.make(service.asker)
            sock.connect((service.asked, service.port))
            self.addCleanup(sock.close)
            end = service.listener.accept()[0]
            self.addCleanup(end.close)
            yield sock, end

    def connections_at_rest(self):
        """Once no packet is under way: an acknowledgment may be delayed."""
        known = [None]

        def is_same():
            known.append(nat.connections(self.router))
            time.sleep(0.5)
            return known[-1] == known[-2]
        lab.wait_for(is_same, "the last acknowledgments")
        return known[-1]

    def test_connections_that_no_longer_pass_netfilter(self):
        """Packets on the fast path have no entry of conntrack, in intervals of their own."""
        services = [one for one in self.make_services(40) if one.proto == "tcp"]
        is_fast = self.offload()
        watch = self.watch("--interval", "1")
        ends = list(self.open_connections(services))
        for _ in range(5):
            time.sleep(1.1)
            for sock, end in ends:
                for _ in range(10):
                    sock.send(b"question")
                    end.recv(100)
                    end.send(b"answer")
                    sock.recv(100)
        known = self.connections_at_rest()
        n_fast = self.router.run("conntrack", "-L").count("OFFLOAD")
        result = watch.stop()
        result.check_conservation()
        named, missed = self.check_faces(result.records, known)
        self.assertEqual([], missed)
        self.assertEqual(known.translated(), named)
        self.check_conversations(result.records, known)
        self.assertEqual(is_fast, n_fast > 0)
        self.note(f"{n_fast} of {len(ends)} connections took the fast path")

    def test_connections_older_than_the_observer(self):
        services = [one for one in self.make_services(30) if one.proto == "tcp"]
        ends = list(self.open_connections(services))
        watch = self.watch("--interval", "60")
        for sock, end in ends:
            sock.send(b"question")
            end.recv(100)
            end.send(b"answer")
            sock.recv(100)
        known = nat.connections(self.router)
        named, missed = self.check_faces(watch.stop().records, known)
        self.assertEqual([], missed)
        self.assertTrue(named)

    def test_pings(self):
        self.rules(BASE + "add rule inet nat pre ip daddr 192.0.2.1 dnat ip to 10.0.2.2\n"
                   "add rule inet nat pre ip6 daddr 2001:db8::1 dnat ip6 to fd02::2\n"
                   "add rule inet nat post oifname rs masquerade\n")
        watch = self.watch("--interval", "1")
        for address in self.PUBLIC, self.PUBLIC6:
            self.client.run("ping", "-c", "3", "-i", "0.2", address)
        known = nat.connections(self.router)
        named, missed = self.check_faces(self.pings(watch), known)
        self.assertEqual([], missed)
        self.assertEqual(known.translated(), named)
        self.assertEqual(4, len(named))

    def test_pings_behind_one_address_have_their_own_or_none(self):
        """Behind the router, only their identifiers differ, which flows do not have."""
        self.rules(BASE + "add rule inet nat pre ip daddr 192.0.2.1 dnat ip to 10.0.2.2\n"
                   "add rule inet nat post oifname rs masquerade\n")
        watch = self.watch("--interval", "60")
        for address in self.PUBLIC, self.SERVER:
            self.client.run("ping", "-c", "3", "-i", "0.2", address)
        known = nat.connections(self.router)
        named, missed = self.check_faces(self.pings(watch), known)
        self.assertEqual({face for face, _ in named},
                         {nat.Tuple(1, self.CLIENT, address, 0, 8)
                          for address in (self.PUBLIC, self.SERVER)})
        self.assertEqual([nat.Tuple(1, self.SERVER, "10.0.2.1", 0, 0)],
                         [face for face, _ in missed])

    @staticmethod
    def pings(watch):
        return [one for one in watch.stop().records
                if one.get("IcmpType") in (0, 8, 128, 129)]

    def test_errors_count_once_and_have_no_translation_of_their_own(self):
        """Of a port that is closed, of a server behind NAT too, from which they come with its own address."""
        self.rules(BASE + "add rule inet nat post oifname rs masquerade\n")
        watches = [self.watch("--interval", "60", *more) for more in ((), ("--per-interface",))]
        with self.client, socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
            sock.settimeout(lab.PATIENCE_S)
            sock.connect((self.SERVER, 9))
            for _ in range(3):
                sock.send(b"hello")
                self.assertRaises(ConnectionRefusedError, sock.recv, 10)
        result, places = (watch.stop() for watch in watches)
        result.check_conservation()
        errors, at_places = ([one for one in records if one.get("IcmpType") == 3]
                             for records in (result.records, places.records))
        self.assertEqual(3, sum(one["Packets"] for one in errors), errors)
        self.assertEqual({"10.0.2.1"}, {one["DstAddr"] for one in errors})
        self.assertTrue(at_places)
        for record in at_places:
            self.assertFalse(set(NAT_FIELDS) & set(record), record)
        self.assertTrue(any("XlatSrcAddr" in one for one in places.records))

    def test_zones_with_equal_tuples(self):
        """Two clients with one address, in a zone each, ask at the same time from the same port."""
        other, server = self.make_zones(
            "add rule inet nat pre udp dport 80 dnat ip to 10.0.2.2:8080\n"
            "add rule inet nat post ct mark 1 snat ip to 10.0.2.50\n"
            "add rule inet nat post ct mark 2 snat ip to 10.0.2.51\n")
        watch = self.watch("--interval", "1", "--per-interface")
        self.ask_in_zones(other, server, (self.PUBLIC, 80))
        records = [one for one in watch.stop().records if one["Proto"] == 17]
        wanted = {"rc": ("10.0.2.50", 1), "rd": ("10.0.2.51", 2)}
        asked = [one for one in records if one.get("DstPort") == 80]
        self.assertEqual(2 * lab.sized(50), len(asked))
        for record in asked:
            self.assertEqual(wanted[record["Interfaces"][0]],
                             (record["XlatSrcAddr"], record["ZoneId"]), record)
        # Their own addresses distinguish replies.
        zones = {address: zone for address, zone in wanted.values()}
        answered = [one for one in records if one.get("SrcPort") == 8080]
        self.assertEqual(2 * lab.sized(50), len(answered))
        for record in answered:
            self.assertEqual(("10.0.1.2", zones[record["DstAddr"]]),
                             (record["XlatDstAddr"], record["ZoneId"]), record)

    def test_a_zone_without_translation(self):
        """Two clients with one address; that of one is translated."""
        other, server = self.make_zones("add rule inet nat post ct mark 1 snat ip to 10.0.2.50\n")
        watch = self.watch("--interval", "1", "--per-interface")
        self.ask_in_zones(other, server, (self.SERVER, 8080))
        asked = [one for one in watch.stop().records
                 if one["Proto"] == 17 and one["Interfaces"][0] in ("rc", "rd") and
                 one["IfDirections"][0] == observer.INGRESS]
        self.assertEqual(2 * lab.sized(50), len(asked))
        for record in asked:
            self.assertEqual("10.0.2.50" if record["Interfaces"][0] == "rc" else None,
                             record.get("XlatSrcAddr"), record)

    def faces_in(self, zone, record):
        """{tuple that is seen: what it is on the other side} in a zone, of the port that @record has."""
        client = next(record[key] for key in ("SrcPort", "DstPort") if 5000 <= record[key] < 6000)
        there = (nat.Tuple(17, self.CLIENT, self.PUBLIC, client, 80),
                 nat.Tuple(17, self.CLIENT, self.SERVER, client, 8080 + zone))
        back = tuple(one.back() for one in there)
        return {face: other for pair in (there, back) for face, other in (pair, pair[::-1])}

    def test_tenants_with_equal_addresses(self):
        """
        At each interface, a record has the addresses and the zone of the tenant there. Packets of two have one tuple,
        before or behind a translation, and are one flow elsewhere: it has the addresses of neither.
        """
        tenants = self.make_tenants()
        self.zones = {name: zone for zone, (_, *names, _) in tenants.items() for name in names}
        watches = [observer.Observer(self.lab, self.router, "--nat", *arguments).wait_attached(
            *((self.router, name) for name in self.zones)) for arguments in (
                ("--interval", "1", "--per-interface"), ("--interval", "60"))]
        self.ask_of_tenants(tenants, lab.sized(50))
        places, flows = ([one for one in watch.stop().records if one["Proto"] == 17] for watch in watches)
        self.assertEqual(2 * 4 * lab.sized(50), sum(one["Packets"] for one in places))
        for record in places:
            zone = self.zones[record["Interfaces"][0]]
            prefix = "Xlat" if record["IfDirections"][0] == observer.INGRESS else "Orig"
            self.assertEqual(self.faces_in(zone, record)[nat.tuple_of(record)],
                             nat.other_of(record, prefix), record)
            self.assertEqual(zone, record["ZoneId"], record)
        self.assertEqual(2 * 2 * lab.sized(50), sum(one["Packets"] for one in flows))
        self.assertLess(0, self.check_shared(flows))

    def check_shared(self, records):
        """@return how many are of two tenants"""
        shared = 0
        for record in records:
            of = {self.zones[name] for name in record["Interfaces"]}
            others = {nat.other_of(record, prefix) for prefix in ("Xlat", "Orig")} - {None}
            shared += len(of) > 1
            if len(of) > 1:
                self.assertEqual(set(), others, record)
                self.assertNotIn("ZoneId", record)
                continue
            [zone] = of
            self.assertLessEqual(others, {self.faces_in(zone, record)[nat.tuple_of(record)]}, record)
            self.assertEqual(zone, record.get("ZoneId", zone), record)
        return shared

    def test_ports_of_a_bridge(self):
        """What the bridge receives came in by its port."""
        self.router.ip("link", "add", "br0", "type", "bridge")
        self.router.ip("addr", "flush", "dev", "rc")
        self.router.ip("link", "set", "rc", "master", "br0")
        self.router.up("br0")
        self.router.address("br0", "10.0.1.1/24")
        mac = json.loads(self.client.ip("-j", "link", "show", "dev", "eth0"))[0]["address"]
        self.router.neighbour("br0", mac, self.CLIENT)
        bridge = json.loads(self.router.ip("-j", "link", "show", "dev", "br0"))[0]["address"]
        self.client.neighbour("eth0", bridge, "10.0.1.1")
        self.rules(BASE + "add rule inet nat pre udp dport 80 dnat ip to 10.0.2.2:8080\n"
                   "add rule inet nat post oifname rs masquerade\n")
        with self.server:
            server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        server.bind(("0.0.0.0", 8080))
        self.addCleanup(server.close)
        watch = self.watch("--interval", "1")
        for _ in range(lab.sized(100)):
            with self.client, socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
                sock.settimeout(lab.PATIENCE_S)
                sock.sendto(b"x", (self.PUBLIC, 80))
                server.sendto(b"y", server.recvfrom(10)[1])
                sock.recv(10)
        known = nat.connections(self.router)
        records = [one for one in watch.stop().records if one["Proto"] == 17]
        named, missed = self.check_faces(records, known)
        self.assertEqual([], missed)
        self.assertEqual(known.translated(), named)
        self.assertTrue(any("rc" in one["Interfaces"] and "br0" in one["Interfaces"]
                            for one in records))

    def test_two_in_a_row(self):
        """The container's own and the host's: the record of all three places has both."""
        inside = "10.9.9.9"
        self.client.address("lo", f"{inside}/32")
        self.client.run("nft", "-f", "-", input=BASE +
                        "add rule inet nat post oifname eth0 masquerade\n")
        nat.keep_connections(self.client)
        self.rules(BASE + "add rule inet nat pre udp dport 80 dnat ip to 10.0.2.2:8080\n"
                   "add rule inet nat post oifname rs masquerade\n")
        with self.server:
            server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        server.bind(("0.0.0.0", 8080))
        self.addCleanup(server.close)
        points = [(self.client, "eth0"), (self.router, "rc"), (self.router, "rs")]
        watch = observer.Observer(
            self.lab, self.router, "--nat", "--interval", "60",
            *(word for ns, name in points for word in ("-i", f"netns:{ns.name}/{name}"))
        ).wait_attached(*points)
        for number in range(lab.sized(100)):
            with self.client, socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
                sock.settimeout(lab.PATIENCE_S)
                sock.bind((inside, 4000 + number))
                sock.sendto(b"x", (self.PUBLIC, 80))
                server.sendto(b"y", server.recvfrom(10)[1])
                sock.recv(10)
        outer, inner = nat.connections(self.client), nat.connections(self.router)
        records = [one for one in watch.stop().records if one["Proto"] == 17]
        ids = collections.Counter(one["ConversationId"] for one in records)
        self.assertEqual([2] * lab.sized(100), list(ids.values()))
        for record in records:
            face = nat.tuple_of(record)
            self.assertEqual(1, record["Packets"])
            self.assertEqual({"eth0", "rc", "rs"}, set(record["Interfaces"]))
            if face.dport == 80:
                self.assertEqual(outer.after[face], {nat.other_of(record, "Orig")}, record)
                self.assertEqual(inner.before[face], {nat.other_of(record, "Xlat")}, record)
                self.assertEqual(inside, record["OrigSrcAddr"])
                continue
            [between] = inner.before[face]
            self.assertEqual(outer.before[between], {nat.other_of(record, "Xlat")}, record)
            self.assertEqual((self.PUBLIC, inside),
                             (record["XlatSrcAddr"], record["XlatDstAddr"]))

    def test_tunnels_that_pass_count_once(self):
        """With what is in them: the router translates outer addresses only."""
        rules = []
        for is_ipv6, ip, pool, server in ((0, "ip", self.POOL, self.SERVER),
                                          (1, "ip6", self.POOL6, self.SERVER6)):
            masquerade, snat, dnat = (one[is_ipv6] for one in TRANSLATED_CLIENTS.values())
            rules += (f"post oifname rs {ip} saddr {masquerade} masquerade",
                      f"post {ip} saddr {snat} snat {ip} to {pool}",
                      f"pre {ip} saddr {dnat} dnat {ip} to {server}")
        self.rules(BASE + "".join(f"add rule inet nat {rule}\n" for rule in rules))
        # Else masquerading might take it.
        self.router.ip("addr", "del", f"{self.POOL6}/64", "dev", "rs")
        for addresses in TRANSLATED_CLIENTS.values():
            self.router.neighbour("rc", self.client_macs[0], *addresses)
        self.check_tunnels("--nat")
        self.check_tunnels()

    def make_tunnels(self):
        """@return the frames there and back, and {tuple inside: (packets, kind, outer addresses)}"""
        frames, sent = ([], []), {}
        for number, (tunnel, kind, is_ipv6) in enumerate(itertools.product(
                TUNNELS, TRANSLATED_CLIENTS, (False, True)), 1):
            name, proto, port, wrap = tunnel
            client = TRANSLATED_CLIENTS[kind][is_ipv6]
            server, public, router, pool = (
                (self.SERVER6, self.PUBLIC6, "fd02::1", self.POOL6) if is_ipv6 else
                (self.SERVER, self.PUBLIC, "10.0.2.1", self.POOL))
            there = client, public if kind == "dnat" else server
            back = server, {"masquerade": router, "snat": pool, "dnat": client}[kind]
            inside = f"172.16.{number}.1", f"172.17.{number}.1"
            if proto == f.IP6 or (proto != f.IPIP and self.random.random() < 0.5):
                inside = f"fd16::{number}", f"fd17::{number}"
            for flow, way in itertools.product(range(3), range(2)):
                src, dst = inside[::1 - 2 * way]
                ports = (1000 + flow, 80)[::1 - 2 * way]
                inner = self.random.choice((f.UDP, f.TCP))
                packet = f.udp(*ports) if inner == f.UDP else f.tcp(*ports, f.SYN | way * f.ACK)
                payload = wrap(*f.ip(src, dst, inner, packet))
                outer = (there, back)[way]
                if proto == f.UDP:
                    payload = f.udp(port, port, payload)
                frame = f.ether(*((self.client_macs, self.server_macs)[way][::-1]),
                                *f.ip(*outer, proto, payload))
                count = self.random.randint(1, 9)
                frames[way].extend([frame] * count)
                sent[nat.Tuple(inner, src, dst, *ports)] = count, name, *outer
        return frames, sent

    def check_tunnels(self, *arguments):
        (there, back), sent = self.make_tunnels()
        self.random.shuffle(there)
        self.random.shuffle(back)
        watch = observer.Observer(self.lab, self.router, *arguments, "-i", "rc", "-i", "rs",
                                  "--interval", "60").wait_attached(
            (self.router, "rc"), (self.router, "rs"))
        self.client.send_frames("eth0", there)
        lab.await_quiet()
        self.server.send_frames("eth0", back)
        lab.await_quiet()
        result = watch.stop()
        result.check_conservation()
        found = collections.defaultdict(list)
        for record in result.records:
            if "TunnelType" in record:
                self.assertFalse(set(NAT_FIELDS) & set(record), record)
                found[nat.tuple_of(record)].append(record)
        self.assertEqual(set(sent), set(found))
        for inside, (count, *known) in sent.items():
            with self.subTest(inside):
                records = found[inside]
                self.assertEqual([count] * (1 if arguments else 2),
                                 [one["Packets"] for one in records])
                if arguments:
                    self.assertEqual((*known, {"rc", "rs"}), (
                        *(records[0][name] for name in ("TunnelType", "OuterSrcAddr", "OuterDstAddr")),
                        set(records[0]["Interfaces"])))

    def test_without_it_no_record_has_these_fields(self):
        services = self.make_services(10)
        watch = observer.Observer(self.lab, self.router).wait_attached((self.router, "rs"))
        self.talk(services, 10)
        for record in watch.stop().records:
            self.assertFalse(set(NAT_FIELDS) & set(record), record)


if __name__ == "__main__":
    lab.main(at_once=3)
