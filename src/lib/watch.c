/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include "watch.h"

#include "clock.h"
#include "netns.h"
#include "rtnl.h"
#include "util.h"

#include <errno.h>
#include <linux/if_arp.h>
#include <string.h>

static const char netns_prefix[] = "netns:";

static void place_done(struct place *place)
{
	for (int i = 0; i < LINK_KINDS; i++)
		programs_close(&place->programs[i]);
	close_fd(&place->rtnl_fd);
	close_fd(&place->ns_fd);
	netifs_done(&place->netifs);
	patterns_done(&place->include);
	free(place->name);
}

static bool is_named(const struct place *place, const char *name, size_t len)
{
	if (!place->name)
		return !len;
	return strlen(place->name) == len && !memcmp(place->name, name, len);
}

/* The place called by the first @len bytes of @name; none: the caller's own. */
static int ensure_place(struct watch *watch, const char *name, size_t len,
			struct place **ret_place)
{
	struct place *places;
	char *copy = NULL;

	for (uint32_t i = 0; i < watch->n_places; i++) {
		if (is_named(&watch->places[i], name, len)) {
			*ret_place = &watch->places[i];
			return 0;
		}
	}
	places = reallocarray(watch->places, watch->n_places + 1,
			      sizeof(*places));
	if (!places)
		return -ENOMEM;
	watch->places = places;
	if (len) {
		copy = strndup(name, len);
		if (!copy)
			return -ENOMEM;
	}
	places[watch->n_places] = (struct place){
		.index = watch->n_places,
		.name = copy,
		.ns_fd = -1,
		.rtnl_fd = -1,
		.programs = { { { -1, -1 } }, { { -1, -1 } } },
	};
	*ret_place = &places[watch->n_places++];
	return 0;
}

/*
 * Where the interface begins in netns:NAME/INTERFACE. A path has slashes too,
 * and so has a /regex/: "netns:/run/netns/a//^eth/" ends in one.
 */
static const char *split_netns(const char *spec)
{
	size_t len = strlen(spec);
	const char *slash = strrchr(spec, '/');

	if (!slash || slash != spec + len - 1)
		return slash;
	for (const char *p = slash - 1; p > spec; p--)
		if (p[0] == '/' && p[-1] == '/')
			return p - 1;
	return NULL;
}

static int add_include(struct watch *watch, const char *spec)
{
	const char *name = spec, *slash;
	struct place *place;
	size_t len = 0;
	int err;

	if (!strncmp(spec, netns_prefix, strlen(netns_prefix))) {
		name = spec + strlen(netns_prefix);
		slash = split_netns(name);
		if (!slash || slash == name || !slash[1]) {
			log_error(watch->log,
				  "interfaces: '%s': expected netns:NAME/INTERFACE",
				  spec);
			return -EINVAL;
		}
		len = slash - name;
	}
	err = ensure_place(watch, name, len, &place);
	if (err)
		return err;
	return patterns_add(&place->include, len ? name + len + 1 : spec,
			    "interfaces", watch->log);
}

int watch_init(struct watch *watch, const struct log *log,
	       const char *const *interfaces, const char *const *exclude)
{
	struct place *own;
	int err = 0;

	*watch = (struct watch){ .log = log };
	for (; !err && exclude && *exclude; exclude++)
		err = patterns_add(&watch->exclude, *exclude, "exclude", log);
	for (; !err && interfaces && *interfaces; interfaces++)
		err = add_include(watch, *interfaces);
	if (err || watch->n_places)
		return err;
	err = ensure_place(watch, "", 0, &own);
	if (!err)
		own->everything = true;
	return err;
}

void watch_done(struct watch *watch)
{
	watch_detach(watch);
	for (uint32_t i = 0; i < watch->n_places; i++)
		place_done(&watch->places[i]);
	free(watch->places);
	patterns_done(&watch->exclude);
	*watch = (struct watch){ 0 };
}

static bool is_selected(const struct watch *watch, const struct place *place,
			const char *name)
{
	return (place->everything || patterns_match(&place->include, name)) &&
	       !patterns_match(&watch->exclude, name);
}

/* What precedes the network header; -EOPNOTSUPP: not known. */
static int link_kind_of(uint16_t hardware)
{
	switch (hardware) {
	case ARPHRD_ETHER:
	case ARPHRD_LOOPBACK:
		return LINK_ETHERNET;
	case ARPHRD_NONE: /* tun, WireGuard */
	case ARPHRD_PPP:
	case ARPHRD_RAWIP:
	case ARPHRD_TUNNEL: /* ipip */
	case ARPHRD_TUNNEL6:
	case ARPHRD_SIT:
	case ARPHRD_IPGRE:
	case ARPHRD_IP6GRE:
		return LINK_NONE;
	default:
		return -EOPNOTSUPP;
	}
}

