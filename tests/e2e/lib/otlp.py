# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
"""Requests of OTLP, read by the numbers of their fields in opentelemetry-proto 1.x."""

import struct

# What the members of JSON are called that do not follow the rule of name_of().
CONVENTIONS = {
    "SrcAddr": "source.address", "SrcPort": "source.port",
    "DstAddr": "destination.address", "DstPort": "destination.port",
    "ClientAddr": "client.address", "ClientPort": "client.port",
    "ServerAddr": "server.address", "ServerPort": "server.port",
    "Interface": "network.interface.name",
    "Pid": "process.pid", "Tid": "thread.id", "Thread": "thread.name", "Uid": "process.real_user.id",
    "Process": "process.executable.name",
    "ContainerId": "container.id", "ContainerName": "container.name",
    "ContainerImage": "container.image.name", "PodUid": "k8s.pod.uid", "PodName": "k8s.pod.name",
    "PodNamespace": "k8s.namespace.name"}
TRANSPORTS = {6: "tcp", 17: "udp", 33: "dccp", 132: "sctp", 136: "udplite"}
SEVERITIES = {"INFO": 9, "WARN": 13}


# ---- The encoding ---------------------------------------------------------------------

def varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7f) << shift
        shift += 7
        if byte < 0x80:
            return value, at


def fields(data):
    """(number, value) of each: an int, or bytes."""
    at = 0
    while at < len(data):
        tag, at = varint(data, at)
        number, wire = tag >> 3, tag & 7
        if wire == 0:
            value, at = varint(data, at)
        elif wire == 1:
            value, = struct.unpack_from("<Q", data, at)
            at += 8
        elif wire == 5:
            value, = struct.unpack_from("<I", data, at)
            at += 4
        else:
            assert wire == 2, wire
            size, at = varint(data, at)
            value, at = data[at:at + size], at + size
            assert len(value) == size and at <= len(data), "it is cut off"
        yield number, value


def one(data, **numbers):
    """The fields of a message, by name; each at most once."""
    names = {number: name for name, number in numbers.items()}
    found = {}
    for number, value in fields(data):
        assert number in names and names[number] not in found, (number, found)
        found[names[number]] = value
    return found


def put_varint(value):
    data = bytearray()
    while value >= 0x80:
        data.append(value & 0x7f | 0x80)
        value >>= 7
    return bytes(data) + bytes([value])


def put(number, value):
    if isinstance(value, int):
        return put_varint(number << 3) + put_varint(value)
    return put_varint(number << 3 | 2) + put_varint(len(value)) + value


# ---- Requests ---------------------------------------------------------------------------

def any_value(data):
    (number, value), = fields(data)
    if number == 1:
        return value.decode()
    if number == 3:
        return value - (value >> 63 << 64)
    if number == 2:
        return bool(value)
    if number == 6:
        return attributes([pair for _, pair in fields(value)])
    assert number == 5, number
    return [any_value(element) for number, element in fields(value)]


def attribute(data):
    found = one(data, key=1, value=2)
    return found["key"].decode(), any_value(found["value"])


def attributes(pairs):
    found = dict(map(attribute, pairs))
    assert len(found) == len(pairs), pairs
    return found


class Log:
    """A LogRecord."""

    def __init__(self, data):
        pairs, rest = [], {}
        for number, value in fields(data):
            if number == 6:
                pairs.append(value)
            else:
                assert number not in rest, number
                rest[number] = value
        self.attributes = attributes(pairs)
        self.time, self.observed = rest.pop(1), rest.pop(11)
        self.severity, self.severity_text = rest.pop(2), rest.pop(3).decode()
        self.event = rest.pop(12).decode()
        assert not rest, rest
        assert self.severity == SEVERITIES[self.severity_text]


def double(bits):
    return struct.unpack("<d", struct.pack("<Q", bits))[0]


def packed(data):
    values, at = [], 0
    while at < len(data):
        value, at = varint(data, at)
        values.append(value)
    return values


