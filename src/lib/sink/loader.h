/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * Shared objects that are loaded when one is first asked for, so that what they need
 * is nobody else's burden. What is loaded stays: the libraries that come with it do
 * not like to be unloaded.
 */
#ifndef NETOBS_LIB_SINK_LOADER_H
#define NETOBS_LIB_SINK_LOADER_H

#include <stddef.h>

/* All that can be loaded starts with this. */
struct loaded {
	const char *version; /* NETOBS_VERSION */
};

/*
 * What @symbol stands for in NAME.so. NULL: it cannot be loaded, or is of another
 * version; @why tells.
 */
const void *loader_find(const char *name, const char *symbol, char *why,
			size_t why_size);

#endif
