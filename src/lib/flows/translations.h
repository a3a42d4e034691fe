/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * How NAT translates flows: a feature with room beside flows that looks for each entry of a flow in
 * the table of translations.
 * An entry of a flow is one's only if no other one is as likely: the record names the
 * right addresses, or none.
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
	const struct host *host; /* which interfaces are above others; NULL: it is not known */
	bool knows_zones; /* the kernel has them */
	bool joins_faces; /* a flow has one record before and after translation */
	bool no_connect; /* treat what sockets need as absent */
};

struct translations {
	struct nat nat;
	const struct host *host; /* or NULL */
	struct translation_table table;
	struct socket_translations sockets;
	bool knows_zones, joins_faces;
	uint64_t ambiguous;	 /* flows that have several, which differ */
	struct nat_event *later; /* reports that came during a drain */
	uint32_t n_later, later_capacity;
	uint64_t late;		 /* reports that there was no room for there */
	struct flow_extra extra; /* for merge_options.extras */
};

/** @return 0; -ENOMEM; others as nat_open(), which are logged */
int translations_open(struct translations *translations,
		      const struct program_set *maps, uint32_t n_cpus,
		      const struct translations_options *options,
		      const struct log *log);

/** The same without programs. @return 0; -ENOMEM */
int translations_init(struct translations *translations,
		      const struct translations_options *options);

void translations_close(struct translations *translations);

/* Take what programs have reported. */
void translations_read(struct translations *translations);

/* Programs will write to that generation; the last one that did was before the other one. */
void translations_begin(struct translations *translations, uint32_t generation,
			int64_t now_ns);

/* No program writes to the other one any more: read its reports, before its entries. */
void translations_settle(struct translations *translations);

/* Its entries were read: reports that came meanwhile are used from now on. */
void translations_release(struct translations *translations);

/** @return whether reports wait for that */
bool translations_wait(const struct translations *translations);

/* A program reports something. */
void translations_note(struct translations *translations,
		       const struct nat_event *event);

#endif
