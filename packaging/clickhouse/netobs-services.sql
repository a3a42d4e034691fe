-- SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
-- The service map of a fleet: fills the table netobs_services with the map that `netobsctl map --services` makes of the
-- same records. Run it after netobs-tables.sql, whenever you want a new map; limit `reports` to the time
-- that the map is to cover. Differences from `netobsctl map --services`:
-- - Records of mappings are not used: a conversation behind a NAT has its addresses before translation only if flows
--   or sessions of the host that translates have them.
-- - Of ICMP, only echo requests and their replies have one id (netobs_id_of): other requests and answers that
--   a NAT translates are a conversation on each side.
-- - A tuple that a NAT used for several conversations, which only sessions show, is left out; netobsctl leaves it out
--   only if the host that translates reports its flows, too.
-- - Lost bytes are not computed.

DROP TABLE IF EXISTS netobs_reports;
CREATE TABLE netobs_reports ENGINE = Memory AS
SELECT type, TimeFlowStartMs, TimeFlowEndMs, SrcAddr, SrcPort, DstAddr, DstPort, Proto, IcmpType, IcmpCode,
    Packets, Bytes, Flags, TcpCombined, Retransmits, TimeFlowRttNs, PathRttNs, RttSamples, ResponseTimeNs, AppResponses,
    -- NAMESPACE/POD, or the name of a container in no pod; a session is of its source's socket.
    multiIf(type = 'session', if(PodName = '', ContainerName, concat(PodNamespace, '/', PodName)),
            SrcPodName = '', SrcContainerName, concat(SrcPodNamespace, '/', SrcPodName)) AS src_workload,
    if(DstPodName = '', DstContainerName, concat(DstPodNamespace, '/', DstPodName)) AS dst_workload,
    ConversationId, Opened, Ended, concat(AgentIP, ' ', HostName, ' ', HostId) AS reporter,
    (SrcAddr, SrcPort, DstAddr, DstPort) AS own,
    arrayFilter(face -> face.1 != toIPv6('::') AND face != own, [
        (XlatSrcAddr, XlatSrcPort, XlatDstAddr, XlatDstPort),
        (OrigSrcAddr, OrigSrcPort, OrigDstAddr, OrigDstPort)]) AS others,
    -- Addresses and ports of the packets before all NAT of the host.
    if(ConversationId = '' OR empty(others), own, arrayFirst(
        face -> netobs_id_of(face, Proto, IcmpType, IcmpCode) = ConversationId OR face = own,
        arrayConcat(others, [own]))) AS root
FROM (
    -- A line that was delivered twice counts once.
    SELECT DISTINCT * FROM netobs_records
    WHERE type IN ('', 'flow', 'session') AND (SrcAddr != toIPv6('::') OR type != 'session')
);

DROP TABLE IF EXISTS netobs_links;
CREATE TABLE netobs_links ENGINE = Memory AS
-- Tuples behind a NAT, with their conversations. Several: the NAT used the tuple for several conversations.
SELECT behind, any(earlier) AS before, any(is_swapped) AS swapped, uniqExact(earlier) > 1 AS shared
FROM (
    SELECT netobs_pair(face, Proto) AS behind, netobs_pair(root, Proto) AS earlier,
        ((face.1, face.2) <= (face.3, face.4)) != ((root.1, root.2) <= (root.3, root.4)) AS is_swapped
    FROM netobs_reports ARRAY JOIN arrayConcat(others, [own]) AS face
    WHERE ConversationId != '' AND notEmpty(others) AND netobs_pair(face, Proto) != netobs_pair(root, Proto)
)
GROUP BY behind;

DROP TABLE IF EXISTS netobs_placed;
CREATE TABLE netobs_placed ENGINE = Memory AS
-- The conversation of each report, through two NATs, and which of its ends is the source.
SELECT r.*,
    multiIf(second.behind.5 != 0, second.before, first.behind.5 != 0, first.before,
            netobs_pair(r.root, r.Proto)) AS pair,
    toUInt8(((r.root.1, r.root.2) > (r.root.3, r.root.4)) != (first.swapped != second.swapped)) AS source
FROM netobs_reports AS r
LEFT JOIN netobs_links AS first ON netobs_pair(r.root, r.Proto) = first.behind
LEFT JOIN netobs_links AS second ON first.before = second.behind
WHERE NOT first.shared AND NOT second.shared;

