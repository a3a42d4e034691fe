/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * Groups without a series that may be among the heaviest. A candidate never has more bytes than its
 * group had, so chosen groups are heavy; a group that had more bytes than all others of its bucket
 * together is always a candidate. This table only chooses: sums are elsewhere.
 */
#ifndef NETOBS_GROUP_CANDIDATES_H
#define NETOBS_GROUP_CANDIDATES_H

#include <stddef.h>
#include <stdint.h>

struct candidate {
	uint64_t hash;
	uint64_t bytes; /* 0: it is free */
	uint8_t value[];
};

struct candidates {
	size_t key_size, value_size; /* as in struct group_keys */
	size_t n;		     /* a power of two */
	uint8_t *all;
};

/** @return 0 or -ENOMEM */
int candidates_init(struct candidates *candidates, size_t key_size,
		    size_t value_size, size_t at_least);

void candidates_add(struct candidates *candidates, uint64_t hash,
		    const uint8_t *value, uint64_t bytes);

struct candidate *candidates_at(const struct candidates *candidates, size_t i);

/** Subtract one of @part parts from the bytes of all candidates. */
void candidates_decay(struct candidates *candidates, uint64_t part);
void candidates_free(struct candidates *candidates);

#endif
