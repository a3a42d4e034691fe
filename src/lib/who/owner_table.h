/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * Sockets by their addresses, and the processes that they belong to: open sockets, and for a while
 * those that were closed. Several may have had the same addresses and ports, one after the other or at
 * the same time, so a socket is found by the time of its packets, too.
 *
 * A round is a list of all open sockets: a socket that was not seen since the round began has ended.
 */
#ifndef NETOBS_WHO_OWNER_TABLE_H
#define NETOBS_WHO_OWNER_TABLE_H

#include "bpf/session.h"

#include <stdbool.h>
#include <stdint.h>

/* Remote and remote_port of unconnected sockets are 0. The struct has no padding. */
struct owner_key {
	uint8_t local[16]; /* IPv4 as ::ffff:a.b.c.d */
	uint8_t remote[16];
	uint16_t local_port;
	uint16_t remote_port;
	uint32_t netns; /* inode */
	uint32_t protocol;
	uint32_t reserved;
};

struct owner_entry {
	struct owner_entry *next;
	struct owner_key key;
	uint64_t cookie; /* of the socket */
	int64_t from_ns; /* as the programs stamp; 0: unknown */
	int64_t to_ns;	 /* INT64_MAX: it is open */
	int64_t seen_ns; /* the last time at which it is known to have been open, or to have ended */
	struct session_owner owner; /* of a crowd: the owner common to all its sockets, or none */
	bool is_crowd;
};

typedef void owner_visit_fn(const struct owner_entry *entry, void *user);

enum { OWNER_KEY_WORDS = sizeof(struct owner_key) / sizeof(uint32_t) };

/* Buckets grow one by one: of @level, a power of two, those below n_buckets - level are split. */
struct owner_table {
	struct owner_entry **buckets;
	struct owner_entry *unused; /* a list */
	struct owner_slab *slabs;
	uint32_t n_buckets, level;
	uint32_t count, max;
	uint64_t refused; /* sockets that found no room */
	int64_t begun_ns; /* when the round began */
	int64_t since_ns; /* sockets that ended before are not known; 0: all are */
	uint32_t secret[OWNER_KEY_WORDS];
};

/** @return 0; -ENOMEM; -errno: no random numbers */
int owner_table_init(struct owner_table *table, uint32_t max);
void owner_table_done(struct owner_table *table);

/** Add or update the socket that @event, of which SESSION_OWNED_SIZE bytes matter, is about. */
void owner_table_note(struct owner_table *table,
		      const struct session_event *event);

/** A round begins; @now_ns has the clock of the programs. */
void owner_table_begin_round(struct owner_table *table, int64_t now_ns);

/**
 * The list is complete: process a slice of the table. Sockets that were not seen since
 * owner_table_begin_round() have ended, at @now_ns at the latest; those that ended before
 * @before_ns are removed.
 *
 * @param cursor  0 to begin with
 * @param visit   called with @user for each socket that stays; or NULL
 * @return false: the table has been processed
 */
bool owner_table_sweep(struct owner_table *table, uint32_t *cursor,
		       int64_t now_ns, int64_t before_ns, owner_visit_fn *visit,
		       void *user);

enum owner_found {
	OWNER_NONE,    /* no socket */
	OWNER_UNKNOWN, /* a socket whose process is not known */
	OWNER_FOUND,
	OWNER_SEVERAL, /* sockets of several processes had these addresses then, or may have */
};

/**
 * Find the socket of packets that came from @first_ns to @last_ns: the one that was open then, or,
 * for TCP, else the last one before.
 */
enum owner_found owner_table_find(const struct owner_table *table,
				  const struct owner_key *key, int64_t first_ns,
				  int64_t last_ns,
				  const struct owner_entry **ret_entry);

/** @return whether it is certain that the socket was open from @first_ns to @last_ns */
bool owner_was_open_throughout(const struct owner_entry *entry,
			       int64_t first_ns, int64_t last_ns);

#endif
