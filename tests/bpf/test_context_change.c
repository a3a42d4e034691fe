// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/* Options that change while a context runs. */
#include "lib_context.h"
#include "lib_test.h"

enum { PORT = 40000, LONG_MS = 60000, PATIENCE_MS = 30000 };

static void await_bare(struct netobs *ctx, const char *interface)
{
	while (!lab_is_bare(interface))
		assert_true(netobs_poll(ctx, 10) >= 0 || errno == EINTR);
}

CONTEXT_TEST(interfaces_are_added_and_removed)
{
	static const char *const both[] = { "lo", "/^v/", NULL };
	static const char *const one[] = { "v0", NULL };
	static const char *const none[] = { "/none/", NULL };
	struct netobs_opts opts = context_options(&f->witness, LONG_MS);

	lab_run("ip link add v0 type veth peer name v1");
	context_start_with(f, &opts);
	lab_send(PORT, 10);
	opts.interfaces = both;
	assert_int_equal(context_change(f->ctx, &opts), 0);
	context_await_interfaces(f->ctx, 3);
	lab_send(PORT, 20);
	opts.interfaces = one;
	assert_int_equal(context_change(f->ctx, &opts), 0);
	assert_int_equal(context_interfaces(f->ctx), 1);
	await_bare(f->ctx, "lo");
	lab_send(PORT, 40);
	opts.interfaces = none;
	assert_int_equal(context_change(f->ctx, &opts), 0);
	await_bare(f->ctx, "v0");
	opts.interfaces = NULL;
	assert_int_equal(context_change(f->ctx, &opts), 0);
	context_await_interfaces(f->ctx, 3);
	lab_send(PORT, 80);
	context_stop(f->ctx);
	assert_int_equal(witness_packets_to(&f->witness, PORT), 110);
	context_assert_conserved(f->ctx);
	assert_int_equal(f->witness.errors, 0);
}

/* Of a namespace that is left, nothing is kept; another one may be observed. */
CONTEXT_TEST(namespaces_are_added_and_removed)
{
	static const char *const own[] = { "lo", NULL };
	struct netobs_opts opts = context_options(&f->witness, LONG_MS);
	char name[64];
	const char *both[] = { "lo", name, NULL };
	const char *other[] = { name, NULL };
	int fds;

	snprintf(name, sizeof(name), "netns:/proc/%d/task/%d/ns/net/lo",
		 getpid(), gettid());
	context_start_with(f, &opts);
	/* Another name of the same namespace adds nothing. */
	opts.interfaces = both;
	assert_int_equal(context_change(f->ctx, &opts), 0);
	lab_send(PORT, 5);
	fds = lab_count_fds();
	for (int i = 0; i < 3; i++) {
		opts.interfaces = other;
		assert_int_equal(context_change(f->ctx, &opts), 0);
		opts.interfaces = own;
		assert_int_equal(context_change(f->ctx, &opts), 0);
	}
	context_await_fds(f->ctx, fds);
	assert_int_equal(context_interfaces(f->ctx), 1);
	lab_send(PORT, 5);
	context_stop(f->ctx);
	assert_int_equal(witness_packets_to(&f->witness, PORT), 10);
	context_assert_conserved(f->ctx);
}

CONTEXT_TEST(interval_and_timeouts_change)
{
	struct netobs_opts opts = context_options(&f->witness, LONG_MS);

	opts.active_timeout_ms = LONG_MS;
	context_start_with(f, &opts);
	lab_send(PORT, 10);
	assert_int_equal(netobs_poll(f->ctx, 100), 0);
	assert_int_equal(f->witness.n_intervals, 0);
	opts.interval_ms = 20;
	assert_int_equal(context_change(f->ctx, &opts), 0);
	while (f->witness.n_intervals < 5)
		assert_true(netobs_poll(f->ctx, PATIENCE_MS) >= 0);
	assert_int_equal(f->witness.n_flows, 0);
	opts.active_timeout_ms = 0;
	assert_int_equal(context_change(f->ctx, &opts), 0);
	while (!f->witness.n_flows)
		assert_true(netobs_poll(f->ctx, PATIENCE_MS) >= 0);
	assert_int_equal(witness_packets_to(&f->witness, PORT), 10);
	opts.interval_ms = LONG_MS;
	assert_int_equal(context_change(f->ctx, &opts), 0);
	f->witness.n_intervals = 0;
	assert_int_equal(netobs_poll(f->ctx, 100), 0);
	assert_true(f->witness.n_intervals <= 1); /* that was under way */
	context_stop(f->ctx);
	context_assert_conserved(f->ctx);
}

