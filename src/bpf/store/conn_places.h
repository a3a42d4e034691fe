/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The slot of a connection in the table, and the choice of a connection to evict. Pure: the same
 * header builds for the host.
 */
#ifndef NETOBS_BPF_STORE_CONN_PLACES_H
#define NETOBS_BPF_STORE_CONN_PLACES_H

#include "bpf/connection.h"
#include "hash.h"

enum { CONN_AGE_MASK = (1 << CONN_AGE_BITS) - 1 };

/* The parts of a key that both directions have in common, as of direction 0. */
struct conn_key {
	const struct ip_addr *low;
	const struct ip_addr *high;
	__u64 ports; /* lane 4 of struct flow_key */
	__u64 rest;  /* lane 5 */
	__u64 vni;   /* lane 6 */
};

static __always_inline struct conn_key conn_key_of(const struct flow_key *key,
						   int dir)
{
	const struct ip_addr *ends = (const struct ip_addr *)key;
	const __u64 *lanes = (const __u64 *)key;
	__u64 ports = lanes[4] >> 32, twice = ports << 32 | ports;
	/* No branches: the direction of the next packet is hard to predict. */
	__u32 low = dir & 1, high = low ^ 1;

	return (struct conn_key){
		.low = ends + low,
		.high = ends + high,
		.ports = (__u32)lanes[4] | twice >> 16 * low << 32,
		.rest = lanes[5] & ~((__u64)(KEY_EGRESS | KEY_AGAIN) << 56 |
				     key_rate_bits(RATES - 1)),
		.vni = (__u32)lanes[6],
	};
}

/*
 * Two hashes of a key, as hash_key(). With the second one, each word is added to the secret
 * of the next pair, as in Toeplitz matrices (UMAC, 2.3), so they are independent of each other.
 */
enum { CONN_PAIRS = HASH_FLOW_WORDS / 2 };

#define CONN_PART(secret, n) ((secret) + 2 * ((n) % CONN_PAIRS))

struct conn_sums {
	__u64 first;
	__u64 second;
};

/* Add part @n of a key to both sums. */
static __always_inline void conn_add(struct conn_sums *sums, __u32 a, __u32 b,
				     const volatile __u32 *secret, __u32 n)
{
	sums->first += hash_words(a, b, CONN_PART(secret, n));
	sums->second += hash_words(a, b, CONN_PART(secret, n + 1));
}

static __always_inline struct conn_sums conn_sums(const struct conn_key *key,
						  const volatile __u32 *secret)
{
	const __u32 *low = key->low->words, *high = key->high->words;
	struct conn_sums sums = { 0, 0 };

	conn_add(&sums, key->ports, key->ports >> 32, secret, 4);
	conn_add(&sums, key->rest, key->rest >> 32, secret, 5);
	if (key->rest >> 60)
		conn_add(&sums, key->vni, 0, secret, 6);
	if (key->rest & (__u64)KEY_IPV6 << 56) {
		conn_add(&sums, low[0], low[1], secret, 0);
		conn_add(&sums, low[2], low[3], secret, 1);
		conn_add(&sums, high[0], high[1], secret, 2);
		conn_add(&sums, high[2], high[3], secret, 3);
	} else {
		conn_add(&sums, low[3], high[3], secret, 0);
	}
	return sums;
}

static __always_inline __u32 conn_tag(__u64 hash)
{
	return (__u32)hash | 1;
}

struct conn_hash {
	__u64 place; /* chooses the bucket, the first slot in it, and the tag */
	/*
	 * Identifies the key: two keys with the same place have the same check with one secret in
	 * 2^62 or so. Never 0.
	 */
	__u64 check;
};

static __always_inline struct conn_hash
conn_hash(const struct conn_key *key, const volatile struct hash_secret *secret)
{
	struct conn_sums sums = conn_sums(key, secret->connection);
	__u64 place = hash_finish(sums.first);

	return (struct conn_hash){
		.place = place,
		.check = hash_finish(sums.second) >> 32 << 32 | conn_tag(place),
	};
}

static __always_inline bool is_connection(const struct conn_body *body,
					  const struct conn_key *key)
{
	const __u64 *lanes = (const __u64 *)&body->key;

	return !((lanes[0] ^ key->low->lanes[0]) |
		 (lanes[1] ^ key->low->lanes[1]) |
		 (lanes[2] ^ key->high->lanes[0]) |
		 (lanes[3] ^ key->high->lanes[1]) | (lanes[4] ^ key->ports) |
		 (lanes[5] ^ key->rest) | (lanes[6] ^ key->vni));
}

