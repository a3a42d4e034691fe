/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include "netif.h"

#include "util.h"

#include <string.h>

enum { LEVELS_MAX = 8 }; /* the kernel's MAX_NEST_DEV */

void netifs_done(struct netifs *netifs)
{
	free(netifs->items);
	*netifs = (struct netifs){ 0 };
}

/* The first position whose ifindex is not smaller. */
static uint32_t position(const struct netifs *netifs, uint32_t ifindex)
{
	uint32_t low = 0, high = netifs->count;

	while (low < high) {
		uint32_t middle = (low + high) / 2;

		if (netifs->items[middle].ifindex < ifindex)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

struct netif *netifs_find(const struct netifs *netifs, uint32_t ifindex)
{
	uint32_t i = position(netifs, ifindex);

	return i < netifs->count && netifs->items[i].ifindex == ifindex ?
		       &netifs->items[i] :
		       NULL;
}

static bool reserve(struct netifs *netifs)
{
	uint32_t capacity = netifs->capacity ? netifs->capacity * 2 : 16;
	struct netif *items;

	if (netifs->count < netifs->capacity)
		return true;
	items = reallocarray(netifs->items, capacity, sizeof(*items));
	if (!items)
		return false;
	netifs->items = items;
	netifs->capacity = capacity;
	return true;
}

struct netif *netifs_ensure(struct netifs *netifs, uint32_t ifindex)
{
	struct netif *found = netifs_find(netifs, ifindex);
	uint32_t i;

	if (found)
		return found;
	if (!reserve(netifs))
		return NULL;
	i = position(netifs, ifindex);
	memmove(&netifs->items[i + 1], &netifs->items[i],
		(netifs->count - i) * sizeof(*netifs->items));
	netifs->count++;
	netifs->items[i] = (struct netif){
		.ifindex = ifindex,
		.attachment = ATTACHMENT_NONE,
	};
	return &netifs->items[i];
}

static void forget_former(struct netif *netif, int64_t before_ns)
{
	if (netif->former_ns >= before_ns)
		return;
	netif->former_master = 0;
	netif->former_lower = 0;
}

void netifs_sweep(struct netifs *netifs, int64_t before_ns)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < netifs->count; i++) {
		int64_t gone_ns = netifs->items[i].gone_ns;

		if (gone_ns && gone_ns < before_ns)
			continue;
		forget_former(&netifs->items[i], before_ns);
		netifs->items[kept++] = netifs->items[i];
	}
	netifs->count = kept;
	netifs_restack(netifs);
}

/* Put two stacks together: all members take the smaller number. */
static bool join(struct netifs *netifs, struct netif *a, const struct netif *b)
{
	uint32_t low, high;

	if (a->stack == b->stack)
		return false;
	low = a->stack < b->stack ? a->stack : b->stack;
	high = a->stack < b->stack ? b->stack : a->stack;
	for (uint32_t i = 0; i < netifs->count; i++)
		if (netifs->items[i].stack == high)
			netifs->items[i].stack = low;
	return true;
}

/* @upper is stacked on @lower. True when that changed anything. */
static bool stack_on(struct netifs *netifs, struct netif *upper,
		     struct netif *lower)
{
	bool changed;

	if (!upper || !lower)
		return false;
	changed = join(netifs, upper, lower);
	if (upper->level <= lower->level && lower->level < LEVELS_MAX) {
		upper->level = lower->level + 1;
		changed = true;
	}
	return changed;
}

/* Index 0 is no interface, and not found. */
static bool restack_one(struct netifs *netifs, struct netif *netif)
{
	bool changed = false;

	changed |= stack_on(netifs, netifs_find(netifs, netif->master), netif);
	changed |= stack_on(netifs, netifs_find(netifs, netif->former_master),
			    netif);
	changed |= stack_on(netifs, netif, netifs_find(netifs, netif->lower));
	changed |= stack_on(netifs, netif,
			    netifs_find(netifs, netif->former_lower));
	return changed;
}

static bool restack_once(struct netifs *netifs)
{
	bool changed = false;

	for (uint32_t i = 0; i < netifs->count; i++)
		changed |= restack_one(netifs, &netifs->items[i]);
	return changed;
}

void netifs_restack(struct netifs *netifs)
{
	for (uint32_t i = 0; i < netifs->count; i++) {
		netifs->items[i].stack = netifs->items[i].ifindex;
		netifs->items[i].level = 0;
	}
	while (restack_once(netifs))
		;
}
