/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* Names and altnames of interfaces, and regular expressions for them: eth0, /^veth/. */
#ifndef NETOBS_HOST_PATTERN_H
#define NETOBS_HOST_PATTERN_H

#include "base/log.h"

#include <regex.h>
#include <stdbool.h>
#include <stdint.h>

struct pattern {
	char *text; /* without slashes */
	bool is_regex;
	regex_t regex;
};

struct patterns {
	struct pattern *items;
	uint32_t count;
};

/* Add what @text means; @option names the field of struct netobs_opts in errors. */
int patterns_add(struct patterns *patterns, const char *text,
		 const char *option, const struct log *log);

/* Move all of @from, which is empty afterwards; -ENOMEM. */
int patterns_move(struct patterns *to, struct patterns *from);

void patterns_done(struct patterns *patterns);

bool patterns_match(const struct patterns *patterns, const char *name);

/* @return whether one of the patterns is this plain name */
bool patterns_name(const struct patterns *patterns, const char *name);

#endif
