/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* The addresses of tunnels, which the kernel keeps apart from the flows. */
#ifndef NETOBS_ENGINE_TUNNEL_ADDRS_H
#define NETOBS_ENGINE_TUNNEL_ADDRS_H

#include "bpf/types.h"

#include <stdbool.h>

enum { OUTERS_CACHED = 256 };

/* Few tunnels have many flows: what was asked for last is kept. */
struct outers {
	int fd; /* of the BPF map; -1: there is none */
	struct {
		struct outer_key key;
		struct outer_addrs addrs;
		bool is_known;
	} cache[OUTERS_CACHED];
};

/* @fd stays the caller's. */
void outers_init(struct outers *outers, int fd);

/* False: the kernel has forgotten them, for others that came since. */
bool outers_find(struct outers *outers, const struct flow_entry *entry,
		 struct outer_addrs *ret_addrs);

#endif
