/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* What this process may do, in the terms of capabilities(7). */
#ifndef NETOBS_CLI_PRIVILEGES_H
#define NETOBS_CLI_PRIVILEGES_H

#include <stdbool.h>

#include "args.h"

struct privilege {
	const char *name;
	const char *purpose;
	int number;
	bool held;
};

enum { PRIVILEGES = 5 };

/*
 * Give up what a capture does not need once it has begun. It keeps what it
 * takes to follow @interfaces and, to make @files, to write to any directory. Without
 * privileges to begin with, nothing happens.
 */
void privileges_drop(const struct args_list *interfaces, bool files);

/* Returns 0 or -errno. */
int privileges_read(struct privilege ret_privileges[PRIVILEGES]);

#endif
