# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
# Needs: libfixbuf-tools nfdump pmacct tshark
"""
Other projects' collectors, and their output for IPFIX: rows of one form, so that they can
be compared with JSON lines. A row has the names below; which of them, is up to the
collector.
"""

import calendar
import collections
import ipaddress
import json
import os
import re
import signal
import tempfile
import time
import xml.etree.ElementTree

from lib import capfile
from lib import frames
from lib import lab

ICMP = (1, 58)
FLAGS = "CEUAPRSF"
NO_MAC = "00:00:00:00:00:00"


def from_json(record):
    """A JSON line as a row with all names."""
    proto = record["Proto"]
    code = record["IcmpType"] << 8 | record["IcmpCode"] if proto in ICMP else 0
    points = list(zip(record.get("IfIndexes", []),
                      record.get("IfDirections", [])))
    return {
        "start": record["TimeFlowStartMs"], "end": record["TimeFlowEndMs"],
        "src": record["SrcAddr"], "dst": record["DstAddr"],
        "sport": record.get("SrcPort", 0), "dport": record.get("DstPort", code),
        "proto": proto, "packets": record["Packets"], "octets": record["Bytes"],
        "flags": record.get("Flags", 0), "tos": record["Dscp"] << 2,
        "icmp": code, "vlan": record.get("VlanId", 0),
        "smac": record.get("SrcMac", NO_MAC).lower(),
        "dmac": record.get("DstMac", NO_MAC).lower(),
        "etype": record["Etype"], "reason": record["FlowEndReason"],
        "ttl_min": record["TtlMin"], "ttl_max": record["TtlMax"],
        "in": next((index for index, way in points if way == 0), 0),
        "out": next((index for index, way in reversed(points) if way == 1), 0),
        "direction": points[0][1] if points else 0,
        "l2": record.get("L2Bytes", 0),
        "tunnel": record.get("TunnelType", ""), "vni": record.get("Vni", 0),
        "outer_vlan": record.get("OuterVlanId", 0),
    }


def count(rows, names):
    return collections.Counter(tuple(row[name] for name in names)
                               for row in rows)


def compare(test, rows, records, what):
    """Every field of every row that @what shows, and the sums."""
    test.assertTrue(rows, f"{what} has no flows")
    names = sorted(rows[0])
    expected = [from_json(record) for record in records]
    for name in ("packets", "octets"):
        test.assertEqual(sum(row[name] for row in expected),
                         sum(row[name] for row in rows), f"{what}: {name}")
    want, have = count(expected, names), count(rows, names)
    if want != have:
        test.fail(f"{what}: {names}\nmissing {list((want - have).items())[:5]}\n"
                  f"instead {list((have - want).items())[:5]}")
    test.note(f"{what}: {len(rows)} flows with {', '.join(names)}")


def is_listening(ns, port):
    return re.search(rf":{port}\s", ns.run("ss", "-Haln", "-u", "-t"))


def to_ms(text):
    """2026-11-21T17:06:31.709"""
    whole, fraction = text.split(".")
    return calendar.timegm(time.strptime(whole, "%Y-%m-%dT%H:%M:%S")) * 1000 + \
        int(fraction)


class NfCapd:
    """nfcapd and nfdump."""

    def __init__(self, where, ns, port, *more):
        self.where, self.ns = where, ns
        self.dir = tempfile.mkdtemp(prefix="nfcapd-", dir=where.dir)
        self.out = f"{self.dir}.log"
        self.environment = dict(os.environ, TZ="UTC")
        with open(self.out, "wb") as out:
            self.process = where.spawn("nfcapd", "-p", port, "-b", "127.0.0.1",
                                       "-w", self.dir, "-t", 3600, *more,
                                       ns=ns, stdout=out, stderr=out,
                                       env=self.environment)
        lab.wait_for(lambda: is_listening(ns, port), "nfcapd")

    def messages(self):
        with open(self.out, encoding="utf-8", errors="replace") as file:
            return file.read()

    def stop(self):
        """What nfdump prints of all that has come."""
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(lab.PATIENCE_S)
        return json.loads(lab.run("nfdump", "-R", self.dir, "-o", "json",
                                  env=self.environment))

    def rows(self):
        return [self.row(flow) for flow in self.stop()]

    @staticmethod
    def row(flow):
        icmp = flow.get("icmp_type", 0) << 8 | flow.get("icmp_code", 0)
        flags = flow.get("tcp_flags", "........")
        return {
            "start": to_ms(flow["first"]), "end": to_ms(flow["last"]),
            "src": flow.get("src4_addr") or flow["src6_addr"],
            "dst": flow.get("dst4_addr") or flow["dst6_addr"],
            "sport": flow.get("src_port", 0),
            "dport": flow.get("dst_port", icmp), "icmp": icmp,
            "proto": flow["proto"], "packets": flow["in_packets"],
            "octets": flow["in_bytes"], "tos": flow["src_tos"],
            "flags": sum(1 << (7 - at) for at, letter in enumerate(flags)
                         if letter == FLAGS[at]),
            "vlan": flow["src_vlan"], "smac": flow["in_src_mac"],
            "dmac": flow["in_dst_mac"], "in": flow["input_snmp"],
            "out": flow["output_snmp"], "direction": flow["direction"],
        }


