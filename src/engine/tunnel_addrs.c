// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "tunnel_addrs.h"

#include <bpf/bpf.h>
#include <string.h>

void outers_init(struct outers *outers, int fd)
{
	memset(outers, 0, sizeof(*outers));
	outers->fd = fd;
}

bool outers_find(struct outers *outers, const struct flow_entry *entry,
		 struct outer_addrs *ret_addrs)
{
	struct outer_key key = { entry->key.outer_hash, entry->outer_check };
	__typeof__(&outers->cache[0]) cached =
		&outers->cache[key.hash % OUTERS_CACHED];

	if (!cached->is_known || memcmp(&cached->key, &key, sizeof(key))) {
		struct outer_addrs addrs;

		if (bpf_map_lookup_elem(outers->fd, &key, &addrs))
			return false;
		cached->key = key;
		cached->addrs = addrs;
		cached->is_known = true;
	}
	*ret_addrs = cached->addrs;
	return true;
}
