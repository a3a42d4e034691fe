/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* The modules of sinks, of which most are loaded on first use. */
#ifndef NETOBS_SINK_LOADER_H
#define NETOBS_SINK_LOADER_H

#include "module.h"

/*
 * The module for the kind that @spec names, which is part of the library or loaded.
 * -EINVAL: there is no such kind; -ENOENT: it cannot be loaded. Either is logged.
 */
int loader_find_kind(struct spec *spec, const struct sink_module **ret_module);

#endif
