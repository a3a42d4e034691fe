/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * What has to be there before a selection is applied: whether it can be, and the links that an
 * earlier process has left attached, and pinned.
 */
#ifndef NETOBS_ATTACH_PREPARE_H
#define NETOBS_ATTACH_PREPARE_H

#include "observed.h"

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

#endif
