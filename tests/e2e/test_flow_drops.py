# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
# Needs: nftables
# Lock: drops, its drops need room among those of the whole host.
"""Drops in flow records, compared with the counter of the kernel that knows of each drop.

Whatever is dropped is in the record of its flow, or outside of all flows, and both are counted. Counts,
order and observed interfaces are random.
"""

import itertools
import json
import re
import socket
import subprocess
import time

from lib import bpf
from lib import drops
from lib import lab
from lib import metrics
from lib import observer
from lib import traffic
from lib.drops import CLIENT, ROUTER_OUT, SERVER, cause_of, nft_packets
from lib.observer import features
from lib.service import end_service, launch, status_of

# Dropped before they reach an interface that the router observes, or on another way.
UNSEEN = (drops.NftOutput, drops.Bridge, drops.Xdp, drops.XdpOfVeth)
ALL_ROUTES = "/^(rc|rs|q0|p0)$/"
ROOM_TRIES = 5

TENANT = """
table inet tenant {
    chain input {
        type filter hook input priority 0;
        udp dport 2060 counter drop comment "2060"
    }
}
"""



MASQUERADE = """
table ip hide {
    chain postrouting {
        type nat hook postrouting priority 100;
        oifname "rs" masquerade
    }
}
"""


def dropped(records):
    return sum(one.get("PktDropPackets", 0) for one in records)


def of_port(records, port):
    return [one for one in records if one.get("DstPort") == port]


