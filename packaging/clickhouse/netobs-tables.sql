-- SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
-- Where records of a fleet are, and functions for queries: run it once.

-- Flows and sessions as sinks send them in JSON, with a column for each of their members; those of other records
-- are skipped. A TTL may remove old ones.
CREATE TABLE IF NOT EXISTS netobs_records (
    type LowCardinality(String), TimeMs Int64,
    AgentIP String, HostName LowCardinality(String), HostId LowCardinality(String),
    TimeFlowStartMs Int64, TimeFlowEndMs Int64,
    SrcAddr IPv6, DstAddr IPv6, SrcPort UInt16, DstPort UInt16, Proto UInt8,
    Etype UInt16, IcmpType UInt8, IcmpCode UInt8,
    Bytes UInt64, Packets UInt64, L2Bytes UInt64, Flags UInt16, TcpCombined Int16 DEFAULT -1,
    Dscp UInt8, EcnSeen UInt8, Ipv6FlowLabel UInt32, TtlMin UInt8, TtlMax UInt8, FlowEndReason UInt8,
    Sampling UInt32, SamplingMode UInt8,
    SrcMac String, DstMac String, VlanId UInt16, OuterVlanId UInt16,
    TunnelType LowCardinality(String), Vni UInt32,
    OuterSrcAddr IPv6, OuterDstAddr IPv6, OuterSrcPort UInt16, OuterDstPort UInt16,
    Interfaces Array(LowCardinality(String)), IfDirections Array(UInt8), IfIndexes Array(UInt32),
    NetnsInode UInt32, NetnsInodes Array(UInt32),
    -- Round-trip times, answers to requests, and losses.
    TimeFlowRttNs UInt64, MinRttNs UInt64, MaxRttNs UInt64, RttSamples UInt64, HandshakeRttNs UInt64, PathRttNs UInt64,
    ResponseTimeNs UInt64, MinResponseTimeNs UInt64, MaxResponseTimeNs UInt64,
    AppLatencyNs UInt64, MinAppLatencyNs UInt64, MaxAppLatencyNs UInt64, AppResponses UInt64,
    Retransmits UInt64, BytesRetransmitted UInt64, OutOfOrder UInt64, LateUnknown UInt64, DuplicateAcks UInt64,
    ZeroWindows UInt64,
    PktDropPackets UInt64, PktDropBytes UInt64, PktDropLatestDropCause LowCardinality(String),
    PktDropReasonNumber UInt32,
    -- Conversations, also through NAT.
    ConversationId String, ZoneId UInt16,
    XlatSrcAddr IPv6, XlatDstAddr IPv6, XlatSrcPort UInt16, XlatDstPort UInt16,
    OrigSrcAddr IPv6, OrigDstAddr IPv6, OrigSrcPort UInt16, OrigDstPort UInt16,
    -- Who is at the ends of a flow, and whose socket a session is of.
    SrcPid UInt32, SrcProcess LowCardinality(String), SrcThread LowCardinality(String), SrcProcessLongName LowCardinality(String),
    SrcUid UInt32, SrcCgroupId UInt64, SrcCgroupPath String,
    SrcContainerId String, SrcContainerName LowCardinality(String), SrcContainerImage LowCardinality(String),
    SrcUnit LowCardinality(String), SrcSlice LowCardinality(String), SrcMachine LowCardinality(String),
    SrcPodUid String, SrcPodName LowCardinality(String), SrcPodNamespace LowCardinality(String),
    DstPid UInt32, DstProcess LowCardinality(String), DstThread LowCardinality(String), DstProcessLongName LowCardinality(String),
    DstUid UInt32, DstCgroupId UInt64, DstCgroupPath String,
    DstContainerId String, DstContainerName LowCardinality(String), DstContainerImage LowCardinality(String),
    DstUnit LowCardinality(String), DstSlice LowCardinality(String), DstMachine LowCardinality(String),
    DstPodUid String, DstPodName LowCardinality(String), DstPodNamespace LowCardinality(String),
    Pid UInt32, Tid UInt32, Process LowCardinality(String), Thread LowCardinality(String), ProcessLongName LowCardinality(String),
    ProcessBy LowCardinality(String),
    Uid UInt32, CgroupId UInt64, CgroupPath String,
    ContainerId String, ContainerName LowCardinality(String), ContainerImage LowCardinality(String),
    Unit LowCardinality(String), Slice LowCardinality(String), Machine LowCardinality(String),
    PodUid String, PodName LowCardinality(String), PodNamespace LowCardinality(String),
    -- Sessions.
    Opened LowCardinality(String), Ended LowCardinality(String), Errno UInt32, DurationMs UInt64,
    BytesAcked UInt64, BytesReceived UInt64, BytesSent UInt64,
    SegmentsSent UInt32, SegmentsReceived UInt32, DataSegmentsSent UInt32, DataSegmentsReceived UInt32,
    Lost UInt32, Reordering UInt32, Reordered UInt32, Delivered UInt32, DeliveredCe UInt32, Duplicates UInt32,
    Cwnd UInt32, Mss UInt32, RttVariationNs UInt64, BusyUs UInt64, WindowLimitedUs UInt64, BufferLimitedUs UInt64
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
