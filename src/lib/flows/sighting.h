/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* Finds the key that an entry has in common with all points of its flow, and its sight. */
#ifndef NETOBS_FLOWS_SIGHTING_H
#define NETOBS_FLOWS_SIGHTING_H

#include "flow_table.h"
#include "host/netif.h"

struct host;

/* Data of a point's entry, apart from its counts. */
struct sighting {
	struct flow_key key; /* that all points of the flow have in common */
	uint64_t hash;	     /* flow_table_hash() of that */
	enum sight sight;
	bool is_random;	 /* its packets are sampled, at each point anew */
	bool is_counted; /* its packets count at another point, and not here */
};

void sighting_read(const struct flow_entry *entry, const struct host *host,
		   bool is_random, struct sighting *ret_sighting);

/* Find only the key, without the sight. */
void sighting_key(const struct flow_key *key, const struct host *host,
		  struct flow_key *ret_key);

/*
 * @return whether a sight may count by itself. Further sights of packets that each point samples
 * anew do not: the first sight may have been sampled, too, or may not have been.
 */
bool sighting_counts(bool is_random, enum sight sight);

/* Sights which prove that the packets were seen before, wherever that was. 1 << enum sight. */
enum { SIGHTS_FURTHER = 1 << SIGHT_AGAIN | 1 << SIGHT_FORWARDED };

/* @return whether all @sights are among SIGHTS_FURTHER */
bool sights_are_further(uint8_t sights);

/*
 * @return whether no sight of an entry proves anything: of random samples only first sights
 * count, but a filter may reject a packet there and accept it at a later point. Then the flow
 * decides.
 */
bool sighting_proves_none(const struct host *host, bool is_random);

#endif
