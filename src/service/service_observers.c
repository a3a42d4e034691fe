// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "service_observers.h"

#include <errno.h>

/* ---- One observer ---------------------------------------------------------------------- */

static void free_observer(struct service_observer *observer)
{
	netobs_free(observer->netobs);
	*observer = (struct service_observer){ 0 };
}

static void abandon(struct service_observer *observer)
{
	if (observer->is_new)
		free_observer(observer);
}

int service_observer_fd(const struct service_observer *observer)
{
	return observer->netobs && !observer->is_new ?
		       netobs_fd(observer->netobs) :
		       -1;
}

static void stop(struct service_observer *observer)
{
	observer->is_leaving = observer->netobs;
	netobs_stop(observer->netobs);
}

/* ---- Their counts ---------------------------------------------------------------------- */

static bool takes_session(struct service_observers *observers,
			  const struct netobs_session *session)
{
	struct session_totals *totals = &observers->session_totals;

	if (!session_choice_takes(&observers->choice, session)) {
		totals->left_out += session->ended != NETOBS_SESSION_OPEN;
		return false;
	}
	if (session->ended)
		totals->reported[session->ended]++;
	else
		totals->updates++;
	return true;
}

bool service_observers_takes(struct service_observers *observers,
			     const struct netobs_record *record)
{
	if (record->type == NETOBS_RECORD_SESSION)
		return takes_session(observers,
				     (const struct netobs_session *)record);
	drop_totals_add(&observers->drop_totals,
			(const struct netobs_drop *)record);
	return true;
}

void service_observers_refresh(struct service_observers *observers)
{
	NETOBS_OPTS(netobs_sessions_stats, sessions);
	NETOBS_OPTS(netobs_drops_stats, drops);

	/* A reload that fails frees new ones, with their counts. */
	if (!observers->sessions.is_new)
		netobs_sessions_stats_get(observers->sessions.netobs, &sessions);
	if (!observers->drops.is_new)
		netobs_drops_stats_get(observers->drops.netobs, &drops);
	observers->session_totals.ended =
		observers->sessions_ended + sessions.ended;
	observers->session_totals.lost = observers->sessions_lost + sessions.lost;
	observers->session_totals.open = sessions.open;
	observers->drop_totals.lost_packets =
		observers->drops_lost + drops.lost_packets;
	observers->drop_totals.missed = observers->drops_missed + drops.missed;
}

static void end_sessions(struct service_observers *observers)
{
	service_observers_refresh(observers);
	observers->sessions_ended = observers->session_totals.ended;
	observers->sessions_lost = observers->session_totals.lost;
	free_observer(&observers->sessions);
}

static void end_drops(struct service_observers *observers)
{
	service_observers_refresh(observers);
	observers->drops_lost = observers->drop_totals.lost_packets;
	observers->drops_missed = observers->drop_totals.missed;
	free_observer(&observers->drops);
}

/* ---- Both ------------------------------------------------------------------------------ */

static int prepare_sessions(struct service_observers *observers,
			    const struct service_config *config,
			    const struct netobs *ctx)
{
	struct service_observer *sessions = &observers->sessions;
	NETOBS_OPTS(netobs_sessions_opts, opts, .on_record = observers->on_record,
		    .on_log = observers->on_log, .user = observers->user);
	int r;

	if (sessions->netobs || !config->wants_sessions)
		return 0;
	session_choice_fill(&config->sessions, &opts);
	r = netobs_sessions_new(&opts, &sessions->netobs);
	if (r)
		return r;
	sessions->is_new = true;
	r = netobs_sessions_share(sessions->netobs, ctx);
	/* The context may have no names to share. */
	return r && r != -ENOENT ? r : netobs_start(sessions->netobs);
}

static int prepare_drops(struct service_observers *observers,
			 const struct service_config *config)
{
	struct service_observer *drops = &observers->drops;
	NETOBS_OPTS(netobs_drops_opts, opts,
		    .interval_ms = config->flows.opts.interval_ms,
		    .on_record = observers->on_record,
		    .on_log = observers->on_log, .user = observers->user);
	int r;

	if (drops->netobs || !config->wants_drops)
		return 0;
	r = netobs_drops_new(&opts, &drops->netobs);
	if (r)
		return r;
	drops->is_new = true;
	return netobs_start(drops->netobs);
}

int service_observers_prepare(struct service_observers *observers,
			      const struct service_config *config,
			      const struct netobs *ctx)
{
	int r = prepare_sessions(observers, config, ctx);

	r = r ?: prepare_drops(observers, config);
	if (r < 0)
		service_observers_abandon(observers);
	return r;
}

void service_observers_abandon(struct service_observers *observers)
{
	abandon(&observers->sessions);
	abandon(&observers->drops);
}

static int dispatch(struct service_observers *observers,
		    struct service_observer *observer,
		    void (*end)(struct service_observers *observers))
{
	int r;

	if (!observer->netobs)
		return -ECANCELED;
	if (observer->is_new)
		return 0;
	r = netobs_dispatch(observer->netobs);
	if (r == -ECANCELED)
		end(observers);
	return r < 0 && r != -EINTR ? r : 0;
}

int service_observers_dispatch(struct service_observers *observers)
{
	int sessions = dispatch(observers, &observers->sessions, end_sessions);
	int drops = dispatch(observers, &observers->drops, end_drops);

	if (sessions < 0 && sessions != -ECANCELED)
		return sessions;
	return drops < 0 && drops != -ECANCELED ? drops : sessions ? drops : 0;
}

void service_observers_stop(struct service_observers *observers)
{
	stop(&observers->sessions);
	stop(&observers->drops);
}

/* Intervals were checked. */
void service_observers_commit(struct service_observers *observers,
			      const struct service_config *config)
{
	observers->sessions.is_new = observers->drops.is_new = false;
	observers->choice = config->sessions;
	if (!config->wants_sessions)
		stop(&observers->sessions);
	else
		netobs_sessions_interval_set(observers->sessions.netobs,
					     config->sessions.interval_ms);
	if (!config->wants_drops)
		stop(&observers->drops);
	else
		netobs_drops_interval_set(observers->drops.netobs,
					  config->flows.opts.interval_ms);
	/* This detaches them. */
	if (observers->sessions.is_leaving)
		dispatch(observers, &observers->sessions, end_sessions);
	if (observers->drops.is_leaving)
		dispatch(observers, &observers->drops, end_drops);
}

bool service_observers_are_leaving(const struct service_observers *observers)
{
	return observers->sessions.is_leaving || observers->drops.is_leaving;
}

void service_observers_done(struct service_observers *observers)
{
	free_observer(&observers->sessions);
	free_observer(&observers->drops);
}
