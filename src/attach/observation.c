/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include "observation.h"

#include "base/clock.h"
#include "base/util.h"
#include "hooks.h"

#include <errno.h>
#include <poll.h>
#include <string.h>

enum {
	/* Interfaces that take longer to attach to are attached to later. */
	START_WAIT_MS = 1500,
	DETACH_WAIT_MS = 2000,
	/* More often it is looked for shadows only after attaching. */
	LOOK_INTERVAL_MS = 5000,
};

static void on_netif(void *ctx, struct netns *netns, struct netif *netif,
		     enum host_event event)
{
	struct observation *observation = ctx;

	switch (event) {
	case HOST_CAME:
	case HOST_CHANGED:
		hooks_apply_selection(observation, netns, netif);
		break;
	case HOST_UNSURE:
		if (netif->hooks && netif->hooks->is_attached &&
		    !netif->hooks->is_busy)
			hooks_put_on(observation, netns, netif);
		break;
	case HOST_GONE:
		hooks_lose(observation, netns, netif);
		break;
	}
}

static void put_origins(struct origins *origins, const struct netns *netns)
{
	for (uint32_t i = 0; i < netns->netifs.count; i++)
		if (netns->netifs.items[i].is_origin)
			origins_put(origins, netns->index,
				    netns->netifs.items[i].ifindex);
}

/* Origins come before programs are put on: what comes in there will be counted. */
static void on_settled(void *ctx)
{
	struct observation *observation = ctx;
	const struct host *host = observation->host;
	struct origins *origins = &observation->store->origins;

	origins_begin(origins);
	for (uint32_t i = 0; i < host->n_netns; i++)
		put_origins(origins, &host->netns[i]);
	origins_end(origins);
	attacher_go(&observation->attacher);
}

void observation_collect(struct observation *observation)
{
	attacher_collect(&observation->attacher, hooks_on_job, observation);
	if (observation->is_changed)
		host_settle(observation->host);
	observation->is_changed = false;
}

/* ---- The selection ------------------------------------------------------------------- */

/* Follow the namespace of item @i, which may turn out to be that of another one. */
static int prepare_netns(struct observation *observation,
			 struct selection *selection, uint32_t i)
{
	struct host *host = observation->host;
	uint16_t index, found;
	int err = host_ensure_netns(host, selection->items[i].netns, &index);

	/* Before the attaching itself, so that a load error is reported as one. */
	err = err ?: hooks_ensure_programs(observation, index, LINK_ETHERNET);
	err = err ?: host_open(host, index, &found);
	return err ?: selection_rename(selection, i, host->netns[found].name);
}

static int check_names(const struct observation *observation,
		       const struct selection *selection)
{
	const struct host *host = observation->host;
	int err = 0;

	for (uint32_t i = 0; !err && i < host->n_netns; i++) {
		const struct netns *netns = &host->netns[i];
		const struct selected *selected =
			netns->is_retired ?
				NULL :
				selection_find(selection, netns->name);

		if (selected)
			err = selected_check_names(selected, &netns->netifs,
						   observation->log);
	}
	return err;
}

/* Follow all namespaces of @selection, and check that it can be had. */
static int prepare(struct observation *observation, struct selection *selection)
{
	int err = 0;

	for (uint32_t i = 0, n; !err && i < selection->count;) {
		n = selection->count;
		err = prepare_netns(observation, selection, i);
		i += selection->count == n;
	}
	return err ?: check_names(observation, selection);
}

static void apply_to_all(struct observation *observation)
{
	const struct host *host = observation->host;

	for (uint32_t i = 0; i < host->n_netns; i++) {
		const struct netns *netns = &host->netns[i];

		for (uint32_t k = 0; k < netns->netifs.count; k++)
			if (!netns->netifs.items[k].gone_ns)
				hooks_apply_selection(observation, netns,
						      &netns->netifs.items[k]);
	}
}

/* ---- Start and end ------------------------------------------------------------------ */

int observation_init(struct observation *observation, struct host *host,
		     const char *const *interfaces, const char *const *exclude)
{
	*observation = (struct observation){
		.log = host->log,
		.host = host,
		.listener = { on_netif, on_settled, observation, NULL },
	};
	return selection_init(&observation->selection, interfaces, exclude,
			      host->log);
}

/* An interface that was asked for and cannot be observed is an error at start. */
static int check_attached(const struct observation *observation,
			  const struct netns *netns)
{
	const struct selected *selected =
		selection_find(&observation->selection, netns->name);

	for (uint32_t i = 0; i < netns->netifs.count; i++) {
		const struct netif *netif = &netns->netifs.items[i];

		if (hooks_are_wanted(observation, netns, netif->name) &&
		    !selected->is_all && !netif->gone_ns && !hooks_are_on(netif))
			return observation->attach_error ?: -EOPNOTSUPP;
	}
	return 0;
}

