/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Finds or makes the entry of the connection that a segment or echo belongs to, and updates it with
 * the noted segment. See connection.h.
 */
#ifndef NETOBS_BPF_TRACK_CONNECTIONS_H
#define NETOBS_BPF_TRACK_CONNECTIONS_H

#include "segments.h"
#include "bpf/apart.h"
#include "bpf/rtt/leave.h"
#include "bpf/store/leavings.h"

/* Clear an entry except its key and its version. */
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
	__builtin_memset(conn->rates->sides, 0, sizeof(conn->rates->sides));
	__builtin_memset(body->timers, 0,
			 sizeof(*body) - offsetof(struct conn_body, timers));
	/* born_ns distinguishes connections in one slot, but the clock has ticks. */
	body->born_ns = now > body->born_ns ? now :
					      body->born_ns + CONN_BORN_STEP_NS;
}

/* The version of an entry after it was made; 0 means no entry. */
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

/* @return the way of the segment's connection in its bucket, or CONN_WAYS */
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

/* Find the structs of a slot. False: it has no body, or user space sized the arrays wrongly. */
static __always_inline bool connection_at(__u32 index, struct connection *ret_conn)
{
	ret_conn->head = head_at(index);
	ret_conn->rates = bpf_map_lookup_elem(&conn_rates, &index);
	if (!ret_conn->head || !ret_conn->rates)
		return false;
	ret_conn->body = body_of(ret_conn->rates);
	return ret_conn->body;
}

/* Find a new connection's structs, after giving its slot a body. False: there is no free body. */
static __always_inline bool connection_make(__u32 index,
					    struct connection *ret_conn)
{
	struct conn_rates *rates = bpf_map_lookup_elem(&conn_rates, &index);

	return rates && body_take(rates) && connection_at(index, ret_conn);
}

/* Find or make an entry in a bucket that this program has claimed. @return its way, or CONN_WAYS */
static __always_inline __u32 connection_place(struct scratch *scratch,
					      struct conn_bucket *bucket,
					      struct conn_counters *counters)
{
	struct noted_segment *noted = &scratch->noted;
	__u32 flags = noted->segment.flags, way = connection_way(noted, bucket);
	__u64 now = noted->segment.now;
	struct connection conn;
	struct conn_key key;

	if (way < CONN_WAYS) /* another CPU has made it meanwhile */
		return way;
	conn_choose(bucket, conn_home(noted->hash), now, flags & TCP_SYN,
		    config_conn_idle, &noted->choice);
	way = READ_ONCE(noted->choice.way);
	if (way >= CONN_WAYS ||
	    !connection_make((noted->index & -CONN_WAYS) + way, &conn)) {
		counters->refused++;
		return CONN_WAYS;
	}
	way &= CONN_WAYS - 1; /* for the verifier */
	count_evicted(counters, bucket, way);
	key = noted_key(&scratch->pkt, noted);
	connection_start(&conn, &key, noted->check, now);
	bucket->ages[way] = conn_age(CONN_HALF_OPEN, now);
	WRITE_ONCE(bucket->tags[way], conn_tag(noted->hash));
	return way;
}

/*
 * Find a connection that is not in its first slot, or make an entry for it, unless the packet ends
 * it. @return its way, or CONN_WAYS. If two CPUs want to change a bucket at the same time, one of
 * them may, or none (see claim() in run.h): then a later packet makes the entry.
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
	struct scratch *scratch;

	if (!cpu)
		return NULL;
	scratch = (struct scratch *)cpu->scratch;
	/* The verifier allows no sum with what may be NULL: it is made here, and not before the branch. */
	barrier_var(scratch);
	return scratch;
}

__noinline int connection_find(__u32 cpu_id)
{
	struct scratch *scratch = scratch_of(cpu_id);

	VERIFIED_APART(APART_RTT, 1);
	return scratch ? connection_search(scratch, cpu_id) : CONN_WAYS;
}

/* A new handshake with the tuple of a known connection: clear its entry. */
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
static __always_inline bool is_seen_elsewhere(const struct conn_head *head,
					      __u32 dir, __u16 hook)
{
	__u16 state = head->state[dir];

	return state & (CONN_INGRESS | CONN_EGRESS) && !(state & hook);
}

/* Update a connection of echoes, which has no rules. @return whether its age may have changed */
static __always_inline bool echo_observed(const struct connection *conn,
					  __u32 dir, struct noted_segment *noted)
{
	echo_observe(conn, dir, &noted->segment, noted->echo);
	noted->segment.taken = 0;
	return true;
}

/* @return bytes of the segment's data that are old */
static __always_inline __u32 connection_add(const struct connection *conn,
					    struct noted_segment *noted,
					    __u32 index, __u16 hook)
{
	struct segment *segment = &noted->segment;
	__u32 dir = noted->dir & 1, old = 0;

	if (conn->head->version & 1)
		return 0;
	if (is_seen_elsewhere(conn->head, dir, hook))
		return 0;
	conn->head->state[dir] |= hook;
	if (!config_has_queues && config_clock == CLOCK_HOST &&
	    hook == CONN_EGRESS)
		conn->head->state[dir] |= CONN_QUEUED;
	if (noted->echo ? echo_observed(conn, dir, noted) :
			  connection_follow(conn, dir, segment, &old))
		connection_age(conn, index, segment->now);
	if (segment->exact)
		note_timed(noted);
	return old;
}

