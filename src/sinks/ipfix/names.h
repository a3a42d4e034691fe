/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* Which names of interfaces the collector has received. */
#ifndef NETOBS_SINKS_IPFIX_NAMES_H
#define NETOBS_SINKS_IPFIX_NAMES_H

#include "record.h"

#include <stdbool.h>

/* With more interfaces than half of this, all are sent again from time to time. */
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

/* The collector lacks the name of a point, or has another one: send @ret_name. */
bool names_is_new(struct names *names, const struct netobs_point *point,
		  struct name *ret_name);

/* It was sent. */
void names_note(struct names *names, const struct name *name);

/* As it is sent. */
struct record_interface names_record(const struct name *name);

#endif
