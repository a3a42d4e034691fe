/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* What flows are grouped by, --by, and which columns there are beside. */
#ifndef NETOBS_CLI_BY_H
#define NETOBS_CLI_BY_H

#include <stdbool.h>
#include <stddef.h>

#include <netobs/group.h>

struct by {
	const char *text;
	struct netobs_group_keys keys; /* none: flows, each by itself */
	bool shows_process;	       /* of flows, each by itself */
	bool shows_rtt;		       /* of TCP, beside what is counted */
};

/**
 * @param text  stays
 * @return 0; -EINVAL: @ret_why has the reason
 */
static inline int by_parse(const char *text, struct by *ret_by, char *ret_why,
			   size_t size)
{
	struct by by = { .text = text, .keys.sz = sizeof(by.keys) };
	int err = netobs_group_keys_parse(text, &by.keys, ret_why, size);

	if (!err)
		*ret_by = by;
	return err;
}

/** @return whether a flow counts at both of its ends */
static inline bool by_has_both_ends(const struct by *by)
{
	return by->keys.flags & NETOBS_GROUP_BOTH_ENDS;
}

#endif