DROP TABLE IF EXISTS netobs_ends;
CREATE TABLE netobs_ends ENGINE = Memory AS
WITH
accepting AS (
    -- Which end is the service, as far as a report shows it; 2: it does not.
    SELECT pair, countIf(server = 0) AS first_end, countIf(server = 1) AS second_end
    FROM (
        SELECT pair, multiIf(
            type = 'session', multiIf(Opened = 'passive', source, Opened = 'active', 1 - source, 2),
            Proto = 6, multiIf(TcpCombined < 0 AND bitAnd(Flags, 16) != 0, 2,
                               bitAnd(greatest(TcpCombined, 0), 1) != 0, source,
                               bitAnd(Flags, 2) != 0, 1 - source, 2),
            DstAddr >= toIPv6('ff00::') OR DstAddr BETWEEN toIPv6('224.0.0.0') AND toIPv6('255.255.255.255'),
                1 - source,
            Proto IN (1, 58), if((Proto = 1 AND IcmpType = 0) OR (Proto = 58 AND IcmpType = 129),
                                 source, 1 - source),
            2) AS server
        FROM netobs_placed
    )
    GROUP BY pair
),
servers AS (
    SELECT DISTINCT if(second_end > first_end, (pair.3, pair.4, pair.5), (pair.1, pair.2, pair.5)) AS server
    FROM accepting
    WHERE first_end != second_end AND server.2 != 0
)
SELECT pair,
    ((pair.1, pair.2, pair.5) IN (SELECT server FROM servers)) AS knows_first,
    ((pair.3, pair.4, pair.5) IN (SELECT server FROM servers)) AS knows_second,
    multiIf(first_end != second_end, second_end > first_end,
            knows_first != knows_second, knows_second,
            pair.2 != pair.4, pair.4 < pair.2,
            pair.3 < pair.1) AS service
FROM accepting;