/* Whether a job for an interface that was named is still under way. */
static bool is_named_one_busy(const struct observation *observation)
{
	const struct host *host = observation->host;

	for (uint32_t i = 0; i < host->n_netns; i++) {
		const struct netns *netns = &host->netns[i];
		const struct selected *selected =
			selection_find(&observation->selection, netns->name);

		for (uint32_t k = 0; selected && k < netns->netifs.count; k++) {
			const struct netif *netif = &netns->netifs.items[k];

			if (netif->hooks && netif->hooks->is_busy &&
			    patterns_name(&selected->include, netif->name))
				return true;
		}
	}
	return false;
}

static void wait_attached(struct observation *observation)
{
	int64_t deadline = clock_boot_ns() + START_WAIT_MS * NSEC_PER_MSEC;
	struct pollfd fd = { .fd = attacher_fd(&observation->attacher),
			     .events = POLLIN };

	while (attacher_is_busy(&observation->attacher) &&
	       (clock_boot_ns() < deadline || is_named_one_busy(observation))) {
		poll(&fd, 1, 100);
		observation_collect(observation);
	}
}

/* Interfaces that are not observed from the start on. */
static void warn_of_delay(const struct observation *observation)
{
	const struct attacher *attacher = &observation->attacher;

	if (attacher_is_busy(attacher) && !attacher->can_expedite &&
	    observation->attach.use_tcx)
		log_warning(observation->log,
			    "more interfaces follow in the background: each takes 30 ms while grace periods "
			    "cannot be expedited (/sys/kernel/rcu_expedited)");
}

int observation_start(struct observation *observation, struct store *store,
		      const struct attach_options *attach_options, bool expedite)
{
	int err = attacher_init(&observation->attacher, attach_options, expedite);
	struct host *host = observation->host;

	observation->store = store;
	observation->attach = *attach_options;
	host_subscribe(host, &observation->listener);
	err = err ?: prepare(observation, &observation->selection);
	if (err)
		return err;
	apply_to_all(observation);
	err = host_settle(host);
	if (err)
		return err;
	wait_attached(observation);
	warn_of_delay(observation);
	for (uint32_t i = 0; !err && i < host->n_netns; i++)
		err = check_attached(observation, &host->netns[i]);
	if (err || observation->n_attached ||
	    attacher_is_busy(&observation->attacher))
		return err;
	if (!observation->attach_error)
		log_warning(observation->log, "no interface to observe yet");
	return observation->attach_error;
}

void observation_detach(struct observation *observation)
{
	const struct host *host = observation->host;

	if (!observation->leave_ns)
		observation->leave_ns =
			clock_boot_ns() + DETACH_WAIT_MS * NSEC_PER_MSEC;
	for (uint32_t i = 0; i < host->n_netns; i++) {
		const struct netns *netns = &host->netns[i];

		for (uint32_t k = 0; k < netns->netifs.count; k++)
			hooks_take_off(observation, netns,
				       &netns->netifs.items[k]);
	}
	attacher_leave(&observation->attacher);
}

bool observation_is_detached(const struct observation *observation)
{
	return !attacher_is_busy(&observation->attacher) ||
	       clock_boot_ns() >= observation->leave_ns;
}

void observation_done(struct observation *observation)
{
	if (!observation->host)
		return;
	observation_detach(observation);
	attacher_done(&observation->attacher, observation->leave_ns);
	for (uint32_t i = 0; i < observation->n_netns; i++)
		hooks_programs_done(&observation->netns[i]);
	free(observation->netns);
	selection_done(&observation->selection);
	*observation = (struct observation){ 0 };
}

/* ---- Shadows ------------------------------------------------------------------------ */

void observation_look(struct observation *observation)
{
	const struct host *host = observation->host;
	int64_t now = clock_boot_ns();

	if (observation->n_looking ||
	    now - observation->looked_ns < LOOK_INTERVAL_MS * NSEC_PER_MSEC)
		return;
	observation->looked_ns = now;
	for (uint32_t i = 0; i < host->n_netns; i++) {
		const struct netifs *netifs = &host->netns[i].netifs;

		for (uint32_t k = 0; k < netifs->count; k++)
			if (netifs->items[k].hooks &&
			    is_attached(&netifs->items[k].hooks->attachment))
				hooks_look(observation, &host->netns[i],
					   &netifs->items[k]);
	}
	attacher_go(&observation->attacher);
}

uint32_t observation_count_shadowed(const struct observation *observation)
{
	const struct host *host = observation->host; /* NULL: it failed to start */
	uint32_t n = 0;

	for (uint32_t i = 0; host && i < host->n_netns; i++) {
		const struct netifs *netifs = &host->netns[i].netifs;

		for (uint32_t k = 0; k < netifs->count; k++) {
			const struct hooks *hooks = netifs->items[k].hooks;

			n += hooks && hooks->shadows[NETOBS_INGRESS].kind;
			n += hooks && hooks->shadows[NETOBS_EGRESS].kind;
		}
	}
	return n;
}
