/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include "host/host.h"

#include "base/clock.h"
#include "host/rtnl.h"
#include "host/topology.h"
#include "base/util.h"

#include <errno.h>
#include <poll.h>
#include <string.h>

enum {
	/* Interfaces that take longer to attach to are attached to later. */
	START_WAIT_MS = 1500,
	DETACH_WAIT_MS = 2000,
};

static void place_done(struct place *place)
{
	for (int i = 0; i < LINK_KINDS; i++)
		for (int d = NETOBS_INGRESS; d <= NETOBS_EGRESS; d++)
			shared_fd_unref(place->programs[i][d]);
	close_fd(&place->rtnl_fd);
	shared_fd_unref(place->ns);
	netifs_done(&place->netifs);
	patterns_done(&place->include);
	free(place->nsids);
	free(place->name);
}

void watch_done(struct watch *watch)
{
	watch_detach(watch);
	attacher_done(&watch->attacher, watch->leave_ns);
	for (uint32_t i = 0; i < watch->n_places; i++)
		place_done(&watch->places[i]);
	free(watch->places);
	patterns_done(&watch->exclude);
	*watch = (struct watch){ 0 };
}

static bool is_selected(const struct watch *watch, const struct place *place,
			const char *name)
{
	return !watch->leave_ns &&
	       (place->everything || patterns_match(&place->include, name)) &&
	       !patterns_match(&watch->exclude, name);
}

static int ensure_programs(struct watch *watch, struct place *place,
			   enum link_kind link)
{
	struct shared_fd **shared = place->programs[link];
	struct programs programs;
	int err;

	if (shared[NETOBS_INGRESS] && shared[NETOBS_EGRESS])
		return 0;
	err = store_load_programs(watch->store, place->index, link, &programs);
	if (err)
		return err;
	for (int d = NETOBS_INGRESS; d <= NETOBS_EGRESS; d++) {
		shared_fd_unref(shared[d]);
		shared[d] = shared_fd_new(programs.fds[d]);
	}
	return shared[NETOBS_INGRESS] && shared[NETOBS_EGRESS] ? 0 : -ENOMEM;
}

/* As bits 1 << enum netobs_direction. */
static uint8_t observed_directions(const struct watch *watch)
{
	const bool *directions = watch->attach.directions;

	return directions[NETOBS_INGRESS] << NETOBS_INGRESS |
	       directions[NETOBS_EGRESS] << NETOBS_EGRESS;
}

/* Messages about an interface come often: once is enough. */
static void refuse(const struct watch *watch, struct netif *netif)
{
	if (!netif->is_refused)
		log_warning(watch->log,
			    "%s: link type %u is not supported, not observed",
			    netif->name, netif->hardware);
	netif->is_refused = true;
}

/* Have the programs put on, or what there is of them looked after. */
static int put_on(struct watch *watch, struct place *place, struct netif *netif)
{
	int link = netif_link_kind(netif), err;
	struct hook_job *job;

	if (link < 0) {
		refuse(watch, netif);
		return link;
	}
	err = ensure_programs(watch, place, link);
	if (err)
		return err;
	job = hook_job_new(HOOK_ATTACH, netif->ifindex, place->ns);
	if (!job)
		return -ENOMEM;
	job->place = place->index;
	job->incarnation = netif->incarnation;
	for (int d = NETOBS_INGRESS; d <= NETOBS_EGRESS; d++)
		job->programs[d] = shared_fd_ref(place->programs[link][d]);
	job->attachment = netif->attachment;
	netif->attachment = ATTACHMENT_NONE;
	netif->is_busy = true;
	netif->observed = observed_directions(watch);
	attacher_add(&watch->attacher, job);
	return 0;
}

/* From now on a job that is under way has nothing to bring back. */
static void disown(struct watch *watch, struct netif *netif)
{
	netif->incarnation = ++watch->incarnations;
	netif->is_busy = false;
	watch->n_attached -= netif->is_attached;
	netif->is_attached = false;
	memset(netif->shadows, 0, sizeof(netif->shadows));
}

