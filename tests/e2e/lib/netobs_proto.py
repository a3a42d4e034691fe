# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
"""Records other than flows as protobuf, read by Python's library and held against JSON."""

import json

from lib import flow_proto

AGENT = "192.0.2.77"
UNITS = {"rtt": "ns", "app_latency": "ns", "retransmits": "ppm", "rate": "bit/s"}
# What a record whose value is 0 has not in JSON.
OPTIONAL = {"Opened": "unknown", "Errno": 0, "ProcessBy": "none", "IfIndex": 0,
            "Process": "", "Thread": "", "ProcessLongName": "", "CgroupPath": "", "ContainerId": "", "PodUid": "",
            "Unit": "", "Slice": "", "Machine": "",
            "ContainerName": "", "ContainerImage": "", "PodName": "", "PodNamespace": "",
            "Alert": "", "Interface": "", "NatEvent": 0, "InIfIndex": 0, "OutIfIndex": 0,
            "InInterface": "", "OutInterface": "", "ConversationId": 0,
            "Unparsed": "parsed", "Function": "", "FunctionOffset": 0, "Etype": 0, "NetnsInode": 0,
            "AlertTimeNs": 0, "UnknownNs": 0, "UnknownParts": [], "Attempt": 0, "Command": "",
            "SrcCommand": "", "DstCommand": "", "AckedTimeNs": 0, "Ack": 0, "Flags": 0, "Queue": 0,
            "DropCause": "", "Dropped": False, "Buffer": 0, "OwnerCommand": "", "IpId": 0,
            "Fragment": 0, "Socket": 0, "PktDropLatestDropCause": "", "ReasonNumber": 0}
# The same of groups alone.
OPTIONAL_OF_GROUPS = {"Retransmits": 0, "PktDropPackets": 0, "PktDropBytes": 0, "Connections": 0,
                      "ConnectionsFailed": 0, "RttHistogram": [], "AppLatencyHistogram": [],
                      "Sampling": 0, "NetnsInode": 0, "Pid": 0,
                      "TunnelType": "", "ClientNetwork": "", "SrcNetwork": "", "DstNetwork": ""}


def lines(records):
    """Each as a line, in an order that does not depend on theirs."""
    return sorted(json.dumps(record, sort_keys=True) for record in records)


def load(where):
    return flow_proto.load(where, "netobs")


def one_of(field, value):
    if field.enum_type:
        return field.enum_type.values_by_number[value].name.lower()
    if not field.message_type:
        return value
    return flow_proto.ip(value) if field.message_type.name == "IP" else members(value)


def value_of(message, field):
    value = getattr(message, field.name)
    if field.label == field.LABEL_REPEATED:
        return [one_of(field, each) for each in value]
    return one_of(field, value)


def is_known(message, field):
    optional = OPTIONAL | (OPTIONAL_OF_GROUPS if message.DESCRIPTOR.name == "Group" else {})
    return message.HasField(field.name) if field.containing_oneof else \
        value_of(message, field) != optional.get(field.json_name)


def members(message):
    return {field.json_name: value_of(message, field)
            for field in message.DESCRIPTOR.fields if is_known(message, field)}


def decoded(record):
    """What a Record says, by the names of JSON; its agent must be AGENT."""
    kind = record.WhichOneof("record")
    message = getattr(record, kind)
    found = members(message)
    assert found.pop("AgentIP") == AGENT, found
    if "ConversationId" in found:
        found["ConversationId"] = f"{found['ConversationId']:016x}"
    if kind == "alert":
        found["Unit"] = UNITS[found["Metric"]]
    return {"type": kind.removesuffix("_record").removesuffix("_event"), **found}
