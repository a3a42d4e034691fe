/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * Names the addresses before and after NAT in records: a feature with extra data per flow, which
 * looks up each entry of a flow in the table of translations. It uses a translation only if no
 * other one is as likely: the record names the right addresses, or none.
 */
#ifndef NETOBS_FLOWS_TRANSLATIONS_H
#define NETOBS_FLOWS_TRANSLATIONS_H

#include "engine/nat.h"
#include "flow_extra.h"
#include "socket_translations.h"
#include "translation_table.h"

struct host;
struct program_set;

struct translations_options {
	const struct host *host; /* knows the stacked interfaces; NULL: unknown */
	bool knows_zones;	 /* the kernel has conntrack zones */
	bool joins_faces; /* a flow has one record before and after translation */
	bool no_connect; /* treat the kernel features for sockets as absent */
};

struct translations {
	struct nat nat;
	const struct host *host; /* or NULL */
	struct translation_table table;
	struct socket_translations sockets;
	bool knows_zones, joins_faces;
	uint64_t ambiguous; /* flows with several possible translations that differ */
	struct nat_event *later; /* reports that came during a drain */
	uint32_t n_later, later_capacity;
	uint64_t late;		 /* reports for which `later` had no room */
	struct flow_extra extra; /* for merge_options.extras */
};

/** @return 0; -ENOMEM; others as nat_open(), which are logged */
int translations_open(struct translations *translations,
		      const struct program_set *maps, uint32_t n_cpus,
		      const struct translations_options *options,
		      const struct log *log);

/** Prepare without programs. @return 0; -ENOMEM */
int translations_init(struct translations *translations,
		      const struct translations_options *options);

void translations_close(struct translations *translations);

/* Take what programs have reported. */
void translations_read(struct translations *translations);

/* Programs will write to @generation; the previous one is older than the other one. */
void translations_begin(struct translations *translations, uint32_t generation,
			int64_t now_ns);

/* No program writes to the other generation any more: read its reports, before its entries. */
void translations_settle(struct translations *translations);

/* The generation's entries were read: apply the reports that came meanwhile. */
void translations_release(struct translations *translations);

/** @return whether reports wait for translations_release() */
bool translations_wait(const struct translations *translations);

/* A program reports something. */
void translations_note(struct translations *translations,
		       const struct nat_event *event);

#endif
