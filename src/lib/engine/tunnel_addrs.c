// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "tables.h"

#include <bpf/bpf.h>
#include <string.h>

void tunnel_addrs_init(struct tunnel_addrs_cache *cache, int fd)
{
	memset(cache, 0, sizeof(*cache));
	cache->fd = fd;
}

bool tunnel_addrs_find(struct tunnel_addrs_cache *cache,
		       const struct flow_entry *entry,
		       struct tunnel_addrs *ret_addrs)
{
	struct tunnel_key key = { entry->key.outer_hash, entry->outer_check };
	__typeof__(&cache->slots[0]) slot =
		&cache->slots[key.hash % TUNNELS_CACHED];

	if (!slot->is_known || memcmp(&slot->key, &key, sizeof(key))) {
		struct tunnel_addrs addrs;

		if (bpf_map_lookup_elem(cache->fd, &key, &addrs))
			return false;
		slot->key = key;
		slot->addrs = addrs;
		slot->is_known = true;
	}
	*ret_addrs = slot->addrs;
	return true;
}
