/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Segments of TCP, and echoes: usual segments update their connections at once; all others are
 * noted for track/connections.h.
 */
#ifndef NETOBS_BPF_TRACK_SEGMENTS_H
#define NETOBS_BPF_TRACK_SEGMENTS_H

#include "bpf/rtt/echoes.h"
#include "bpf/rtt/observe.h"
#include "bpf/rtt/usual.h"
#include "bpf/store/conn_bodies.h"
#include "bpf/store/conn_places.h"
#include "bpf/store/run.h"

static __always_inline __u64 read_exact_clock(const struct segment *segment)
{
	return config_clock == CLOCK_HOST ? bpf_ktime_get_boot_ns() :
					    segment->now;
}

/* The part of the TCP header that is read, from the sequence number on. */
struct tcp_wire {
	__be32 seq;
	__be32 ack;
	__u8 offset;
	__u8 flags;
	__be16 window;
};

/* False: the header is not in the linear part. */
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
	segment->header = tcp->offset >> 4;
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

static __always_inline struct conn_head *head_at(__u32 index)
{
	return bpf_map_lookup_elem(&conn_heads, &index);
}

static __always_inline __u32 bucket_of(__u64 hash)
{
	return scale_hash(hash >> 32, config_conn_buckets);
}

/* @return the key of the packet's connection, once its direction and echo kind are noted */
static __always_inline struct conn_key
noted_key(const struct packet *pkt, const struct noted_segment *noted)
{
	struct conn_key key = conn_key_of(&pkt->key, noted->dir);

	if (noted->echo)
		key.ports = (__u32)key.ports;
	return key;
}

/* @return the first slot of a connection */
static __always_inline __u32 index_of(const struct conn_hash *hash)
{
	return bucket_of(hash->place) * CONN_WAYS + conn_home(hash->place);
}

static __always_inline __u16 hook_of(const struct packet *pkt)
{
	return pkt->key.flags & KEY_EGRESS ? CONN_EGRESS : CONN_INGRESS;
}

/*
 * A busy CPU does not time more than TIMED_PER_TICK segments in a tick of its clock, so that many
 * connections cost hardly more than one.
 */
static __always_inline bool may_time(const struct noted_segment *noted, __u64 now)
{
	return noted->timed_at != now || noted->timed < TIMED_PER_TICK;
}

static __always_inline void note_timed(struct noted_segment *noted)
{
	if (noted->timed_at != noted->segment.now) {
		noted->timed_at = noted->segment.now;
		noted->timed = 0;
	}
	noted->timed++;
}

/* Set the members that are not in the segment's header. */
static __always_inline void segment_set_time(struct segment *segment,
					     const struct noted_segment *noted,
					     __u64 now)
{
	segment->now = now;
	segment->tick = now >> CONN_TICK_SHIFT;
	segment->may_time = may_time(noted, now);
}

/* Note the connection of a packet, once its segment is noted. */
static __always_inline void note(struct noted_segment *noted, int dir,
				 enum echo_kind echo,
				 const struct conn_hash *hash, __u64 now)
{
	segment_set_time(&noted->segment, noted, now);
	noted->segment.exact = 0;
	noted->segment.taken = 0;
	noted->segment.leaves = 0;
	noted->segment.has_stamps = false;
	noted->segment.scale = SCALE_UNKNOWN;
	noted->hash = hash->place;
	noted->check = hash->check;
	noted->index = index_of(hash);
	noted->dir = dir;
	noted->echo = echo;
	noted->is_there = true;
}

/* Note a TCP packet that is not plain, after segment_measure(). */
static __always_inline void note_segment(struct run *run,
					 const struct __sk_buff *skb,
					 const struct packet *pkt)
{
	struct noted_segment *noted = &run->scratch->noted;
	int dir = connection_dir(&pkt->key);
	struct conn_key key;
	struct conn_hash hash;

	if (dir < 0 || !segment_read(&noted->segment, skb, pkt, false))
		return;
	key = conn_key_of(&pkt->key, dir);
	hash = conn_hash(&key, &config_secret);
	note(noted, dir, ECHO_NONE, &hash, run->now);
}

/* Set the class and age of a connection after either may have changed. */
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

/* @hint: the slot of @head, and the direction. False: the segment is not usual. */
static __always_inline bool show_usual(struct conn_head *head, __u64 hint,
				       const struct noted_segment *noted,
				       const struct __sk_buff *skb,
				       const struct packet *pkt, __u64 now)
{
	struct segment segment = { .len = noted->segment.len };
	__u32 index = conn_hint_index(hint), dir = conn_hint_dir(hint);
	const struct connection conn = { .head = head };
	struct conn_rate *rate = NULL;
	enum usual usual;

	if (!segment_read(&segment, skb, pkt, true))
		return false;
	segment_set_time(&segment, noted, now);
	if (is_window_over(&head->sides[dir], segment.tick)) {
		struct conn_rates *rates;

		if (config_alerts) /* rules compare the bytes of the window */
			return false;
		rates = bpf_map_lookup_elem(&conn_rates, &index);
		if (!rates)
			return false;
		rate = &rates->sides[dir];
	}
	usual = usual_observe(head, rate, dir, &segment, hook_of(pkt));
	if (usual == USUAL_AGED)
		connection_age(&conn, index, now);
	return usual != UNUSUAL;
}

