// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "tables.h"

#include "base/util.h"
#include "map.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <string.h>

/* ---- Origins ------------------------------------------------------------------------ */

enum { SLOTS_SIZE = ORIGIN_SLOTS * sizeof(uint64_t) };

/* False without memory. */
static bool put_more(struct origins *origins, uint64_t origin)
{
	uint32_t n = origins->n_more + origins->n_wanted_more;

	if (!array_reserve(&origins->more, n, &origins->more_capacity,
			   sizeof(*origins->more), 16))
		return false;
	origins->more[n] = origin;
	origins->n_wanted_more++;
	return true;
}

/* List what an earlier process left in the table. */
static int list_more(struct origins *origins)
{
	uint64_t origin, *last = NULL;

	while (!bpf_map_get_next_key(origins->more_fd, last, &origin)) {
		if (!put_more(origins, origin))
			return -ENOMEM;
		last = &origins->more[origins->n_wanted_more - 1];
	}
	origins->n_more = origins->n_wanted_more;
	origins->n_wanted_more = 0;
	return 0;
}

int origins_init(struct origins *origins, int slots_fd, int more_fd)
{
	void *slots = map_mmap(slots_fd, 0, SLOTS_SIZE);

	if (!slots)
		return -errno;
	*origins = (struct origins){
		.slots = slots,
		.more_fd = more_fd,
		.wanted = calloc(ORIGIN_SLOTS, sizeof(*origins->wanted)),
	};
	return origins->wanted ? list_more(origins) : -ENOMEM;
}

void origins_done(struct origins *origins)
{
	map_munmap(origins->slots, SLOTS_SIZE);
	free(origins->wanted);
	free(origins->more);
	*origins = (struct origins){ 0 };
}

void origins_begin(struct origins *origins)
{
	memset(origins->wanted, 0, SLOTS_SIZE);
	origins->n_wanted_more = 0;
}

void origins_put(struct origins *origins, uint16_t netns, uint32_t ifindex)
{
	uint64_t *slot = &origins->wanted[origin_slot(netns, ifindex)];
	uint64_t origin = origin_of(netns, ifindex);

	if (!*slot)
		*slot = origin;
	else if (put_more(origins, origin))
		*slot |= ORIGIN_MORE;
}

static bool has_origin(const uint64_t *list, uint32_t n, uint64_t origin)
{
	for (uint32_t i = 0; i < n; i++)
		if (list[i] == origin)
			return true;
	return false;
}

/* Whatever is in a slot or in the table is found, at any moment of this. */
void origins_end(struct origins *origins)
{
	const uint64_t *wanted_more = origins->more + origins->n_more;
	const uint8_t yes = 1;

	for (uint32_t i = 0; i < origins->n_wanted_more; i++)
		bpf_map_update_elem(origins->more_fd, &wanted_more[i], &yes,
				    BPF_ANY);
	for (uint32_t i = 0; i < ORIGIN_SLOTS; i++)
		if (origins->slots[i] != origins->wanted[i])
			__atomic_store_n(&origins->slots[i], origins->wanted[i],
					 __ATOMIC_RELEASE);
	for (uint32_t i = 0; i < origins->n_more; i++)
		if (!has_origin(wanted_more, origins->n_wanted_more,
				origins->more[i]))
			bpf_map_delete_elem(origins->more_fd, &origins->more[i]);
	if (origins->n_wanted_more)
		memmove(origins->more, wanted_more,
			origins->n_wanted_more * sizeof(*wanted_more));
	origins->n_more = origins->n_wanted_more;
	origins->n_wanted_more = 0;
}

/* ---- Addresses of tunnels ----------------------------------------------------------- */

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
