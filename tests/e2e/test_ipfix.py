# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
# Needs: libfixbuf-tools nfdump pmacct tshark
"""IPFIX: what collectors of others make of it is what JSON lines say."""


from lib import capfile
from lib import collectors
from lib import frames
from lib import ipfix
from lib import lab
from lib import observer
from lib import traffic

A, B = "02:00:00:00:00:01", "02:00:00:00:00:02"
START = 1_700_000_000_123_456_789
FLAGS = (frames.SYN, frames.SYN | frames.ACK, frames.ACK | frames.ECE,
         frames.FIN | frames.ACK | frames.PSH, frames.RST | frames.CWR,
         frames.URG | frames.ACK)


def ether4(packet):
    return frames.ether(B, A, frames.IPV4, packet)


def ether6(packet):
    return frames.ether(B, A, frames.IPV6, packet)


def some_of_all():
    """Frames with anything that a record can have."""
    v4, v6 = ("198.51.100.1", "203.0.113.9"), ("2001:db8::1", "2001:db8:1::9")
    for n in range(200):
        yield ether4(frames.ipv4(f"198.51.100.{n}", v4[1], frames.UDP,
                                 frames.udp(1000 + n, 53, bytes(n)), tos=n & ~3,
                                 ttl=n + 1))
    for n, flags in enumerate(FLAGS):
        yield ether4(frames.ipv4(*v4, frames.TCP,
                                 frames.tcp(4000 + n, 80, flags, b"x" * n)))
        yield ether6(frames.ipv6(*v6, frames.TCP,
                                 frames.tcp(4000 + n, 443, flags), hops=n + 1,
                                 tclass=0xb8))
    for kind, code in ((8, 0), (0, 0), (3, 3), (11, 0)):
        yield ether4(frames.ipv4(*v4, frames.ICMP, frames.icmp(kind, code)))
    for kind, code in ((128, 0), (129, 0), (1, 4)):
        yield ether6(frames.ipv6(*v6, frames.ICMPV6, frames.icmp(kind, code)))
    yield ether4(frames.ipv4(*v4, 50, b"esp payload"))
    tagged = frames.ipv4(*v4, frames.UDP, frames.udp(7, 8, b"abc"))
    yield frames.ether(B, A, frames.VLAN, frames.vlan(77, frames.IPV4, tagged))
    yield frames.ether(B, A, frames.QINQ, frames.vlan(
        100, frames.VLAN, frames.vlan(200, frames.IPV4, tagged)))
    yield ether4(frames.ipv4(*v4, frames.UDP, frames.udp(
        5555, 4789, b"\x08\0\0\0" + b"\0\x30\x39\0" + ether4(frames.ipv4(
            "10.1.0.1", "10.1.0.2", frames.UDP, frames.udp(1, 2))))))


def records_of(path):
    return lab.json_lines(path)


class Collectors(lab.LabTest):
    """Runs with JSON lines beside IPFIX, to compare with the records at collectors."""

    def setUp(self):
        super().setUp()
        self.ns = self.lab.ns("c")
        self.json = self.lab.path("json")
        with self.ns:
            self.receiver = ipfix.Receiver()
            self.receiver6 = ipfix.Receiver(ipfix.socket.AF_INET6)
        self.addCleanup(self.receiver.close)
        self.addCleanup(self.receiver6.close)

    def receivers(self, count):
        with self.ns:
            found = [ipfix.Receiver() for _ in range(count)]
        for receiver in found:
            self.addCleanup(receiver.close)
        return found

    def capture(self):
        path = self.lab.path("traffic.pcap")
        stamped = [(START + n * 1_000_003, frame)
                   for n, frame in enumerate(some_of_all())]
        with open(path, "wb") as file:
            file.write(capfile.pcap(capfile.ETHERNET, stamped, nanoseconds=True))
        return path

    def replay(self, *outputs):
        """The records, as JSON has them."""
        arguments = [word for output in (f"json:{self.json}", *outputs)
                     for word in ("-o", output)]
        result = observer.flows(self.lab, "-r", self.capture(), "--stats",
                                *arguments, ns=self.ns)
        self.assertEqual(0, result.code, result.errors)
        result.check_identity()
        return records_of(self.json)

    def to_receiver(self, options="", receiver=None):
        port = (receiver or self.receiver).port
        return f"ipfix:udp://127.0.0.1:{port}{options}"

    def received_flows(self, expected, receiver=None):
        receiver = receiver or self.receiver
        lab.wait_for(lambda: sum(map(ipfix.is_flow, receiver.records())) >=
                     expected, "the datagrams")
        return [record for record in receiver.records()
                if ipfix.is_flow(record)]