static void take_off(struct watch *watch, struct place *place, struct netif *netif)
{
	struct hook_job *job;

	disown(watch, netif);
	if (!is_attached(&netif->attachment))
		return;
	job = hook_job_new(HOOK_DETACH, netif->ifindex, place->ns);
	if (!job) {
		attachment_drop(&netif->attachment);
		return;
	}
	job->attachment = netif->attachment;
	netif->attachment = ATTACHMENT_NONE;
	attacher_add(&watch->attacher, job);
}

static void note_error(struct watch *watch, const char *name, int err)
{
	/* Between the message and the attaching it went away. */
	int level = err == -ENODEV ? NETOBS_LOG_DEBUG : NETOBS_LOG_ERROR;

	log_write(watch->log, level, "%s: cannot attach: %s", name,
		  strerror(-err));
	watch->attach_error = err;
}

static void apply_selection(struct watch *watch, struct place *place,
			    struct netif *netif)
{
	bool wanted = is_selected(watch, place, netif->name);
	int err;

	if (wanted == (netif->is_busy || netif->is_attached))
		return;
	if (!wanted) {
		take_off(watch, place, netif);
		netif->observed = 0;
		log_info(watch->log, "%s: no longer observed", netif->name);
		return;
	}
	err = put_on(watch, place, netif);
	if (err)
		watch->attach_error = err;
}

static void keep(struct watch *watch, struct netif *netif,
		 struct attachment *attachment)
{
	netif->attachment = *attachment;
	*attachment = ATTACHMENT_NONE;
	if (netif->is_attached)
		return;
	netif->is_attached = true;
	watch->n_attached++;
	log_info(watch->log, "%s: observing", netif->name);
}

/* A job that put programs on is done. */
static void settle(struct watch *watch, struct netif *netif, struct hook_job *job)
{
	netif->is_busy = false;
	if (!job->err) {
		keep(watch, netif, &job->attachment);
		watch_note_shadows(watch, netif, job);
		return;
	}
	disown(watch, netif);
	netif->observed = 0;
	watch->is_changed = true;
	note_error(watch, netif->name, job->err);
}

static struct netif *find_owner(const struct watch *watch,
				const struct hook_job *job)
{
	struct netif *netif =
		netifs_find(&watch->places[job->place].netifs, job->ifindex);

	return netif && netif->incarnation == job->incarnation ? netif : NULL;
}

static void on_job(void *ctx, struct hook_job *job)
{
	struct watch *watch = ctx;
	struct netif *netif = NULL;

	if (job->work != HOOK_DETACH)
		netif = find_owner(watch, job);
	if (job->work == HOOK_LOOK)
		watch->n_looking--;
	if (netif && job->work == HOOK_LOOK)
		watch_note_shadows(watch, netif, job);
	else if (netif)
		settle(watch, netif, job);
	if (!is_attached(&job->attachment)) {
		hook_job_free(job);
		return;
	}
	/* The interface went away meanwhile, or is no longer chosen. */
	job->work = HOOK_DETACH;
	attacher_add(&watch->attacher, job);
}

void watch_collect(struct watch *watch)
{
	attacher_collect(&watch->attacher, on_job, watch);
	if (watch->is_changed)
		topology_update(watch);
	watch->is_changed = false;
}

void watch_lose(struct watch *watch, struct netif *netif)
{
	bool was_observed = netif->is_attached;
	struct hook_job *job = NULL;

	disown(watch, netif);
	netif->gone_ns = clock_boot_ns();
	/* It took its filters with it; links are left, and closing takes a while. */
	attachment_forget_filters(&netif->attachment);
	if (has_link(&netif->attachment))
		job = hook_job_new(HOOK_DETACH, netif->ifindex, NULL);
	if (job) {
		job->attachment = netif->attachment;
		netif->attachment = ATTACHMENT_NONE;
		attacher_add(&watch->attacher, job);
	}
	attachment_drop(&netif->attachment);
	if (was_observed)
		log_info(watch->log, "%s: gone", netif->name);
}

/* What was counted on the way it was stacked until now is read later. */
static void note_former(struct netif *netif, const struct rtnl_link *link)
{
	if (!netif->master || netif->master == link->master)
		return;
	netif->former_master = netif->master;
	netif->former_ns = clock_boot_ns();
}

