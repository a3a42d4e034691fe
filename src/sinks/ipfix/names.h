/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* Which names of interfaces the collector was told. */
#ifndef NETOBS_SINKS_IPFIX_NAMES_H
#define NETOBS_SINKS_IPFIX_NAMES_H

#include "record.h"

#include <stdbool.h>

/* More interfaces than half of this, and all are told anew now and then. */
enum { NAMES_SLOTS = 4096 };

struct name {
	uint32_t ifindex; /* 0: no name is here */
	uint32_t netns_inode;
	char text[RECORD_NAME_SIZE];
};

struct names {
	struct name slots[NAMES_SLOTS];
	unsigned int n;
};

void names_clear(struct names *names);

/* The name of a point was not told, or another one was: it is @ret_name. */
bool names_is_new(struct names *names, const struct netobs_point *point,
		  struct name *ret_name);

/* It is told. */
void names_note(struct names *names, const struct name *name);

/* As it is to be told. */
struct record_interface names_record(const struct name *name);

#endif
