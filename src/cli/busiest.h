/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* The flows with the most bytes of any number of flows, in bounded memory. */
#ifndef NETOBS_CLI_BUSIEST_H
#define NETOBS_CLI_BUSIEST_H

#include <stddef.h>
#include <stdint.h>

#include "row.h"

struct busiest {
	struct row *rows; /* a heap, the least busy on top, until it is sorted */
	size_t n, size;
	uint64_t flows, packets, bytes; /* of all that were added */
};

int busiest_init(struct busiest *busiest, size_t size);
void busiest_add(struct busiest *busiest, const struct netobs_flow *flow);

/* The busiest first. Nothing can be added until busiest_clear(). */
void busiest_sort(struct busiest *busiest);

void busiest_clear(struct busiest *busiest);
void busiest_free(struct busiest *busiest);

#endif
