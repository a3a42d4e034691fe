// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/* Namespaces that come and go. */
#include "host.h"

#include "netns.h"
#include "peers.h"
#include "rtnl.h"
#include "base/util.h"

#include <errno.h>
#include <linux/if_link.h>
#include <string.h>
#include <sys/socket.h>

/* A place is known to the programs by 16 bits. */
enum { PLACES_MAX = 1 << 15 };

struct place *watch_add_place(struct watch *watch, char *name)
{
	struct place *places;

	if (watch->n_places == PLACES_MAX) {
		free(name);
		return NULL;
	}
	places = reallocarray(watch->places, watch->n_places + 1,
			      sizeof(*places));
	if (!places) {
		free(name);
		return NULL;
	}
	watch->places = places;
	places[watch->n_places] =
		PLACE_INIT(.index = watch->n_places, .name = name);
	return &places[watch->n_places++];
}

static int request_links(const struct place *place)
{
	struct ifinfomsg header = { .ifi_family = AF_UNSPEC };

	return rtnl_request_dump(place->rtnl_fd, RTM_GETLINK, &header,
				 sizeof(header));
}

int place_list(struct place *place)
{
	int err = request_links(place);

	if (err)
		return err;
	place->listings++;
	place->is_listing = true;
	place->is_overrun = false;
	return 0;
}

static int open_rtnl(struct place *place)
{
	int back, fd, err;

	if (!place->ns) {
		place->rtnl_fd = rtnl_open(RTMGRP_LINK);
		return place->rtnl_fd < 0 ? place->rtnl_fd : 0;
	}
	err = netns_enter(shared_fd_get(place->ns), &back);
	if (err)
		return err;
	fd = rtnl_open(RTMGRP_LINK);
	netns_leave(back);
	place->rtnl_fd = fd;
	return fd < 0 ? fd : 0;
}

static int open_ns(struct place *place)
{
	cleanup_fd int own = -1;
	int fd;

	if (!place->name) {
		own = netns_open_own();
		return own < 0 ? own : netns_inode(own, &place->inode);
	}
	fd = netns_open(place->name);
	if (fd < 0)
		return fd;
	place->ns = shared_fd_new(fd);
	return place->ns ? netns_inode(fd, &place->inode) : -ENOMEM;
}

int place_open(struct watch *watch, struct place *place)
{
	int err = open_ns(place);

	peers_forget(watch, place->index);
	err = err ?: open_rtnl(place);
	err = err ?: place_list(place);
	if (!err)
		return 0;
	close_fd(&place->rtnl_fd);
	shared_fd_unref(TAKE_PTR(place->ns));
	return err;
}

void place_close(struct watch *watch, struct place *place)
{
	for (uint32_t i = 0; i < place->netifs.count; i++)
		if (!place->netifs.items[i].gone_ns)
			watch_lose(watch, &place->netifs.items[i]);
	close_fd(&place->rtnl_fd);
	shared_fd_unref(TAKE_PTR(place->ns));
	place->is_listing = false;
	place->is_polled = false;
}

bool watch_has_names(const struct watch *watch)
{
	for (uint32_t i = 0; i < watch->n_places; i++)
		if (watch->places[i].name)
			return true;
	return false;
}

/* A place whose last flows have been reported; NULL: none. */
static struct place *find_unused(const struct watch *watch)
{
	for (uint32_t i = 0; i < watch->n_places; i++)
		if (watch->places[i].is_retired && !watch->places[i].netifs.count)
			return &watch->places[i];
	return NULL;
}

/*
 * Flows of the namespace that is gone are still to be reported, so the new one of
 * that name has a place of its own.
 */
static struct place *replace(struct watch *watch, struct place *old)
{
	uint32_t index = old->index;
	struct place *place;

	if (!old->netifs.count)
		return old;
	place = find_unused(watch) ?: watch_add_place(watch, NULL);
	if (!place)
		return NULL;
	old = &watch->places[index]; /* it may have moved */
	place->name = TAKE_PTR(old->name);
	place->include = old->include;
	old->include = (struct patterns){ 0 };
	old->is_retired = true;
	place->is_retired = false;
	return place;
}

/*
 * A process id may be another process' by now. Names of ip-netns(8) and other paths
 * mean what they lead to.
 */
static bool may_return(const struct place *place)
{
	return strncmp(place->name, "/proc/", strlen("/proc/")) != 0;
}

static void check_name(struct watch *watch, uint32_t index)
{
	struct place *place = &watch->places[index];

	if (place->rtnl_fd >= 0) {
		if (netns_is(place->name, shared_fd_get(place->ns)))
			return;
		log_info(watch->log, "netns:%s: the namespace is gone",
			 place->name);
		place_close(watch, place);
	}
	/* A name that has no namespace yet is a file for a moment. */
	if (!may_return(place) || !netns_exists(place->name))
		return;
	place = replace(watch, place);
	if (place && !place_open(watch, place))
		log_info(watch->log, "netns:%s: observing it again", place->name);
}

void watch_check_names(struct watch *watch)
{
	uint32_t n = watch->n_places;

	for (uint32_t i = 0; i < n; i++)
		if (watch->places[i].name)
			check_name(watch, i);
	attacher_go(&watch->attacher);
}