CONTEXT_TEST(what_cannot_change_is_refused_and_nothing_changes)
{
	static const char *const wrong[] = { "/(/", NULL };
	static const char *const absent[] = { "v0", "absent0", NULL };
	static const char *const nowhere[] = { "v0", "netns:nowhere/lo", NULL };
	const struct netobs_opts good = context_options(&f->witness, LONG_MS);
	struct netobs_opts opts = good;

	lab_run("ip link add v0 type veth peer name v1");
	context_start_with(f, &good);
	opts.interval_ms = 10;
	opts.direction = NETOBS_INGRESS;
	context_assert_refused(f, &opts, -ENOTSUP, "direction");
	opts.direction = good.direction;
	opts.flags = NETOBS_PER_INTERFACE;
	context_assert_refused(f, &opts, -ENOTSUP, "flags");
	opts.flags = 0;
	opts.max_flows++;
	context_assert_refused(f, &opts, -ENOTSUP, "max_flows");
	opts.max_flows--;
	opts.records = 1 << NETOBS_RECORD_ALERT;
	context_assert_refused(f, &opts, -ENOTSUP, "records");
	opts.records = good.records;
	opts.on_record = NULL;
	context_assert_refused(f, &opts, -ENOTSUP, "on_record");
	opts.on_record = good.on_record;
	opts.on_interval = NULL;
	context_assert_refused(f, &opts, -ENOTSUP, "on_interval");
	opts.on_interval = good.on_interval;
	opts.interfaces = wrong;
	context_assert_refused(f, &opts, -EINVAL, "/(/");
	opts.interfaces = absent;
	context_assert_refused(f, &opts, -ENODEV, "absent0");
	opts.interfaces = nowhere;
	context_assert_refused(f, &opts, -ENOENT, "netns:nowhere");
	opts.interfaces = good.interfaces;
	opts.exclude = wrong;
	context_assert_refused(f, &opts, -EINVAL, "exclude");
	opts.exclude = NULL;
	opts.interval_ms = 1;
	context_assert_refused(f, &opts, -EINVAL, "interval_ms");

	lab_send(PORT, 7);
	assert_int_equal(netobs_poll(f->ctx, 100), 0);
	assert_int_equal(f->witness.n_intervals, 0);
	assert_int_equal(context_interfaces(f->ctx), 1);
	assert_true(lab_is_bare("v0"));
	context_stop(f->ctx);
	assert_int_equal(witness_packets_to(&f->witness, PORT), 7);
}

/* But a name that was asked for before may be away for a while. */
CONTEXT_TEST(interface_that_is_away_may_stay_named)
{
	static const char *const names[] = { "lo", "v0", NULL };
	struct netobs_opts opts = context_options(&f->witness, LONG_MS);

	lab_run("ip link add v0 type veth peer name v1");
	opts.interfaces = names;
	context_start_with(f, &opts);
	context_await_interfaces(f->ctx, 2);
	lab_run("ip link del v0");
	context_await_interfaces(f->ctx, 1);
	opts.idle_timeout_ms = 1000;
	assert_int_equal(context_change(f->ctx, &opts), 0);
	lab_run("ip link add v0 type veth peer name v1");
	context_await_interfaces(f->ctx, 2);
	context_stop(f->ctx);
}

CONTEXT_TEST(only_a_context_that_runs_changes)
{
	struct netobs_opts opts = context_options(&f->witness, LONG_MS);

	assert_int_equal(context_change(NULL, &opts), -EINVAL);
	assert_int_equal(netobs_new(&opts, &f->ctx), 0);
	assert_int_equal(context_change(f->ctx, &opts), -EINVAL);
	assert_int_equal(netobs_start(f->ctx), 0);
	assert_int_equal(context_change(f->ctx, &opts), 0);
	context_stop(f->ctx);
	assert_int_equal(context_change(f->ctx, &opts), -ECANCELED);
}
