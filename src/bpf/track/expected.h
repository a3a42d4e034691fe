/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Round-trip times as published eBPF monitors measure them (RTT_LRU), to compare with: the time
 * of each segment is in an LRU hash table, under its connection and the acknowledgment number
 * that it expects. An acknowledgment with just this number gives a sample. Of a segment that was
 * sent again the newest time counts.
 */
#ifndef NETOBS_BPF_TRACK_EXPECTED_H
#define NETOBS_BPF_TRACK_EXPECTED_H

#include "bpf/maps.h"
#include "bpf/rtt/acks.h"

static __always_inline void expected_observe(const struct connection *conn,
					     __u32 index, int dir,
					     struct segment *segment)
{
	struct expected_key key = { .born_ns = conn->body->born_ns,
				    .index = index,
				    .dir = dir };
	__u32 span = segment_span(segment);
	const __u64 *sent;
	__u64 ns;

	if (span) {
		key.ack = segment->seq + span;
		ns = segment_time(segment);
		bpf_map_update_elem(&conn_expected, &key, &ns, BPF_ANY);
	}
	if (!(segment->flags & TCP_ACK))
		return;
	key.dir = !dir;
	key.ack = segment->ack;
	sent = bpf_map_lookup_elem(&conn_expected, &key);
	if (!sent)
		return;
	ns = *sent;
	bpf_map_delete_elem(&conn_expected, &key);
	ack_sample(conn, dir, segment, ns, false);
}

#endif