class Replayed(Collectors):
    def test_extended_record_has_what_only_json_had(self):
        records = self.replay(self.to_receiver("?record=extended&pen=4711"))
        flows = self.received_flows(len(records))
        by_key = {collectors.count([row], ("start", "src", "sport")).popitem():
                  row for row in map(collectors.from_json, records)}
        names = {"vxlan": 1}
        for flow in flows:
            fields = flow.fields
            row = collectors.raw_row(fields)
            want = by_key[collectors.count([row], ("start", "src", "sport"))
                          .popitem()]
            self.assertEqual(want["l2"], ipfix.number(fields[352]))
            tunnel = names.get(want["tunnel"], 0)
            self.assertEqual(tunnel, ipfix.number(fields[4711, 19]))
            self.assertEqual(want["vni"], ipfix.number(fields[4711, 20]))
            self.assertEqual(want["vni"] and 1 << 56 | want["vni"],
                             ipfix.number(fields[351]))
            outer = want["outer_vlan"] or want["vlan"]
            self.assertEqual(outer, ipfix.number(fields[243]))
        self.assertIn("vxlan", {row["tunnel"] for row in by_key.values()})
        self.assertIn(100, {row["outer_vlan"] for row in by_key.values()})
        rows = collectors.tshark_rows(self.lab, self.receiver.datagrams)
        collectors.compare(self, rows, records, "tshark")

    DIALECTS = {
        "": ("raw", "tshark", "ipfixDump", "nfcapd", "nfacctd"),
        "options=no": ("nfcapd", "nfacctd"),
        "record=extended": ("raw", "tshark", "ipfixDump", "nfcapd", "nfacctd"),
        "mtu=776": ("raw", "tshark", "nfcapd", "nfacctd"),
    }

    def test_any_dialect_is_right(self):
        """The cells of the table of what collectors understand."""
        receivers = self.receivers(len(self.DIALECTS))
        outputs, readers = [], []
        for number, (options, names) in enumerate(self.DIALECTS.items()):
            ports = {"raw": receivers[number].port}
            found = {"raw": receivers[number]}
            for at, (name, kind) in enumerate((("nfcapd", collectors.NfCapd),
                                               ("nfacctd", collectors.NfAcctd))):
                if name in names:
                    ports[name] = 9000 + 10 * number + at
                    found[name] = kind(self.lab, self.ns, ports[name])
            found["ipfixDump"] = self.lab.path(f"dialect-{number}.ipfix")
            outputs += [f"ipfix:udp://127.0.0.1:{port}?{options}".rstrip("?") for port in ports.values()]
            outputs.append(f"ipfix:file:{found['ipfixDump']}?{options}".rstrip("?"))
            readers.append(found)
        records = self.replay(*outputs)
        self.assertGreater(len(records), 200)
        for (options, names), found in zip(self.DIALECTS.items(), readers):
            for name in names:
                collectors.compare(self, self.read(name, found, records), records,
                                   f"{options}: {name}")
        self.check_messages(*({name: found[name].messages() for name in ("nfcapd", "nfacctd")}
                              for found in readers[:2]))

    def check_messages(self, default, without_options):
        for line in ("option size error", "unknown template", "extra bytes"):
            self.assertNotIn(line, default["nfcapd"])
        self.assertRegex(default["nfcapd"], "new sampler.*packet interval: 1,")
        for line in ("Options Template", "unknown template"):
            self.assertNotIn(line, default["nfacctd"])
        self.assertIn("Sequence Errors: 0", without_options["nfcapd"])

    def read(self, name, found, records):
        """The rows that one of those has."""
        if name == "nfcapd":
            return found[name].rows()
        if name == "nfacctd":
            return found[name].rows(sum(record["Packets"] for record in records))
        if name == "ipfixDump":
            return collectors.ipfix_dump_rows(found[name])
        flows = self.received_flows(len(records), found["raw"])
        if name == "raw":
            return collectors.raw_rows(flows)
        return collectors.tshark_rows(self.lab, found["raw"].datagrams)

    def test_ids_of_templates_say_what_is_in_them(self):
        dialects = ("", "?record=extended", "?record=extended&pen=4711", "?domain=1")
        receivers = dict(zip(dialects, self.receivers(len(dialects))))
        self.replay(*(self.to_receiver(options, receiver)
                      for options, receiver in receivers.items()))
        ids = {}
        for options, receiver in receivers.items():
            session = ipfix.Session()
            session.read(receiver.datagrams[0])
            ids[options] = min(session.templates)
        self.assertEqual(ids[""], ids["?domain=1"])
        self.assertEqual(3, len(set(ids.values())))

    def test_ipv6_and_source_address(self):
        self.ns.ip("addr", "add", "127.0.0.77/32", "dev", "lo")
        records = self.replay(
            f"ipfix:udp://[::1]:{self.receiver6.port}?source=::1",
            self.to_receiver("?source=127.0.0.77"))
        for receiver, source in ((self.receiver, "127.0.0.77"),
                                 (self.receiver6, "::1")):
            flows = self.received_flows(len(records), receiver)
            collectors.compare(self, collectors.raw_rows(flows), records, source)
            self.assertEqual({source}, receiver.peers)

    def test_options_records(self):
        self.received_flows(len(self.replay(self.to_receiver("?domain=7"))))
        by_scope = {}
        for record in self.receiver.records():
            if record.template.scope:
                fields = {element: ipfix.number(value)
                          for element, value in record.fields.items()}
                by_scope[tuple(fields)] = fields
        self.assertEqual({149: 7, 34: 1}, by_scope[149, 34])
        self.assertIn((149, 41, 42, 40, 163), by_scope)
        loss = by_scope[149, 164, 165, 152, 153]
        self.assertEqual((0, 0), (loss[164], loss[165]))
        loss = by_scope[144, 166, 167, 168, 152, 153]
        self.assertEqual((0, 0, 0), (loss[166], loss[167], loss[168]))


