// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "drop_feed.h"

#include "base/util.h"

#include <errno.h>
#include <stdlib.h>

static void pass_drop(const struct netobs_drop *drop, void *ctx)
{
	const struct drop_feed *feed = ctx;

	for (struct drop_taker *taker = feed->takers; taker; taker = taker->next)
		taker->take(drop, taker->ctx);
}

int drop_feed_open(struct drop_taker *taker, bool no_reasons,
		   const struct log *log, struct drop_feed **ret_feed)
{
	struct drop_feed *feed = calloc(1, sizeof(*feed));
	int err;

	if (!feed)
		return -ENOMEM;
	feed->drain.take = pass_drop;
	feed->drain.ctx = feed;
	err = drop_drain_open(&feed->drain, no_reasons, log);
	if (err) {
		free(feed);
		return err;
	}
	drop_feed_join(feed, taker);
	*ret_feed = feed;
	return 0;
}

void drop_feed_join(struct drop_feed *feed, struct drop_taker *taker)
{
	taker->next = feed->takers;
	feed->takers = taker;
}

void drop_feed_leave(struct drop_feed *feed, struct drop_taker *taker)
{
	struct drop_taker **at;

	if (!feed)
		return;
	at = &feed->takers;
	while (*at && *at != taker)
		at = &(*at)->next;
	if (*at)
		*at = taker->next;
	if (feed->takers)
		return;
	drop_drain_close(&feed->drain);
	free(feed);
}

void drop_feed_stop(struct drop_feed *feed)
{
	if (!feed->takers->next)
		drop_programs_detach(&feed->drain.programs);
}

static int begin_drain(struct drop_feed *feed)
{
	int err = drop_drain_begin(&feed->drain);

	feed->begun++;
	if (err)
		feed->ended = feed->begun;
	return err;
}

/* A drain that is under way began earlier. */
int drop_feed_ask(struct drop_feed *feed, uint64_t *ret_drain)
{
	*ret_drain = feed->begun + 1;
	return drop_drain_is_idle(&feed->drain) ? begin_drain(feed) : 0;
}

static void end_drain(struct drop_feed *feed)
{
	struct count *lost = &feed->drain.lost;

	for (struct drop_taker *taker = feed->takers; taker; taker = taker->next)
		taker->lose(lost, taker->ctx);
	*lost = (struct count){ 0 };
	feed->ended = feed->begun;
}

int drop_feed_step(struct drop_feed *feed, uint64_t drain)
{
	int err;

	if (feed->ended >= drain)
		return 0;
	if (drop_drain_is_idle(&feed->drain))
		err = begin_drain(feed);
	else
		err = drop_drain_step(&feed->drain);
	if (drop_drain_is_idle(&feed->drain))
		end_drain(feed);
	return err ?: feed->ended < drain;
}
