/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* An observer of sessions with container names from another observer. */
#ifndef NETOBS_WHO_SESSIONS_H
#define NETOBS_WHO_SESSIONS_H

#include "container_facts.h"
#include "base/log.h"
#include "engine/program_set.h"
#include "bpf/session.h"
#include "base/clock.h"

#include <bpf/libbpf.h>
#include <netobs/session.h>
#include <stdbool.h>
#include <stdint.h>

struct container_names;
struct netobs;

/**
 * Have an observer use these container names, instead of finding them itself.
 *
 * @return 0; -EALREADY: it has been started, or has names already; -EINVAL: it observes no sessions
 */
int sessions_use_names(struct netobs *sessions, struct container_names *names);

/* Converts the programs' report about a socket to the record of its session. */

struct session_source {
	const struct clock *clock;
	int cgroups_fd;		       /* the map of struct session_cgroup */
	int names_fd;		       /* the map of struct session_name */
	struct container_names *names; /* NULL: none are wanted */
	int64_t tick_ns;	       /* of the kernel */
};

/** @return the length of a tick of the kernel, in ns */
int64_t session_tick_ns(void);

/** @return how the connection ended, from its state and error in @end */
enum netobs_session_ended session_ended(const struct session_end *end);

void session_fill(const struct session_source *source,
		  const struct session_event *event,
		  struct netobs_session *ret_session);

/* ---- Programs ---------------------------------------------------------------------------- */

/*
 * The programs that follow TCP sockets, in three sets that share their maps. Two of them
 * find the owners of sockets that change hands, and are left out where the kernel lacks
 * their hooks.
 */

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

/* ---- Control groups ---------------------------------------------------------------------- */

/* The names of control groups that the programs keep, in the map session_cgroups. */

struct cgroup_info {
	char path[384];
	struct cgroup_names names;
};

/** @return whether the whole path is known; else @ret_info is not touched */
bool cgroups_find(int cgroups_fd, const struct session_cgroup_key *key,
		  struct cgroup_info *ret_info);

/* The removal of groups that no socket uses any more. */
struct cgroups_upkeep {
	int cgroups_fd, round_fd; /* the maps; owned by the caller */
	struct session_round round;
	uint64_t kept_then; /* session_counts.cgroups at the last removal */
	enum {
		CGROUPS_AT_REST,
		CGROUPS_MARKING, /* groups that sockets use are being marked */
		CGROUPS_REMOVING
	} phase;
	struct session_cgroup_key next; /* the next group to check */
};

/**
 * Begin to remove unused groups if many were added since the last removal. Only groups that were
 * unused then, too, are removed, so records of their last sockets still have the names.
 *
 * @param kept  session_counts.cgroups, the sum of all CPUs
 */
void cgroups_look_after(struct cgroups_upkeep *upkeep,
			struct session_programs *programs, uint64_t kept,
			const struct log *log);

/** Work on the removal for about a millisecond. @return false: it is done, or waits for a thread */
bool cgroups_step(struct cgroups_upkeep *upkeep,
		  struct session_programs *programs, const struct log *log);

#endif