static void update_netif(struct netif *netif, const struct rtnl_link *link)
{
	note_former(netif, link);
	if (netif->link != link->link || netif->link_nsid != link->link_nsid ||
	    netif->gone_ns)
		netif->is_link_known = false;
	if (netif->hardware != link->hardware || netif->gone_ns)
		netif->is_refused = false;
	netif->gone_ns = 0;
	netif->master = link->master;
	netif->link = link->link;
	netif->link_nsid = link->link_nsid;
	netif->type = link->type;
	netif->hardware = link->hardware;
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
	struct watch *watch = update->watch;
	struct rtnl_link link;
	struct netif *netif;

	if (!rtnl_parse_link(message, &link))
		return;
	if (link.deleted) {
		netif = netifs_find(&update->place->netifs, link.ifindex);
		if (netif && !netif->gone_ns)
			watch_lose(watch, netif);
		return;
	}
	netif = netifs_ensure(&update->place->netifs, link.ifindex);
	if (!netif) {
		log_error(watch->log, "%s: not observed: no memory", link.name);
		return;
	}
	if (netif->gone_ns || !netif->incarnation)
		netif->incarnation = ++watch->incarnations;
	netif->listing = update->place->listings;
	update_netif(netif, &link);
	apply_selection(watch, update->place, netif);
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
				  place->name ? "netns:" : "", place->name ?: "",
				  place->name ? "/" : "", pattern->text);
			return -ENODEV;
		}
	}
	return 0;
}

/* An interface that was asked for and cannot be observed is an error at start. */
static int check_attached(const struct watch *watch, const struct place *place)
{
	for (uint32_t i = 0; i < place->netifs.count; i++) {
		const struct netif *netif = &place->netifs.items[i];

		if (place->everything || netif->is_attached || netif->is_busy ||
		    !is_selected(watch, place, netif->name))
			continue;
		return watch->attach_error ?: -EOPNOTSUPP;
	}
	return 0;
}

/* After lost messages anything may have happened to an interface that is there. */
static void look_after(struct watch *watch, struct place *place,
		       struct netif *netif)
{
	if (netif->is_attached && !netif->is_busy)
		put_on(watch, place, netif);
}

/* What a list did not name is gone. */
static int end_listing(struct watch *watch, struct place *place)
{
	place->is_listing = false;
	for (uint32_t i = 0; i < place->netifs.count; i++) {
		struct netif *netif = &place->netifs.items[i];

		if (!netif->gone_ns && netif->listing != place->listings)
			watch_lose(watch, netif);
		else if (!netif->gone_ns && place->listings > 1)
			look_after(watch, place, netif);
	}
	return place->is_overrun ? place_list(place) : 0;
}

static int note_overrun(struct watch *watch, struct place *place)
{
	log_debug(watch->log, "netlink overrun, listing interfaces again");
	place->is_overrun = true;
	return place->is_listing ? 0 : place_list(place);
}

static int receive(struct watch *watch, struct place *place, bool wait)
{
	struct update update = { watch, place };
	int ret = rtnl_receive(place->rtnl_fd, wait, on_link, &update);

	if (ret == -ENOBUFS)
		return note_overrun(watch, place);
	if (ret > 0 && place->is_listing)
		return end_listing(watch, place);
	return ret < 0 ? ret : 0;
}

static void complain(const struct watch *watch, const struct place *place, int err)
{
	if (place->name)
		log_error(watch->log, "interfaces: netns:%s: %s%s", place->name,
			  strerror(-err),
			  err == -EPERM ? ": entering another network namespace "
					  "needs CAP_SYS_ADMIN" :
					  "");
}

/* Of two names for one namespace the first stays, with the patterns of both. */
static int unite(struct watch *watch, struct place *first, struct place *second)
{
	int err = patterns_move(&first->include, &second->include);

	if (err)
		return err;
	place_close(watch, second);
	second->is_retired = true;
	free(TAKE_PTR(second->name));
	for (uint32_t i = 0; i < first->netifs.count; i++)
		apply_selection(watch, first, &first->netifs.items[i]);
	return check_names(watch, first);
}

static struct place *find_same(const struct watch *watch,
			       const struct place *place)
{
	for (struct place *other = watch->places; other < place; other++)
		if (other->rtnl_fd >= 0 && other->inode == place->inode)
			return other;
	return NULL;
}