static int ensure_programs(struct watch *watch, struct place *place,
			   enum link_kind link)
{
	if (place->programs[link].fds[0] >= 0)
		return 0;
	return store_load_programs(watch->store, place->index, link,
				   &place->programs[link]);
}

static int put_on(struct watch *watch, struct place *place, struct netif *netif)
{
	int link = link_kind_of(netif->hardware), err;

	if (link < 0) {
		log_warning(watch->log,
			    "%s: link type %u is not supported, not observed",
			    netif->name, netif->hardware);
		return link;
	}
	err = ensure_programs(watch, place, link);
	if (err)
		return err;
	err = attach(&watch->attach, netif->ifindex, netif->name,
		     &place->programs[link], &netif->attachment);
	if (!err)
		watch->n_attached++;
	return err;
}

static void take_off(struct watch *watch, struct netif *netif)
{
	if (!is_attached(&netif->attachment))
		return;
	detach(watch->log, &netif->attachment, netif->ifindex);
	watch->n_attached--;
}

/* Do @work in the place's namespace. */
static int work_in(struct watch *watch, struct place *place,
		   int (*work)(struct watch *watch, struct place *place))
{
	int back, err;

	if (place->ns_fd < 0)
		return work(watch, place);
	err = netns_enter(place->ns_fd, &back);
	if (err)
		return err;
	err = work(watch, place);
	netns_leave(back);
	return err;
}

static void apply_selection(struct watch *watch, struct place *place,
			    struct netif *netif)
{
	bool wanted = is_selected(watch, place, netif->name);
	int err;

	if (wanted == is_attached(&netif->attachment))
		return;
	if (!wanted) {
		take_off(watch, netif);
		log_info(watch->log, "%s: no longer observed", netif->name);
		return;
	}
	err = put_on(watch, place, netif);
	if (err)
		watch->attach_error = err;
	else
		log_info(watch->log, "%s: observing", netif->name);
}

static void lose(struct watch *watch, struct netif *netif)
{
	if (is_attached(&netif->attachment)) {
		attachment_drop(&netif->attachment);
		watch->n_attached--;
		log_info(watch->log, "%s: gone", netif->name);
	}
	netif->gone_ns = clock_boot_ns();
}

/* What was counted on the way it was stacked until now is read later. */
static void note_former(struct netif *netif, const struct rtnl_link *link)
{
	bool has_left = netif->master && netif->master != link->master;
	bool has_moved = netif->lower && netif->lower != link->lower;

	if (has_left)
		netif->former_master = netif->master;
	if (has_moved)
		netif->former_lower = netif->lower;
	if (has_left || has_moved)
		netif->former_ns = clock_boot_ns();
}

static void update_netif(struct netif *netif, const struct rtnl_link *link)
{
	note_former(netif, link);
	netif->gone_ns = 0;
	netif->master = link->master;
	netif->lower = link->lower;
	netif->hardware = link->hardware;
	netif->is_vlan = link->is_vlan;
	netif->vlan_id = link->vlan_id;
	memcpy(netif->name, link->name, sizeof(netif->name));
}

struct update {
	struct watch *watch;
	struct place *place;
};

static void on_link(void *ctx, const struct nlmsghdr *message)
{
	struct update *update = ctx;
	struct rtnl_link link;
	struct netif *netif;

	if (!rtnl_parse_link(message, &link))
		return;
	if (link.deleted) {
		netif = netifs_find(&update->place->netifs, link.ifindex);
		if (netif && !netif->gone_ns)
			lose(update->watch, netif);
		return;
	}
	netif = netifs_ensure(&update->place->netifs, link.ifindex);
	if (!netif) {
		log_error(update->watch->log, "%s: not observed: no memory",
			  link.name);
		return;
	}
	update_netif(netif, &link);
	apply_selection(update->watch, update->place, netif);
}

static int request_links(const struct place *place)
{
	struct ifinfomsg header = { .ifi_family = AF_UNSPEC };

	return rtnl_request_dump(place->rtnl_fd, RTM_GETLINK, &header,
				 sizeof(header));
}

