// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/*
 * Alerts of a context beside all that its programs do for other options: the kernel's verifier
 * has to bear filters of every size with them, and rules are about what the filter accepts. And
 * what replacing rules delivers, and what connections with rules take.
 */
#include "lib_context.h"
#include "lib_test.h"
#include "filter_expressions.h"

#include <netobs/connection.h>

#include <sys/resource.h>
#include <sys/socket.h>

enum {
	INTERVAL_MS = 1000,
	PATIENCE_MS = 30000,
	PORT = 40000,
	TERMS = 60, /* of the large expression */
	EXPRESSION_MAX = 4096,
	WAITING = 20, /* alerts at least, which take longer than any slice of time */
	CALLBACK_US = 20000,
};

static uint32_t n_alerts;
static useconds_t callback_us; /* that on_record() takes */

static void on_record(const struct netobs_record *record, void *user)
{
	const struct netobs_alert *alert = (const void *)record;

	if (record->type == NETOBS_RECORD_FLOW) {
		witness_on_flow(record, user);
		return;
	}
	assert_int_equal(alert->server_port, PORT);
	n_alerts++;
	usleep(callback_us);
}

/* ---- A connection ------------------------------------------------------------------- */

/* The server's answer acknowledges the SYN, which is a sample. */
static void connect_once(void)
{
	int server = lab_listen(&(uint16_t){ PORT }, 1);

	close(lab_connect(PORT));
	close(server);
}

/* ---- Options ------------------------------------------------------------------------ */

static struct netobs_opts alert_options(struct context_fixture *f)
{
	struct netobs_opts opts = context_options(&f->witness, INTERVAL_MS);

	opts.rtt = 1;
	opts.on_record = on_record;
	opts.records = 1 << NETOBS_RECORD_FLOW | 1 << NETOBS_RECORD_ALERT;
	return opts;
}

static int set_rule(struct context_fixture *f, const char *text)
{
	const struct netobs_alert_rule rule = { .sz = sizeof(rule), .rule = text };

	return netobs_alerts_set(f->ctx, &rule, 1);
}

static void start_with(struct context_fixture *f,
		       const struct netobs_opts *opts, const char *rule)
{
	assert_int_equal(netobs_new(opts, &f->ctx), 0);
	assert_int_equal(set_rule(f, rule), 0);
	if (netobs_start(f->ctx))
		fail_msg("%s", netobs_last_error(f->ctx));
}

static void assert_connection_alerts(struct context_fixture *f)
{
	int n = 0;

	n_alerts = 0;
	connect_once();
	while (n >= 0 && !n_alerts)
		n = netobs_poll(f->ctx, PATIENCE_MS);
	assert_true(n_alerts > 0);
}

static void assert_alert_comes(struct context_fixture *f,
			       const struct netobs_opts *opts)
{
	start_with(f, opts, "rtt > 0ns where tcp");
	assert_connection_alerts(f);
	netobs_free(TAKE_PTR(f->ctx));
}

CONTEXT_TEST(alerts_come_with_filters_of_every_size)
{
	struct netobs_opts opts = alert_options(f);
	char large[EXPRESSION_MAX];
	int len = snprintf(large, sizeof(large), "tcp port %d", PORT);

	for (int i = 0; i < TERMS; i++)
		len += snprintf(large + len, sizeof(large) - (size_t)len,
				" or (host 10.0.%d.1 and (tcp port %d or udp))",
				i, PORT + 1 + i);
	assert_true(len < (int)sizeof(large));
	opts.filter = large;
	opts.sampling = 10;
	opts.sampling_mode = NETOBS_SAMPLE_FLOWS;
	assert_alert_comes(f, &opts);
	if (lab_shrink() > 1)
		return;
	opts.sampling_mode = NETOBS_SAMPLE_PACKETS;
	assert_alert_comes(f, &opts);
	opts.filter = "tcp";
	assert_alert_comes(f, &opts);
}

/* Of expressions of all kinds. */
CONTEXT_TEST(alerts_come_with_64_rules)
{
	struct netobs_rule rules[NETOBS_RULES_MAX];
	struct netobs_opts opts = alert_options(f);
	uint32_t n = 0;

	for (size_t i = 0; n < NETOBS_RULES_MAX; i++) {
		const char *filter = n ? filter_expressions[i * 4 + 1] :
					 "tcp port 40000";

		if (!strstr(filter, "protochain"))
			rules[n++] = (struct netobs_rule){
				.sz = sizeof(rules[0]),
				.filter = filter,
				.action = NETOBS_ACCEPT,
				.sampling = 2 + i % 5,
			};
	}
	opts.rules = rules;
	opts.n_rules = n;
	opts.default_action = NETOBS_REJECT;
	assert_alert_comes(f, &opts);
}

