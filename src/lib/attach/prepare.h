/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* Whether a selection can be applied, and what has to be there first. */
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

#endif
