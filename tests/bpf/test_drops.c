// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/* An observer of drops beside a context that adds drops to flows: both have each drop. */
#include "lib_context.h"
#include "lib_test.h"
#include "lib_wait.h"

#include <netobs/alert.h>
#include <netobs/drop.h>

enum {
	PORT = 40100, /* without a socket */
	LONG_MS = 60000,
	SHORT_MS = 100,
	PACKETS = 40,
};

struct observer {
	struct netobs *drops;
	uint64_t packets; /* to PORT */
};

static void note_drop(const struct netobs_record *record, void *user)
{
	const struct netobs_drop *drop = (const void *)record;
	struct observer *observer = user;

	if (drop->dst_port == PORT && drop->kind != NETOBS_DROP_BENIGN)
		observer->packets += drop->packets;
}

static void make_observer(struct observer *observer, uint32_t interval_ms)
{
	NETOBS_OPTS(netobs_drops_opts, opts, .interval_ms = interval_ms,
		    .on_record = note_drop, .user = observer);

	*observer = (struct observer){ 0 };
	assert_int_equal(netobs_drops_new(&opts, &observer->drops), 0);
}

static void start_both(struct context_fixture *f, struct observer *observer,
		       uint32_t flows_ms, uint32_t drops_ms)
{
	struct netobs_opts opts = context_options(&f->witness, flows_ms);

	opts.flags |= NETOBS_DROPS;
	context_start_with(f, &opts);
	make_observer(observer, drops_ms);
	assert_int_equal(netobs_start(observer->drops), 0);
}

static void await_drops(struct observer *observer, uint64_t packets)
{
	await_by(observer->packets >= packets,
		 assert_true(netobs_poll(observer->drops, 100) >= 0));
	assert_int_equal(observer->packets, packets);
}

static uint64_t dropped_in_flows(const struct context_fixture *f)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < f->witness.n_flows; i++)
		if (f->witness.flows[i].flow.dst_port == PORT)
			sum += f->witness.flows[i].flow.drop_packets;
	return sum;
}

/* @return of all drops, those in no record yet */
static uint64_t check_sums(const struct context_fixture *f)
{
	struct netobs_stats stats = { .sz = sizeof(stats) };

	assert_int_equal(netobs_stats_get(f->ctx, &stats), 0);
	assert_int_equal(stats.drops.packets,
			 stats.drops_in_flows.packets +
				 stats.drops_pending.packets +
				 stats.drops_no_flow.packets +
				 stats.drops_no_tuple.packets +
				 stats.drops_no_room.packets);
	return stats.drops_pending.packets;
}

CONTEXT_TEST(both_have_each_drop)
{
	struct observer observer;

	start_both(f, &observer, LONG_MS, SHORT_MS);
	for (uint64_t i = 1; i <= 3; i++) {
		lab_send(PORT, PACKETS);
		await_drops(&observer, i * PACKETS);
	}
	lab_send(PORT, PACKETS);
	context_stop(f->ctx);
	assert_int_equal(dropped_in_flows(f), 4 * PACKETS);
	assert_int_equal(check_sums(f), 0);
	context_stop(observer.drops);
	assert_int_equal(observer.packets, 4 * PACKETS);
	/* What came after the last record is no matter of flows. */
	assert_int_equal(check_sums(f), 0);
	netobs_free(observer.drops);
}

CONTEXT_TEST(flows_go_on_without_the_observer)
{
	struct observer observer;

	start_both(f, &observer, SHORT_MS, LONG_MS);
	lab_send(PORT, PACKETS);
	context_stop(observer.drops);
	assert_int_equal(observer.packets, PACKETS);
	netobs_free(observer.drops);
	lab_send(PORT, PACKETS);
	context_stop(f->ctx);
	assert_int_equal(dropped_in_flows(f), 2 * PACKETS);
	assert_int_equal(observer.packets, PACKETS);
}

CONTEXT_TEST(the_observer_goes_on_without_the_context)
{
	struct observer observer;

	start_both(f, &observer, LONG_MS, SHORT_MS);
	lab_send(PORT, PACKETS);
	context_stop(f->ctx);
	netobs_free(TAKE_PTR(f->ctx));
	lab_send(PORT, PACKETS);
	await_drops(&observer, 2 * PACKETS);
	lab_send(PORT, PACKETS);
	context_stop(observer.drops);
	assert_int_equal(observer.packets, 3 * PACKETS);
	netobs_free(observer.drops);
}

/* ---- Rules ------------------------------------------------------------------------------ */

static uint64_t alert_packets;

static void note_alert(const struct netobs_record *record, void *user)
{
	const struct netobs_alert *alert = (const void *)record;
	(void)user;
	assert_int_equal(alert->metric, NETOBS_ALERT_DROPS);
	if (alert->server_port == PORT || alert->client_port == PORT)
		alert_packets += alert->value;
}

/* Rules about drops need no measurement of connections, and others do. */
CONTEXT_TEST(rules_need_what_they_are_about)
{
	const struct netobs_alert_rule rule = { .sz = sizeof(rule),
						.rule = "drops > 0" };
	const struct netobs_alert_rule rtt = { .sz = sizeof(rtt),
					       .rule = "rtt > 1s" };
	struct netobs_opts opts = context_options(&f->witness, LONG_MS);

	opts.on_record = note_alert;
	opts.records = 1 << NETOBS_RECORD_ALERT;
	assert_int_equal(netobs_new(&opts, &f->ctx), 0);
	assert_int_equal(netobs_alerts_set(f->ctx, &rule, 1), -ENOTSUP);
	assert_string_equal(netobs_last_error(f->ctx),
			    "alerts[0]: its metric needs NETOBS_DROPS");
	netobs_free(f->ctx);
	opts.flags |= NETOBS_DROPS;
	assert_int_equal(netobs_new(&opts, &f->ctx), 0);
	assert_int_equal(netobs_alerts_set(f->ctx, &rtt, 1), -ENOTSUP);
	assert_int_equal(netobs_alerts_set(f->ctx, &rule, 1), 0);
	assert_int_equal(netobs_start(f->ctx), 0);
	alert_packets = 0;
	lab_send(PORT, PACKETS);
	context_stop(f->ctx);
	assert_int_equal(alert_packets, PACKETS);
	assert_int_equal(netobs_alert_rule_metric("drops > 1%"),
			 NETOBS_ALERT_DROP_SHARE);
	assert_int_equal(netobs_alert_rule_metric("drop > 1%"), -EINVAL);
}