class Live(Collectors):
    """Real traffic, with interfaces."""

    def test_an_index_has_a_name_in_each_namespace(self):
        spaces = [self.lab.ns(tag) for tag in "ab"]
        for n, ns in enumerate(spaces):
            self.lab.wire(self.ns, f"peer{n}", [f"192.0.2.{4 * n + 1}/30"], ns, f"end{n}",
                          [f"192.0.2.{4 * n + 2}/30"], index_b=77)
        points = [(ns, f"end{n}") for n, ns in enumerate(spaces)]
        nfcapd = collectors.NfCapd(self.lab, self.ns, 9995)
        nfacctd = collectors.NfAcctd(self.lab, self.ns, 9996)
        file = self.lab.path("flows.ipfix")
        basic = self.receivers(1)[0]
        extended = "?record=extended&options_refresh=1s"
        outputs = (f"json:{self.json}", self.to_receiver(extended), self.to_receiver("", basic),
                   *(f"ipfix:udp://127.0.0.1:{port}{extended}" for port in (9995, 9996)),
                   f"ipfix:file:{file}{extended}")
        observed = observer.Observer(
            self.lab, self.ns, *(f"--interface=netns:{ns.name}/{name}" for ns, name in points),
            *(f"--output={output}" for output in outputs), "--interval", "0.3")
        observed.wait_attached(*points)
        for n, ns in enumerate(spaces):
            traffic.ping(ns, f"192.0.2.{4 * n + 1}", 5)
        own = (32473, 12)
        lab.wait_for(lambda: sum(own in record.fields and 82 in record.fields
                                 for record in self.receiver.records()) > 5,
                     "repetitions of both names")
        observed.stop().check_conservation()
        records = records_of(self.json)
        flows = self.received_flows(len(records))
        for what, rows in (("datagrams", collectors.raw_rows(flows)),
                           ("nfcapd", nfcapd.rows()),
                           ("tshark", collectors.tshark_rows(self.lab, self.receiver.datagrams)),
                           ("ipfixDump", collectors.ipfix_dump_rows(file)),
                           ("nfacctd", nfacctd.rows(sum(record["Packets"]
                                                        for record in records)))):
            collectors.compare(self, rows, records, what)
        collectors.compare(self, collectors.raw_rows(self.received_flows(len(records), basic)), records, "basic")
        in_netns, plain = {}, {}
        for record in (*basic.records(), *self.receiver.records()):
            if 82 in record.fields:
                found = in_netns if own in record.fields else plain
                key = ipfix.number(record.fields.get(own, b""))
                found.setdefault((ipfix.number(record.fields[10]), key),
                                 []).append(ipfix.text(record.fields[82]))
        self.assertEqual({(77, ns.inode): {name} for ns, name in points},
                         {key: set(texts) for key, texts in in_netns.items()})
        self.assertEqual([(77, 0)], list(plain))
        self.assertEqual("", plain[77, 0][-1])


if __name__ == "__main__":
    lab.main()
