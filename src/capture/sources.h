/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* The interfaces that the packets of a capture came from. */
#ifndef NETOBS_CAPTURE_SOURCES_H
#define NETOBS_CAPTURE_SOURCES_H

#include "bpf/capture.h"

#include <net/if.h>
#include <stdint.h>

struct host;

struct source {
	struct capture_interface_key key;
	enum link_kind link;
	const char *netns; /* of the host; NULL: the caller's own */
	char name[IF_NAMESIZE];
	uint64_t captured;
};

/* All zero: none yet. */
struct sources {
	struct source *list; /* in the order of their first packets */
	uint32_t n;
	uint32_t latest; /* of the packet before */
};

void sources_done(struct sources *sources);

/**
 * Find an interface, or add it.
 *
 * @param link  -1: any, for an interface that is known by its counters alone
 * @return its index in the list, or -ENOMEM
 */
int sources_ensure(struct sources *sources, const struct host *host,
		   struct capture_interface_key key, int link);

#endif
