/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * Most entries in half of the memory and in one line of the cache: those over IPv4 outside
 * tunnels, with one VLAN tag at most, of less than 4 GiB. A short entry loses nothing; an entry without a
 * short form is refused.
 */
#ifndef NETOBS_FLOWS_SHORT_ENTRY_H
#define NETOBS_FLOWS_SHORT_ENTRY_H

#include "bpf/store/log.h"
#include "bpf/store/tally.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

struct short_entry {
	union {
		uint64_t words[8];
		struct {
			uint32_t src; /* IPv4, as in the header */
			uint32_t dst;
			uint64_t key_ports; /* word 4 of struct flow_key */
			uint16_t vlan;
			uint16_t netns;
			uint8_t proto;
			uint8_t key_flags;
			uint8_t ttl_min;
			uint8_t ttl_max;

			uint64_t first_ns;
			uint64_t duration_ns : 40; /* 18 minutes */
			uint64_t link_bytes : 24;  /* l2_bytes - bytes */
			uint32_t packets;
			uint32_t bytes;
			uint32_t marks : 20;
			uint32_t dscp : 6;
			uint32_t has_mac : 1;
			uint32_t has_link : 1; /* else l2_bytes is 0 */
			uint32_t reserved : 4;
			uint8_t macs[12];
		};
	};
};

_Static_assert(sizeof(struct short_entry) == CACHE_LINE, "one cache line");
_Static_assert(sizeof(struct flow_attrs) == 12,
	       "what is new is said here, or does not fit");

/* ---- Keys --------------------------------------------------------------------- */

/* The first words of an entry, without the TTLs. */
struct short_key {
	uint64_t words[3];
};

/* Words of struct flow_key. */
enum { SHORT_WORD_PORTS = 4, SHORT_WORD_REST = 5, SHORT_WORD_VNI = 6 };

/* Precedes an IPv4 address, see struct ip_addr. */
#define SHORT_MAPPED 0xffff0000

/* @ports, @rest: words of a flow's key. False: it has no short form. */
static inline bool short_key_join(uint32_t src, uint32_t dst, uint64_t ports,
				  uint64_t rest, struct short_key *ret_short)
{
	const uint64_t outer_vlan = 0xffff0000;
	const uint64_t tunnel = 0xf000000000000000;

	if (rest & (outer_vlan | tunnel))
		return false;
	*ret_short = (struct short_key){ {
		src | (uint64_t)dst << 32,
		ports,
		(rest & 0xffff) | rest >> 32 << 16,
	} };
	return true;
}

static inline bool short_key_make(const struct flow_key *key,
				  struct short_key *ret_short)
{
	const uint64_t *words = (const uint64_t *)key;

	return !(key->src.lanes[0] | key->dst.lanes[0] | words[SHORT_WORD_VNI]) &&
	       key->src.words[2] == SHORT_MAPPED &&
	       key->dst.words[2] == SHORT_MAPPED &&
	       short_key_join(key->src.words[3], key->dst.words[3],
			      words[SHORT_WORD_PORTS], words[SHORT_WORD_REST],
			      ret_short);
}

/* Make the short key of a record of one slot. */
static inline bool short_key_of_slot(const struct log_slot *slot,
				     struct short_key *ret_short)
{
	return short_key_join(slot->src, slot->dst, slot->key_ports,
			      slot->key_rest & ~LOG_FLAGS, ret_short);
}

static inline bool short_keys_are_equal(const struct short_key *a,
					const struct short_key *b)
{
	return !((a->words[0] ^ b->words[0]) | (a->words[1] ^ b->words[1]) |
		 (a->words[2] ^ b->words[2]));
}

/** @return whether it is the entry of @key */
static inline bool short_entry_has(const struct short_entry *entry,
				   const struct short_key *key)
{
	const uint64_t without_ttl = -1ULL >> 16;

	return !((entry->words[0] ^ key->words[0]) |
		 (entry->words[1] ^ key->words[1]) |
		 ((entry->words[2] ^ key->words[2]) & without_ttl));
}