static __always_inline void conn_set_key(struct conn_body *body,
					 const struct conn_key *key)
{
	__u64 *lanes = (__u64 *)&body->key;

	body->key.src = *key->low;
	body->key.dst = *key->high;
	lanes[4] = key->ports;
	lanes[5] = key->rest;
	lanes[6] = key->vni;
}

/* @return the first slot of a connection in its bucket: nearly always it is there */
static __always_inline __u32 conn_home(__u64 hash)
{
	return hash >> 1 & (CONN_WAYS - 1);
}

static __always_inline __u16 conn_age(enum conn_class class, __u64 now)
{
	return class << CONN_AGE_BITS | (now >> CONN_AGE_SHIFT & CONN_AGE_MASK);
}

/*
 * The slot of a flow's connection, kept with the flow, so that its packets need no hash of their
 * keys. Besides the index and the direction, it has the version of the entry and a part of the
 * check, so it is void once another connection has the slot. It is made of the flow's own check,
 * since that may happen at any time. Never 0 if the entry has been used.
 */
enum {
	CONN_HINT_INDEX = 24,		      /* bits */
	CONN_HINT_DIR = CONN_HINT_INDEX + 16, /* behind the version */
	CONN_HINT_CHECK,		      /* the rest */
};

static __always_inline __u64 conn_hint(__u64 check, __u16 version, __u32 index,
				       __u32 dir)
{
	return check >> CONN_HINT_CHECK << CONN_HINT_CHECK |
	       (__u64)dir << CONN_HINT_DIR | (__u64)version << CONN_HINT_INDEX |
	       index;
}

static __always_inline __u32 conn_hint_index(__u64 hint)
{
	return hint & ((1 << CONN_HINT_INDEX) - 1);
}

static __always_inline __u32 conn_hint_dir(__u64 hint)
{
	return hint >> CONN_HINT_DIR & 1;
}

/*
 * The choice of a way, and the values it depends on. The verifier does not know the content of this
 * memory, so it walks the code behind the choice once, not once for each value.
 */
struct conn_choice {
	__u32 way; /* CONN_WAYS: no way */
	__u32 weight;
	__u64 ranks; /* of connections, see conn_ranks() */
};

/* Find the way that has the tag. */
static __always_inline void conn_find(const struct conn_bucket *bucket,
				      __u32 tag, volatile struct conn_choice *ret)
{
	ret->way = CONN_WAYS;
	for (__u32 way = 0; way < CONN_WAYS; way++) {
		if (bucket->tags[way] == tag)
			ret->way = way;
	}
}

/* Rank of a connection for eviction, before its idle time. 0: not evicted. 4 bits. */
enum conn_rank {
	CONN_RANK_UNANSWERED = 1,
	CONN_RANK_IDLE,
	CONN_RANK_UNANSWERED_CROWD,
	CONN_RANK_HALF_OPEN,
	CONN_RANK_CLOSED,
	CONN_RANK_HALF_OPEN_CROWD,
	CONN_RANK_LONG_CLOSED,
	CONN_RANK_STALE, /* half-open for longer than handshakes take */
	CONN_RANK_FREE,
	CONN_RANK_FREE_HOME,
};

enum {
	CONN_RANK_BITS = 4,
	CONN_STALE = 2, /* handshakes older than this are stale: units of 2^CONN_AGE_SHIFT ns */
	CONN_CROWD = 2, /* a bucket with so many half-open or unanswered connections is crowded */
};

/* Position of the rank of a state in conn_choice.ranks. */
#define CONN_RANK_AT(class, is_stale, is_idle) \
	(((class) | (is_stale) << 2 | (is_idle) << 3) * CONN_RANK_BITS)

/* The ranks of a class: fresh, stale, idle. */
#define CONN_RANKS_OF(class, fresh, stale, idle)       \
	((__u64)(fresh) << CONN_RANK_AT(class, 0, 0) | \
	 (__u64)(stale) << CONN_RANK_AT(class, 1, 0) | \
	 (__u64)(idle) << CONN_RANK_AT(class, 0, 1) |  \
	 (__u64)(idle) << CONN_RANK_AT(class, 1, 1))

