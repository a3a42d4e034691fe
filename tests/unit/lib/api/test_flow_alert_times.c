// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/* Times of rules about flows are those of the machine, whatever becomes of the wall clock. */
#include "lib_test.h"

#include "api/context.h"

#include <netobs/alert.h>
#include <netobs/flow.h>

enum { HOUR_S = 3600 };

static void count_alert(const struct netobs_record *record, void *user)
{
	(void)record;
	++*(uint32_t *)user;
}

static void use_rule(struct netobs *ctx, const char *text)
{
	const struct alert_source rule = { "r", text };
	char error[ALERT_ERROR_MAX] = "";

	if (alert_set_new(&rule, 1, &ctx->alert_set, &error))
		fail_msg("%s", error);
	assert_int_equal(flow_alerts_open(&ctx->flow_alerts), 0);
}

/* A record of the interval that ends at @s seconds. @return whether the rule reports it */
static bool pass(struct netobs *ctx, int64_t s)
{
	const uint32_t *n = ctx->opts.user, before = *n;
	const struct netobs_flow flow = { .proto = 17,
					  .has = NETOBS_HAS_PORTS |
						 NETOBS_HAS_DROPS,
					  .packets = 10,
					  .drop_packets = 10 };

	ctx->pipeline.flip_ns = (HOUR_S + s) * (int64_t)NSEC_PER_SEC;
	context_on_flow(&flow.record, ctx);
	return *n > before;
}

static void step_wall(struct netobs *ctx, int64_t s)
{
	ctx->pipeline.clock.wall_offset += s * (int64_t)NSEC_PER_SEC;
}

/* Some seconds after one that was reported, with the wall clock an hour off. */
static void assert_pause(const char *rule, int64_t pause_s)
{
	for (int64_t step_s = -HOUR_S; step_s <= HOUR_S; step_s += HOUR_S) {
		struct netobs *ctx = calloc(1, sizeof(*ctx));
		uint32_t n = 0;

		assert_non_null(ctx);
		ctx->opts.on_record = count_alert;
		ctx->opts.records = 1 << NETOBS_RECORD_ALERT;
		ctx->opts.user = &n;
		use_rule(ctx, rule);
		assert_true(pass(ctx, 0));
		step_wall(ctx, step_s);
		assert_false(pass(ctx, pause_s - 1));
		assert_true(pass(ctx, pause_s));
		flow_alerts_close(&ctx->flow_alerts);
		alert_set_free(ctx->alert_set);
		free(ctx);
	}
}

TEST(a_stepped_clock_changes_no_hold)
{
	assert_pause("drops > 5 hold 10s", 10);
}

TEST(a_stepped_clock_changes_no_limit)
{
	assert_pause("drops > 5 hold 0s limit 1/m", 60);
}
