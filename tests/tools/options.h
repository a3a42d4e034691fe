/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* Long options of a tool, by a table. */
#ifndef NETOBS_TESTS_TOOLS_OPTIONS_H
#define NETOBS_TESTS_TOOLS_OPTIONS_H

#include <errno.h>
#include <getopt.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { TOOL_OPTIONS_MAX = 16 };

struct tool_option {
	const char *name;
	/* Puts the value into @to. NULL: there is none, @to is a bool that becomes true. */
	int (*read)(const char *text, void *to);
	void *to;
};

static inline int tool_read_text(const char *text, void *to)
{
	*(const char **)to = text;
	return 0;
}

static inline int tool_read_number(const char *text, void *to)
{
	*(uint64_t *)to = strtoull(text, NULL, 10);
	return 0;
}

static inline int tool_read_real(const char *text, void *to)
{
	*(double *)to = strtod(text, NULL);
	return 0;
}

/* The table ends with a row without a name. optind is behind them then. */
static inline int tool_options_read(int argc, char **argv,
				    const struct tool_option *table)
{
	struct option longs[TOOL_OPTIONS_MAX + 1] = { 0 };
	int at, err = 0;

	for (int i = 0; table[i].name; i++)
		longs[i] = (struct option){ table[i].name, !!table[i].read,
					    NULL, i };
	while (!err && (at = getopt_long(argc, argv, "", longs, NULL)) != -1) {
		if (at == '?')
			err = -EINVAL;
		else if (table[at].read)
			err = table[at].read(optarg, table[at].to);
		else
			*(bool *)table[at].to = true;
	}
	if (err)
		fprintf(stderr, "%s: a bad option or value\n", argv[0]);
	return err;
}

/* Of a clock, in seconds. */
static inline double tool_clock(clockid_t clock)
{
	struct timespec at;

	clock_gettime(clock, &at);
	return (double)at.tv_sec + (double)at.tv_nsec / 1e9;
}

#endif
