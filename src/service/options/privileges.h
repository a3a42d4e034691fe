/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* Giving up capabilities(7) that are no longer needed. */
#ifndef NETOBS_SERVICE_OPTIONS_PRIVILEGES_H
#define NETOBS_SERVICE_OPTIONS_PRIVILEGES_H

#include "args.h"

enum privileges_kept {
	KEEP_FILES = 1 << 0, /* to write to any directory, or to read files of others */
	KEEP_PROGRAMS =
		1 << 1, /* to name programs of others, and to enter namespaces that have names */
	KEEP_PROCESSES = 1 << 2, /* to enter the namespaces of any process, too */
};

/*
 * Drop the privileges that are not needed once programs are attached. Privileges to follow
 * @interfaces, which may be NULL, and those in @keep, are kept. A process without privileges stays as it is.
 */
void privileges_drop(const struct args_list *interfaces, unsigned int keep);

#endif
