/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The connections that TCP packets belong to: see connection.h. */
#ifndef NETOBS_BPF_TRACK_CONNECTIONS_H
#define NETOBS_BPF_TRACK_CONNECTIONS_H

#include "bpf/rtt/observe.h"
#include "bpf/store/conn_places.h"
#include "bpf/store/run.h"

static __always_inline __u64 read_exact_clock(const struct segment *segment)
{
	return config_clock == CLOCK_COARSE ? bpf_ktime_get_boot_ns() :
					      segment->now;
}

/* What of the TCP header, from the sequence number on, is read. */
struct tcp_wire {
	__be32 seq;
	__be32 ack;
	__u8 offset;
	__u8 flags;
	__be16 window;
};

/* False: the header is not in reach. */
static __always_inline bool segment_read(struct segment *segment,
					 const struct __sk_buff *skb,
					 const struct packet *pkt, bool is_plain)
{
	__u32 offset = sizeof(struct ether_wire) + sizeof(struct ports_wire);
	const struct tcp_wire *tcp;

	if (!is_plain)
		offset = sizeof(struct ports_wire) +
			 ((pkt->header_end - pkt->tcp_header) & CURSOR_MASK);
	else if (pkt->key.flags & KEY_IPV6)
		offset += sizeof(struct ipv6_wire);
	else
		offset += sizeof(struct ipv4_wire);
	tcp = (void *)(long)skb->data + offset;
	if ((void *)(tcp + 1) > (void *)(long)skb->data_end)
		return false;
	segment->seq = bpf_ntohl(tcp->seq);
	segment->ack = bpf_ntohl(tcp->ack);
	segment->window = bpf_ntohs(tcp->window);
	segment->flags = tcp->flags;
	return true;
}

static __always_inline void segment_measure(struct segment *segment,
					    const struct __sk_buff *skb,
					    const struct packet *pkt,
					    const struct wire_size *size)
{
	__u32 headers = pkt->header_end - pkt->l3_offset;

	segment->mss = 0;
	if (size->packets > 1) {
		headers = (headers - pkt->unsent) * size->packets;
		segment->mss = skb->gso_size;
	}
	segment->len = size->bytes > headers ? size->bytes - headers : 0;
}

static __always_inline struct connection *connection_at(__u32 index)
{
	return bpf_map_lookup_elem(&connections, &index);
}

static __always_inline __u32 bucket_of(__u64 hash)
{
	return scale_hash(hash >> 32, config_conn_buckets);
}

/* Have a cache line come while other things are done. */
static __always_inline void prefetch(const void *line)
{
	__u32 word = READ_ONCE(*(const __u32 *)line);

	asm volatile("" ::"r"(word));
}

static __always_inline void prefetch_connection(__u32 index)
{
	const struct connection *conn = connection_at(index);

	if (!conn)
		return;
	prefetch(conn);
	prefetch(&conn->sides[0]);
	prefetch(&conn->sides[1]);
}

/* Keep what of a TCP packet its connection will be shown, and have that come. */
static __always_inline void note_segment(struct run *run,
					 const struct __sk_buff *skb,
					 const struct packet *pkt,
					 const struct wire_size *size,
					 bool is_plain)
{
	struct noted_segment *noted = &run->scratch->noted;
	int dir = connection_dir(&pkt->key);
	struct conn_key key;

	if (dir < 0 || !segment_read(&noted->segment, skb, pkt, is_plain))
		return;
	key = conn_key_of(&pkt->key, dir);
	noted->hash = conn_hash(&key, &config_secret);
	noted->index =
		bucket_of(noted->hash) * CONN_WAYS + conn_home(noted->hash);
	noted->dir = dir;
	prefetch_connection(noted->index);
	segment_measure(&noted->segment, skb, pkt, size);
	noted->segment.now = run->now;
	noted->segment.tick = run->now >> CONN_TICK_SHIFT;
	noted->segment.exact = 0;
	noted->is_there = true;
}

