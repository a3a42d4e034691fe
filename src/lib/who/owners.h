/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * The processes that sockets of this host belong to, of TCP and UDP, in all network namespaces.
 * Programs note them with the sockets; before they are asked for, a list of all sockets is
 * read, and those that have ended come through a ring buffer.
 */
#ifndef NETOBS_WHO_OWNERS_H
#define NETOBS_WHO_OWNERS_H

#include "base/log.h"
#include "cgroups.h"
#include "container_names.h"
#include "engine/session_programs.h"
#include "owner_table.h"

#include <netobs/record.h>

struct ring_buffer;

enum { OWNERS_CACHED = 64 };

struct owners {
	const struct log *log;
	struct session_programs programs;
	struct ring_buffer *ring;
	struct owner_table table;
	struct cgroups_upkeep upkeep;
	int counts_fd;
	void *counts_room;
	uint64_t lost; /* that was logged */
	enum {
		OWNERS_AT_REST,
		OWNERS_LISTING,
		OWNERS_READING, /* those that ended during the list */
		OWNERS_SWEEPING,
		OWNERS_TIDYING /* control groups */
	} phase;
	int list_fd;
	bool is_listed; /* all of them were; else none is taken for ended */
	uint32_t cursor;
	int64_t keep_ns; /* for how long sockets that ended are known */
	int64_t slice_end_ns;
	struct container_names *names; /* the caller's; NULL: there are none */
	owner_visit_fn *visit;	       /* of each socket, once in a round */
	void *visitor;
	struct {
		struct session_cgroup_key key;
		bool is_known;
		struct cgroup_info info;
	} cache[OWNERS_CACHED];
};

/**
 * Load and attach the programs, and find the sockets that are there, which blocks while it looks
 * at all open files.
 *
 * @param disabled  as netobs_opts.disable_features
 * @param max       sockets that are known at a time
 * @param visit     called by owners_step(), with @visitor, for each socket that is known, once in
 *                  a round in which all could be listed
 * @return 0, or -errno, which is logged: there is nothing to close
 */
int owners_open(struct owners *owners, uint64_t disabled, uint32_t max,
		owner_visit_fn *visit, void *visitor, const struct log *log);

/** A struct of zeroes stays as it is. */
void owners_close(struct owners *owners);

/** @return a descriptor that is readable when owners_read() is due */
int owners_fd(const struct owners *owners);

/** Read what is in the ring buffer, for some milliseconds. @return whether there is more */
bool owners_read(struct owners *owners);

/**
 * Begin to bring the table up to date.
 *
 * @param keep_ns  for how long sockets that have ended are to be known
 */
void owners_begin(struct owners *owners, int64_t keep_ns);

/** Work on that for a millisecond. @return false: the table has all sockets */
bool owners_step(struct owners *owners);

/**
 * Note the sockets that are open now, for a time at most. Does nothing while the table is brought
 * up to date.
 */
void owners_glance(struct owners *owners, int64_t budget_ns);

/** Fill @ret_process from the owner of a socket. */
void owners_describe(struct owners *owners, const struct session_owner *owner,
		     struct netobs_process *ret_process);

#endif
