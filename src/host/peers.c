/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include "peers.h"

#include "netns.h"
#include "rtnl.h"
#include "base/util.h"

/* place.nsids, beside ids, which are not negative. */
enum { NSID_UNASKED = -1, NSID_NONE = -2 };

static int open_query(const struct place *place)
{
	int back, fd, err;

	if (!place->ns)
		return rtnl_open(0);
	err = netns_enter(shared_fd_get(place->ns), &back);
	if (err)
		return err;
	fd = rtnl_open(0);
	netns_leave(back);
	return fd;
}

static int32_t ask_nsid(int query_fd, const struct place *place)
{
	cleanup_fd int own = place->name ? -1 : netns_open_own();
	int nsid = rtnl_nsid(query_fd,
			     place->name ? shared_fd_get(place->ns) : own);

	return nsid < 0 ? NSID_NONE : nsid;
}

/* The id of a namespace that is gone may be another one's by now. */
static uint16_t known_place(const struct watch *watch, const struct place *from,
			    int32_t nsid)
{
	for (uint32_t i = 0; i < from->n_nsids; i++)
		if (from->nsids[i] == nsid && watch->places[i].rtnl_fd >= 0)
			return i;
	return PLACE_NONE;
}

/* Places may have been added. */
static bool reserve_nsids(const struct watch *watch, struct place *place)
{
	int32_t *nsids;

	if (place->n_nsids == watch->n_places)
		return true;
	nsids = reallocarray(place->nsids, watch->n_places, sizeof(*nsids));
	if (!nsids)
		return false;
	place->nsids = nsids;
	while (place->n_nsids < watch->n_places)
		place->nsids[place->n_nsids++] = NSID_UNASKED;
	return true;
}

/* A namespace gets its id when a link to it is listed for the first time. */
static uint16_t find_place(const struct watch *watch, struct place *from,
			   int32_t nsid)
{
	uint16_t known = known_place(watch, from, nsid);
	bool is_asked = known == PLACE_NONE && reserve_nsids(watch, from);
	cleanup_fd int fd = is_asked ? open_query(from) : -1;

	for (uint32_t i = 0; fd >= 0 && i < watch->n_places; i++) {
		const struct place *place = &watch->places[i];

		if (place == from || place->rtnl_fd < 0 || from->nsids[i] >= 0)
			continue;
		from->nsids[i] = ask_nsid(fd, place);
		if (from->nsids[i] == nsid)
			return i;
	}
	return known;
}

void peers_resolve(const struct watch *watch, struct place *place,
		   struct netif *netif)
{
	if (netif->is_link_known)
		return;
	netif->is_link_known = true;
	if (netif->link_nsid == NSID_SAME)
		netif->link_place = place->index;
	else
		netif->link_place = find_place(watch, place, netif->link_nsid);
}

static void forget_links(struct netifs *netifs, uint16_t place)
{
	for (uint32_t i = 0; i < netifs->count; i++)
		if (netifs->items[i].link_place == place)
			netifs->items[i].is_link_known = false;
}

void peers_forget(struct watch *watch, uint16_t place)
{
	for (uint32_t i = 0; i < watch->n_places; i++) {
		struct place *other = &watch->places[i];

		if (place < other->n_nsids)
			other->nsids[place] = NSID_UNASKED;
		if (i != place)
			forget_links(&other->netifs, place);
	}
	watch->places[place].n_nsids = 0;
}