/* All but its key and its version. */
static __always_inline void connection_clear(struct connection *conn, __u64 now)
{
	conn->hooks[0] = 0;
	conn->hooks[1] = 0;
	conn->state[0] = 0;
	conn->state[1] = 0;
	conn->talker = CONN_NEITHER;
	conn->opener = CONN_NEITHER;
	__builtin_memset(conn->sides, 0,
			 sizeof(*conn) - offsetof(struct connection, sides));
	conn->born_ns = now;
}

static __always_inline void
connection_start(struct connection *conn, const struct conn_key *key, __u64 now)
{
	__u16 version = conn->version;

	WRITE_ONCE(conn->version, version + 1);
	asm volatile("" ::: "memory");
	conn_set_key(conn, key);
	connection_clear(conn, now);
	asm volatile("" ::: "memory");
	WRITE_ONCE(conn->version, version + 2);
}

/* A connection that is looked for. */
struct wanted {
	struct conn_key key;
	__u64 hash;
	__u64 now;
	volatile struct conn_choice *choice;
	__u32 bucket;
	bool is_syn;
};

/* Returns the way of its entry, or CONN_WAYS. */
static __always_inline __u32 wanted_find(const struct wanted *wanted,
					 const struct conn_bucket *bucket)
{
	const struct connection *conn;
	__u32 way;

	conn_find(bucket, conn_tag(wanted->hash), wanted->choice);
	way = wanted->choice->way;
	if (way >= CONN_WAYS)
		return CONN_WAYS;
	conn = connection_at(wanted->bucket * CONN_WAYS + way);
	return conn && is_connection(conn, &wanted->key) ? way : CONN_WAYS;
}

static __always_inline void count_evicted(struct conn_counters *counters,
					  const struct conn_bucket *bucket,
					  __u32 way)
{
	__u32 class = bucket->ages[way] >> CONN_AGE_BITS;

	counters->created++;
	if (!bucket->tags[way])
		return;
	if (class == CONN_OPEN)
		counters->evicted_idle++;
	else if (class == CONN_CLOSED)
		counters->evicted_closed++;
	else
		counters->evicted_half_open++;
}

/* This program has the bucket. */
static __always_inline __u32 connection_place(const struct wanted *wanted,
					      struct conn_bucket *bucket,
					      struct conn_counters *counters)
{
	__u32 way = wanted_find(wanted, bucket);
	struct connection *conn;

	if (way < CONN_WAYS) /* made by another CPU meanwhile */
		return way;
	conn_choose(bucket, conn_home(wanted->hash), wanted->now,
		    wanted->is_syn, config_conn_idle, wanted->choice);
	way = wanted->choice->way;
	if (way >= CONN_WAYS) {
		counters->refused++;
		return CONN_WAYS;
	}
	way &= CONN_WAYS - 1; /* for the verifier */
	conn = connection_at(wanted->bucket * CONN_WAYS + way);
	if (!conn)
		return CONN_WAYS;
	count_evicted(counters, bucket, way);
	connection_start(conn, &wanted->key, wanted->now);
	bucket->ages[way] = conn_age(CONN_HALF_OPEN, wanted->now);
	WRITE_ONCE(bucket->tags[way], conn_tag(wanted->hash));
	return way;
}

/* The same tuple with another handshake. */
static __noinline int connection_restart(struct connection *conn, __u64 now)
{
	__u16 version = conn->version;

	WRITE_ONCE(conn->version, version + 1);
	asm volatile("" ::: "memory");
	connection_clear(conn, now);
	asm volatile("" ::: "memory");
	WRITE_ONCE(conn->version, version + 2);
	return 0;
}

/*
 * Find a connection at another than its first place, or make an entry for it, unless its end is
 * all that we would see. Returns its way, or CONN_WAYS. Of two CPUs that want to change a
 * bucket at the same time one may, or none (see claim() in run.h): then a later packet
 * makes the entry.
 */
