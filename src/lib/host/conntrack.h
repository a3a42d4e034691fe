/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * ctnetlink: reads the kernel's table of connections (conntrack) in the network namespace of a
 * socket. This takes CAP_NET_ADMIN there.
 */
#ifndef NETOBS_HOST_CONNTRACK_H
#define NETOBS_HOST_CONNTRACK_H

#include "bpf/nat.h"

#include <stdbool.h>
#include <stdint.h>

struct conntrack_entry {
	struct nat_tuple tuples[NAT_DIRECTIONS];
	uint16_t zone;
	bool is_answered; /* there was a packet of the reply direction, */
	bool is_assured; /* and more: the kernel keeps the entry when its table is full */
	uint32_t timeout_s; /* the entry ends after it, unless a packet comes first */
	int64_t start_ns; /* since 1970; 0: unknown (net.netfilter.nf_conntrack_timestamp is 0) */
};

typedef void conntrack_entry_fn(void *ctx, const struct conntrack_entry *entry);

/* Open a socket in the namespace of @ns_fd; -1: in the calling thread's. @return it, or -errno */
int conntrack_open_in(int ns_fd);

/* ---- All entries ------------------------------------------------------------------ */

struct conntrack_list {
	int fd;		 /* from conntrack_open_in() */
	bool is_spoiled; /* entries may be missing from what was read */
};

/* Ask for all entries, which conntrack_list_read() reads. @return 0, or -errno */
int conntrack_list_begin(struct conntrack_list *list);

/*
 * Read entries that have arrived; the kernel sends more as these are read.
 *
 * @param wait  until the end
 * @return 1: all have been read; 0: more will come; -EAGAIN: some are missing, because the table
 *         changed, messages were lost or could not be read: begin again; other -errno
 */
int conntrack_list_read(struct conntrack_list *list, bool wait,
			conntrack_entry_fn *on_entry, void *ctx);

/* ---- Single ones ------------------------------------------------------------------ */

enum { CONNTRACK_ASK_MAX = 16 };

/* The answer about entry @i: one with its original tuple, maybe in another zone; NULL: none. */
typedef void conntrack_answer_fn(void *ctx, uint32_t i,
				 const struct conntrack_entry *entry);

/*
 * Ask for up to CONNTRACK_ASK_MAX entries by their original tuples and zones, without waiting: the
 * kernel answers at once. An entry with a zone gets two answers.
 *
 * @return 0: all answers came; -ENOBUFS: there was no room for some of them; other -errno
 */
int conntrack_ask(int fd, const struct conntrack_entry *wanted, uint32_t n,
		  conntrack_answer_fn *on_answer, void *ctx);

#endif
