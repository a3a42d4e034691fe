/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* Tuples that NAT gives conversations, and the tuples that these had before. */
#ifndef NETOBS_CLI_SERVICES_NAT_LINKS_H
#define NETOBS_CLI_SERVICES_NAT_LINKS_H

#include "talks.h"

struct nat_link {
	struct pair behind, before;
	bool is_swapped; /* the first end of one is the second one of the other */
	bool is_shared; /* several conversations had the tuple, one after the other */
	bool is_counted; /* the host with the NAT reports flows, too */
};

/* All zero: there are none. */
struct nat_links {
	struct nat_link *list;
	uint32_t n, capacity;
	struct slots slots;
};

/* The answer about a tuple. */
enum nat_answer {
	NAT_NONE, /* not behind a NAT, as far as is known */
	NAT_FOUND,
	NAT_SHARED, /* of several conversations, all of which are reported */
};

/**
 * Find a report's tuple before all NAT of its host, and note its other tuples.
 *
 * @param ret_root  that tuple; the report's own if it has no other
 * @return false: no memory
 */
bool nat_links_note(struct nat_links *links, const struct service_report *report,
		    struct flow_face *ret_root);

/**
 * @param ret_before  NAT_FOUND: the tuple before all NAT
 * @param ret_is_swapped  NAT_FOUND: its first end is the second one of @pair
 */
enum nat_answer nat_links_find(struct nat_links *links, const struct pair *pair,
			       struct pair *ret_before, bool *ret_is_swapped);

void nat_links_free(struct nat_links *links);

#endif
