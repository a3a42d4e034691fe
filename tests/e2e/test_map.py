# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
# Cost: 70
# Lock: sockets, what has ended is known for a minute, in which the test looks for it.
"""netobsctl map, and records of mappings, compared with conntrack(8) -L and -E.

Rules, protocols and traffic are random.
"""

import os
import signal
import socket
import struct
import subprocess
import time

from lib import frames as f
from lib import ipfix
from lib import lab
from lib import maps
from lib import nat
from lib import observer
from lib import record_sinks
from lib import traffic
from lib.record_sinks import sink_section, take_host
from lib.service import status_of

PEN = 64500
STATES = ("active", "ended", "forgotten")
TRANSLATED = ("nothing", "source", "destination", "both")
STOPPED = 15000 # of which reports are more than NAT_RING_BYTES
CONNECTIONS = int(os.environ.get("NETOBS_TEST_NAT", "1000"))


class Map(maps.MapTest):
    def check_some_lookups(self, *arguments):
        known = sorted(maps.entries(self.router), key=str)
        for before, after, _ in self.random.sample(known, 12):
            self.check_lookup(before, after, *arguments)

    def await_ended(self):
        """All mappings, which the service knows for a minute from their ends on."""
        def ended():
            found = self.of_service(release=True)
            return found if all(one["State"] == "ended" for one in found) else None
        return lab.wait_for(ended, "all ends")

    def test_what_the_kernel_has_without_a_service(self):
        self.talk(self.make_services(40), lab.sized(CONNECTIONS))
        lines = self.check_map("--netns", self.router.name)
        self.check_some_lookups("--netns", self.router.name)
        inode = os.stat(f"/run/netns/{self.router.name}").st_ino
        self.assertEqual({inode}, {one["NetnsInode"] for one in lines})
        result = self.map("lookup", "203.0.113.77", "--netns", self.router.name, check=False)
        self.assertEqual(1, result.returncode)
        self.assertIn("no mapping has 203.0.113.77", result.stderr)
        self.note(f"{len(lines)} mappings")

    def test_what_a_service_knows_older_connections_too(self):
        services = self.make_services(40)
        self.talk(services, lab.sized(CONNECTIONS) // 2)
        older = self.wanted()
        self.start_service()
        lab.wait_for(lambda: {maps.faces_of(one) for one in self.of_service()} == older,
                     "the older connections")
        self.talk(services, lab.sized(CONNECTIONS) // 2)
        wanted = self.wanted()
        self.assertLess(older, wanted)
        lab.wait_for(lambda: len(self.of_service()) == len(wanted), "the newer connections")
        lines = self.check_map("-s", self.socket)
        self.check_some_lookups("-s", self.socket)
        for one in lines:
            if maps.faces_of(one) in older:
                continue
            self.assertIn("TimeFlowStartMs", one)
            # One of them is this host, where packets are redirected, or come from.
            self.assertLess(set(), {one.get("InInterface"), one.get("OutInterface")} - {None}, one)
        self.assertEqual(len(wanted), self.mapping_counts()["active"])
        begun = [one for one in self.stop_service() if one["Event"] == "begin"]
        self.assertEqual(wanted, {maps.faces_of(one) for one in begun})
        self.assertEqual(len(wanted), len(begun))
        self.note(f"{len(wanted)} mappings, {len(older)} of them older")

    def test_begins_and_ends_are_those_of_the_kernel(self):
        services = self.make_services(30)
        for name in ("udp_timeout", "udp_timeout_stream", "tcp_timeout_close",
                     "tcp_timeout_time_wait", "tcp_timeout_last_ack"):
            self.router.sysctl(f"netfilter/nf_conntrack_{name}", 8)
        log, lost = self.lab.path("events"), self.lab.path("lost")
        with open(log, "wb") as file, open(lost, "wb") as errors:
            events = self.lab.spawn("stdbuf", "-oL", "conntrack", "-E", "-e", "NEW,DESTROY", "-o", "extended",
                                    "-b", 8 << 20, ns=self.router, stdout=file,
                                    stderr=errors)
        self.start_service()
        self.talk(services, lab.sized(CONNECTIONS) // 5)
        # Within a minute of their ends: so the latest, without the sanitizer, which takes seconds.
        ended = sorted(self.await_ended(), key=lambda one: one["TimeFlowEndMs"])[-20:]
        for one in self.random.sample(ended, min(5, len(ended))):
            query = f"{one['XlatDstAddr']} > {one['XlatSrcAddr']}"
            found = maps.mapped(self.map("-o", "json", "-s", self.socket, "lookup", query,
                                         release=True).stdout)
            self.assertIn(one["SrcAddr"], [each["SrcAddr"] for each in found])
            self.assertEqual({"ended"}, {each["State"] for each in found})
        records = self.stop_service()
        ends = sum(one["Event"] == "end" for one in records)

        def has_lost():
            # Of many that end at once, conntrack(8) may miss some, and says so.
            return "losing events" in lab.read(lost)
        lab.wait_for(lambda: has_lost() or len(self.kernel_events(log)["DESTROY"]) >= ends,
                     "the kernel's events")
        events.send_signal(signal.SIGINT)
        events.wait(lab.PATIENCE_S)
        kernel = self.kernel_events(log)
        for kind, event in (("NEW", "begin"), ("DESTROY", "end")):
            ours = [maps.faces_of(one) for one in records if one["Event"] == event]
            self.assertEqual(len(set(ours)), len(ours), event)
            self.assertLessEqual(set(kernel[kind]), set(ours), event)
            if has_lost():
                self.note(f"conntrack(8) has missed {len(ours) - len(kernel[kind])} of {kind}")
            else:
                self.assertEqual(set(kernel[kind]), set(ours), event)
                self.assertEqual(len(kernel[kind]), len(ours), event)
        ended = {maps.faces_of(one) for one in records if one["Event"] == "end"}
        begun = {maps.faces_of(one) for one in records if one["Event"] == "begin"}
        self.assertEqual(begun, ended)
        there = self.wanted()
        self.assertEqual(set(), ended & there)
        for one in records:
            self.assertEqual({"begin": 4, "end": 5}[one["Event"]] - 3 * (one["Etype"] != 2048),
                             one["NatEvent"])
        self.note(f"{len(records)} records")

    @staticmethod
    def kernel_events(log):
        """What conntrack -E has printed of entries that translate."""
        found = {"NEW": [], "DESTROY": []}
        with open(log, encoding="utf-8") as file:
            for line in file.read().rpartition("\n")[0].splitlines():
                kind, _, rest = line.strip().lstrip("[").partition("]")
                found[kind] += [(before, after) for before, after, _ in maps.translated(rest)]
        return found

    def test_every_sink_gets_each_record(self):
        services = self.make_services(12)
        for name in "udp_timeout", "udp_timeout_stream", "tcp_timeout_time_wait":
            self.router.sysctl(f"netfilter/nf_conntrack_{name}", 1)
        sinks = record_sinks.Sinks(self, self.router, "mapping")
        with self.router:
            udp = ipfix.Receiver()
        self.addCleanup(udp.close)
        path = self.lab.path("ipfix")
        self.start_service(
            *sinks.sections(),
            *sink_section("udp", f"ipfix:udp://127.0.0.1:{udp.port}", "records = mapping",
                          f"pen = {PEN}"),
            *sink_section("ipfix", f"ipfix:file:{path}", "records = flow,mapping", f"pen = {PEN}"))
        self.talk(services, 40)
        self.await_ended()
        records = list(take_host(self.stop_service()))
        self.assertLess(50, len(records))
        sinks.check(records)
        wanted = sorted(map(self.in_ipfix, records))
        self.assertEqual(wanted, sorted(self.of_ipfix(udp.records())))
        self.assertEqual(wanted, sorted(self.of_ipfix(ipfix.read_file(path))))
        text = lab.run("ipfixDump", "--rfc5610", "--in", path)
        for name in ("natEvent", "postNATSourceIPv4Address", "postNATDestinationIPv6Address",
                     "postNAPTSourceTransportPort", "netobsMappingState"):
            self.assertIn(name, text)

    @staticmethod
    def in_ipfix(record):
        def packed(address):
            family = socket.AF_INET6 if nat.is_ipv6(address) else socket.AF_INET
            return socket.inet_pton(family, address)
        return (record["TimeMs"], record["NatEvent"], record["Proto"], packed(record["SrcAddr"]),
                packed(record["DstAddr"]), packed(record["XlatSrcAddr"]),
                packed(record["XlatDstAddr"]), record["SrcPort"], record["DstPort"],
                record["XlatSrcPort"], record["XlatDstPort"], STATES.index(record["State"]),
                TRANSLATED.index(record["Translated"]), record["ZoneId"], record["NetnsInode"],
                record.get("InIfIndex", 0), record.get("OutIfIndex", 0))

    @staticmethod
    def of_ipfix(records):
        """The same of the NAT events: RFC 8158."""
        for fields in (record.fields for record in records):
            if 230 not in fields:
                continue
            addresses = (8, 12, 225, 226) if 225 in fields else (27, 28, 281, 282)
            number = {element: ipfix.number(value) for element, value in fields.items()}
            yield (*(number[one] for one in (323, 230, 4)), *(fields[one] for one in addresses),
                   *(number[one] for one in (7, 11, 227, 228, (PEN, 140), (PEN, 141), (PEN, 142),
                                             (PEN, 12), 10, 14)))

    def test_tenants_with_equal_addresses(self):
        """Zones of both directions, with entries that differ in a port behind the translation."""
        tenants = self.make_tenants()
        self.start_service()
        self.ask_of_tenants(tenants, lab.sized(50))
        wanted = maps.entries(self.router)
        self.assertEqual({1, 2}, {zone for _, _, zone in wanted})
        lab.wait_for(lambda: len(self.of_service()) == len(wanted), "the mappings")
        # Longer than until the kernel is asked for the first time.
        lab.wait_for(lambda: all(one["TimeMs"] > one["TimeFlowEndMs"] + 8000
                                 for one in self.of_service()), "questions")
        for arguments in ("--netns", self.router.name), ("-s", self.socket):
            lines = maps.mapped(self.map("--once", "-o", "json", *arguments).stdout)
            self.assertEqual(wanted, {(*maps.faces_of(one), one["ZoneId"]) for one in lines})
            self.assertEqual({"active"}, {one["State"] for one in lines})
        before, after, zone = sorted(wanted, key=str)[0]
        found = maps.mapped(self.map("-o", "json", "-s", self.socket, "lookup",
                                f"{before.src}:{before.sport} > {before.dst}:80/udp").stdout)
        self.assertEqual(2, len(found))
        self.assertIn((before, after, zone), [(*maps.faces_of(one), one["ZoneId"]) for one in found])
        self.assertEqual(0, self.mapping_counts()["questions_again"])

    def test_pings_and_deletion(self):
        self.rules(nat.BASE + "add rule inet nat post oifname rs masquerade\n")
        self.start_service()
        for address in self.SERVER, self.SERVER6:
            self.client.run("ping", "-c", "1", address)
        lab.wait_for(lambda: len(self.of_service()) == 2, "the mappings")
        self.assertEqual({1, 58}, {one["Proto"] for one in self.of_service()})
        self.router.run("conntrack", "-F")
        self.await_ended()
        text = self.map("lookup", "icmp", "-s", self.socket).stdout
        self.assertRegex(text, r"\nended +icmp +10\.0\.1\.2 > 10\.0\.2\.2 +10\.0\.2\.1 > 10\.0\.2\.2 "
                               r"+rc > rs +0 +\d+ +\d\d:")

    def test_tunnels_through_nat(self):
        """What netobs opens is translated by its outer header."""
        self.rules(nat.BASE + "add rule inet nat post oifname rs masquerade\n")
        self.start_service()
        inner = f.ipv4("10.45.0.2", "198.51.100.7", f.UDP, f.udp(5000, 53, b"x"))
        frame = f.ether("02:00:00:00:00:01", "02:00:00:00:00:02", 0x0800, inner)
        for port, payload in ((2152, struct.pack("!BBHI", 0x30, 255, len(inner), 7) + inner),
                              (4789, struct.pack("!II", 0x08000000, 7 << 8) + frame)):
            traffic.throw(self.client, (self.SERVER, port), data=payload, source=(self.CLIENT, 2200))
        for proto, payload in (4, inner), (47, struct.pack("!HH", 0, 0x0800) + inner):
            with self.client, socket.socket(socket.AF_INET, socket.SOCK_RAW, proto) as sock:
                sock.sendto(payload, (self.SERVER, 0))
        wanted = [(proto, self.CLIENT, self.SERVER, *ports, "10.0.2.1") for proto, ports in (
            (4, (None, None)), (17, (2200, 2152)), (17, (2200, 4789)), (47, (None, None)))]

        def found():
            return sorted((one["Proto"], one["SrcAddr"], one["DstAddr"], one.get("SrcPort"),
                           one.get("DstPort"), one["XlatSrcAddr"]) for one in self.of_service())
        lab.wait_for(lambda: len(found()) >= len(wanted), "the mappings")
        self.assertEqual(wanted, found())

    def test_output_that_cannot_be_written(self):
        self.talk(self.make_services(12), 2)
        self.start_service()
        lab.wait_for(self.of_service, "the mappings")
        for arguments in (("--once",), ("-o", "json", "lookup", "tcp"), ("--interval", "0.1")):
            with open("/dev/full", "wb") as full:
                result = subprocess.run(
                    self.router.command(observer.netobsctl(), "map", "-s", self.socket, *arguments),
                    check=False, stdout=full, stderr=subprocess.PIPE, text=True, timeout=60)
            self.assertEqual(1, result.returncode, arguments)
            self.assertEqual(1, result.stderr.count("cannot write to standard output: No space left"))

    def test_live_without_a_service(self):
        services = self.make_services(12)
        shown = self.lab.path("shown")
        with open(shown, "wb") as file:
            live = self.lab.spawn(observer.netobsctl(), "map", "--interval", "0.3", "-o", "json",
                                  ns=self.router, stdout=file)
        self.talk(services, 20)
        wanted = self.wanted()

        def seen():
            lines = lab.read(shown).rpartition("\n")[0]
            return {maps.faces_of(one) for one in maps.mapped(lines)}
        lab.wait_for(lambda: seen() == wanted, "all mappings")
        live.send_signal(signal.SIGINT)
        self.assertEqual(0, live.wait(lab.PATIENCE_S))

    def test_a_duration_is_kept_whatever_the_interval_is(self):
        self.talk(self.make_services(12), 4)
        wanted = self.wanted()
        for arguments in (), ("--netns", self.router.name):
            lines = maps.mapped(self.map("-d", "0.2", "--interval", "3600", "-o", "json",
                                    *arguments).stdout)
            self.assertEqual(wanted, {maps.faces_of(one) for one in lines})

    def test_a_signal_ends_it_whenever_it_comes(self):
        for _ in range(12):
            live = self.lab.spawn(observer.netobsctl(), "map", "--interval", "3600",
                                  ns=self.router, stdout=subprocess.DEVNULL)
            time.sleep(self.random.random() / 2)
            live.send_signal(signal.SIGINT)
            self.assertIn(live.wait(lab.PATIENCE_S), (0, -signal.SIGINT))

    def test_a_service_without_mappings_says_so(self):
        with open(self.lab.path("log"), "wb") as self.service_log:
            self.start_service(has_nat="no")
        result = self.map("--once", "-s", self.socket, check=False)
        self.assertEqual(1, result.returncode)
        self.assertIn("the service keeps no mappings: its configuration has no 'nat = yes'",
                      result.stderr)
        self.stop_service()
        self.assertIn("a sink has 'records = mapping', and there are no mappings: they need "
                      "'nat = yes' in [capture]", lab.read(self.lab.path("log")))

    def test_a_service_at_the_usual_path_without_mappings(self):
        """Then those of the kernel are listed, which is said."""
        self.talk(self.make_services(8), 20)
        self.socket = "/run/netobs/control.sock"
        # In a /run of its own: other tests have services there.
        own = ("unshare", "-m", "sh", "-c", 'mount -t tmpfs run /run/netobs && exec "$@"', "sh")
        os.makedirs("/run/netobs", exist_ok=True)
        self.start_service(has_nat="no", within=own)
        enter = ("nsenter", "-m", "-t", str(self.service.pid))
        result = subprocess.run(self.router.command(*enter, observer.netobsctl(), "map", "--once", "-o",
                                                    "json"), check=False, stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, text=True, timeout=60)
        self.assertEqual(0, result.returncode, result.stderr)
        self.assertIn("the service keeps no mappings, as it has no 'nat = yes' in [capture]: these "
                      "are those of the kernel", result.stderr)
        wanted = self.wanted()
        self.assertEqual(wanted, {maps.faces_of(one) for one in maps.mapped(result.stdout)})
        self.stop_service()

    def test_a_service_that_is_stopped_while_thousands_begin(self):
        """What its buffer had no room for is counted, and known with each one's next packet."""
        ports = range(4000, 4000 + STOPPED)
        self.rules(nat.BASE + "add rule inet nat post oifname rs masquerade\n")
        server = traffic.make_socket(self.server, socket.SOCK_DGRAM, self.SERVER, 8080)
        self.addCleanup(server.close)

        def say():
            for port in ports:
                traffic.throw(self.client, (self.SERVER, 8080), data=b"x", source=(self.CLIENT, port))

        def are_all_known():
            say()
            return self.mapping_counts()["active"] == STOPPED

        self.start_service()
        self.service.send_signal(signal.SIGSTOP)
        say()
        self.service.send_signal(signal.SIGCONT)
        lost = lab.wait_for(lambda: self.mapping_counts()["lost_reports"], "lost reports")
        known = STOPPED - lost
        lab.wait_for(lambda: self.mapping_counts()["active"] == known, "those that were not lost")
        self.assertEqual(STOPPED, len(self.wanted()))
        lab.wait_for(are_all_known, "all mappings")
        self.check_map("-s", self.socket)
        self.note(f"{lost} reports were lost, {known} mappings were known at once")
        self.assertEqual(0, self.mapping_counts()["refused"])
        self.stop_service()

    def mapping_counts(self):
        return status_of(self.socket)["mappings"]

    def test_refusals(self):
        result = self.map("-s", self.socket, "--once", check=False)
        self.assertEqual(1, result.returncode)
        self.assertIn("no service listens", result.stderr)
        for path in "/etc/passwd", "/proc/self/ns/mnt":
            result = self.map("--netns", path, "--once", check=False)
            self.assertEqual(1, result.returncode)
            self.assertIn(f"--netns: '{path}' is no network namespace: use a name that 'ip netns' "
                          "lists, or a file such as /proc/PID/ns/net", result.stderr)


if __name__ == "__main__":
    lab.main(at_once=4)