class NfAcctd:
    """nfacctd with its print plugin."""

    FIELDS = ("src_host,dst_host,src_port,dst_port,proto,tos,tcpflags,vlan,"
              "src_mac,dst_mac,in_iface,out_iface,timestamp_start,"
              "timestamp_end,etype")

    def __init__(self, where, ns, port):
        self.where = where
        self.out = where.path(f"nfacctd-{port}.json")
        self.log = where.path(f"nfacctd-{port}.log")
        config = where.path(f"nfacctd-{port}.conf")
        lab.write(config, f"plugins: print\nnfacctd_ip: 127.0.0.1\n"
                          f"nfacctd_port: {port}\naggregate: {self.FIELDS}\n"
                          f"print_output: json\nprint_output_file: {self.out}\n"
                          f"print_output_file_append: true\n"
                          f"print_refresh_time: 1\nprint_num_protos: true\n"
                          f"num_protos: true\n"
                          f"timestamps_since_epoch: true\n")
        with open(self.log, "wb") as log:
            self.process = where.spawn("nfacctd", "-f", config, ns=ns,
                                       stdout=log, stderr=log)
        lab.wait_for(lambda: is_listening(ns, port), "nfacctd")

    def messages(self):
        with open(self.log, encoding="utf-8", errors="replace") as file:
            return file.read()

    def flows(self):
        if not os.path.exists(self.out):
            return []
        return lab.json_lines(self.out, is_whole=False)

    def rows(self, packets):
        """Once it has written so many packets, which it does each second."""
        lab.wait_for(lambda: sum(flow["packets"] for flow in self.flows()) >=
                     packets, "nfacctd to write its flows", 30)
        self.process.send_signal(signal.SIGINT)
        self.process.wait(lab.PATIENCE_S)
        return [self.row(flow) for flow in self.flows()]

    @staticmethod
    def row(flow):
        def ms(text):
            whole, fraction = text.split(".")
            return int(whole) * 1000 + int(fraction[:3])
        return {
            "start": ms(flow["timestamp_start"]),
            "end": ms(flow["timestamp_end"]),
            "src": flow["ip_src"], "dst": flow["ip_dst"],
            "sport": flow["port_src"], "dport": flow["port_dst"],
            "proto": int(flow["ip_proto"]), "packets": flow["packets"],
            "octets": flow["bytes"], "tos": flow["tos"],
            "flags": int(flow["tcp_flags"]), "smac": flow["mac_src"],
            "dmac": flow["mac_dst"], "etype": int(flow["etype"], 16),
            "in": flow["iface_in"], "out": flow["iface_out"],
            "vlan": flow["vlan_in"] if "vlan_in" in flow else flow["vlan"],  # 1.7.9: vlan_in
        }


TSHARK_NAMES = {
    "cflow.octets": "octets", "cflow.packets": "packets",
    "cflow.srcport": "sport", "cflow.dstport": "dport",
    "cflow.protocol": "proto", "cflow.tos": "tos", "cflow.tcpflags": "flags",
    "cflow.inputint": "in", "cflow.outputint": "out",
    "cflow.direction": "direction", "cflow.flow_end_reason": "reason",
    "cflow.vlanid": "vlan", "cflow.ethernet_type": "etype",
    "cflow.ttl_min": "ttl_min", "cflow.ttl_max": "ttl_max",
    "cflow.layer2_octet_delta_count": "l2",
}
TSHARK_TEXTS = {
    "cflow.srcaddr": "src", "cflow.dstaddr": "dst", "cflow.srcaddrv6": "src",
    "cflow.dstaddrv6": "dst", "cflow.srcmac": "smac", "cflow.dstmac": "dmac",
}
TSHARK_TIMES = {"cflow.abstimestart": "start", "cflow.abstimeend": "end"}


def tshark_time_shown(text):
    """ "Nov 14, 2023 22:13:20.242000000 UTC": what tshark made of it."""
    whole, fraction = text.removesuffix(" UTC").rsplit(".", 1)
    seconds = calendar.timegm(time.strptime(whole, "%b %d, %Y %H:%M:%S"))
    return seconds * 1000 + int(fraction[:3])


