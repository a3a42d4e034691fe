/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * Shared objects that are loaded on first use, so that libnetobs.so does not depend on
 * their libraries. They are never unloaded: librdkafka and GLib do not support it.
 */
#ifndef NETOBS_SINK_LOADER_H
#define NETOBS_SINK_LOADER_H

#include "module.h"

#include <stddef.h>

/* All that can be loaded starts with this. */
struct loaded {
	const char *version; /* NETOBS_VERSION */
};

/*
 * What @symbol stands for in NAME.so. NULL: it cannot be loaded, or is of another
 * version; @why says which.
 */
const void *loader_find(const char *name, const char *symbol, char *why,
			size_t why_size);

/*
 * The module for the kind that @spec names, which is part of the library or loaded.
 * -EINVAL: there is no such kind; -ENOENT: it cannot be loaded. Either is logged.
 */
int loader_find_kind(struct spec *spec, const struct sink_module **ret_module);

#endif
