/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* The kinds of sinks: some are part of the library, others are loaded. */
#ifndef NETOBS_SINK_KINDS_H
#define NETOBS_SINK_KINDS_H

#include "module.h"

/*
 * The module for the kind that @spec names. -EINVAL: there is no such kind; -ENOENT:
 * it cannot be loaded. Either is logged.
 */
int kinds_find(struct spec *spec, const struct sink_module **ret_module);

#endif
