/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* The links that an earlier process has left attached, and pinned. */
#ifndef NETOBS_ATTACH_ADOPT_H
#define NETOBS_ATTACH_ADOPT_H

#include "observed.h"

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
