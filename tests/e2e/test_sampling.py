# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
# Needs: nftables
"""
Sampling: what is sampled stands for all, also where packets are seen at several points;
flows are sampled alike on all hosts; and every record and sink says so.
"""

import json

from lib import capfile
from lib import frames as f
from lib import ipfix
from lib import lab
from lib import observer
from lib import traffic
from lib.observer import Observer
from lib.once import OnceTest

UDP = 17
A4, B4 = "192.0.2.1", "198.51.100.1"
MICE, INTERVAL = 6000, 4


def udp_of(result):
    return [record for record in result.records if record["Proto"] == UDP]


def packets_of(records):
    return sum(record["Packets"] for record in records)


def mac_of(ns, interface):
    return json.loads(ns.ip("-j", "link", "show", "dev", interface))[0]["address"]


class Random(OnceTest):
    """Flows of a single packet: if two sights of one counted, there would be too many."""

    def mice(self, destination_mac, destination=B4):
        return [f.ether(destination_mac, "02:00:00:00:00:99", f.IPV4, f.ipv4(
            f"192.0.2.{100 + at % 100}", destination, f.UDP,
            f.udp(1024 + at, 9, bytes(100)))) for at in range(MICE)]

    def assert_share(self, result, sent):
        """Five standard deviations of a draw for each packet, and more."""
        result.check_conservation()
        records = udp_of(result)
        self.assertEqual({(INTERVAL, 0)}, {
            (record["Sampling"], record["SamplingMode"]) for record in records})
        estimate = packets_of(records) * INTERVAL
        self.note(f"{estimate} of {sent} packets")
        deviation = 5 * (sent * (INTERVAL - 1)) ** 0.5
        self.assertLess(abs(estimate - sent), deviation)
        self.assertGreater(result.total("sampled_out")[0], sent // 2)

    def test_at_one_point_and_routed(self):
        """At one point a filter changes nothing; rejected packets are not sampled."""
        a, r, _ = self.routed()
        one = "-i", "in0", "--direction", "ingress"
        runs = [Observer(self.lab, r, "--sampling", INTERVAL, *options).wait_attached((r, "in0"))
                for options in (one, (), ("--per-interface",), (*one, "udp"))]
        traffic.ping(a, B4, 20) # behind a flood, it might find a queue full
        a.send_frames("eth0", self.mice(mac_of(r, "in0")))
        results = [run.stop() for run in runs]
        for result, sent in zip(results, (MICE, MICE, 2 * MICE, MICE)):
            self.assert_share(result, sent)
        self.assertEqual([0, 0, 0, 20], [result.total("filtered")[0] for result in results])

    def test_through_namespaces(self):
        """Both ends of each veth pair."""
        a, r, b = self.routed()
        points = (a, "eth0"), (r, "in0"), (r, "out0"), (b, "eth0")
        run = Observer(self.lab, r, "--sampling", INTERVAL, *(
            word for ns, name in points
            for word in ("-i", f"netns:{ns.name}/{name}"))).wait_attached(*points)
        a.send_frames("eth0", self.mice(mac_of(r, "in0")))
        self.assert_share(run.stop(), MICE)

    def test_bridged(self):
        middle, a, b = self.segment("a", "b")
        run = Observer(self.lab, middle, "--sampling", INTERVAL).wait_attached(
            (middle, "p1"), (middle, "p2"), (middle, "br0"))
        a.send_frames("eth0", self.mice(mac_of(b, "eth0"), "192.0.2.2"))
        self.assert_share(run.stop(), MICE)

    def test_translated(self):
        """Each packet counts once, as the flow that came in."""
        a, r, _ = self.routed()
        r.run("nft", "add table ip nat; add chain ip nat out { type nat hook "
              "postrouting priority 100 ; }; add rule ip nat out oifname out0 "
              "snat to 198.51.100.254")
        run = Observer(self.lab, r, "--sampling", INTERVAL).wait_attached(
            (r, "in0"), (r, "out0"))
        a.send_frames("eth0", self.mice(mac_of(r, "in0")))
        result = run.stop()
        self.assert_share(result, MICE)
        self.assertNotIn("198.51.100.254",
                         {record["SrcAddr"] for record in udp_of(result)})

    def test_offloaded_packets(self):
        """The wire's packets are sampled, not the buffers of the host."""
        a, r, b = self.routed()
        points = ["-i", "in0", "--direction", "ingress"]
        exact = Observer(self.lab, r, *points).wait_attached((r, "in0"))
        run = Observer(self.lab, r, *points, "--sampling", 50).wait_attached(
            (r, "in0"))
        traffic.tcp(a, A4, b, B4, 32 << 20)
        result, whole = run.stop(), exact.stop()
        result.check_conservation()
        for estimate, real in zip(result.exported(), whole.exported()):
            self.note(f"{estimate * 50} of {real}")
            self.assertLess(abs(estimate * 50 / real - 1), 0.05)


class Flows(OnceTest):
    PORTS = range(5100, 5160)

    def tuples(self, result):
        """{(ends, without a direction): [packets and bytes in each]}"""
        found = {}
        for record in udp_of(result):
            ends = ((record["SrcAddr"], record["SrcPort"]),
                    (record["DstAddr"], record["DstPort"]))
            sums = found.setdefault(frozenset(ends), {}).setdefault(ends, [0, 0])
            sums[0] += record["Packets"]
            sums[1] += record["Bytes"]
        return found

    def talk(self, a, b, ends):
        """Of each port a datagram of three fragments, and an answer."""
        for client, server in ends:
            for port in self.PORTS:
                traffic.udp(a, client, b, server, [3000], port=port, sport=port)
                traffic.udp(b, server, a, client, [10], port=port, sport=port)

    def test_on_all_hosts_alike(self):
        a, r, b = (self.lab.ns(tag, ipv6=True) for tag in "arb")
        for ns, name, number in ((a, "in0", 1), (b, "out0", 2)):
            self.lab.wire(ns, "eth0", [f"10.0.{number}.1/24", f"fd00:{number}::1/64"],
                          r, name, [f"10.0.{number}.254/24", f"fd00:{number}::254/64"])
            ns.ip("route", "add", "default", "via", f"10.0.{number}.254")
            ns.ip("-6", "route", "add", "default", "via", f"fd00:{number}::254")
        r.sysctl("ipv4/ip_forward", 1)
        r.sysctl("ipv6/conf/all/forwarding", 1)
        runs = [Observer(self.lab, ns, *arguments).wait_attached((ns, name))
                for ns, name, *arguments in (
                    (a, "eth0", "--sampling", "flow:4"),
                    (r, "in0", "--sampling", "flow:4"),
                    (b, "eth0", "--sampling", "flow:4", "udp"),
                    (r, "out0"))]
        self.talk(a, b, (("10.0.1.1", "10.0.2.1"), ("fd00:1::1", "fd00:2::1")))
        results = [run.stop() for run in runs]
        for result in results:
            result.check_conservation()
        *sampled, every = (self.tuples(result) for result in results)
        wanted = {ends: sums for ends, sums in every.items() if ends in sampled[0]}
        for one in sampled[:2]:
            self.assertEqual(wanted, one)
        # A filter rejects fragments without ports: there are no others here.
        self.assertEqual(set(wanted), set(sampled[2]))
        all_flows = 2 * len(self.PORTS)
        self.assertEqual(all_flows, len(every))
        self.note(f"{len(wanted)} of {all_flows} flows")
        self.assertLess(abs(len(wanted) - all_flows / 4), 25)
        for ends, directions in wanted.items():
            self.assertEqual(2, len(directions), ends)
        self.assertEqual({(4, 1)}, {
            (record["Sampling"], record["SamplingMode"])
            for record in results[0].records})
        self.assertEqual(set(), {"Sampling", "SamplingMode"} &
                         set().union(*results[3].records))


class Replayed(lab.LabTest):
    def save(self):
        path = self.lab.path("file.pcap")
        with open(path, "wb") as file:
            file.write(capfile.pcap(capfile.ETHERNET, [
                (10 ** 18 + at, f.ether(
                    "02:00:00:00:00:01", "02:00:00:00:00:02", f.IPV4,
                    f.ipv4("192.0.2.1", "192.0.2.2", f.UDP,
                           f.udp(1000 + at % 50, 53, bytes(at % 50 * 20)))))
                for at in range(1000)]))
        return path

    def replay(self, *arguments):
        result = observer.flows(self.lab, "--stats", "-r", self.save(), *arguments)
        self.assertEqual(0, result.code, result.errors)
        return result

    def text(self, *arguments):
        with self.replay(*arguments).lines() as lines:
            return lines.read()


class Announced(Replayed):
    def test_table(self):
        self.assertEqual("Sampled: 1 of 10 packets", self.text(
            "-o", "table", "--sampling", "10").splitlines()[0])
        self.assertEqual("Sampled: 1 of 3 flows", self.text(
            "-o", "table", "--sampling", "flow:3").splitlines()[0])
        self.assertNotIn("Sampled", self.text("-o", "table", "--sampling", "1"))

    def test_groups(self):
        groups = [json.loads(line) for line in self.text(
            "-o", "json", "--by", "port", "--sampling", "10").splitlines()]
        self.assertEqual([(10, 0)], [(group["Sampling"], group["SamplingMode"])
                                     for group in groups])
        self.assertEqual(100, groups[0]["Packets"])

    def test_ipfix(self):
        for sampling in "10", "flow:4":
            interval = int(sampling.split(":")[-1])
            path = self.lab.path(f"file-{sampling.replace(':', '')}")
            self.replay("--sampling", sampling, "-o", f"ipfix:file:{path}?"
                        "domain=7&record=extended")
            session = ipfix.Session()
            with open(path, "rb") as file:
                records = [found for message in ipfix.split(file.read())
                           for found in session.read(message).sets
                           if isinstance(found, ipfix.Record)]
            values = [{element: ipfix.number(value)
                       for element, value in record.fields.items()}
                      for record in records]
            flows = [value for record, value in zip(records, values)
                     if ipfix.is_flow(record)]
            self.assertEqual({(interval, ":" in sampling)}, {
                (flow[34], flow[32473, 25]) for flow in flows})
            self.assertIn({149: 7, 34: interval}, values)

    def test_bad_values_are_refused(self):
        for value in ("0", "-1", "4294967296", "flow:", "flow:0", "flow:-1", "1.5",
                      "flows:3", "", "5K"):
            result = observer.flows(self.lab, f"--sampling={value}", "-r", "-")
            self.assertEqual(2, result.code, value)
            self.assertIn(f"--sampling: '{value}' is not a", result.errors)


class MinBytes(Replayed):
    def test_smaller_records_are_counted_as_filtered(self):
        """Each of 50 flows has 20 packets of 28 to 1008 bytes."""
        whole, some = (self.replay("-o", "json", *arguments)
                       for arguments in ((), ("--min-bytes", "10K")))
        some.check_conservation()
        wanted = [record for record in whole.records if record["Bytes"] >= 10240]
        self.assertEqual(*(sorted(records, key=lambda record: record["SrcPort"])
                           for records in (wanted, some.records)))
        self.assertIn(len(wanted), range(20, 40))
        filtered = some.stats["filtered"]
        self.assertEqual((20 * (50 - len(wanted)), filtered["bytes"]),
                         (filtered["small_packets"], filtered["small_bytes"]))
        self.assertNotIn("small_packets", whole.stats["filtered"])

    def test_with_a_filter(self):
        """Both are filtered, and only the records are small."""
        result = self.replay("-o", "json", "--min-bytes", "10K", "src portrange 1010-1049")
        result.check_conservation()
        filtered = result.stats["filtered"]
        self.assertGreater(filtered["packets"], filtered["small_packets"])
        self.assertGreater(len(result.records), 0)


if __name__ == "__main__":
    lab.main("sampling", at_once=5)