/* ---- Tallies ------------------------------------------------------------------ */

static inline bool short_tally_fits(const struct flow_tally *tally)
{
	uint64_t link = tally->l2_bytes - tally->bytes;

	return !((tally->packets | tally->bytes) >> 32 |
		 (tally->last_ns - tally->first_ns) >> 40 |
		 tally->attrs.marks >> 20 | tally->attrs.dscp >> 6 |
		 tally->attrs.has_mac >> 1 | tally->attrs.flow_label) &&
	       (!tally->l2_bytes || !(link >> 24));
}

/* @from must pass short_tally_fits(). */
static inline void short_tally_write(struct short_entry *entry,
				     const struct flow_tally *from)
{
	bool has_link = from->l2_bytes;

	entry->ttl_min = from->attrs.ttl_min;
	entry->ttl_max = from->attrs.ttl_max;
	entry->first_ns = from->first_ns;
	entry->duration_ns = from->last_ns - from->first_ns;
	entry->link_bytes = has_link ? from->l2_bytes - from->bytes : 0;
	entry->packets = (uint32_t)from->packets;
	entry->bytes = (uint32_t)from->bytes;
	entry->marks = from->attrs.marks;
	entry->dscp = from->attrs.dscp;
	entry->has_mac = from->attrs.has_mac;
	entry->has_link = has_link;
	memcpy(entry->macs, from->macs, sizeof(entry->macs));
}

static inline void short_tally_read(const struct short_entry *entry,
				    struct flow_tally *ret_tally)
{
	uint64_t link_bytes = (uint64_t)entry->bytes + entry->link_bytes;

	*ret_tally = (struct flow_tally){
		.packets = entry->packets,
		.bytes = entry->bytes,
		.l2_bytes = entry->has_link ? link_bytes : 0,
		.first_ns = entry->first_ns,
		.last_ns = entry->first_ns + entry->duration_ns,
		.attrs = {
			.marks = entry->marks,
			.dscp = (uint8_t)entry->dscp,
			.ttl_min = entry->ttl_min,
			.ttl_max = entry->ttl_max,
			.has_mac = entry->has_mac,
		},
	};
	memcpy(ret_tally->macs, entry->macs, sizeof(entry->macs));
}

/* ---- Entries ------------------------------------------------------------------ */

/** @return false, and nothing is written: @from has no short form */
static inline bool short_entry_write(struct short_entry *entry,
				     const struct flow_entry *from)
{
	struct short_key key;

	if (from->key.tunnel || !short_tally_fits(&from->tally) ||
	    !short_key_make(&from->key, &key))
		return false;
	*entry = (struct short_entry){ 0 };
	memcpy(entry->words, key.words, sizeof(key));
	short_tally_write(entry, &from->tally);
	return true;
}

static inline void short_entry_read(const struct short_entry *entry,
				    struct flow_entry *ret_entry)
{
	uint64_t *words = (uint64_t *)&ret_entry->key;
	uint64_t rest = entry->words[2];

	words[0] = words[2] = words[SHORT_WORD_VNI] = 0;
	words[1] = (uint64_t)entry->src << 32 | SHORT_MAPPED;
	words[3] = (uint64_t)entry->dst << 32 | SHORT_MAPPED;
	words[SHORT_WORD_PORTS] = entry->key_ports;
	words[SHORT_WORD_REST] = (rest & 0xffff) | (rest >> 16 & 0xffffffff)
							   << 32;
	ret_entry->outer_src_port = 0;
	ret_entry->outer_dst_port = 0;
	ret_entry->outer_check = 0;
	short_tally_read(entry, &ret_entry->tally);
}

/** Add to the entry's counts. @return false, and nothing has changed: the sum has no short form */
static inline bool short_entry_add(struct short_entry *entry,
				   const struct flow_tally *tally)
{
	struct flow_tally sum;

	short_tally_read(entry, &sum);
	tally_add(&sum, tally);
	if (!short_tally_fits(&sum))
		return false;
	short_tally_write(entry, &sum);
	return true;
}

#endif