/* @return enum verdict */
__noinline int connection_judge(__u32 cpu_id)
{
	struct scratch *scratch = scratch_of(cpu_id);
	struct connection conn;
	enum verdict verdict;
	__u32 dir;

	VERIFIED_APART(APART_RTT, 1);
	if (!scratch || !connection_at(scratch->noted.index, &conn) ||
	    conn.head->version & 1)
		return SEGMENT_REFUSED;
	dir = scratch->noted.dir & 1;
	verdict = segment_judge(&conn, dir, &scratch->noted.segment);
	if (verdict == SEGMENT_REFUSED &&
	    !is_seen_elsewhere(conn.head, dir, hook_of(&scratch->pkt)))
		refuse(&conn, dir, &scratch->noted.segment);
	return verdict;
}

/* @return how many sequence numbers connection_count_old() must count */
__noinline int connection_show(__u32 cpu_id)
{
	struct scratch *scratch = scratch_of(cpu_id);
	struct connection conn;

	VERIFIED_APART(APART_RTT, 1);
	if (!scratch || !connection_at(scratch->noted.index, &conn))
		return 0;
	return connection_add(&conn, &scratch->noted, scratch->noted.index,
			      hook_of(&scratch->pkt));
}

__noinline int connection_forget(__u32 place, __u32 seq, __u32 ack)
{
	const struct leaving note = { .seq = seq, .ack = ack, .place = place };
	struct connection conn;

	VERIFIED_APART(APART_RTT, 3);
	if (connection_at(place >> LEAVING_INDEX_SHIFT, &conn) &&
	    !(conn.head->version & 1))
		leaving_forget(&conn, &note);
	return 0;
}

static __always_inline void leaving_note(const struct leaving *note)
{
	struct leaving_bucket *bucket = leavings_of(note->seq, note->ack);
	struct leaving old;

	if (bucket && leaving_put(bucket, note, &old))
		connection_forget(old.place, old.seq, old.ack);
}

/* Note a segment that was timed, and the last one that a queueing discipline may cut from its buffer. */
__noinline int connection_leaves(__u32 cpu_id)
{
	struct scratch *scratch = scratch_of(cpu_id);
	const struct noted_segment *noted;
	const struct segment *segment;
	struct leaving note;

	VERIFIED_APART(APART_RTT, 1);
	if (!scratch)
		return 0;
	noted = &scratch->noted;
	segment = &noted->segment;
	note.seq = segment->seq;
	note.ack = noted->echo ? scratch->pkt.key.dst.words[3] : segment->ack;
	note.place = leaving_place(noted->index, noted->dir, segment->leaves);
	note.netns = config_netns;
	note.tick = segment->tick;
	leaving_note(&note);
	if (noted->echo || !segment->mss || segment->mss >= segment->len)
		return 0;
	note.seq += (segment->len - 1) / segment->mss * segment->mss;
	note.place &= ~(__u32)LEAVES_TIMER;
	if (note.place & (LEAVES_STAMP | LEAVES_TURN))
		leaving_note(&note);
	return 0;
}

__noinline int connection_count_old(__u32 cpu_id, __u32 old)
{
	struct scratch *scratch = scratch_of(cpu_id);
	struct connection conn;

	VERIFIED_APART(APART_RTT, 2);
	if (scratch && connection_at(scratch->noted.index, &conn))
		data_count_old(&conn, scratch->noted.dir & 1,
			       &scratch->noted.segment, old);
	return 0;
}

enum { SCALE_OPTIONS = 16 }; /* of a SYN, NOPs counted */

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

/* Read the scale of windows from the options of a SYN. It stays unknown behind too many of them. */
__noinline int connection_scale(struct __sk_buff *skb, __u32 cpu_id)
{
	enum { END = 0, NOP = 1, SCALE = 3, SIZE = 3, WORDS = 5 };
	struct scratch *scratch = scratch_of(cpu_id);
	__u32 at, end, shift;

	if (!scratch)
		return 0;
	end = scratch->pkt.header_end & CURSOR_MASK;
	at = end - 4 * (scratch->noted.segment.header - WORDS);
	for (int i = 0; i < SCALE_OPTIONS; i++) {
		const __u8 *option = (void *)(long)skb->data + (at & CURSOR_MASK);

		if (at + SIZE > end) {
			scratch->noted.segment.scale = SCALE_NONE;
			return 0;
		}
		if ((void *)(option + SIZE) > (void *)(long)skb->data_end)
			return 0;
		if (option[0] == SCALE) {
			shift = option[2];
			scratch->noted.segment.scale =
				SCALE_0 +
				(shift < SCALE_BITS_MAX ? shift : SCALE_BITS_MAX);
			return 0;
		}
		if (option[0] == END)
			at = end;
		else
			at += option[0] == NOP ? 1 : option[1];
	}
	return 0;
}

/* Show the packet to its connection, after note_segment(). */
static __always_inline void track_connection(const struct run *run,
					     struct __sk_buff *skb)
{
	struct noted_segment *noted = &run->scratch->noted;
	const struct conn_head *head = head_at(noted->index);
	__u32 way, old;

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
	if (noted->segment.flags & TCP_SYN && !noted->echo)
		connection_scale(skb, run->cpu_id);
	if (!noted->echo && !is_in_order(head, noted->dir & 1, &noted->segment)) {
		int verdict = connection_judge(run->cpu_id);

		if (verdict == SEGMENT_REFUSED)
			return;
		if (verdict == SEGMENT_ANOTHER)
			connection_restart(noted->index, noted->segment.now);
	}
	old = connection_show(run->cpu_id);
	if (config_has_queues && noted->segment.leaves)
		connection_leaves(run->cpu_id);
	if (old)
		connection_count_old(run->cpu_id, old);
	if (run->known) /* the connection may not be in its first slot */
		run->known->hint = conn_hint(noted->check,
					     READ_ONCE(head->version),
					     noted->index, noted->dir & 1);
}

#endif