/* -ENODEV for a plain name that no interface has. */
static int check_names(const struct watch *watch, const struct place *place)
{
	for (uint32_t i = 0; i < place->include.count; i++) {
		const struct pattern *pattern = &place->include.items[i];
		bool found = pattern->is_regex;

		for (uint32_t k = 0; !found && k < place->netifs.count; k++)
			found = !strcmp(place->netifs.items[k].name,
					pattern->text);
		if (!found) {
			log_error(watch->log,
				  "interfaces: %s%s%s%s: no such interface",
				  place->name ? netns_prefix : "",
				  place->name ?: "", place->name ? "/" : "",
				  pattern->text);
			return -ENODEV;
		}
	}
	return 0;
}

/* A named interface that cannot be observed is an error at start. */
static int check_attached(const struct watch *watch, const struct place *place)
{
	for (uint32_t i = 0; i < place->netifs.count; i++) {
		const struct netif *netif = &place->netifs.items[i];

		if (place->everything || is_attached(&netif->attachment) ||
		    !is_selected(watch, place, netif->name))
			continue;
		return -EOPNOTSUPP;
	}
	return 0;
}

static int start_inside(struct watch *watch, struct place *place)
{
	struct update update = { watch, place };
	int err;

	/* Before the attaching itself, so that a load error is told as one. */
	err = ensure_programs(watch, place, LINK_ETHERNET);
	if (err)
		return err;
	place->rtnl_fd = rtnl_open(RTMGRP_LINK);
	if (place->rtnl_fd < 0)
		return place->rtnl_fd;
	err = request_links(place);
	if (err)
		return err;
	err = rtnl_receive(place->rtnl_fd, true, on_link, &update);
	if (err < 0)
		return err;
	netifs_restack(&place->netifs);
	return check_names(watch, place) ?: check_attached(watch, place);
}

static int open_place(const struct watch *watch, struct place *place)
{
	cleanup_fd int own = -1;

	if (!place->name) {
		own = netns_open_own();
		return own < 0 ? own : netns_inode(own, &place->inode);
	}
	place->ns_fd = netns_open(place->name);
	if (place->ns_fd < 0) {
		log_error(watch->log, "interfaces: netns:%s: %s", place->name,
			  strerror(-place->ns_fd));
		return place->ns_fd;
	}
	return netns_inode(place->ns_fd, &place->inode);
}

int watch_start(struct watch *watch, struct store *store,
		const struct attach_options *attach_options)
{
	watch->store = store;
	watch->attach = *attach_options;
	for (uint32_t i = 0; i < watch->n_places; i++) {
		struct place *place = &watch->places[i];
		int err = open_place(watch, place);

		err = err ?: work_in(watch, place, start_inside);
		if (err)
			return err;
	}
	if (watch->n_attached)
		return 0;
	if (!watch->attach_error)
		log_warning(watch->log, "no interface to observe yet");
	return watch->attach_error;
}

/* The end of a dump after lost messages: what it did not name is gone. */
static int update_inside(struct watch *watch, struct place *place)
{
	struct update update = { watch, place };
	int ret = rtnl_receive(place->rtnl_fd, false, on_link, &update);

	if (ret == -ENOBUFS) {
		int64_t before = clock_boot_ns();

		log_debug(watch->log,
			  "netlink overrun, listing interfaces again");
		for (uint32_t i = 0; i < place->netifs.count; i++)
			if (!place->netifs.items[i].gone_ns)
				place->netifs.items[i].gone_ns = before;
		ret = request_links(place);
		ret = ret ?: rtnl_receive(place->rtnl_fd, true, on_link, &update);
		for (uint32_t i = 0; i < place->netifs.count; i++)
			if (place->netifs.items[i].gone_ns == before)
				lose(watch, &place->netifs.items[i]);
	}
	netifs_restack(&place->netifs);
	return ret < 0 ? ret : 0;
}

int watch_update(struct watch *watch, struct place *place)
{
	return work_in(watch, place, update_inside);
}

static int detach_inside(struct watch *watch, struct place *place)
{
	for (uint32_t i = 0; i < place->netifs.count; i++)
		take_off(watch, &place->netifs.items[i]);
	return 0;
}

void watch_detach(struct watch *watch)
{
	for (uint32_t i = 0; i < watch->n_places; i++)
		work_in(watch, &watch->places[i], detach_inside);
}

void watch_sweep(struct watch *watch, int64_t before_ns)
{
	for (uint32_t i = 0; i < watch->n_places; i++)
		netifs_sweep(&watch->places[i].netifs, before_ns);
}

const struct netif *watch_find(const struct watch *watch, uint16_t place,
			       uint32_t ifindex)
{
	return place < watch->n_places ?
		       netifs_find(&watch->places[place].netifs, ifindex) :
		       NULL;
}
