/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * An outage is logged once when it begins, with its first error, and once when it is
 * over, as warnings both.
 */
#ifndef NETOBS_BASE_FAULT_H
#define NETOBS_BASE_FAULT_H

#include "log.h"

struct fault {
	int err; /* 0: there is none */
};

/* Whether @name would succeed now: 0, or -errno. */
void fault_note(struct fault *fault, const struct log *log, const char *name,
		int err);

#endif
