# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
"""
netobsctl map --services: each edge once, from records of many hosts and live.

Of records, the truth is a model of hosts that report; of traffic between namespaces through NAT, it is what
nftables counts where packets arrive, and what the processes that talked have noted; of lost bytes, what the link has
dropped. All are random. NETOBS_TEST_CASES=N has N maps of each connection with records that are missing.
"""

import collections
import concurrent.futures
import itertools
import json
import os
import re
import signal
import subprocess
import time
import xml.dom.minidom

from lib import lab
from lib import observer
from lib import relay
from lib import rtt_truth
from lib.observer import features
from lib.packets import read as read_packets
from lib.service_map import MapTest, RoutedTest, key_of

EDGES = 1000
TALKS = int(os.environ.get("NETOBS_TEST_TALKS", "15"))
CUTS = int(os.environ.get("NETOBS_TEST_CASES", "3"))
KINDS = "pingpong", "bulk"


class Records(MapTest):
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
        model, paths = self.make_files(EDGES)
        edges, others, total, errors = self.read_map(*paths)
        self.check(model, edges)
        self.assertEqual([], others)
        self.assertIn(" lines came again", errors)
        self.assertIn("reported by several hosts, and count once", errors)
        for name in "Packets", "Bytes", "Connections":
            self.assertEqual(sum(edge[name] for edge in edges.values()), total[name])
        # In another order, and twice, from standard input.
        text = ""
        for path in self.random.sample(paths, len(paths)) * 2:
            text += lab.read(path)
        again, _, total_again, _ = self.read_map("-", text=text)
        self.check(model, again)
        self.assertEqual((total["Packets"], total["Bytes"]),
                         (total_again["Packets"], total_again["Bytes"]))
        self.note(f"{len(edges)} edges of {len(model.hosts)} hosts, {total['Packets']} packets, "
                  f"{total['RepeatedPackets']} of reports that do not count")

    def test_pictures(self):
        _, paths = self.make_files(EDGES)
        svg = self.lab.path("map.svg")
        table, _ = self.run_map("-n", "20", "--svg", svg, *paths)
        picture = xml.dom.minidom.parseString(lab.read(svg))
        self.assertEqual(20, len(picture.getElementsByTagName("path")))
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


