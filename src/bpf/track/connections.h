/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The connections that packets of TCP and echoes belong to: see connection.h. */
#ifndef NETOBS_BPF_TRACK_CONNECTIONS_H
#define NETOBS_BPF_TRACK_CONNECTIONS_H

#include "expected.h"
#include "bpf/apart.h"
#include "bpf/rtt/echoes.h"
#include "bpf/rtt/observe.h"
#include "bpf/rtt/usual.h"
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

/* Of the packet in the scratch, once its direction and whether it is an echo are noted. */
static __always_inline struct conn_key
noted_key(const struct packet *pkt, const struct noted_segment *noted)
{
	struct conn_key key = conn_key_of(&pkt->key, noted->dir);

	if (noted->echo)
		key.ports = (__u32)key.ports;
	return key;
}

/* Its first place. */
static __always_inline __u32 index_of(const struct conn_hash *hash)
{
	return bucket_of(hash->place) * CONN_WAYS + conn_home(hash->place);
}

static __always_inline __u16 hook_of(const struct packet *pkt)
{
	return pkt->key.flags & KEY_EGRESS ? CONN_EGRESS : CONN_INGRESS;
}

/*
 * A busy CPU does not time more than TIMED_PER_TICK segments in a tick of its clock, so that
 * many connections cost not much more than one.
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

/* What is not in its header. */
static __always_inline void segment_set_time(struct segment *segment,
					     const struct noted_segment *noted,
					     __u64 now)
{
	segment->now = now;
	segment->tick = now >> CONN_TICK_SHIFT;
	segment->may_time = may_time(noted, now);
}

/* Keep what of a packet its connection will be shown, once its segment is noted. */
static __always_inline void note(struct noted_segment *noted, int dir,
				 enum echo_kind echo,
				 const struct conn_hash *hash, __u64 now)
{
	segment_set_time(&noted->segment, noted, now);
	noted->segment.is_untimed = config_rtt == RTT_LRU;
	noted->segment.exact = 0;
	noted->segment.taken = 0;
	noted->segment.has_stamps = false;
	noted->hash = hash->place;
	noted->check = hash->check;
	noted->index = index_of(hash);
	noted->dir = dir;
	noted->echo = echo;
	noted->is_there = true;
}

/* Of a TCP packet that is not plain, after segment_measure(). */
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

/* @hint: where the head is, and the direction. False: the segment is not usual. */
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

/* NULL: there is no hint, or another connection is there now. */
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
 * NULL: it is not at that place, and there is no hint. The version is read before the check: if
 * another connection takes the place meanwhile, it is too old.
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

/* NULL: it is nowhere in its bucket. */
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
	if (config_rtt == RTT_RING && head &&
	    show_usual(head, hint, noted, skb, pkt, now))
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

/* The same, with what the flow in L1 knows of its connection, and will know. */
static __always_inline void track_segment(struct run *run, struct __sk_buff *skb)
{
	struct flow_entry *entry = run->known;
	__u64 hint = entry ? entry->hint : 0, found;

	found = track_plain(skb, run->scratch, run->now, hint);
	if (entry && found != hint)
		entry->hint = found;
}

/* The same of an echo: its flags are those of a segment that makes an entry, or makes none. */
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

/* All but its key and its version. */
static __always_inline void connection_clear(const struct connection *conn,
					     __u64 now)
{
	struct conn_head *head = conn->head;
	struct conn_body *body = conn->body;

	head->state[0] = 0;
	head->state[1] = 0;
	head->talker = CONN_NEITHER;
	head->opener = CONN_NEITHER;
	__builtin_memset(head->sides, 0, sizeof(head->sides));
	__builtin_memset(conn->rates, 0, sizeof(*conn->rates));
	__builtin_memset(body->timers, 0,
			 sizeof(*body) - offsetof(struct conn_body, timers));
	/* Only the time distinguishes connections in one place, and the clock has ticks. */
	body->born_ns = now > body->born_ns ? now :
					      body->born_ns + CONN_BORN_STEP_NS;
}

/* That of the entry once it is made; 0 says that there is none. */
static __always_inline __u16 version_after(__u16 version)
{
	version += 2;
	return version ? version : 2;
}

static __always_inline void connection_start(const struct connection *conn,
					     const struct conn_key *key,
					     __u64 check, __u64 now)
{
	struct conn_head *head = conn->head;
	__u16 version = head->version;

	WRITE_ONCE(head->version, version + 1);
	asm volatile("" ::: "memory");
	head->check = check;
	conn_set_key(conn->body, key);
	connection_clear(conn, now);
	asm volatile("" ::: "memory");
	WRITE_ONCE(head->version, version_after(version));
}

