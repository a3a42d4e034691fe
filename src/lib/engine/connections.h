/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * The table of TCP connections that the flow programs keep (bpf/connection.h), mapped, and
 * read while they write to it.
 */
#ifndef NETOBS_ENGINE_CONNECTIONS_H
#define NETOBS_ENGINE_CONNECTIONS_H

#include "bpf/alert.h"
#include "bpf/connection.h"
#include "bpf/store/hash.h"
#include "conn_parts.h"
#include "program_set.h"

#include <stdbool.h>

/* An entry that a sweep has evicted: see connections_sweep(). */
struct conn_gone {
	uint32_t place;
	uint32_t body; /* 0: it was offered to the programs already */
	enum conn_class class;
};

struct conn_sweep {
	struct conn_gone *gone; /* entries of the last sweep; NULL: no sweep yet */
	uint32_t n;
	uint32_t bucket; /* where the next sweep begins */
	struct conn_counters swept;
};

/* All zeroes: connections are not measured. */
struct connections {
	struct conn_bucket *buckets;
	struct conn_head *heads;  /* CONN_WAYS for each bucket */
	struct conn_rates *rates; /* CONN_WAYS for each bucket */
	struct conn_parts parts;  /* bodies */
	struct conn_sweep sweep;
	const struct conn_counters *counters;
	uint32_t n_buckets;
	uint32_t n_cpus; /* CPUs that have counters */
	struct hash_secret secret;
};

/**
 * Map the table, and give the programs a first part of the bodies.
 *
 * @param maps       loaded with a table of @n_buckets; its counters are of @n_cpus
 * @param first      the first part, which the inner maps of @maps are like; taken over
 * @param part_bits  of conn_parts_bits()
 * @return 0, or -errno
 */
int connections_open(struct connections *table, const struct program_set *maps,
		     uint32_t n_buckets, uint32_t n_cpus,
		     const struct hash_secret *secret, struct conn_part *first,
		     uint32_t part_bits);

void connections_close(struct connections *table);

/** @return kernel memory of a table of @n_buckets, in bytes, without bodies and counters */
static inline uint64_t connections_places_bytes(uint32_t n_buckets)
{
	const uint64_t place = sizeof(struct conn_head) +
			       sizeof(struct conn_rates) +
			       sizeof(uint32_t); /* in conn_free */

	return n_buckets * (sizeof(struct conn_bucket) + CONN_WAYS * place);
}

/**
 * @param has_alerts  include the alert states
 * @return bytes of a table of @n_buckets at most, when all its slots are used
 */
static inline uint64_t connections_bytes_most(uint32_t n_buckets, bool has_alerts)
{
	const uint64_t body = sizeof(struct conn_body) +
			      (has_alerts ? sizeof(struct alert_state) : 0);

	return connections_places_bytes(n_buckets) + n_buckets * CONN_WAYS * body;
}

/** @return kernel memory that the table takes now, in bytes */
static inline uint64_t connections_bytes(const struct connections *table)
{
	return connections_places_bytes(table->n_buckets) +
	       conn_parts_bytes(&table->parts);
}

/**
 * Add bodies if few are free: when the programs give notice, and after drains.
 *
 * @return as conn_parts_grow()
 */
int connections_grow(struct connections *table);

/** @return the number of slots; 0: there is no table */
static inline uint32_t connections_size(const struct connections *table)
{
	return table->n_buckets * CONN_WAYS;
}

struct conn_copy {
	struct conn_head head;
	struct conn_rates rates;
	struct conn_body body;
};

/** @return @copy as an entry, valid as long as @copy */
static inline struct connection conn_of(struct conn_copy *copy)
{
	return (struct connection){ &copy->head, &copy->rates, &copy->body };
}

/**
 * Copy an entry.
 *
 * @return false: the slot is empty, or its connection changed while it was copied
 */
bool connections_read(const struct connections *table, uint32_t index,
		      struct conn_copy *ret_copy);

/**
 * Find a connection by the key of one of its packets or flows at an interface, and copy its entry.
 *
 * @param ret_dir  the direction of that packet
 * @return its index; -ENOENT: there is none
 */
int connections_find(const struct connections *table, const struct flow_key *key,
		     struct conn_copy *ret_copy, int *ret_dir);

/* @return the sums over all CPUs; swept entries count as evicted */
struct conn_counters connections_count(const struct connections *table);

/**
 * Programs count while the counters are read: `created` may lack a connection that counts as evicted.
 *
 * @return the number of slots in use: ended connections have theirs until they are evicted
 */
static inline uint64_t connections_used(const struct conn_counters *counters)
{
	const uint64_t gone = counters->evicted_half_open +
			      counters->evicted_closed + counters->evicted_idle;

	return counters->created > gone ? counters->created - gone : 0;
}

/* @duration: of an entry, in its units. @return ns */
static inline uint64_t connection_ns(uint64_t duration)
{
	return duration << CONN_LATENCY_SHIFT;
}

/*
 * Frees the bodies of connections that have ended, or never opened, for other connections.
 *
 * A program may have found an entry just before it is evicted. So one sweep removes the entry from
 * its slot, where programs cannot find it any more, and the next sweep offers its body: by then,
 * all programs that may use the body have ended.
 */

/**
 * Sweep, if more than a quarter of the bodies is in use and there could be more of them. The caller
 * guarantees that each program that runs during a call has ended before the next call. Takes a few
 * milliseconds at most.
 *
 * @param now_ns    by the programs' clock
 * @param after_ns  how long the values of a connection are needed after its last packet
 */
void connections_sweep(struct connections *table, uint64_t now_ns,
		       uint64_t after_ns);

#endif
