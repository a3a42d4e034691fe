/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * Shared objects of netobs that are loaded on first use, so that neither libnetobs.so nor
 * netobsctl depends on their libraries. They are never unloaded: librdkafka and GLib do
 * not support it.
 */
#ifndef NETOBS_BASE_SHARED_OBJECT_H
#define NETOBS_BASE_SHARED_OBJECT_H

#include <stddef.h>

/* All that can be loaded starts with this. */
struct loaded {
	const char *version; /* NETOBS_VERSION */
};

/**
 * Find @symbol in NAME.so, which is loaded if it is not yet.
 *
 * @return NULL: it is not installed, cannot be loaded, or is of another version; @why says which,
 *         with what as its subject
 */
const void *shared_object_find(const char *name, const char *symbol, char *why,
			       size_t why_size);

#endif
