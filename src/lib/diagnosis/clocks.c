// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/*
 * How far two clocks are apart: nothing arrives before it was sent, so each message that was sent once bounds the
 * difference, those to the server from above, those to the client from below.
 */
#include "diagnosis_state.h"

/* Clocks run at rates that differ by this at most: 200 ppm. */
enum { DRIFT_SHARE = 5000 };

struct bounds {
	int64_t least, most;
};

static void bound_above(struct bounds *bounds, int64_t ns)
{
	bounds->most = min_i64(bounds->most, ns);
}

static void bound_below(struct bounds *bounds, int64_t ns)
{
	bounds->least = max_i64(bounds->least, ns);
}

/* The stamps of a message that left the one host, and arrived at the other one; @slack_ns: for drift since then. */
static void bound_by(struct bounds *bounds, const struct message *message,
		     int64_t at_ns)
{
	const struct netobs_turn *s = message->s, *r = message->r;
	int64_t slack_ns;

	if (!s || !r || s == r || s->attempts > 1 || s->bytes != r->bytes ||
	    !s->out_ns || !r->in_ns)
		return;
	slack_ns = llabs(at_ns - message->time_ns) / DRIFT_SHARE;
	if (message->from == CLIENT)
		bound_above(bounds, r->in_ns - s->out_ns + slack_ns);
	else
		bound_below(bounds, s->out_ns - r->in_ns - slack_ns);
}

/* The answer to a SYN: it left the server some time before it arrived at the client. */
static void bound_by_connect(struct bounds *bounds,
			     const struct message *message, int64_t at_ns)
{
	const struct netobs_turn *s = message->s, *r = message->r;

	if (s && r && s != r && s->attempts == 1 && r->answer_ns && s->in_ns)
		bound_below(bounds, r->answer_ns - s->in_ns -
					    llabs(at_ns - message->time_ns) /
						    DRIFT_SHARE);
}

void clocks_estimate(struct talk *talk)
{
	const int64_t far = INT64_MAX / 2;
	struct bounds bounds = { -far, far };

	talk->clocks = (struct clocks){ 0 };
	for (uint32_t i = 0; i < talk->n; i++) {
		const struct message *message = &talk->messages[i];

		if (message->s && message->s->kind == NETOBS_TURN_SLICE)
			continue;
		bound_by(&bounds, message, talk->until_ns);
		if (message->from == CLIENT && message->s &&
		    message->s->kind == NETOBS_TURN_CONNECT)
			bound_by_connect(&bounds, message, talk->until_ns);
	}
	if (bounds.least == -far && bounds.most == far)
		return;
	if (bounds.least == -far || bounds.most == far) {
		/* One way only: as if that took no time. */
		talk->clocks.offset_ns = bounds.least == -far ? bounds.most :
								bounds.least;
		return;
	}
	talk->clocks.offset_ns = bounds.least + (bounds.most - bounds.least) / 2;
	talk->clocks.jumped = bounds.least > bounds.most;
	if (!talk->clocks.jumped)
		talk->clocks.bound_ns =
			(uint64_t)(bounds.most - bounds.least) / 2 + 1;
}
