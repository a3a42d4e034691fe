/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* What this process may do, in the terms of capabilities(7). */
#ifndef NETOBS_CLI_PRIVILEGES_H
#define NETOBS_CLI_PRIVILEGES_H

#include <stdbool.h>

struct privilege {
	const char *name;
	const char *purpose;
	int number;
	bool held;
};

enum { PRIVILEGES = 5 };

/* Returns 0 or -errno. */
int privileges_read(struct privilege ret_privileges[PRIVILEGES]);

#endif
