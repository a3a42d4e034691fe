/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * How NAT translates flows: a table of what the programs report of conntrack entries, and a
 * feature with room beside flows that looks for each entry of a flow in it.
 *
 * A conntrack entry has a tuple for each direction, as packets of that direction are before
 * translation. So it has four faces: in both directions before and after. A packet that comes in
 * at an interface has its face before, and one that leaves has its face after. Say 10.0.0.2
 * asks 192.0.2.1 through a router with the address 198.51.100.1:
 *
 *	original, before	10.0.0.2 > 192.0.2.1		comes in from the client
 *	original, after		198.51.100.1 > 192.0.2.1	leaves to the server
 *	reply, before		192.0.2.1 > 198.51.100.1	comes in from the server
 *	reply, after		192.0.2.1 > 10.0.0.2		leaves to the client
 *
 * A tuple may be a face of several translations: of one after another, and with zones at the same
 * time. An entry of a flow is one's only if no other one is as likely: the record names the
 * right addresses, or none.
 */
#ifndef NETOBS_FLOWS_TRANSLATIONS_H
#define NETOBS_FLOWS_TRANSLATIONS_H

#include "bpf/nat.h"
#include "bpf/types.h"
#include "engine/nat.h"
#include "flow_extra.h"

enum {
	TRANSLATIONS_MAX = 1 << 18,
	TRANSLATION_KEEP_S =
		60, /* after its last packet, if there is no room otherwise */
};

struct host;
struct translation;
struct program_set;

struct translations {
	struct nat nat;
	const struct host *host;  /* or NULL */
	struct translation *list; /* takes memory as it is used */
	uint32_t n;		  /* of these, that have been used */
	uint32_t first_free;	  /* 1 + its index; 0: none */
	uint32_t hand;		  /* the next one that may have ended */
	uint32_t *heads;
	uint32_t secret[12];
	bool knows_zones;
	uint32_t drains; /* that there have been */
	/* What was counted; the first one is of now. */
	uint64_t known, refused, ambiguous;
	struct flow_extra extra; /* for merge_options.extras */
};

/**
 * @param host  says which interfaces are above others; NULL: it is not known
 * @return 0; -ENOMEM; others as nat_open(), which are logged
 */
int translations_open(struct translations *translations,
		      const struct program_set *maps, uint32_t n_cpus,
		      bool knows_zones, const struct host *host,
		      const struct log *log);

/** The same without programs. @return 0; -ENOMEM */
int translations_init(struct translations *translations, bool knows_zones,
		      const struct host *host);

void translations_close(struct translations *translations);

/* Note what a program has reported. */
void translations_note(struct translations *translations,
		       const struct nat_event *event);

/* Programs will write to that generation; the last one that did was before the other one. */
void translations_begin(const struct translations *translations,
			uint32_t generation);

/* No program writes to the other one any more: read its reports, before its entries. */
void translations_settle(struct translations *translations);

#endif