class FlowDrops(drops.DropsTest):
    def watch(self, *arguments, interfaces=("-i", ALL_ROUTES)):
        watch = observer.Observer(self.lab, self.router, "--drops", *interfaces, *arguments)
        return watch.wait_attached((self.router, "rc"), (self.router, "rs"))

    def check_identity(self, result):
        return drops.check_identity(self, result)

    def observe(self, send, watch):
        """
        What @send returns, the records, and the counts of drops of an observer that @watch starts before. It has all
        in one interval, in which others of this host may take the room that drops have: then again.
        """
        for _ in range(ROOM_TRIES):
            observing = watch("--interval", "600")
            sent = send()
            result = observing.stop()
            found = self.check_identity(result)
            if not found["no_room_packets"]:
                break
        return sent, result.records, found

    def check_scenario(self, scenario, counted, records, found):
        own = of_port(records, scenario.port)
        if isinstance(scenario, UNSEEN):
            self.assertEqual([], [one for one in own if "PktDropPackets" in one], str(scenario))
            return
        self.assertEqual(counted, dropped(own), f"{scenario}: {own} {found}")
        causes = {cause_of(one) for one in own if "PktDropPackets" in one}
        if self.has_reasons:
            self.assertLessEqual(causes, set(scenario.causes), str(scenario))
        else:
            self.assertEqual({""}, causes, str(scenario))

    def send_all(self, plan):
        """@return the packets that each has dropped, by the kernel's counters"""
        scenarios = {kind: kind(self) for kind in {kind for kind, _ in plan}}

        def send():
            begin = {one: one.counted() for one in scenarios.values()}
            for kind, count in plan:
                before = scenarios[kind].counted()
                scenarios[kind].send(count)
                scenarios[kind].wait_for(before + count)
            return {one: one.counted() - before for one, before in begin.items()}
        return send

    def test_random_mixtures_are_in_their_flows(self):
        """All of them in one interval."""
        send = self.send_all(drops.random_plan(self.random, 20, 200))
        counted, records, found = self.observe(send, self.watch)
        for scenario, packets in counted.items():
            self.assertGreater(packets, 0, str(scenario))
            self.check_scenario(scenario, packets, records, found)
        outside = sum(packets for one, packets in counted.items() if isinstance(one, UNSEEN))
        self.assertGreaterEqual(found["no_flow_packets"] + found["no_tuple_packets"], outside)
        self.assertGreaterEqual(found["packets"], sum(counted.values()))
        self.note(f"{found['in_flows_packets']} packets in flows, {outside} known to be outside: "
                  f"{dict(found)}")

    def test_random_intervals(self):
        """A drop may come after the last record of its flow, but never in none of the counts."""
        send = self.send_all(drops.random_plan(self.random, 5, 50))
        options = self.random.sample(["--per-interface", "--active-timeout=3", "--process"],
                                        self.random.randrange(3))
        self.note(f"{options}")
        watch = self.watch("--interval", str(self.random.choice([0.05, 0.2, 1])), *options)
        counted = send()
        result = watch.stop()
        found = self.check_identity(result)
        self.assertGreaterEqual(found["packets"], sum(counted.values()))
        for scenario, packets in counted.items():
            self.assertLessEqual(dropped(of_port(result.records, scenario.port)), packets,
                                 f"{scenario}: {found}")
        self.assertGreater(dropped(result.records), 0, found)

    def send_to(self, port, count, source=0, size=64):
        with traffic.awake():
            traffic.throw(self.client, (SERVER, port), count, data=bytes(size), source=(CLIENT, source))

    def test_bytes_and_interfaces(self):
        """Each drop is in one record, also where each interface has its own."""
        sizes = {2001: 100, 2003: 200}
        counts = {port: self.random.randrange(10, 100) for port in sizes}

        def send():
            before = nft_packets(self.server, "2001"), nft_packets(self.router, "2003")
            for port, size in sizes.items():
                self.send_to(port, counts[port], size=size)
            return nft_packets(self.server, "2001") - before[0], nft_packets(self.router, "2003") - before[1]

        counted, records, found = self.observe(
            send, lambda *options: self.watch("--per-interface", *options))
        # Forwarded, and dropped behind rs; dropped before rs.
        for port, place in ((2001, ["rs"]), (2003, ["rc"])):
            own = [one for one in of_port(records, port) if "PktDropPackets" in one]
            self.assertEqual([(place, counts[port], counts[port] * (sizes[port] + 28))],
                             [(one["Interfaces"], one["PktDropPackets"], one["PktDropBytes"])
                              for one in own], found)
        self.assertEqual((counts[2001], counts[2003]), counted)

    def test_connections_that_are_refused(self):
        """Each is a flow of its own, with the SYN that found no socket."""
        refused = self.random.randrange(5, 30)

        def send():
            for _ in range(refused):
                with self.client, socket.socket() as one, traffic.awake():
                    self.assertRaises(ConnectionRefusedError, one.connect, (SERVER, 2070))

        _, records, found = self.observe(send, self.watch)
        own = of_port(records, 2070)
        self.assertEqual([1] * refused, [one.get("PktDropPackets") for one in own], found)
        if self.has_reasons:
            self.assertEqual({"NO_SOCKET"}, {cause_of(one) for one in own})

    def test_behind_translation(self):
        """The server drops packets of the router's address, whose flow is the client's."""
        self.router.run("nft", "-f", "-", input=MASQUERADE)
        count = self.random.randrange(10, 100)

        def send():
            before = nft_packets(self.server, "2001")
            self.send_to(2001, count)
            return nft_packets(self.server, "2001") - before

        counted, records, found = self.observe(send, lambda *options: self.watch("--nat", *options))
        own = of_port(records, 2001)
        self.assertEqual([(CLIENT, ROUTER_OUT, count)],
                         [(one["SrcAddr"], one["XlatSrcAddr"], one.get("PktDropPackets"))
                          for one in own], found)
        self.assertEqual(count, counted)

    def observe_tenants(self, tenants, observed):
        """Packets with the same addresses and ports; @return records and counts of @tenants, and all."""
        counts = [self.random.randrange(10, 100) for _ in tenants]
        interfaces = [option for ns in observed for option in ("-i", f"netns:{ns.name}/lo")]

        def watch(*options):
            started = observer.Observer(self.lab, tenants[0], "--drops", *interfaces, *options)
            return started.wait_attached(*((ns, "lo") for ns in observed))

        def send():
            before = [nft_packets(ns, "2060") for ns in tenants]
            for ns, count in zip(tenants, counts):
                with traffic.awake():
                    traffic.throw(ns, ("127.0.0.1", 2060), count, data=b"tenant", source=("127.0.0.1", 4060))
            return [nft_packets(ns, "2060") - count for ns, count in zip(tenants, before)]

        counted, records, found = self.observe(send, watch)
        self.assertEqual(counts, counted)
        return of_port(records, 2060), counts, found

    def test_equal_addresses_of_another_namespace(self):
        """One of two tenants is observed, or both are."""
        tenants = [self.lab.ns(tag) for tag in ("x", "y")]
        for ns in tenants:
            ns.run("nft", "-f", "-", input=TENANT)
        records, counts, found = self.observe_tenants(tenants, tenants[:1])
        self.assertEqual(counts[0], dropped(records), found)
        self.assertGreaterEqual(found["no_flow_packets"], counts[1], found)
        records, counts, found = self.observe_tenants(tenants, tenants)
        self.assertEqual(sorted((ns.inode, count) for ns, count in zip(tenants, counts)),
                         sorted((one["NetnsInode"], one.get("PktDropPackets")) for one in records),
                         found)

    def test_a_neighbour_that_a_timer_gives_up(self):
        """At most three times, since the timer may interrupt process 1: see drops.NoNeighbour."""
        scenario = drops.LateNeighbour(self)
        for _ in range(3):
            before = scenario.counted()
            watch = self.watch("--interval", "600")
            scenario.send(self.random.randrange(20, 200))
            result = watch.stop()
            found, counted = self.check_identity(result), scenario.counted() - before
            if counted == dropped(of_port(result.records, scenario.port)):
                break
        self.check_scenario(scenario, counted, result.records, found)

    def test_tables(self):
        """Of flows, and of groups."""
        ports = (2001, 2003)
        commands = {"flows": ("-o", "table", "--interval", "1", "-d", "4"),
                    "top": ("-o", "table", "--interval", "4", "--once", "-n", "100")}
        shown = {}
        for verb, options in commands.items():
            with self.lab.spawn(observer.netobsctl(), verb, "--drops", "-i", ALL_ROUTES, *options,
                                ns=self.router, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                text=True) as process:
                while process.poll() is None:
                    for port in ports:
                        self.send_to(port, 7, source=port)
                    time.sleep(0.3)
                shown[verb] = process.stdout.read().splitlines()
                self.assertEqual(0, process.returncode, process.stderr.read())
        self.assertRegex(shown["flows"][0], r" DROPS +LAST DROP ")
        self.assertRegex(shown["top"][0], r" DROPS ")
        row = r"\b(\d+|[\d.]+k) +NETFILTER_DROP\b" if self.has_reasons else r"\b(\d+)\b"
        for port in ports:
            lines = [line for line in shown["flows"] if f"{SERVER}:{port}" in line]
            self.assertTrue([line for line in lines if re.search(row, line)], lines)

    def test_the_service_counts_all(self):
        records, control = self.lab.path("records"), self.lab.path("control.sock")
        service = launch(self, self.router, (
            "[capture]", f"interface = {ALL_ROUTES}", "drops = yes", "[flows]", "interval = 300ms", "[control]",
            f"path = {control}", '[sink "a"]', f"output = json:{records}"))
        count = self.random.randrange(10, 100)
        self.send_to(2001, count)

        def in_records():
            return dropped(of_port(lab.json_lines(records, is_whole=False), 2001))

        lab.wait_for(lambda: in_records() == count, "the records")
        samples = metrics.Samples(self.router.run(observer.netobsctl(), "metrics", "-s", control))
        series = {dict(labels)["place"]: value for labels, value in
                  samples.all_of("netobs_flow_drops_packets_total").items()}
        self.assertGreaterEqual(series["flow"], count)
        self.assertEqual({"flow", "no_flow", "no_tuple", "no_room", "benign"}, set(series))
        status = status_of(control)["packets"]["drops"]
        self.assertEqual(status["packets"],
                         sum(status.get(f"{part}_packets", 0) for part in drops.PARTS))
        self.assertIn("dropped: in flows", self.router.run(
            observer.netobsctl(), "status", "-s", control))
        end_service(self, service)

    def test_records_of_drops_and_of_flows_have_each_drop(self):
        """[drops] and [capture] drops, which have programs of their own, also through reloads."""
        records, control = self.lab.path("records"), self.lab.path("control.sock")

        def configuration(has_records):
            return ("[capture]", f"interface = {ALL_ROUTES}", "drops = yes", "[flows]",
                    "interval = 200ms", "[control]", f"path = {control}", "[drops]",
                    f"enabled = {'yes' if has_records else 'no'}", '[sink "a"]',
                    f"output = json:{records}", "records = flow,drop")

        def counted(kind, source):
            found = lab.json_lines(records, is_whole=False)
            return dropped(one for one in of_port(found, 2001) if one["SrcPort"] == source and
                           (one.get("type") == "drop") == (kind == "drop"))

        def send(source, *kinds):
            count = self.random.randrange(10, 100)
            self.send_to(2001, count, source=source)
            for kind in kinds:
                lab.wait_for(lambda kind=kind: counted(kind, source) == count, f"{kind} {source}")

        def reload(has_records):
            lab.write(self.lab.path("netobs.conf"), "\n".join(configuration(has_records)) + "\n")
            self.router.run(observer.netobsctl(), "reload", "-s", control)

        def are_off():
            """A drain that is under way when the reload is answered has records, and the one after it."""
            source = next(others)
            send(source, "flow")
            return not counted("drop", source)

        others = itertools.count(4100)
        service = launch(self, self.router, configuration(True))
        send(4001, "flow", "drop")
        reload(False)
        lab.wait_for(are_off, "the last records of drops")
        send(4002, "flow")
        reload(True)
        send(4003, "flow", "drop")
        end_service(self, service)
        self.assertEqual(0, counted("drop", 4002))

    def programs(self, *options):
        """What the programs of packets are, by the tag of their instructions."""
        watch = observer.Observer(self.lab, self.router, "-i", "rc", *options)
        watch.wait_attached((self.router, "rc"))
        tags = [json.loads(lab.run("bpftool", "-j", "prog", "show", "id", str(program)))["tag"]
                for way in bpf.TCX for program in bpf.tcx_programs(self.router, "rc", way)]
        watch.stop()
        return tags

    def test_programs_of_packets_have_no_part_in_it(self):
        if not bpf.has_tcx():
            self.skipTest("clsact filters have no list of programs")
        tags = self.programs()
        self.assertEqual(2, len(tags))
        self.assertEqual(tags, self.programs("--drops"))

    def test_what_is_off_costs_nothing(self):
        watch = observer.Observer(self.lab, self.router, "-i", "rc")
        watch.wait_attached((self.router, "rc"))
        self.send_to(2001, 5)
        names = set(bpf.programs_of(watch.process.pid).values())
        self.assertIn("netobs_ingress", names)
        self.assertEqual([], [name for name in names if name.startswith("netobs_drop_")])
        result = watch.stop()
        self.assertNotIn("drops", result.stats)
        self.assertEqual(0, dropped(result.records))


if __name__ == "__main__":
    lab.main("tracepoint of dropped packets", lambda: features()["drops"])
