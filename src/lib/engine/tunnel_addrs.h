/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* The addresses of tunnels, which the kernel keeps apart from the flows. */
#ifndef NETOBS_ENGINE_TUNNEL_ADDRS_H
#define NETOBS_ENGINE_TUNNEL_ADDRS_H

#include "bpf/types.h"

#include <stdbool.h>

enum { TUNNELS_CACHED = 256 };

/* A cache of addresses that were looked up: few tunnels have many flows. */
struct tunnel_addrs_cache {
	int fd; /* of the BPF map; -1: there is none */
	struct {
		struct tunnel_key key;
		struct tunnel_addrs addrs;
		bool is_known;
	} slots[TUNNELS_CACHED];
};

/* @fd: the map; stays the caller's */
void tunnel_addrs_init(struct tunnel_addrs_cache *cache, int fd);

/* @return false: newer tunnels have evicted the addresses from the kernel's map */
bool tunnel_addrs_find(struct tunnel_addrs_cache *cache,
		       const struct flow_entry *entry,
		       struct tunnel_addrs *ret_addrs);

#endif