static __always_inline __u32 connection_search(const struct wanted *wanted,
					       __u32 cpu_id, bool is_end)
{
	struct conn_bucket *bucket =
		bpf_map_lookup_elem(&conn_buckets, &wanted->bucket);
	struct conn_counters *counters =
		bpf_map_lookup_elem(&conn_counters, &cpu_id);
	__u32 way;

	if (!counters || !bucket)
		return CONN_WAYS;
	way = wanted_find(wanted, bucket);
	if (way < CONN_WAYS || is_end)
		return way;
	__sync_fetch_and_add(&bucket->busy, 1);
	if (READ_ONCE(bucket->busy) == 1)
		way = connection_place(wanted, bucket, counters);
	else
		counters->contended++;
	__sync_fetch_and_add(&bucket->busy, -1);
	return way;
}

/*
 * Functions with nothing but numbers: the verifier walks these once, whatever their
 * callers know. COMPAT(<5.13): it knows no other pointers to memory. The packet is in the
 * scratch of the CPU.
 */
static __always_inline struct scratch *scratch_of(__u32 cpu_id)
{
	struct cpu_state *cpu = bpf_map_lookup_elem(&cpu_states, &cpu_id);

	return cpu ? (struct scratch *)cpu->scratch : NULL;
}

__noinline int connection_find(__u32 cpu_id)
{
	struct scratch *scratch = scratch_of(cpu_id);
	struct wanted wanted;
	__u32 flags;

	if (!scratch)
		return CONN_WAYS;
	flags = scratch->noted.segment.flags;
	wanted.hash = scratch->noted.hash;
	wanted.choice = &scratch->noted.choice;
	wanted.bucket = bucket_of(wanted.hash);
	wanted.now = scratch->noted.segment.now;
	wanted.is_syn = (flags & (TCP_SYN | TCP_ACK)) == TCP_SYN;
	wanted.key = conn_key_of(&scratch->pkt.key, scratch->noted.dir);
	return connection_search(&wanted, cpu_id, flags & (TCP_FIN | TCP_RST));
}

/* Another class, or another second. */
static __always_inline void connection_age(const struct connection *conn,
					   __u32 index, __u64 now)
{
	__u32 bucket_index = index / CONN_WAYS;
	struct conn_bucket *bucket =
		bpf_map_lookup_elem(&conn_buckets, &bucket_index);

	if (bucket)
		bucket->ages[index & (CONN_WAYS - 1)] =
			conn_age(conn_class(conn), now);
}

/*
 * A busy CPU does not time more than TIMED_PER_TICK segments in a tick of its clock, so that
 * many connections cost not much more than one.
 */
static __always_inline bool may_time(struct noted_segment *noted)
{
	if (noted->timed_at != noted->segment.now) {
		noted->timed_at = noted->segment.now;
		noted->timed = 0;
	}
	return noted->timed < TIMED_PER_TICK;
}

static __always_inline void connection_add(struct connection *conn,
					   struct noted_segment *noted,
					   __u32 index, __u8 hook)
{
	struct segment *segment = &noted->segment;
	__u32 dir = noted->dir & 1;

	if (conn->version & 1)
		return;
	if (is_another(conn, dir, segment))
		connection_restart(conn, segment->now);
	/* Loopback and hairpins show each segment on its way out and on its way in. */
	if (conn->hooks[dir] != hook) {
		if (conn->hooks[dir])
			return;
		conn->hooks[dir] = hook;
	}
	segment->may_time = may_time(noted);
	if (connection_observe(conn, dir, segment))
		connection_age(conn, index, segment->now);
	if (segment->exact)
		noted->timed++;
}

/* Show the packet to its connection, after note_segment(). */
__noinline int track_connection(__u32 cpu_id)
{
	struct scratch *scratch = scratch_of(cpu_id);
	struct connection *conn;
	struct conn_key key;
	__u32 index, way;

	if (!scratch)
		return 0;
	index = scratch->noted.index;
	conn = connection_at(index);
	if (!conn)
		return 0;
	key = conn_key_of(&scratch->pkt.key, scratch->noted.dir);
	if (!is_connection(conn, &key)) {
		way = connection_find(cpu_id);
		if (way >= CONN_WAYS)
			return 0;
		index = (index & -CONN_WAYS) + way;
		conn = connection_at(index);
		if (!conn)
			return 0;
	}
	connection_add(conn, &scratch->noted, index,
		       scratch->pkt.key.flags & KEY_EGRESS ? 2 : 1);
	return 0;
}

#endif
