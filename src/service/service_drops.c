// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "service_drops.h"

#include <errno.h>

#include "base/util.h"

/* Drops that are shared come at once, also before a reload is in effect. */
static void on_own_drop(const struct netobs_drop *drop, void *user)
{
	struct service_drops *drops = user;

	if (drops->is_new)
		return;
	drop_totals_add(&drops->totals, drop);
	drops->on_drop(drop, drops->user);
}

/* The observer's user is another one. */
static void on_drops_log(int level, const char *message, void *user)
{
	const struct service_drops *drops = user;

	drops->on_log(level, message, drops->user);
}

/* Flows may have the kernel's drops read already: once is enough. */
static int share_drops(struct service_drops *drops, const struct netobs *ctx)
{
	int r = netobs_drops_share(drops->observer, ctx);

	return r == -ENOENT ? 0 : r;
}

int service_drops_prepare(struct service_drops *drops,
			  const struct service_config *config,
			  const struct netobs *ctx)
{
	NETOBS_OPTS(netobs_drops_opts, opts,
		    .interval_ms = config->flows.opts.interval_ms,
		    .on_drop = on_own_drop, .on_log = on_drops_log,
		    .user = drops);
	int r;

	if (drops->observer || !config->wants_drops)
		return 0;
	r = netobs_drops_new(&opts, &drops->observer);
	drops->is_new = r == 0;
	r = r ?: share_drops(drops, ctx);
	r = r ?: netobs_start(drops->observer);
	if (r < 0)
		service_drops_abandon(drops);
	return r;
}

static void free_drops_observer(struct service_drops *drops)
{
	service_drops_refresh(drops);
	drops->lost_before = drops->totals.lost_packets;
	drops->missed_before = drops->totals.missed;
	netobs_free(TAKE_PTR(drops->observer));
	drops->is_new = drops->is_leaving = false;
}

void service_drops_abandon(struct service_drops *drops)
{
	if (drops->is_new)
		free_drops_observer(drops);
}

int service_drops_fd(const struct service_drops *drops)
{
	return drops->observer && !drops->is_new ? netobs_fd(drops->observer) :
						   -1;
}

int service_drops_dispatch(struct service_drops *drops)
{
	int r = -ECANCELED;

	if (drops->is_new)
		return 0;
	if (drops->observer) {
		r = netobs_dispatch(drops->observer);
		if (r == -ECANCELED)
			free_drops_observer(drops);
	}
	return r < 0 && r != -EINTR ? r : 0;
}

void service_drops_stop(struct service_drops *drops)
{
	drops->is_leaving = drops->observer;
	netobs_stop(drops->observer);
}

void service_drops_commit(struct service_drops *drops,
			  const struct service_config *config)
{
	drops->is_new = false;
	if (!config->wants_drops)
		service_drops_stop(drops);
	else if (drops->observer) /* the interval was checked */
		netobs_drops_interval_set(drops->observer,
					  config->flows.opts.interval_ms);
}

void service_drops_refresh(struct service_drops *drops)
{
	struct netobs_drops_stats stats = { .sz = sizeof(stats) };

	if (!drops->observer)
		return;
	netobs_drops_stats_get(drops->observer, &stats);
	drops->totals.lost_packets = drops->lost_before + stats.lost_packets;
	drops->totals.missed = drops->missed_before + stats.missed;
}

void service_drops_done(struct service_drops *drops)
{
	netobs_free(TAKE_PTR(drops->observer));
}
