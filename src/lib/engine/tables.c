// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "tables.h"

#include "base/util.h"
#include "filter/filter.h"
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

/* ---- Rates --------------------------------------------------------------------------- */

static uint32_t find_rate(const struct rate *table, uint32_t n,
			  const struct rate *rate)
{
	uint32_t i = 0;

	while (rate->interval && i < n && !rate_is_same(&table[i], rate))
		i++;
	return i;
}

uint32_t rates_number(const struct rate numbers[RATES], const struct rate *rate)
{
	return find_rate(numbers, RATES, rate);
}

static bool has_number(const struct rates *rates, uint32_t id)
{
	for (uint32_t i = 1; i < RATES; i++)
		if (rates->numbers[i].interval && rates->id_of[i] == id)
			return true;
	return false;
}

/* @return RATE_IDS: all are in use */
static uint32_t take_id(struct rates *rates, const struct rate *rate,
			const uint32_t *n_flows)
{
	uint32_t id = find_rate(rates->ids, RATE_IDS, rate);

	if (id < RATE_IDS)
		return id;
	for (id = 1; id < RATE_IDS; id++)
		if (!has_number(rates, id) && !(n_flows && n_flows[id]))
			break;
	if (id < RATE_IDS)
		rates->ids[id] = *rate;
	return id;
}

/* @return RATES: there is none */
static uint32_t find_free_number(const struct rates *rates)
{
	uint32_t number = 1;

	while (number < RATES && rates->numbers[number].interval)
		number++;
	return number;
}

static bool set_number(struct rates *rates, uint32_t number,
		       const struct rate *rate, const uint32_t *n_flows)
{
	uint32_t id = take_id(rates, rate, n_flows);

	if (id == RATE_IDS)
		return false;
	rates->numbers[number] = *rate;
	rates->id_of[number] = (uint8_t)id;
	return true;
}

void rates_adopt(struct rates *rates, const struct rate numbers[RATES])
{
	for (uint32_t i = 1; i < RATES; i++)
		if (numbers[i].interval)
			set_number(rates, i, &numbers[i], NULL);
}

int rates_take(struct rates *rates, const struct rate *list, uint32_t n,
	       const uint32_t n_flows[RATE_IDS], uint32_t *ret_new)
{
	struct rates taken = *rates;
	uint32_t new = 0;

	for (uint32_t i = 0; i < n; i++) {
		uint32_t number = rates_number(taken.numbers, &list[i]);

		taken.is_sampling |= list[i].interval != 0;
		if (number < RATES)
			continue;
		number = find_free_number(&taken);
		if (number == RATES ||
		    !set_number(&taken, number, &list[i], n_flows))
			return -EBUSY;
		new |= 1U << number;
	}
	*rates = taken;
	*ret_new = new;
	return 0;
}

void rates_keep(struct rates *rates, const struct rate *list, uint32_t n)
{
	for (uint32_t i = 1; i < RATES; i++)
		if (find_rate(list, n, &rates->numbers[i]) == n)
			rates->numbers[i] = (struct rate){ 0 };
}
