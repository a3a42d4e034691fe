/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * The processes that sockets of this host belong to, of TCP and UDP, in all network namespaces.
 * Programs store the process with each socket. Before owners are looked up, a list of all sockets
 * is read; sockets that have ended come through a ring buffer.
 */
#ifndef NETOBS_WHO_OWNERS_H
#define NETOBS_WHO_OWNERS_H

#include "base/log.h"
#include "cgroups.h"
#include "container_names.h"
#include "session_programs.h"
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
	int counts_fd, names_fd;
	uint64_t lost; /* lost events that were logged */
	enum {
		OWNERS_AT_REST,
		OWNERS_LISTING,
		OWNERS_READING, /* sockets that ended during the list */
		OWNERS_SWEEPING,
		OWNERS_TIDYING /* unused control groups are being removed */
	} phase;
	bool is_listed; /* all were listed; else no socket is taken for ended */
	uint32_t cursor;
	int64_t keep_ns; /* how long sockets stay in the table after their end */
	int64_t slice_end_ns;
	struct container_names *names; /* owned by the caller; NULL: none */
	owner_visit_fn *visit; /* called for each socket, once in a round */
	void *visitor;
	struct {
		struct session_cgroup_key key;
		bool is_known;
		struct cgroup_info info;
	} cache[OWNERS_CACHED];
};

/**
 * Load and attach the programs, and list the existing sockets, which blocks while all open files
 * are visited.
 *
 * @param disabled  as netobs_opts.disable_features
 * @param max       limit of sockets in the table
 * @param visit     called by owners_step(), with @visitor, for each socket in the table, once in a
 *                  round in which all could be listed
 * @return 0, or -errno, which is logged: there is nothing to close
 */
int owners_open(struct owners *owners, uint64_t disabled, uint32_t max,
		owner_visit_fn *visit, void *visitor, const struct log *log);

/** A struct of zeroes stays as it is. */
void owners_close(struct owners *owners);

/** @return a descriptor that is readable when owners_read() is due */
int owners_fd(const struct owners *owners);

/** Read the ring buffer, for some milliseconds. @return whether there is more */
bool owners_read(struct owners *owners);

/**
 * Begin to update the table.
 *
 * @param keep_ns  how long sockets stay in the table after their end
 */
void owners_begin(struct owners *owners, int64_t keep_ns);

/**
 * Work on the update for a millisecond.
 *
 * @param ret_wait_ms  set if the next call had better wait
 * @return false: the table has all sockets
 */
bool owners_step(struct owners *owners, uint32_t *ret_wait_ms);

/**
 * Add sockets that are open now, until they are all there or a read ends after @budget_ns. Does nothing
 * during an update of the table.
 */
void owners_glance(struct owners *owners, int64_t budget_ns);

/** Fill @ret_process from the owner of a socket. */
void owners_describe(struct owners *owners, const struct session_owner *owner,
		     struct netobs_process *ret_process);

#endif