def tshark_rows(where, datagrams, port=4739):
    """What Wireshark sees in datagrams to the IPFIX port."""
    path = where.path("datagrams.pcap")
    packets = [(n * 1000, frames.ether(
        "02:00:00:00:00:02", "02:00:00:00:00:01", frames.IPV4, frames.ipv4(
            "192.0.2.1", "192.0.2.2", frames.UDP,
            frames.udp(50000, port, data)))) for n, data in enumerate(datagrams)]
    with open(path, "wb") as file:
        file.write(capfile.pcap(capfile.ETHERNET, packets))
    text = lab.run("tshark", "-r", path, "-T", "pdml", "-d",
                   f"udp.port=={port},cflow", env=dict(os.environ, TZ="UTC"))
    rows = []
    for field in xml.etree.ElementTree.fromstring(text).iter("field"):
        if re.match(r"Flow \d+$", field.get("show", "")):
            row = tshark_row(field)
            if "octets" in row and "packets" in row:
                rows.append(row)
    return rows


def tshark_row(flow):
    row = {}
    for field in flow.iter("field"):
        name, show = field.get("name"), field.get("show", "")
        if name in TSHARK_NAMES:
            row[TSHARK_NAMES[name]] = int(show, 0)
        elif name in TSHARK_TEXTS:
            row[TSHARK_TEXTS[name]] = show
        elif name in TSHARK_TIMES:
            row[TSHARK_TIMES[name]] = tshark_time_shown(show)
    return row


DUMP_NAMES = {
    1: "octets", 2: "packets", 7: "sport", 11: "dport", 4: "proto", 5: "tos",
    6: "flags", 10: "in", 14: "out", 61: "direction", 136: "reason",
    58: "vlan", 256: "etype", 52: "ttl_min", 53: "ttl_max", 352: "l2",
    32: "icmp", 139: "icmp",
}
DUMP_TEXTS = {8: "src", 12: "dst", 27: "src", 28: "dst", 56: "smac", 80: "dmac"}
DUMP_TIMES = {152: "start", 153: "end"}


def dump_value(number, text):
    if number in DUMP_NAMES:
        return DUMP_NAMES[number], int(text, 0)
    if number in DUMP_TIMES:
        whole, _, fraction = text.partition(".")
        seconds = calendar.timegm(time.strptime(whole, "%Y-%m-%d %H:%M:%S"))
        return DUMP_TIMES[number], seconds * 1000 + int(fraction[:3] or 0)
    if number in (27, 28):  # it writes all groups, and :: for none
        text = str(ipaddress.ip_address(dump_address(text)))
    return DUMP_TEXTS[number], text


def dump_address(text):
    try:
        return ipaddress.ip_address(text)
    except ValueError as error:
        raise AssertionError(f"ipfixDump: {text}") from error


def ipfix_dump_rows(path):
    """What libfixbuf's own reader finds in a file of messages."""
    text = lab.run("ipfixDump", "--in", path)
    rows = []
    for part in text.split("--- data record ")[1:]:
        row = {"icmp": 0}
        for match in re.finditer(r"^\t\((\d+)\)\s[^:]*: (.*)$", part, re.M):
            number = int(match[1])
            if number in DUMP_NAMES or number in DUMP_TEXTS or \
                    number in DUMP_TIMES:
                name, value = dump_value(number, match[2])
                row[name] = value
        if "octets" in row and "packets" in row:
            rows.append(row)
    return rows


def raw_rows(records):
    """What is in messages by the letter, times in milliseconds."""
    return [raw_row(record.fields) for record in records]


def raw_row(fields):
    def value(*names):
        return int.from_bytes(next((fields[name] for name in names
                                    if name in fields), b""), "big")

    def address(*names):
        return str(ipaddress.ip_address(next(fields[name] for name in names
                                             if name in fields)))

    def mac(name):
        return ":".join(f"{octet:02x}" for octet in fields[name])
    return {
        "start": value(152),
        "end": value(153),
        "src": address(8, 27), "dst": address(12, 28), "sport": value(7),
        "dport": value(11), "proto": value(4), "packets": value(2),
        "octets": value(1), "flags": value(6), "tos": value(5),
        "icmp": value(32, 139), "vlan": value(58), "smac": mac(56),
        "dmac": mac(80), "etype": value(256), "reason": value(136),
        "ttl_min": value(52), "ttl_max": value(53), "in": value(10),
        "out": value(14), "direction": value(61),
    }
