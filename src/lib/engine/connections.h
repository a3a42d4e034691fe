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
#include "program_set.h"

#include <stdbool.h>

/*
 * The bodies of connections (bpf/connection.h) and their alert states, allocated in parts. There is
 * one part at first; others are added as connections take bodies. The body numbers of a part are
 * offered to the programs once they see its maps and user space has mapped it.
 *
 * Steps: make the maps, put them into the programs' maps of maps in a thread, map them, offer the
 * body numbers. conn_parts_grow() does the steps that need no waiting, and the next call continues,
 * also after a failure. It is called when the programs give notice, a millisecond after a call that
 * left steps, and after each drain: a lost notice delays growth until the next drain at most.
 */

/* The maps of a part. */
struct conn_part {
	int bodies; /* map of bodies; -1: no part */
	int states; /* map of alert states; -1: no part, or no rules */
};

#define CONN_PART_NONE ((struct conn_part){ -1, -1 })

/* All zeroes: connections are not measured. */
struct conn_parts {
	const struct conn_body **bodies; /* by part, each mapped */
	uint32_t bits;			 /* log2 of the bodies per part */
	uint32_t n; /* parts that the programs see and this process has mapped */
	uint32_t n_max;
	int bodies_fd; /* descriptors of the set's maps, these three */
	int states_fd; /* -1: there are no rules */
	int free_fd;
	struct conn_part next; /* the part that is being added */
	struct map_grace *showing; /* thread that puts a map of it into a map of maps; NULL: none runs */
	int showing_in; /* descriptor of that map of maps */
	uint32_t n_new; /* body numbers that were offered a first time: 1 to this one */
	uint32_t n_offered; /* all offers, also of bodies that were used before */
};

/**
 * @param places   a power of two
 * @param at_once  make one part for all places
 * @return conn_parts.bits
 */
uint32_t conn_parts_bits(uint32_t places, bool at_once);

/** @return 0, or -errno */
int conn_part_make(uint32_t bits, bool has_states, struct conn_part *ret_part);

void conn_part_close(struct conn_part *part);

/**
 * Open the parts of a table, and add the first one.
 *
 * @param maps    loaded, with inner maps like those of @first
 * @param first   the first part; taken over, and set to CONN_PART_NONE
 * @param places  of the table
 * @return 0, or -errno
 */
int conn_parts_open(struct conn_parts *parts, const struct program_set *maps,
		    struct conn_part *first, uint32_t bits, uint32_t places);

void conn_parts_close(struct conn_parts *parts);

/**
 * Add a part if few bodies are free. It does not wait, so adding a part takes two or three calls.
 *
 * @param used  bodies in use
 * @return 0: enough are free; -EAGAIN: call again in a millisecond; other -errno: the next call
 *         tries again
 */
int conn_parts_grow(struct conn_parts *parts, uint64_t used);

/** @return bodies of all parts that the programs have */
static inline uint64_t conn_parts_count(const struct conn_parts *parts)
{
	return (uint64_t)parts->n << parts->bits;
}

/* Offer the number of an unused body to the programs. @return 0, or -errno */
int conn_parts_offer(struct conn_parts *parts, uint32_t body);

/** @return memory in bytes: of the parts that exist; of all parts that may be added */
uint64_t conn_parts_bytes(const struct conn_parts *parts);
uint64_t conn_parts_bytes_most(const struct conn_parts *parts);

/** @return the body of number @body, from 1 on; NULL: no part has that number */
static inline const struct conn_body *
conn_parts_body(const struct conn_parts *parts, uint32_t body)
{
	const uint32_t number = body - 1, part = number >> parts->bits;

	return body && part < parts->n ?
		       &parts->bodies[part][number & ((1U << parts->bits) - 1)] :
		       NULL;
}

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