DROP TABLE IF EXISTS netobs_services;
CREATE TABLE netobs_services ENGINE = Memory AS
WITH
directions AS (
    -- Of several hosts, the one that has seen most packets.
    SELECT pair, source,
        argMax((packets, octets, retransmits), (packets, octets)) AS most,
        sum(packets) - max(packets) AS repeated, groupUniqArray(reporter) AS reporters,
        minIf(first_ms, first_ms > 0) AS start_ms, max(last_ms) AS end_ms
    FROM (
        SELECT pair, source, reporter, sum(Packets) AS packets, sum(Bytes) AS octets,
            sum(Retransmits) AS retransmits, minIf(TimeFlowStartMs, has_span) AS first_ms,
            maxIf(TimeFlowEndMs, has_span) AS last_ms
        FROM (
            -- Records with both times, in their order.
            SELECT *, TimeFlowStartMs > 0 AND TimeFlowStartMs <= TimeFlowEndMs AS has_span FROM netobs_placed
        ) WHERE type != 'session'
        GROUP BY pair, source, reporter
    )
    GROUP BY pair, source
),
workloads AS (
    SELECT pair, groupUniqArrayIf(first_one, first_one != '') AS of_first,
        groupUniqArrayIf(second_one, second_one != '') AS of_second
    FROM (
        SELECT pair, if(source = 0, src_workload, dst_workload) AS first_one,
            if(source = 0, dst_workload, src_workload) AS second_one
        FROM netobs_placed
    )
    GROUP BY pair
),
answers AS (
    -- Of the host that has seen most answers, or waited longest for as many, by the end that asks.
    SELECT pair, source, argMax((total_ns, answers), (answers, total_ns)) AS most
    FROM (
        SELECT pair, source, reporter, sum(ResponseTimeNs * AppResponses) AS total_ns, sum(AppResponses) AS answers
        FROM netobs_placed WHERE type != 'session'
        GROUP BY pair, source, reporter
    )
    GROUP BY pair, source
),
times AS (
    -- Of one host, to both ends.
    SELECT pair, argMax((sums, samples), arraySum(samples)) AS most
    FROM (
        SELECT pair, reporter,
            [sumIf(if(PathRttNs > 0, PathRttNs, TimeFlowRttNs) * RttSamples, source = 0),
             sumIf(if(PathRttNs > 0, PathRttNs, TimeFlowRttNs) * RttSamples, source = 1)] AS sums,
            [sumIf(RttSamples, source = 0), sumIf(RttSamples, source = 1)] AS samples
        FROM netobs_placed WHERE type != 'session'
        GROUP BY pair, reporter
    )
    GROUP BY pair
),
sessions AS (
    -- Of both ends, the one with more of them, or the client's.
    SELECT pair, argMax(counts, (counts[1], source != service)) AS most
    FROM (
        SELECT pair, reporter, source, any(service) AS service,
            [countIf(Ended != 'open'), countIf(Ended = 'refused'), countIf(Ended IN ('reset', 'aborted')),
             countIf(Ended = 'timeout'), countIf(Ended = 'failed')] AS counts
        FROM netobs_placed LEFT JOIN netobs_ends USING (pair)
        WHERE type = 'session'
        GROUP BY pair, reporter, source
    )
    GROUP BY pair
),
conversations AS (
    SELECT pair, service,
        if(service, (pair.1, pair.3, pair.4, pair.5), (pair.3, pair.1, pair.2, pair.5)) AS edge,
        a.most AS of_first, b.most AS of_second, a.repeated + b.repeated AS repeated,
        arrayUniq(arrayConcat(a.reporters, b.reporters)) AS hosts,
        arrayMin(arrayFilter(at -> at > 0, [a.start_ms, b.start_ms])) AS start_ms,
        greatest(a.end_ms, b.end_ms) AS end_ms,
        times.most AS rtt, sessions.most AS sessions, if(service, asked_a.most, asked_b.most) AS asked,
        if(service, workloads.of_first, workloads.of_second) AS clients,
        if(service, workloads.of_second, workloads.of_first) AS servers
    FROM netobs_ends
    LEFT JOIN (SELECT * FROM directions WHERE source = 0) AS a USING (pair)
    LEFT JOIN (SELECT * FROM directions WHERE source = 1) AS b USING (pair)
    LEFT JOIN times USING (pair)
    LEFT JOIN (SELECT * FROM answers WHERE source = 0) AS asked_a USING (pair)
    LEFT JOIN (SELECT * FROM answers WHERE source = 1) AS asked_b USING (pair)
    LEFT JOIN sessions USING (pair)
    LEFT JOIN workloads USING (pair)
)
SELECT
    replaceRegexpOne(toString(edge.1), '^::ffff:', '') AS ClientAddr,
    replaceRegexpOne(toString(edge.2), '^::ffff:', '') AS ServerAddr,
    edge.3 AS ServerPort, edge.4 AS Proto,
    minIf(start_ms, start_ms > 0) AS TimeFlowStartMs, max(end_ms) AS TimeFlowEndMs, count() AS Conversations,
    sum(of_first.1 + of_second.1) AS Packets, sum(of_first.2 + of_second.2) AS Bytes,
    sum(if(service, of_first.1, of_second.1)) AS SentPackets,
    sum(if(service, of_first.2, of_second.2)) AS SentBytes,
    sum(sessions[1]) AS Connections, sum(sessions[2]) AS Refused, sum(sessions[3]) AS Resets,
    sum(sessions[4]) AS Timeouts, sum(sessions[5]) AS Failed,
    sum(of_first.3 + of_second.3) AS Retransmits,
    sum(rtt.2[1]) + sum(rtt.2[2]) AS RttSamples,
    if(sum(rtt.2[1]) = 0, 0, intDiv(sum(rtt.1[1]), greatest(sum(rtt.2[1]), 1))) +
        if(sum(rtt.2[2]) = 0, 0, intDiv(sum(rtt.1[2]), greatest(sum(rtt.2[2]), 1))) AS RttNs,
    if(sum(asked.2) = 0, 0, intDiv(sum(asked.1), greatest(sum(asked.2), 1))) AS ResponseTimeNs,
    sum(asked.2) AS AppResponses,
    -- Of several at one address, none.
    if(length(groupUniqArrayArray(clients)) = 1, groupUniqArrayArray(clients)[1], '') AS ClientWorkload,
    if(length(groupUniqArrayArray(servers)) = 1, groupUniqArrayArray(servers)[1], '') AS ServerWorkload,
    max(hosts) AS Hosts, sum(repeated) AS RepeatedPackets
FROM conversations
GROUP BY edge;
