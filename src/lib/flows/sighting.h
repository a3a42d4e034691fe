/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* What the entry of a point says of its flow: the key that all points have in common, and the sight. */
#ifndef NETOBS_FLOWS_SIGHTING_H
#define NETOBS_FLOWS_SIGHTING_H

#include "flow_table.h"
#include "host/netif.h"

struct host;

/* What a point's entry says, apart from its counts. */
struct sighting {
	struct flow_key key; /* that all points of the flow have in common */
	uint64_t hash;	     /* flow_table_hash() of that */
	enum sight sight;
	bool is_random;	 /* its packets are sampled, at each point anew */
	bool is_counted; /* at other points, as flows that are not known */
};

void sighting_read(const struct flow_entry *entry, const struct host *host,
		   bool is_random, struct sighting *ret_sighting);

/* Its key alone. */
void sighting_key(const struct flow_key *key, const struct host *host,
		  struct flow_key *ret_key);

/*
 * Whether a sight may count by itself. Of packets that are sampled at each point anew,
 * further ones do not: the first may have been sampled, too, or may not have been.
 */
bool sighting_counts(bool is_random, enum sight sight);

/* These prove that the packets were seen before, wherever that was. 1 << enum sight. */
enum { SIGHTS_FURTHER = 1 << SIGHT_AGAIN | 1 << SIGHT_FORWARDED };

/* Whether all @sights are such. */
bool sights_are_further(uint8_t sights);

/*
 * Of random samples only first sights count, but a filter may reject a packet there and accept
 * it at a later point. So no entry proves a sight: the flow decides between all.
 */
bool sighting_proves_none(const struct host *host, bool is_random);

#endif