class Point:
    """The only data point of a Metric that is a sum, or an exponential histogram."""

    def __init__(self, data):
        metric = one(data, name=1, unit=3, sum=7, histogram=10)
        self.name, self.unit = metric["name"].decode(), metric["unit"].decode()
        if "sum" in metric:
            found = one(metric["sum"], point=1, temporality=2, is_monotonic=3)
            assert (found["temporality"], found["is_monotonic"]) == (1, 1), found
            rest = self.read(found["point"], 7)
            self.value = rest.pop(6)
        else:
            found = one(metric["histogram"], point=1, temporality=2)
            assert found["temporality"] == 1, found
            rest = self.read(found["point"], 1)
            self.read_histogram(rest)
        assert not rest and self.start <= self.time, rest

    def read(self, data, number_of_attributes):
        """@return the fields that are left, by number"""
        pairs, rest = [], {}
        for number, value in fields(data):
            if number == number_of_attributes:
                pairs.append(value)
            else:
                rest[number] = value
        self.attributes = attributes(pairs)
        self.start, self.time = rest.pop(2), rest.pop(3)
        return rest

    def read_histogram(self, rest):
        """Of scale 0, which is left out."""
        self.count, self.sum = rest.pop(4), double(rest.pop(5))
        self.zero_count, self.zero_threshold = rest.pop(7), double(rest.pop(14))
        found = one(rest.pop(8, b""), offset=1, counts=2)
        offset = found.get("offset", 0)
        self.buckets = {(offset >> 1) + i: value for i, value in
                        enumerate(packed(found.get("counts", b"")))}
        assert not offset & 1, "the offset is negative"


class Request:
    """
    An ExportLogsServiceRequest of one resource and one scope; with Point, an
    ExportMetricsServiceRequest.
    """

    def __init__(self, data, entry=Log):
        resource_logs, = (value for number, value in fields(data) if number == 1)
        found = one(resource_logs, resource=1, scope_logs=2)
        self.resource = attributes([value for _, value in fields(found["resource"])])
        self.logs, self.scope, self.schema = [], None, None
        for number, value in fields(found["scope_logs"]):
            if number == 2:
                self.logs.append(entry(value))
            elif number == 1:
                assert self.scope is None
                self.scope = one(value, name=1, version=2, attribute=3)
            else:
                assert number == 3, number
                self.schema = value.decode()


def response(rejected=0, message=""):
    """An ExportLogsServiceResponse."""
    partial = (put(1, rejected) if rejected else b"") + \
        (put(2, message.encode()) if message else b"")
    return put(1, partial) if partial else b""


# ---- What a record says in JSON ------------------------------------------------------------

def rule_name(key):
    name = ""
    for i, letter in enumerate(key):
        if letter.isupper() and i and not key[i - 1].isupper():
            name += "_"
        name += letter.lower()
    return f"netobs.{name}"


def name_of(key):
    return CONVENTIONS.get(key) or rule_name(key)


def value_of(value):
    """Objects are in arrays only."""
    if isinstance(value, list) and value and isinstance(value[0], dict):
        return [{name_of(key): own for key, own in each.items()} for each in value]
    return value


def expected(line):
    """The attributes of a record that is this line of JSON, without its host."""
    found = {name_of(key): value_of(value) for key, value in line.items()
             if key not in ("type", "AgentIP", "HostName", "HostId")}
    if line.get("Proto") in TRANSPORTS:
        found["network.transport"] = TRANSPORTS[line["Proto"]]
    if "SrcAddr" in line:
        found["network.type"] = "ipv6" if ":" in line["SrcAddr"] else "ipv4"
    if line.get("Interfaces"):
        found["network.interface.name"] = line["Interfaces"][0]
    if "PodName" in line and "ContainerName" in line:
        found["k8s.container.name"] = line["ContainerName"]
    return found


def event_of(line):
    return f"netobs.{line.get('type', 'flow')}"