CONTEXT_TEST(rules_are_about_what_the_filter_accepts)
{
	struct netobs_alert_counts counts = { .sz = sizeof(counts) };
	struct netobs_opts opts = alert_options(f);

	opts.filter = "not tcp port 40000";
	start_with(f, &opts, "rtt > 0ns");
	connect_once();
	assert_int_equal(netobs_alert_counts_get(f->ctx, 0, &counts), 0);
	assert_int_equal(counts.broken, 0);
}

/* From the call itself, by the old rules. */
CONTEXT_TEST(waiting_alerts_come_when_rules_are_replaced)
{
	struct netobs_opts opts = alert_options(f);

	n_alerts = 0;
	start_with(f, &opts, "rtt > 0ns");
	connect_once();
	assert_int_equal(n_alerts, 0);
	assert_int_equal(netobs_alerts_set(f->ctx, NULL, 0), 0);
	assert_true(n_alerts > 0);
}

/* @rule: netobs_alert_counts_get() */
static struct netobs_alert_counts counts_of(struct context_fixture *f,
					    uint32_t rule)
{
	struct netobs_alert_counts counts = { .sz = sizeof(counts) };

	assert_int_equal(netobs_alert_counts_get(f->ctx, rule, &counts), 0);
	return counts;
}

static void make_alerts_wait(struct context_fixture *f)
{
	struct netobs_opts opts = alert_options(f);

	start_with(f, &opts, "rtt > 0ns hold 0s limit none");
	for (int i = 0; i < WAITING; i++)
		connect_once();
	n_alerts = 0;
	callback_us = CALLBACK_US;
	assert_true(counts_of(f, 0).fired >= WAITING);
}

/* However long the callback takes, before their slots are given to others. */
CONTEXT_TEST(all_alerts_come_when_rules_are_replaced_twice)
{
	struct netobs_alert_counts counts;

	make_alerts_wait(f);
	assert_int_equal(set_rule(f, "rtt > 10s"), 0);
	assert_int_equal(set_rule(f, "rtt > 20s"), 0);
	callback_us = 0;
	while (netobs_poll(f->ctx, 0) > 0)
		;
	counts = counts_of(f, 1);
	assert_int_equal(counts.delivered, counts.fired);
	assert_int_equal(n_alerts, counts.fired);
}

CONTEXT_TEST(all_alerts_come_before_the_end)
{
	struct netobs_alert_counts counts;
	int n;

	make_alerts_wait(f);
	netobs_stop(f->ctx);
	do
		n = netobs_poll(f->ctx, PATIENCE_MS);
	while (n >= 0);
	callback_us = 0;
	assert_int_equal(n, -ECANCELED);
	counts = counts_of(f, 0);
	assert_int_equal(counts.delivered, counts.fired);
	assert_int_equal(n_alerts, counts.fired);
}

/* As netobs_opts.max_connections says, while no connection is measured. */
CONTEXT_TEST(memory_of_connections_is_as_documented)
{
	struct netobs_connection_stats stats = { .sz = sizeof(stats) };
	struct netobs_opts opts = alert_options(f);

	opts.max_connections = 4096;
	for (int i = 0; i < 2; i++) {
		assert_int_equal(netobs_new(&opts, &f->ctx), 0);
		if (netobs_start(f->ctx))
			fail_msg("%s", netobs_last_error(f->ctx));
		assert_int_equal(netobs_connection_stats_get(f->ctx, &stats), 0);
		assert_int_equal(stats.capacity, 4096);
		assert_int_equal(stats.memory,
				 4096 * 100 + 1024 * (opts.records ? 1280 : 896));
		netobs_free(TAKE_PTR(f->ctx));
		opts.records = 0;
	}
}

/* No descriptor is left for the programs of new filters. */
static int set_rule_without_descriptors(struct context_fixture *f,
					const char *rule)
{
	struct rlimit before, limit;
	int next = dup(STDERR_FILENO), err;

	assert_true(next >= 0);
	close(next);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	limit = before;
	limit.rlim_cur = (rlim_t)next;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
	err = set_rule(f, rule);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
	return err;
}

/* Also once they have been set again, with the same filters. */
CONTEXT_TEST(rules_of_before_stay_where_others_are_refused)
{
	struct netobs_opts opts = alert_options(f);

	start_with(f, &opts, "rtt > 0ns where tcp");
	assert_true(set_rule_without_descriptors(f, "rtt > 0ns where udp") < 0);
	assert_connection_alerts(f);
	assert_int_equal(set_rule(f, "rtt > 0ns hold 1s where tcp"), 0);
	assert_connection_alerts(f);
}