#define CONN_RANKS(half_open, unanswered, unanswered_idle, open_idle)              \
	(CONN_RANKS_OF(CONN_HALF_OPEN, half_open, CONN_RANK_STALE,                 \
		       CONN_RANK_STALE) |                                          \
	 CONN_RANKS_OF(CONN_CLOSED, CONN_RANK_CLOSED, CONN_RANK_CLOSED,            \
		       CONN_RANK_LONG_CLOSED) |                                    \
	 CONN_RANKS_OF(CONN_UNANSWERED, unanswered, unanswered, unanswered_idle) | \
	 CONN_RANKS_OF(CONN_OPEN, 0, 0, open_idle))

/*
 * The ranks of connections for eviction. Of several with the same rank, the one idle for longest is
 * evicted.
 *
 * A flood of SYNs makes half-open entries, even if the SYNs are answered; further SYNs evict these.
 * A packet with SYN never evicts a connection that is open or has sent more than a handshake, and a
 * connection that has ended is not evicted before its counters were reported. If the flood evicts a
 * real handshake, the next packet of that connection, which has no SYN, makes an entry that the
 * flood cannot evict.
 */
static __always_inline __u64 conn_ranks(bool has_syn, bool is_crowded)
{
	if (is_crowded)
		return has_syn ? CONN_RANKS(CONN_RANK_HALF_OPEN_CROWD, 0,
					    CONN_RANK_UNANSWERED_CROWD, 0) :
				 CONN_RANKS(CONN_RANK_HALF_OPEN_CROWD,
					    CONN_RANK_UNANSWERED_CROWD,
					    CONN_RANK_UNANSWERED_CROWD,
					    CONN_RANK_IDLE);
	return has_syn ? CONN_RANKS(CONN_RANK_HALF_OPEN, 0,
				    CONN_RANK_UNANSWERED, 0) :
			 CONN_RANKS(CONN_RANK_HALF_OPEN, CONN_RANK_UNANSWERED,
				    CONN_RANK_UNANSWERED, CONN_RANK_IDLE);
}

/*
 * The code below has no branches that depend on an entry, since the verifier would follow all
 * combinations of eight of them.
 */

/* @return 1: @value >= @least, else 0. Both are below 2^31. */
static __always_inline __u32 conn_reaches(__u32 value, __u32 least)
{
	return (least - 1 - value) >> 31;
}

/*
 * @return whether a full bucket has so many half-open or unanswered connections that it may be a
 * flood
 */
static __always_inline bool conn_is_crowded(const struct conn_bucket *bucket)
{
	__u32 n = 0;

	for (__u32 way = 0; way < CONN_WAYS; way++) {
		__u32 class = bucket->ages[way] >> CONN_AGE_BITS;

		/* both bits of these classes are equal */
		n += ~(class ^ class >> 1) & 1;
	}
	return n >= CONN_CROWD;
}

_Static_assert(CONN_HALF_OPEN == 0 && CONN_UNANSWERED == 3, "conn_is_crowded()");

/* @return the weight of a way for eviction; below 2^CONN_AGE_BITS: not evicted */
static __always_inline __u32 conn_weight(const struct conn_bucket *bucket,
					 __u32 way, __u32 home, __u64 now,
					 __u32 idle, __u64 ranks)
{
	__u32 age = bucket->ages[way], is_used = bucket->tags[way] & 1;
	__u32 is_home = ((way ^ home) - 1) >> 31;
	/* Plus 1: the clock of the CPU that saw it may be ahead. */
	__u32 since = ((now >> CONN_AGE_SHIFT) + 1 - age) & CONN_AGE_MASK;
	__u32 at = CONN_RANK_AT(age >> CONN_AGE_BITS,
				conn_reaches(since, CONN_STALE + 1),
				conn_reaches(since, idle + 1));
	__u32 used = (ranks >> at & ((1 << CONN_RANK_BITS) - 1))
			     << CONN_AGE_BITS |
		     since;
	__u32 unused = (CONN_RANK_FREE + is_home) << CONN_AGE_BITS;

	return (used & -is_used) | (unused & (is_used - 1));
}

/* Choose the way for a new connection. */
static __always_inline void conn_choose(const struct conn_bucket *bucket,
					__u32 home, __u64 now, bool has_syn,
					__u32 idle,
					volatile struct conn_choice *ret)
{
	ret->way = CONN_WAYS;
	ret->weight = CONN_AGE_MASK;
	ret->ranks = conn_ranks(has_syn, conn_is_crowded(bucket));
	for (__u32 way = 0; way < CONN_WAYS; way++) {
		__u32 weight =
			conn_weight(bucket, way, home, now, idle, ret->ranks);

		if (weight > ret->weight) {
			ret->weight = weight;
			ret->way = way;
		}
	}
}

#endif
