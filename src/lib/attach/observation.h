/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * Keeps the programs attached to the selected interfaces, while interfaces appear, change
 * and disappear, and while the selection changes.
 */
#ifndef NETOBS_ATTACH_OBSERVATION_H
#define NETOBS_ATTACH_OBSERVATION_H

#include "attacher.h"
#include "base/loop.h"
#include "engine/origins.h"
#include "host/host.h"
#include "host/selection.h"

enum { LINK_KINDS = 2 };

/* The programs and jobs of a namespace. */
struct netns_programs {
	/* Both directions; NULL until needed. */
	struct shared_fd *programs[LINK_KINDS][2];
	uint32_t n_jobs;
};

/* What the kernel has counted of programs, if it does. */
struct program_runs {
	uint32_t programs;
	uint64_t runs, ns;
};

/* Where the programs come from that are put on interfaces. */
struct program_source {
	/* @is_next: with the filter that is about to replace the present one */
	int (*load)(void *ctx, uint16_t netns, enum link_kind link,
		    bool is_next, struct programs *ret_programs);
	void *ctx;
	struct origins *origins; /* that the programs use; NULL: none */
};

struct observation {
	const struct log *log;
	struct host *host;
	struct host_listener listener;
	struct program_source source;
	struct attach_options attach;
	struct attacher attacher;
	struct selection selection;
	struct netns_programs *netns; /* indexed like host.netns */
	struct netns_programs *next; /* likewise, to replace those; NULL: none */
	uint32_t n_netns;
	struct program_runs replaced; /* programs that are not used any more */
	uint32_t n_attached;	      /* interfaces */
	uint32_t n_looking;	      /* jobs that look for shadows */
	int64_t looked_ns;
	uint64_t incarnations; /* of struct hooks, so far */
	int attach_error;      /* the last one */
	bool is_changed;       /* host_settle() is due */
	int64_t shifted_ns;    /* when programs were last put on or off */
	int64_t leave_ns; /* programs are to be off by then; 0: they are put on */
	struct shared_fd *pins; /* where links outlive the process; NULL: nowhere */
	struct loop *loop;
	int names_timer; /* -1: no namespace has had a name */
	int stop_fd; /* observation_start() waits no longer once it is readable; -1: none */
};

/*
 * Take over the options @interfaces and @exclude, NULL-terminated lists or
 * NULL. Nothing in the kernel is touched.
 */
int observation_init(struct observation *observation, struct host *host,
		     const char *const *interfaces, const char *const *exclude);

/*
 * Find the interfaces and attach to those that are there; where that takes long,
 * to those that were named, unless stop_fd is readable before. On failure call
 * observation_done().
 *
 * @param pins      where links are pinned, and those of an earlier process are taken over
 *                  from; NULL: nowhere
 * @param expedite  see attacher.h
 */
int observation_start(struct observation *observation,
		      const struct program_source *source,
		      const struct attach_options *attach,
		      struct shared_fd *pins, bool expedite);

/*
 * Have @loop, of which the observation is a part from now on, follow what happens to
 * interfaces and to the programs on them. Again after observation_prepare(), which may
 * bring namespaces.
 */
int observation_watch(struct observation *observation, struct loop *loop);

/*
 * Check that @selection can be applied, and follow its namespaces. Programs are neither
 * attached nor detached; observation_apply() or observation_refuse() has to follow.
 *
 * @param replaces  the filter is to be replaced, too: load programs with the next one for all
 *                  interfaces
 * @return 0, or -errno, which was logged: a named interface or a namespace does not
 *         exist, or it cannot be observed
 */
int observation_prepare(struct observation *observation,
			struct selection *selection, bool replaces);

/*
 * Take over @selection; programs are attached and detached in the background. Programs that
 * observation_prepare() loaded take the places of those that are attached: at each interface
 * and direction at once, so that each packet gets to one of them. Jobs that are under
 * way do it later.
 *
 * @return 0; -ENOMEM: the topology is not up to date
 */
int observation_apply(struct observation *observation,
		      struct selection *selection);

/* @return whether all programs that are attached are those of now */
bool observation_is_settled(const struct observation *observation);

/* Release what only observation_prepare() needed: programs, and namespaces. */
void observation_refuse(struct observation *observation);

/* All that was counted before @flip_ns (CLOCK_BOOTTIME) has been read. */
void observation_end_shift(struct observation *observation, int64_t flip_ns);

/* Look for programs that may hide packets, unless that was done recently. */
void observation_look(struct observation *observation);

/* @return number of directions of interfaces where one may hide packets */
uint32_t observation_count_shadowed(const struct observation *observation);

/*
 * Take all programs off, in the background, and put none on any more. Interfaces are
 * followed as before, for the last flows.
 */
void observation_detach(struct observation *observation);

/*
 * The same, but programs that are pinned stay where they are, and go on counting when the
 * observation is done.
 */
void observation_leave(struct observation *observation);

/* After these: jobs are done, or leave_ns is over and the thread goes on. */
bool observation_is_detached(const struct observation *observation);

/* Waits as long as observation_is_detached() is false. */
void observation_done(struct observation *observation);

#endif
