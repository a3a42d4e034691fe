/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * Names the addresses before and after NAT in records: a feature with extra data per flow, which
 * looks up each entry of a flow in the table of translations. It uses a translation only if no
 * other one is as likely: the record names the right addresses, or none.
 */
#ifndef NETOBS_NAT_TRANSLATIONS_H
#define NETOBS_NAT_TRANSLATIONS_H

#include "nat.h"
#include "flows/flow_extra.h"
#include "socket_translations.h"
#include "translation_table.h"

#include <stdint.h>

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

/* Read what programs have reported. */
void translations_read(struct translations *translations);

/* No program writes to the other generation any more: read its reports, before its entries. */
void translations_settle(struct translations *translations);

/* The generation's entries were read: apply the reports that came meanwhile. */
void translations_release(struct translations *translations);

/** @return whether reports wait for translations_release() */
bool translations_wait(const struct translations *translations);

/* A program reports something. */
void translations_note(struct translations *translations,
		       const struct nat_event *event);

/*
 * Finds the conversation of a connection that a socket or a rule about connections names. Pending
 * reports of programs are read first. If several conversations are possible, or a report may still be
 * unread, there is none.
 */

/*
 * Find the conversation of a connection at an interface. @entry: one of its tuples, interface, time
 *
 * @param ret_id  as flows have it; 0: it is not known
 * @return 0; -EAGAIN: reports about it wait for the end of a drain
 */
int conversation_at(struct translations *translations,
		    const struct flow_entry *entry, uint64_t *ret_id);

/*
 * Find the conversation of a socket's connection. @entry has the tuple as the socket sends it,
 * and the time; its interface is not used.
 *
 * @inode  inode of the socket's namespace, which need not be followed
 * @pid    of a process there; 0: none is known
 * @return 0; -ENOENT: it is not known; -EAGAIN: as conversation_at()
 */
int conversation_of_socket(struct translations *translations,
			   const struct flow_entry *entry, uint32_t inode,
			   uint32_t pid, uint64_t *ret_id);

#endif