/* Returns the way of its entry, or CONN_WAYS. */
static __always_inline __u32 connection_way(struct noted_segment *noted,
					    const struct conn_bucket *bucket)
{
	const struct conn_head *head;
	__u32 way;

	conn_find(bucket, conn_tag(noted->hash), &noted->choice);
	way = READ_ONCE(noted->choice.way);
	if (way >= CONN_WAYS)
		return CONN_WAYS;
	head = head_at((noted->index & -CONN_WAYS) + way);
	return head && head->check == noted->check ? way : CONN_WAYS;
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

/* False: user space sized the arrays wrongly. */
static __always_inline bool connection_at(__u32 index, struct connection *ret_conn)
{
	ret_conn->head = head_at(index);
	ret_conn->rates = bpf_map_lookup_elem(&conn_rates, &index);
	ret_conn->body = bpf_map_lookup_elem(&conn_bodies, &index);
	return ret_conn->head && ret_conn->rates && ret_conn->body;
}

/* This program has the bucket. */
static __always_inline __u32 connection_place(struct scratch *scratch,
					      struct conn_bucket *bucket,
					      struct conn_counters *counters)
{
	struct noted_segment *noted = &scratch->noted;
	__u32 flags = noted->segment.flags, way = connection_way(noted, bucket);
	__u64 now = noted->segment.now;
	struct connection conn;
	struct conn_key key;

	if (way < CONN_WAYS) /* made by another CPU meanwhile */
		return way;
	conn_choose(bucket, conn_home(noted->hash), now, flags & TCP_SYN,
		    config_conn_idle, &noted->choice);
	way = READ_ONCE(noted->choice.way);
	if (way >= CONN_WAYS) {
		counters->refused++;
		return CONN_WAYS;
	}
	way &= CONN_WAYS - 1; /* for the verifier */
	if (!connection_at((noted->index & -CONN_WAYS) + way, &conn))
		return CONN_WAYS;
	count_evicted(counters, bucket, way);
	key = noted_key(&scratch->pkt, noted);
	connection_start(&conn, &key, noted->check, now);
	bucket->ages[way] = conn_age(CONN_HALF_OPEN, now);
	WRITE_ONCE(bucket->tags[way], conn_tag(noted->hash));
	return way;
}

/*
 * Find a connection at another than its first place, or make an entry for it, unless its end is
 * all that we would see. Returns its way, or CONN_WAYS. Of two CPUs that want to change a
 * bucket at the same time one may, or none (see claim() in run.h): then a later packet
 * makes the entry.
 */
static __always_inline __u32 connection_search(struct scratch *scratch,
					       __u32 cpu_id)
{
	__u32 bucket_index = bucket_of(scratch->noted.hash), way;
	bool is_end = scratch->noted.segment.flags & (TCP_FIN | TCP_RST);
	struct conn_bucket *bucket =
		bpf_map_lookup_elem(&conn_buckets, &bucket_index);
	struct conn_counters *counters =
		bpf_map_lookup_elem(&conn_counters, &cpu_id);

	if (!counters || !bucket)
		return CONN_WAYS;
	way = connection_way(&scratch->noted, bucket);
	if (way < CONN_WAYS || is_end)
		return way;
	__sync_fetch_and_add(&bucket->busy, 1);
	if (READ_ONCE(bucket->busy) == 1)
		way = connection_place(scratch, bucket, counters);
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

	VERIFIED_APART(APART_RTT, 1);
	return scratch ? connection_search(scratch, cpu_id) : CONN_WAYS;
}

/* The same tuple with another handshake. */
__noinline int connection_restart(__u32 index, __u64 now)
{
	struct connection conn;
	__u16 version;

	VERIFIED_APART(APART_RTT, 2);
	if (!connection_at(index, &conn))
		return 0;
	version = conn.head->version;
	WRITE_ONCE(conn.head->version, version + 1);
	asm volatile("" ::: "memory");
	connection_clear(&conn, now);
	asm volatile("" ::: "memory");
	WRITE_ONCE(conn.head->version, version_after(version));
	return 0;
}

/* Loopback and hairpins show each segment on its way out and on its way in. */
static __always_inline bool is_seen_elsewhere(struct conn_head *head, __u32 dir,
					      __u16 hook)
{
	__u16 state = head->state[dir];

	if (!(state & (CONN_INGRESS | CONN_EGRESS)))
		head->state[dir] = state | hook;
	else if (!(state & hook))
		return true;
	return false;
}

/* Rules are about TCP. Returns that its age may have changed. */
static __always_inline bool echo_observed(const struct connection *conn,
					  __u32 dir, struct noted_segment *noted)
{
	echo_observe(conn, dir, &noted->segment, noted->echo);
	noted->segment.taken = 0;
	return true;
}

static __always_inline void connection_add(const struct connection *conn,
					   struct noted_segment *noted,
					   __u32 index, __u16 hook)
{
	struct segment *segment = &noted->segment;
	__u32 dir = noted->dir & 1;

	if (conn->head->version & 1)
		return;
	if (!noted->echo && is_another(conn, dir, segment)) {
		if (is_stray(conn, segment))
			return;
		connection_restart(index, segment->now);
	}
	if (is_seen_elsewhere(conn->head, dir, hook))
		return;
	if (noted->echo ? echo_observed(conn, dir, noted) :
			  connection_observe(conn, dir, segment))
		connection_age(conn, index, segment->now);
	if (segment->exact)
		note_timed(noted);
}

__noinline int connection_show(__u32 cpu_id)
{
	struct scratch *scratch = scratch_of(cpu_id);
	struct connection conn;

	VERIFIED_APART(APART_RTT, 1);
	if (scratch && connection_at(scratch->noted.index, &conn))
		connection_add(&conn, &scratch->noted, scratch->noted.index,
			       hook_of(&scratch->pkt));
	return 0;
}

/* What RTT_LRU does besides, with a segment that was shown to its connection. */
__noinline int connection_expect(__u32 cpu_id)
{
	struct scratch *scratch = scratch_of(cpu_id);
	struct connection conn;
	__u32 dir;

	VERIFIED_APART(APART_RTT, 1);
	if (!scratch || !connection_at(scratch->noted.index, &conn))
		return 0;
	dir = scratch->noted.dir & 1;
	if (conn.head->state[dir] & hook_of(&scratch->pkt))
		expected_observe(&conn, scratch->noted.index, dir,
				 &scratch->noted.segment);
	return 0;
}

/* Options where the sender puts timestamps first (RFC 7323, appendix A). */
struct stamps_wire {
	__be32 kind; /* two NOPs, 8, 10 */
	__be32 tsval;
	__be32 tsecr;
};

enum {
	STAMPS_KIND = 0x0101080a,
	STAMPS_OFFSET = 5,
	STAMPS_END = 8 /* words */
};

/* Only few segments need them: see stamps_are_needed(). */
__noinline int connection_stamps(struct __sk_buff *skb, __u32 cpu_id)
{
	struct scratch *scratch = scratch_of(cpu_id);
	const struct stamps_wire *stamps;
	struct segment *segment;
	__u32 words, offset;

	if (!scratch)
		return 0;
	segment = &scratch->noted.segment;
	words = segment->header;
	if (words < STAMPS_END)
		return 0;
	offset = scratch->pkt.header_end - 4 * (words - STAMPS_OFFSET);
	stamps = (void *)(long)skb->data + (offset & CURSOR_MASK);
	if ((void *)(stamps + 1) > (void *)(long)skb->data_end ||
	    stamps->kind != bpf_htonl(STAMPS_KIND))
		return 0;
	segment->tsval = bpf_ntohl(stamps->tsval);
	segment->tsecr = bpf_ntohl(stamps->tsecr);
	segment->has_stamps = true;
	return 0;
}

/* Show the packet to its connection, after note_segment(). */
static __always_inline void track_connection(const struct run *run,
					     struct __sk_buff *skb)
{
	struct noted_segment *noted = &run->scratch->noted;
	const struct conn_head *head = head_at(noted->index);
	__u32 way;

	if (!head)
		return;
	if (head->check != noted->check) {
		way = connection_find(run->cpu_id);
		if (way >= CONN_WAYS)
			return;
		noted->index = (noted->index & -CONN_WAYS) + way;
		head = head_at(noted->index);
		if (!head)
			return;
	}
	if (stamps_are_needed(head, noted->dir & 1, &noted->segment))
		connection_stamps(skb, run->cpu_id);
	connection_show(run->cpu_id);
	if (run->known) /* it may not be at its first place */
		run->known->hint = conn_hint(noted->check,
					     READ_ONCE(head->version),
					     noted->index, noted->dir & 1);
	if (config_rtt == RTT_LRU && !noted->echo)
		connection_expect(run->cpu_id);
}

#endif
