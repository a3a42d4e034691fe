-- SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
-- Where turns, queues and verdicts of a fleet are, and who most verdicts name: run it once.

-- The members as sinks send them in JSON; those that are absent, as they are equal to others, are restored.
-- A TTL may remove old rows.
CREATE TABLE IF NOT EXISTS netobs_turns (
    type LowCardinality(String), TimeMs Int64, TimeNs Int64,
    AgentIP String, HostName LowCardinality(String), HostId LowCardinality(String),
    Kind LowCardinality(String), Connection UInt64, Direction UInt8, Offset Int64, Bytes UInt32, Seq UInt32,
    IpId UInt32, Proto UInt8, Sends Bool, Reads Bool, Ended Bool, Initiator Bool, Overlap Bool, FromStart Bool,
    OneOf UInt32 DEFAULT 1, NetnsInode UInt32,
    SrcAddr IPv6, DstAddr IPv6, SrcPort UInt16, DstPort UInt16,
    Uplink LowCardinality(String), UplinkIfIndex UInt32,
    UplinkNetnsInode UInt32 DEFAULT if(UplinkIfIndex = 0, 0, NetnsInode),
    WireSrcAddr IPv6 DEFAULT if(UplinkIfIndex = 0, toIPv6('::'), SrcAddr),
    WireDstAddr IPv6 DEFAULT if(UplinkIfIndex = 0, toIPv6('::'), DstAddr),
    WireSrcPort UInt16 DEFAULT if(UplinkIfIndex = 0, 0, SrcPort),
    WireDstPort UInt16 DEFAULT if(UplinkIfIndex = 0, 0, DstPort),
    WrittenAfterNs UInt64, SentAfterNs UInt64, OutAfterNs UInt64, InAfterNs UInt64, SegmentAfterNs UInt64,
    ReadyAfterNs UInt64, ReadAfterNs UInt64, AckedAfterNs UInt64, AnswerAfterNs UInt64, TotalNs UInt64,
    PartsNs Array(UInt64), UnknownParts Array(LowCardinality(String)), Attempts UInt32,
    LimitsNs Array(UInt64), ThreadsNs Array(UInt64), UnreadNs UInt64,
    SentBytes UInt64, OutBytes UInt64 DEFAULT SentBytes, InBytes UInt64, SegmentBytes UInt64 DEFAULT InBytes,
    DroppedBytes UInt64, Drops UInt32, ReasonNumber UInt32, DropCause LowCardinality(String),
    DropFunction LowCardinality(String),
    LargestOut UInt32 DEFAULT if(Sends, Bytes, 0), LargestIn UInt32 DEFAULT if(Reads, Bytes, 0),
    Pid UInt32, Tid UInt32 DEFAULT Pid, Command LowCardinality(String), ContainerId String,
    ReaderPid UInt32, ReaderTid UInt32 DEFAULT ReaderPid, ReaderCommand LowCardinality(String),
    Alert LowCardinality(String), AlertTimeNs Int64
) ENGINE = MergeTree ORDER BY (TimeMs, SrcAddr, DstAddr);

CREATE TABLE IF NOT EXISTS netobs_queues (
    type LowCardinality(String), TimeMs Int64, TimeNs Int64,
    AgentIP String, HostName LowCardinality(String), HostId LowCardinality(String),
    TotalNs UInt64, Kind LowCardinality(String), WaitedNs UInt64, Amount UInt64, Rest UInt64,
    Interface LowCardinality(String), IfIndex UInt32, NetnsInode UInt32,
    Pid UInt32, Tid UInt32, Command LowCardinality(String),
    CgroupPath String, Throttled UInt32, ThrottledNs UInt64,
    Shares Array(Tuple(
        Amount UInt64, Proto UInt8, SrcAddr IPv6, DstAddr IPv6, SrcPort UInt16, DstPort UInt16, Traced UInt8,
        Pid UInt32, Command String, ContainerId String))
) ENGINE = MergeTree ORDER BY (TimeMs, Interface);

