/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include "service_sessions.h"

#include <errno.h>

#include "base/util.h"

static void on_own_session(const struct netobs_session *session, void *user)
{
	struct service_sessions *sessions = user;
	struct session_totals *totals = &sessions->past;

	if (!session_choice_takes(&sessions->choice, session)) {
		totals->left_out += session->ended != NETOBS_SESSION_OPEN;
		return;
	}
	if (session->ended)
		totals->reported[session->ended]++;
	else
		totals->updates++;
	sessions->on_session(session, sessions->user);
}

/* The observer's user is another one. */
static void on_session_log(int level, const char *message, void *user)
{
	const struct service_sessions *sessions = user;

	sessions->on_log(level, message, sessions->user);
}

/* Without names of containers, there is nothing to share. */
static int share_names(struct service_sessions *sessions, const struct netobs *ctx)
{
	int r = netobs_sessions_share(sessions->observer, ctx);

	return r == -ENOENT ? 0 : r;
}

int service_sessions_prepare(struct service_sessions *sessions,
			     const struct service_config *config,
			     const struct netobs *ctx)
{
	NETOBS_OPTS(netobs_sessions_opts, opts, .on_session = on_own_session,
		    .on_log = on_session_log, .user = sessions);
	int r;

	if (sessions->observer || !config->wants_sessions)
		return 0;
	session_choice_fill(&config->sessions, &opts);
	r = netobs_sessions_new(&opts, &sessions->observer);
	sessions->is_new = r == 0;
	r = r ?: share_names(sessions, ctx);
	r = r ?: netobs_start(sessions->observer);
	if (r < 0)
		service_sessions_abandon(sessions);
	return r;
}

void service_sessions_abandon(struct service_sessions *sessions)
{
	if (!sessions->is_new)
		return;
	netobs_free(TAKE_PTR(sessions->observer));
	sessions->is_new = sessions->is_leaving = false;
}

int service_sessions_fd(const struct service_sessions *sessions)
{
	return sessions->observer && !sessions->is_new ?
		       netobs_fd(sessions->observer) :
		       -1;
}

static void free_observer(struct service_sessions *sessions)
{
	sessions->past =
		service_sessions_totals(sessions); /* it has no open ones */
	netobs_free(TAKE_PTR(sessions->observer));
	sessions->is_leaving = false;
}

int service_sessions_dispatch(struct service_sessions *sessions)
{
	int r;

	if (!sessions->observer)
		return -ECANCELED;
	if (sessions->is_new)
		return 0;
	r = netobs_dispatch(sessions->observer);
	if (r == -ECANCELED)
		free_observer(sessions);
	return r < 0 && r != -EINTR ? r : 0;
}

void service_sessions_stop(struct service_sessions *sessions)
{
	if (!sessions->observer)
		return;
	sessions->is_leaving = true;
	netobs_stop(sessions->observer);
}

void service_sessions_commit(struct service_sessions *sessions,
			     const struct service_config *config)
{
	sessions->is_new = false;
	sessions->choice = config->sessions;
	if (!config->wants_sessions && sessions->observer) {
		service_sessions_stop(sessions);
		service_sessions_dispatch(sessions); /* which detaches it */
	} else if (sessions->observer) {
		/* The interval was checked. */
		netobs_sessions_interval_set(sessions->observer,
					     sessions->choice.interval_ms);
	}
}

struct session_totals
service_sessions_totals(const struct service_sessions *sessions)
{
	struct netobs_sessions_stats stats = { .sz = sizeof(stats) };
	struct session_totals totals = sessions->past;

	if (sessions->observer)
		netobs_sessions_stats_get(sessions->observer, &stats);
	totals.ended += stats.ended;
	totals.lost += stats.lost;
	totals.open = stats.open;
	return totals;
}

void service_sessions_done(struct service_sessions *sessions)
{
	netobs_free(TAKE_PTR(sessions->observer));
}
