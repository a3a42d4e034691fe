-- SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
-- Where records of a fleet are, and functions for queries: run it once.

-- Records as sinks send them in JSON: unknown members are skipped. A TTL may remove old ones.
CREATE TABLE IF NOT EXISTS netobs_records (
    type LowCardinality(String),
    AgentIP String, HostName LowCardinality(String), HostId LowCardinality(String),
    TimeFlowStartMs Int64, TimeFlowEndMs Int64,
    SrcAddr IPv6, DstAddr IPv6, SrcPort UInt16, DstPort UInt16, Proto UInt8,
    IcmpType UInt8, IcmpCode UInt8,
    Bytes UInt64, Packets UInt64, Flags UInt16, TcpCombined Int16 DEFAULT -1,
    Interfaces Array(LowCardinality(String)), IfDirections Array(UInt8),
    TimeFlowRttNs UInt64, PathRttNs UInt64, RttSamples UInt64, Retransmits UInt64,
    ConversationId String,
    XlatSrcAddr IPv6, XlatDstAddr IPv6, XlatSrcPort UInt16, XlatDstPort UInt16,
    OrigSrcAddr IPv6, OrigDstAddr IPv6, OrigSrcPort UInt16, OrigDstPort UInt16,
    Opened LowCardinality(String), Ended LowCardinality(String),
    SrcProcess LowCardinality(String), DstProcess LowCardinality(String), Process LowCardinality(String)
) ENGINE = MergeTree ORDER BY (TimeFlowEndMs, SrcAddr, DstAddr);

-- A conversation without direction: the lower end, by address and port, is first.
CREATE OR REPLACE FUNCTION netobs_pair AS (face, proto) -> if(
    (face.1, face.2) <= (face.3, face.4),
    (face.1, face.2, face.3, face.4, proto), (face.3, face.4, face.1, face.2, proto));

-- ConversationId of an address and port, another one, and the protocol: SipHash-2-4 of the pair.
CREATE OR REPLACE FUNCTION netobs_id AS (pair) -> lower(leftPad(hex(sipHash64(concat(
    reinterpret(pair.1, 'FixedString(16)'), reinterpret(pair.3, 'FixedString(16)'),
    reinterpret(bitShiftLeft(toUInt64(pair.2), 32) + bitShiftLeft(toUInt64(pair.4), 16) + pair.5,
                'FixedString(8)')))), 16, '0'));

-- Of ICMP, its port is the type of the question and the code, at both ends.
CREATE OR REPLACE FUNCTION netobs_id_of AS (face, proto, type, code) -> netobs_id(netobs_pair(
    if(proto IN (1, 58),
       (face.1, toUInt16(256 * multiIf(proto = 1 AND type = 0, 8, proto = 58 AND type = 129, 128, type) + code),
        face.3, toUInt16(256 * multiIf(proto = 1 AND type = 0, 8, proto = 58 AND type = 129, 128, type) + code)),
       face), proto));