CREATE TABLE IF NOT EXISTS netobs_verdicts (
    type LowCardinality(String), TimeMs Int64, TimeNs Int64,
    AgentIP String, HostName LowCardinality(String), HostId LowCardinality(String),
    TotalNs UInt64, SrcAddr IPv6, DstAddr IPv6, DstPort UInt16, Proto UInt8,
    Place LowCardinality(String), Cause LowCardinality(String), Certainty LowCardinality(String),
    SecondPlace LowCardinality(String), SecondCause LowCardinality(String),
    Missing Array(LowCardinality(String)), MissingPoints UInt32, Stream UInt8,
    Connections UInt32, Turns UInt32, TurnsBefore UInt32, TurnNs UInt64, TurnBeforeNs UInt64,
    Rate UInt64, RateBefore UInt64, BlamedNs UInt64, AllBlamedNs UInt64, ClockNs Int64, ClockBoundNs UInt64,
    LostBytes UInt64, Dropped UInt64, DropCause LowCardinality(String), DropFunction LowCardinality(String),
    Throttled UInt64, CgroupPath String,
    SrcPid UInt32, SrcProcess LowCardinality(String), SrcNodeName LowCardinality(String),
    DstPid UInt32, DstProcess LowCardinality(String), DstNodeName LowCardinality(String),
    Interface LowCardinality(String), Filled UInt64, Rest UInt64,
    Shares Array(Tuple(
        Amount UInt64, Proto UInt8, SrcAddr IPv6, DstAddr IPv6, SrcPort UInt16, DstPort UInt16, Traced UInt8,
        Pid UInt32, Command String, ContainerId String)),
    Parts Array(Tuple(
        Place String, Cause String, NowNs UInt64, BeforeNs UInt64, MostNs UInt64, BlamedNs UInt64)),
    Alert LowCardinality(String), AlertTimeNs Int64
) ENGINE = MergeTree ORDER BY (TimeMs, SrcAddr, DstAddr);

-- Whom each verdict suspects: hosts, links (a host and an interface), services and processes of clients. Of the
-- network, it is one of the links at both ends, and beyond a host that is alone, the other host or its link: each
-- has half the blame. A line that was delivered twice counts once.
CREATE OR REPLACE VIEW netobs_suspects AS
WITH
    replaceRegexpOne(toString(SrcAddr), '^::ffff:', '') AS src,
    replaceRegexpOne(toString(DstAddr), '^::ffff:', '') AS dst,
    if(SrcNodeName = '', src, toString(SrcNodeName)) AS client,
    if(DstNodeName = '', dst, toString(DstNodeName)) AS server,
    if(DstNodeName = '', server, client) AS other,
    if(Interface = '', '', concat(' ', Interface)) AS port
SELECT TimeMs, (SrcAddr, DstAddr, DstPort, Proto) AS victim, Certainty, Cause, BlamedNs,
    arrayJoin(multiIf(
        Place = 'client process', [('client', concat(SrcProcess, ' on ', client), 1)],
        Place = 'client host', arrayFilter(one -> one.2 != '', [
            ('host', client, 1), ('link', if(port = '', '', concat(client, port)), 1)]),
        Place = 'network', [('link', concat(client, port), 2), ('link', concat(server, port), 2)],
        Place = 'server host', arrayFilter(one -> one.2 != '', [
            ('host', server, 1), ('link', if(port = '', '', concat(server, port)), 1)]),
        Place = 'server process', [
            ('service', concat(if(position(dst, ':') > 0, concat('[', dst, ']'), dst), ':', toString(DstPort)), 1)],
        Place = 'beyond', [('host', other, 2), ('link', other, 2)],
        [])) AS suspect,
    suspect.1 AS Kind, suspect.2 AS Name, intDiv(BlamedNs, suspect.3) AS Ns
FROM (SELECT DISTINCT * FROM netobs_verdicts);

-- Votes of verdicts that are certain or likely, of windows that began from @since to @until, in ms since 1970:
-- SELECT * FROM netobs_votes(since = 1700000000000, until = 1700000600000). Victims: clients and services that
-- name it. Share: its part of the time that all these verdicts blame on anybody.
CREATE OR REPLACE VIEW netobs_votes AS
WITH (
    SELECT sum(BlamedNs) FROM (SELECT DISTINCT * FROM netobs_verdicts)
    WHERE TimeMs BETWEEN {since:Int64} AND {until:Int64} AND Certainty IN ('certain', 'likely') AND Place != 'none'
) AS all_ns
SELECT Kind, Name, uniqExact(victim) AS Victims, count() AS Verdicts,
    sumIf(Ns, Certainty = 'certain') AS CertainNs, sumIf(Ns, Certainty = 'likely') AS LikelyNs,
    if(all_ns = 0, 0, (CertainNs + LikelyNs) / all_ns) AS Share, topKWeighted(1)(Cause, Ns)[1] AS MainCause
FROM netobs_suspects
WHERE TimeMs BETWEEN {since:Int64} AND {until:Int64} AND Certainty IN ('certain', 'likely')
GROUP BY Kind, Name
ORDER BY CertainNs + LikelyNs DESC, Kind, Name;