static __always_inline struct conn_hash plain_hash(const struct packet *pkt,
						   int dir)
{
	struct conn_key key = conn_key_of(&pkt->key, dir);

	key.rest &= ~0ULL >> 4; /* known: no tunnel */
	return conn_hash(&key, &config_secret);
}

/* @return NULL: there is no hint, or another connection has the slot now */
static __always_inline struct conn_head *hinted_head(__u64 hint)
{
	__u32 index = conn_hint_index(hint);
	struct conn_head *head = head_at(index);

	if (!hint || !head ||
	    hint != conn_hint(head->check, head->version, index,
			      conn_hint_dir(hint)))
		return NULL;
	return head;
}

/*
 * @return NULL: the connection is not in that slot. The version is read before the check: if
 *         another connection gets the slot meanwhile, the hint's version is outdated.
 */
static __always_inline struct conn_head *
head_of(const struct conn_hash *hash, __u32 index, __u32 dir, __u64 *ret_hint)
{
	struct conn_head *head = head_at(index);
	__u16 version;

	*ret_hint = 0;
	if (!head)
		return NULL;
	version = READ_ONCE(head->version);
	if (READ_ONCE(head->check) != hash->check)
		return NULL;
	*ret_hint = conn_hint(hash->check, version, index, dir);
	return head;
}

/* @return NULL: the connection is not in its bucket */
static __always_inline struct conn_head *find_head(const struct conn_hash *hash,
						   __u32 dir, __u64 *ret_hint,
						   struct conn_choice *choice)
{
	__u32 bucket_index = bucket_of(hash->place), way;
	struct conn_head *head = head_of(hash, index_of(hash), dir, ret_hint);
	const struct conn_bucket *bucket;

	if (head)
		return head;
	bucket = bpf_map_lookup_elem(&conn_buckets, &bucket_index);
	if (!bucket)
		return NULL;
	conn_find(bucket, conn_tag(hash->place), choice);
	way = READ_ONCE(choice->way);
	return way < CONN_WAYS ? head_of(hash, bucket_index * CONN_WAYS + way,
					 dir, ret_hint) :
				 NULL;
}

/*
 * Show a plain TCP packet to its connection, after segment_measure(), or note it for
 * track_connection(). Returns the hint of its flow. A function that is called has all registers
 * for itself.
 */
static __noinline __u64 track_plain(struct __sk_buff *skb,
				    struct scratch *scratch, __u64 now,
				    __u64 hint)
{
	struct noted_segment *noted = &scratch->noted;
	const struct packet *pkt = &scratch->pkt;
	struct conn_head *head = hinted_head(hint);
	struct conn_hash hash = { 0, 0 };
	int dir = conn_hint_dir(hint);
	bool is_hinted = head;

	if (!is_hinted) {
		dir = connection_dir(&pkt->key);
		if (dir < 0)
			return 0;
		hash = plain_hash(pkt, dir);
		head = find_head(&hash, dir & 1, &hint, &noted->choice);
	}
	if (head && show_usual(head, hint, noted, skb, pkt, now))
		return hint;
	if (is_hinted)
		hash = plain_hash(pkt, dir);
	if (segment_read(&noted->segment, skb, pkt, true)) {
		note(noted, dir, ECHO_NONE, &hash, now);
		if (head)
			noted->index = conn_hint_index(hint);
	}
	return hint;
}

/* Track a plain segment with the hint of its flow in L1, and update that hint. */
static __always_inline void track_segment(struct run *run, struct __sk_buff *skb)
{
	struct flow_entry *entry = run->known;
	__u64 hint = entry ? entry->hint : 0, found;

	found = track_plain(skb, run->scratch, run->now, hint);
	if (entry && found != hint)
		entry->hint = found;
}

/* Note an echo for track_connection(). As with a segment, its flags decide whether it makes an entry. */
static __always_inline void note_echo(struct run *run,
				      const struct __sk_buff *skb,
				      const struct packet *pkt)
{
	const __be32 *number =
		(void *)(long)skb->data + (pkt->header_end & CURSOR_MASK);
	struct noted_segment *noted = &run->scratch->noted;
	enum echo_kind kind = echo_kind(&pkt->key);
	int dir = addresses_dir(&pkt->key);
	struct conn_key key;
	struct conn_hash hash;

	if (kind == ECHO_NONE || dir < 0 ||
	    (void *)(number + 1) > (void *)(long)skb->data_end)
		return;
	noted->segment.seq = bpf_ntohl(*number);
	noted->segment.header = 0;
	noted->segment.flags = kind == ECHO_REQUEST ? TCP_SYN : TCP_FIN;
	noted->dir = dir;
	noted->echo = kind;
	key = noted_key(pkt, noted);
	hash = conn_hash(&key, &config_secret);
	note(noted, dir, kind, &hash, run->now);
}

#endif
