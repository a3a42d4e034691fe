/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * The programs that follow TCP sockets, in three sets that share their maps. Two of them
 * find the owners of sockets that change hands, and are left out where the kernel lacks
 * their hooks.
 */
#ifndef NETOBS_WHO_SESSION_PROGRAMS_H
#define NETOBS_WHO_SESSION_PROGRAMS_H

#include "base/log.h"
#include "bpf/session.h"
#include "engine/program_set.h"

#include <bpf/libbpf.h>
#include <stdbool.h>
#include <stdint.h>

struct worker;

struct session_knobs {
	uint32_t ring_bytes; /* a power of two, multiple of the page size */
	bool no_lists;	     /* treat iterators over maps as absent */
	bool no_io;	     /* treat the hooks as absent */
	bool no_accept;
	/* Report owners only, also of UDP sockets, without counters: SESSION_OWNED_SIZE bytes. */
	bool wants_owners;
};

/* Must not be moved while it is open. */
struct session_programs {
	struct session_knobs knobs;
	struct program_set sockets, io, accept;
	struct attach_point accept_points[2];
	struct session_list list;
	bool is_detached;
	struct worker *lister, *marker; /* NULL: nothing is read */
	int list_error; /* not 0: iterate over the files of processes (netobs_sess_lsf), not over a map */
	int cgroup_fd; /* of the root of cgroup v2; -errno: it cannot be opened */
	int io_error; /* 0; -errno: why the set `io` is not loaded */
	int accept_error;
};

/**
 * Load the sets and attach them.
 *
 * @return 0, or -errno, which is logged: nothing stays loaded
 */
int session_programs_open(struct session_programs *programs,
			  const struct session_knobs *knobs,
			  const struct log *log);

/*
 * Detach the programs that follow sockets, which may still run on another CPU for a grace period.
 * Then session_programs_begin_list() reports, once, also sockets whose end was not reported.
 */
void session_programs_detach(struct session_programs *programs);

/* Detach and unload; a second call does nothing. Maps stay while others have descriptors of them. */
void session_programs_close(struct session_programs *programs);

/**
 * Find the processes that have sockets open. This blocks while the kernel visits all open files.
 *
 * @return 0, or -errno
 */
int session_programs_find_holders(const struct session_programs *programs);

/**
 * Begin to note session_round.number in the entries of control groups that sockets have.
 *
 * @return 0, or -errno
 */
int session_programs_begin_marks(struct session_programs *programs);

/** Go on in a thread, or here if none can be made. @return 0: all have it; -EAGAIN: call again; or -errno */
int session_programs_go_on_marking(struct session_programs *programs);

/**
 * Report open sockets to the ring buffer until it is an eighth full.
 *
 * @return 0, or -errno
 */
int session_programs_begin_list(struct session_programs *programs);

/**
 * Go on in a thread, or here if none can be made, until a quarter of the ring buffer is filled. Call
 * this when it has just been emptied.
 *
 * @return 0: the ring buffer has had all sockets; -EAGAIN: call it again; or another -errno
 */
int session_programs_go_on_listing(struct session_programs *programs);

/** Go on here, until an eighth is filled. @return as session_programs_go_on_listing() */
int session_programs_list_more(struct session_programs *programs);

/* Drop the rest of a list that has only begun. */
void session_programs_end_list(struct session_programs *programs);

/** Open the ring buffer of sessions, with a callback for each event. @return 0, or -errno, which is logged */
int session_programs_read(const struct session_programs *programs,
			  ring_buffer_sample_fn on_event, void *ctx,
			  struct ring_buffer **ret_ring);

#endif