class Live(RoutedTest):
    def test_two_agents_and_a_router_report_each_edge(self):
        self.count_packets()
        self.translate()
        paths = self.start_agents()
        for _ in range(40):
            self.talk()
        lab.await_closed(*self.clients, *self.servers)
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
            live = self.lab.spawn(observer.netobsctl(), "map", "--services", "-o", "json",
                                  "--interval", "0.5", ns=self.router, stdout=file,
                                  stderr=subprocess.PIPE)
        lab.wait_for(lambda: os.path.getsize(path), "the first interval")
        self.count_packets()
        self.talk() # of the first interval with flows, no order is known
        size = os.path.getsize(path)
        lab.wait_for(lambda: os.path.getsize(path) > size, "an interval")
        for kinds in ["tturR"] * TALKS + ["u"] * TALKS:
            self.talk(kinds)
        live.send_signal(signal.SIGINT)
        _, errors = live.communicate(timeout=60)
        observer.check_sanitizer(errors.decode())
        self.assertEqual(0, live.returncode, errors)
        sums = collections.defaultdict(collections.Counter)
        evidence = collections.defaultdict(set)
        with open(path, encoding="utf-8") as file:
            for edge in map(json.loads, file):
                if edge["type"] == "edge":
                    evidence[key_of(edge)].add(edge["ServerBy"])
                    sums[key_of(edge)].update({name: value for name, value in edge.items()
                                               if isinstance(value, int)})
        # Who answered is the service, unless times were not exact: then the port may show the client.
        for client, service, port, proto, sport in self.udp:
            self.assertLessEqual(evidence[service, client, sport, proto], {"port"})
        known = [one for one in self.udp if evidence[one[:4]] & {"answers", "accepts"}]
        self.assertLess(len(self.udp) // 2, len(known), self.udp)
        for key, truth in self.truth.items():
            packets, octets = self.counted(self.router)[key]
            self.assertEqual((packets, octets), (sums[key]["SentPackets"], sums[key]["SentBytes"]))
            self.assertEqual(truth["Connections"], sums[key]["Connections"], key)
            self.assertEqual(truth["Refused"], sums[key]["Refused"], key)
        self.assertTrue(self.truth)


class Loss(MapTest):
    """Two hosts report connections over a link that loses frames, or delays some, so that others overtake them."""

    def talk(self, link):
        """@return {port of the service: records of its connection, by each host}"""
        cases = list(enumerate(itertools.product(relay.ADDRESSES, KINDS), relay.PORT))
        for port, (family, _) in cases:
            link.serve(family, port=port)
        observers = [observer.Observer(self.lab, ns, "-i", "eth0", "--rtt", "--active-timeout", "0.3")
                     .wait_attached((ns, "eth0")) for ns in (link.a, link.b)]
        with concurrent.futures.ThreadPoolExecutor(len(cases)) as pool:
            list(pool.map(lambda case: link.talk(case[1][1], 1, case[1][0], case[0]), cases))
        lab.await_closed(link.a, link.b)
        records = [one.stop().records for one in observers]
        return {port: [[one for one in of_host if port in (one.get("SrcPort"), one.get("DstPort"))]
                       for of_host in records] for port, _ in cases}

    @staticmethod
    def lost(link):
        """@return {port: bytes of data}"""
        lost = collections.Counter()
        for one in filter(None, map(rtt_truth.segment, read_packets(link.dropped).packets)):
            flags = bool(one.flags & rtt_truth.SYN) + bool(one.flags & rtt_truth.FIN)
            lost[min(one.ports)] += (one.end - one.seq & 0xffffffff) - flags
        return lost

    def map_of(self, hosts):
        """@return the edge of records of hosts"""
        paths = [self.lab.path(f"host-{i}") for i in range(len(hosts))]
        for path, records in zip(paths, hosts):
            lab.write(path, "".join(json.dumps(one) + "\n" for one in records))
        edges, _, _, _ = self.read_map(*paths)
        edge, = edges.values()
        return edge

    def cut(self, hosts):
        """@return hosts with records that are missing, repeated and in another order; those that are missing"""
        missing = [one for records in hosts for one in self.random.sample(records, self.random.choice((0, 0, 1)))]
        left = [[one for one in records if one not in missing] for records in hosts]
        left = [self.random.sample(records, len(records)) + self.random.choices(records, k=2) for records in left]
        return left, missing

    def check(self, loss_ppm, late_ppm):
        """@return how many bytes were sent again, how many lost"""
        link = relay.Link(self.lab, 4000, loss_ppm, self.seed, late_ppm)
        hosts_of, lost, sent_again = self.talk(link), self.lost(link), 0
        for port, hosts in hosts_of.items():
            edge, records = self.map_of(hosts), sum(hosts, [])
            is_sure = not any(one["LateUnknown"] for one in records)
            self.note(f"{loss_ppm} {late_ppm}: {edge['Retransmits']} segments again, {lost[port]} bytes lost"
                      f"{'' if is_sure else ', not known'}")
            self.assertEqual((1, lost[port]) if is_sure else (None, None),
                             (edge.get("LossConversations"), edge.get("LostBytes")), edge)
            sent_again += edge["Retransmits"]
            for _ in range(CUTS):
                left, missing = self.cut(hosts)
                found = self.map_of(left).get("LostBytes")
                if found is not None:
                    self.assertLessEqual(abs(found - lost[port]),
                                         sum(one["BytesRetransmitted"] for one in missing), missing)
        return sent_again, sum(lost.values())

    def test_lost_bytes_are_what_the_link_has_dropped(self):
        for late_ppm in 0, 20_000:
            self.assertGreater(min(self.check(10_000, late_ppm)), 0)

    def test_what_is_overtaken_is_sent_again_and_not_lost(self):
        again, lost = self.check(0, 20_000)
        self.assertEqual(0, lost)
        self.assertGreater(again, 0)


if __name__ == "__main__":
    lab.main("TCP sockets that programs follow", lambda: features().get("sessions"), at_once=3)
