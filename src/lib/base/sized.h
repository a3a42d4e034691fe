/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * Structs of callers that begin with their size, so that they can grow. A caller
 * may have been compiled for an older or a newer library than this one.
 */
#ifndef NETOBS_BASE_SIZED_H
#define NETOBS_BASE_SIZED_H

#include "log.h"

#include <stdbool.h>
#include <stddef.h>

/*
 * Options: 0, or -EINVAL, which is logged, if the size at the start of @opts cannot
 * be, or bytes beyond @known, the size of this library's struct, are set.
 */
int sized_check(const void *opts, size_t known, const struct log *log);

/* A requirement that an option may fail. */
struct option_check {
	const char *name, *why;
	bool is_wrong;
};

/* @return 0; -EINVAL: one of the @n is wrong, the first of which is logged */
int option_check(const struct option_check *checks, size_t n,
		 const struct log *log);

/* For results: copy the part of @from that the caller knows, and set its size. */
int sized_fill(void *to, const void *from, size_t known);

#endif
