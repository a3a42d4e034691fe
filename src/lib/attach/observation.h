/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * Keeps the programs attached to the selected interfaces, while interfaces appear, change
 * and disappear, and while the selection changes.
 */
#ifndef NETOBS_ATTACH_OBSERVATION_H
#define NETOBS_ATTACH_OBSERVATION_H

#include "hooks.h"

/*
 * Steps before a selection is applied: check that it can be, and take over the links that an
 * earlier process has left attached, and pinned.
 */

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

/**
 * Take over the links of an earlier process: those of interfaces that are selected are
 * theirs from now on, all others are removed. Call it when all namespaces are followed.
 *
 * @return false: other interfaces begin or end to be observed, while these have been all
 *         the time
 */
bool adopt_links(struct observation *observation,
		 const struct selection *selection);

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
 * @param pins  where links are pinned, and those of an earlier process are taken over from;
 *              NULL: nowhere
 */
int observation_start(struct observation *observation,
		      const struct program_source *source,
		      const struct attach_options *attach,
		      struct shared_fd *pins);

/*
 * Have @loop, of which the observation is a part from now on, follow what happens to
 * interfaces and to the programs on them. Again after observation_prepare(), which may
 * bring namespaces.
 */
int observation_watch(struct observation *observation, struct loop *loop);

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

/* All packets counted before @flip_ns (CLOCK_BOOTTIME) have been read. */
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
 * Detach as observation_detach(), but leave pinned programs attached: they count also after the
 * observation has ended.
 */
void observation_leave(struct observation *observation);

/*
 * After observation_detach() or observation_leave().
 *
 * @return whether all jobs are done, or leave_ns has passed and the thread continues alone. If it attaches
 *         programs that are not pinned, this takes eight seconds longer: they are detached once it has ended
 */
bool observation_is_detached(const struct observation *observation);

/* Waits until leave_ns at most. The thread itself detaches what it attaches later. */
void observation_done(struct observation *observation);

#endif