static int start_place(struct watch *watch, struct place *place)
{
	struct place *same;

	/* Before the attaching itself, so that a load error is reported as one. */
	int err = ensure_programs(watch, place, LINK_ETHERNET);

	if (err)
		return err;
	err = place_open(watch, place);
	if (err)
		complain(watch, place, err);
	same = err ? NULL : find_same(watch, place);
	if (same)
		return unite(watch, same, place);
	while (!err && place->is_listing)
		err = receive(watch, place, true);
	return err ?: check_names(watch, place);
}

/* Whether a job for an interface that was named is still under way. */
static bool is_named_one_busy(const struct watch *watch)
{
	for (uint32_t i = 0; i < watch->n_places; i++) {
		const struct place *place = &watch->places[i];

		for (uint32_t k = 0; k < place->netifs.count; k++)
			if (place->netifs.items[k].is_busy &&
			    patterns_name(&place->include,
					  place->netifs.items[k].name))
				return true;
	}
	return false;
}

static void wait_attached(struct watch *watch)
{
	int64_t deadline = clock_boot_ns() + START_WAIT_MS * NSEC_PER_MSEC;
	struct pollfd fd = { .fd = attacher_fd(&watch->attacher),
			     .events = POLLIN };

	attacher_go(&watch->attacher);
	while (attacher_is_busy(&watch->attacher) &&
	       (clock_boot_ns() < deadline || is_named_one_busy(watch))) {
		poll(&fd, 1, 100);
		watch_collect(watch);
	}
}

/* Interfaces that are not observed from the start on. */
static void warn_of_delay(const struct watch *watch)
{
	const struct attacher *attacher = &watch->attacher;

	if (attacher_is_busy(attacher) && !attacher->can_expedite &&
	    watch->attach.use_tcx)
		log_warning(watch->log,
			    "more interfaces follow in the background: each takes 30 ms while grace periods "
			    "cannot be expedited (/sys/kernel/rcu_expedited)");
}

int watch_start(struct watch *watch, struct store *store,
		const struct attach_options *attach_options, bool expedite)
{
	int err = attacher_init(&watch->attacher, attach_options, expedite);

	watch->store = store;
	watch->attach = *attach_options;
	for (uint32_t i = 0; !err && i < watch->n_places; i++)
		err = start_place(watch, &watch->places[i]);
	err = err ?: topology_update(watch);
	if (err)
		return err;
	wait_attached(watch);
	warn_of_delay(watch);
	for (uint32_t i = 0; !err && i < watch->n_places; i++)
		err = check_attached(watch, &watch->places[i]);
	if (err || watch->n_attached || attacher_is_busy(&watch->attacher))
		return err;
	if (!watch->attach_error)
		log_warning(watch->log, "no interface to observe yet");
	return watch->attach_error;
}

int watch_update(struct watch *watch, struct place *place)
{
	int err;

	if (place->rtnl_fd < 0)
		return 0;
	err = receive(watch, place, false);
	/* Before programs are put on: what comes in there will be counted. */
	topology_update(watch);
	attacher_go(&watch->attacher);
	return err;
}

void watch_detach(struct watch *watch)
{
	if (!watch->leave_ns)
		watch->leave_ns =
			clock_boot_ns() + DETACH_WAIT_MS * NSEC_PER_MSEC;
	for (uint32_t i = 0; i < watch->n_places; i++) {
		struct place *place = &watch->places[i];

		for (uint32_t k = 0; k < place->netifs.count; k++)
			take_off(watch, place, &place->netifs.items[k]);
	}
	attacher_leave(&watch->attacher);
}

bool watch_is_detached(const struct watch *watch)
{
	return !attacher_is_busy(&watch->attacher) ||
	       clock_boot_ns() >= watch->leave_ns;
}

void watch_sweep(struct watch *watch, int64_t before_ns)
{
	bool changed = false;

	for (uint32_t i = 0; i < watch->n_places; i++)
		changed |= netifs_sweep(&watch->places[i].netifs, before_ns);
	if (changed)
		topology_update(watch);
}

const struct netif *watch_find(const struct watch *watch, uint16_t place,
			       uint32_t ifindex)
{
	return place < watch->n_places ?
		       netifs_find(&watch->places[place].netifs, ifindex) :
		       NULL;
}
