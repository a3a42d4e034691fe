# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
# Needs: protobuf-compiler python3-protobuf
"""Flow records as protobuf, read by Python's library and held against JSON."""

import importlib
import ipaddress
import os
import re
import shutil
import sys

from lib import lab

PROTO = os.path.join(os.path.dirname(os.environ["NETOBS_TOOLS"]), "pbflow")


def load(where, schema="flow"):
    """The module that protoc makes of @schema.proto; it is in @where.dir."""
    module = f"{schema}_pb2"
    if not shutil.which("protoc"):
        raise RuntimeError("protoc was not found (Debian: protobuf-compiler)")
    lab.run("protoc", f"--proto_path={PROTO}", f"--python_out={where.dir}",
            f"{schema}.proto")
    if module not in sys.modules:
        sys.path.insert(0, where.dir)
        importlib.import_module(module)
        sys.path.remove(where.dir)
    return sys.modules[module]


def load_netobserv(where):
    """The same, of NetObserv's own fields alone."""
    text = lab.read(os.path.join(PROTO, "flow.proto"))
    text = re.sub(r"^  oneof (outer_)?vlan \{.*?^  \}$", "", text,
                  flags=re.MULTILINE | re.DOTALL)
    text = re.sub(r"^ .* = 1\d\d\d;.*$", "", text, flags=re.MULTILINE)
    path = os.path.join(where.dir, "netobserv.proto")
    lab.write(path, text.replace("package pbflow;", "package netobserv;"))
    lab.run("protoc", f"--proto_path={where.dir}", f"--python_out={where.dir}",
            "netobserv.proto")
    sys.path.insert(0, where.dir)
    module = importlib.import_module("netobserv_pb2")
    sys.path.remove(where.dir)
    return module


def ip(message):
    kind = message.WhichOneof("ip_family")
    return kind and str(ipaddress.ip_address(getattr(message, kind)))


def mac(number):
    return ":".join(f"{octet:02x}" for octet in number.to_bytes(6, "big"))


def milliseconds(time):
    return time.seconds * 1000 + time.nanos // 1000000


def decoded(record):
    """What a Record says, by the names that JSON has for it."""
    return {
        "TimeFlowStartMs": milliseconds(record.time_flow_start),
        "TimeFlowEndMs": milliseconds(record.time_flow_end),
        "SrcAddr": ip(record.network.src_addr),
        "DstAddr": ip(record.network.dst_addr),
        "SrcPort": record.transport.src_port,
        "DstPort": record.transport.dst_port,
        "Proto": record.transport.protocol,
        "Etype": record.eth_protocol,
        "IcmpType": record.icmp_type,
        "IcmpCode": record.icmp_code,
        "L2Bytes": record.bytes,
        "Bytes": record.l3_bytes,
        "Packets": record.packets,
        "Flags": record.tcp_flags,
        "VlanId": record.vlan_id if record.HasField("vlan_id") else None,
        "Ipv6FlowLabel": record.ipv6_flow_label,
        "TtlMin": record.ttl_min,
        "TtlMax": record.ttl_max,
        "FlowEndReason": record.end_reason,
        "IfIndexes": [entry.if_index for entry in record.dup_list],
        "Dscp": record.network.dscp,
        "SrcMac": mac(record.data_link.src_mac),
        "DstMac": mac(record.data_link.dst_mac),
        "Interfaces": [entry.interface for entry in record.dup_list],
        "IfDirections": [entry.direction for entry in record.dup_list],
    }


def expected(line):
    """The same, of a line of JSON: what is not known there is zero here."""
    zero = {"SrcPort": 0, "DstPort": 0, "IcmpType": 0, "IcmpCode": 0,
            "Flags": 0, "SrcMac": mac(0), "DstMac": mac(0), "VlanId": None,
            "L2Bytes": line["Bytes"], "Ipv6FlowLabel": 0}
    told = {**zero, **line}
    return {name: told[name] for name in decoded_names()}


def decoded_names():
    return decoded(sys.modules["flow_pb2"].Record())
