// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/* The public life of a context, on the loopback of a namespace of its own. */
#include "lib_lab.h"
#include "lib_test.h"
#include "lib_witness.h"
#include "base/util.h"

#include <bpf/libbpf.h>
#include <errno.h>
#include <netobs/probe.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <time.h>

enum { PORT = 40000, LONG_MS = 60000, PATIENCE_MS = 30000 };

struct fixture {
	struct lab lab;
	struct witness witness;
	struct netobs *ctx;
};

static const char *const loopback[] = { "lo", NULL };

static int setup(void **state)
{
	static struct fixture f;

	memset(&f, 0, sizeof(f));
	*state = &f;
	lab_enter(&f.lab);
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	netobs_free(f->ctx);
	witness_clear(&f->witness);
	lab_leave(&f->lab);
	return 0;
}

static struct netobs_opts options_of(struct witness *witness, uint32_t interval_ms)
{
	NETOBS_OPTS(opts);

	opts.interfaces = loopback;
	opts.interval_ms = interval_ms;
	opts.max_flows = 1000; /* quickly made, quickly freed */
	witness_listen(witness, &opts);
	return opts;
}

static void start_with(struct fixture *f, const struct netobs_opts *opts)
{
	assert_int_equal(netobs_new(opts, &f->ctx), 0);
	assert_int_equal(netobs_start(f->ctx), 0);
}

static void start(struct fixture *f, uint32_t interval_ms)
{
	struct netobs_opts opts = options_of(&f->witness, interval_ms);

	start_with(f, &opts);
}

/* How many records came until the end. */
static uint32_t await_stop(struct netobs *ctx)
{
	uint32_t records = 0;
	int ret;

	while ((ret = netobs_poll(ctx, PATIENCE_MS)) >= 0)
		records += ret;
	assert_int_equal(ret, -ECANCELED);
	return records;
}

static void stop(struct netobs *ctx)
{
	netobs_stop(ctx);
	await_stop(ctx);
}

/* Each packet was exported, or counted as something else. */
static void assert_conserved(const struct netobs *ctx)
{
	struct netobs_stats stats = { .sz = sizeof(stats) };
	uint64_t packets, bytes;

	assert_int_equal(netobs_stats_get(ctx, &stats), 0);
	packets = stats.exported.packets + stats.pending.packets;
	bytes = stats.exported.bytes + stats.pending.bytes;
	for (int i = 0; i < NETOBS_UNPARSED_REASONS; i++) {
		packets += stats.unparsed[i].packets;
		bytes += stats.unparsed[i].bytes;
	}
	assert_int_equal(stats.seen.packets, packets);
	assert_int_equal(stats.seen.bytes, bytes);
}

static void stop_delivers_what_was_seen_and_once(void **state)
{
	struct fixture *f = *state;

	start(f, LONG_MS);
	lab_send(PORT, 50);
	stop(f->ctx);
	assert_int_equal(witness_packets_to(&f->witness, PORT), 50);
	for (uint32_t i = 0; i < f->witness.n_flows; i++) {
		const struct netobs_flow *flow = &f->witness.flows[i].flow;

		if (!(flow->has & NETOBS_HAS_PORTS) || flow->dst_port != PORT)
			continue;
		assert_int_equal(flow->bytes, 50 * LAB_BYTES);
		assert_int_equal(flow->n_points, 2);
		assert_string_equal(f->witness.flows[i].names[0], "lo");
		assert_int_equal(flow->end_reason, NETOBS_END_FORCED);
	}
	assert_conserved(f->ctx);
	assert_int_equal(f->witness.errors, 0);
}

static void drain_delivers_what_was_seen_at_once(void **state)
{
	struct fixture *f = *state;

	start(f, LONG_MS);
	for (uint32_t i = 1; i <= 5; i++) {
		lab_send(PORT + i, 20);
		assert_true(netobs_drain(f->ctx) >= 1);
		assert_int_equal(witness_packets_to(&f->witness, PORT + i), 20);
		assert_int_equal(f->witness.n_intervals, i);
	}
	stop(f->ctx);
	for (uint32_t i = 1; i <= 5; i++)
		assert_int_equal(witness_packets_to(&f->witness, PORT + i), 20);
	assert_conserved(f->ctx);
}

/* A drain that the interval began is completed first. */
static void drain_in_the_middle_of_another(void **state)
{
	struct fixture *f = *state;
	uint64_t sent = 0;

	start(f, 10);
	for (int i = 0; i < 50; i++) {
		lab_send(PORT, 3);
		sent += 3;
		assert_true(netobs_poll(f->ctx, PATIENCE_MS) >= 0);
		assert_true(netobs_drain(f->ctx) >= 0);
		assert_int_equal(witness_packets_to(&f->witness, PORT), sent);
	}
	assert_conserved(f->ctx);
}

static void descriptor_is_constant_and_becomes_readable(void **state)
{
	struct fixture *f = *state;
	struct netobs_opts opts = options_of(&f->witness, 20);
	struct pollfd fd = { .events = POLLIN };

	assert_int_equal(netobs_new(&opts, &f->ctx), 0);
	fd.fd = netobs_fd(f->ctx);
	assert_true(fd.fd >= 0);
	assert_int_equal(netobs_start(f->ctx), 0);
	while (f->witness.n_intervals < 5) {
		assert_int_equal(poll(&fd, 1, PATIENCE_MS), 1);
		assert_true(netobs_dispatch(f->ctx) >= 0);
		assert_int_equal(netobs_fd(f->ctx), fd.fd);
	}
	stop(f->ctx);
	assert_int_equal(netobs_fd(f->ctx), fd.fd);
}

static void dispatch_does_not_wait(void **state)
{
	struct fixture *f = *state;

	start(f, LONG_MS);
	for (int i = 0; i < 100; i++)
		assert_int_equal(netobs_dispatch(f->ctx), 0);
	assert_int_equal(netobs_poll(f->ctx, 0), 0);
	assert_int_equal(f->witness.n_intervals, 0);
}

static void return_values_count_the_records(void **state)
{
	struct fixture *f = *state;
	uint32_t counted = 0;
	int ret;

	start(f, 20);
	lab_send(PORT, 1);
	lab_send(PORT + 1, 1);
	while (f->witness.n_intervals < 3) {
		ret = netobs_poll(f->ctx, PATIENCE_MS);
		assert_true(ret >= 0);
		counted += ret;
	}
	assert_int_equal(counted, f->witness.n_flows);
	assert_true(counted >= 2);
}

static void start_twice_is_refused(void **state)
{
	struct fixture *f = *state;

	start(f, LONG_MS);
	assert_int_equal(netobs_start(f->ctx), -EALREADY);
	assert_int_equal(netobs_replay(f->ctx, "x.pcap"), -EINVAL);
	lab_send(PORT, 5);
	stop(f->ctx);
	assert_int_equal(netobs_start(f->ctx), -EALREADY);
	assert_int_equal(witness_packets_to(&f->witness, PORT), 5);
}

static void stopped_stays_stopped(void **state)
{
	struct fixture *f = *state;
	struct netobs_stats stats = { .sz = sizeof(stats) };
	uint32_t records;

	start(f, 10);
	lab_send(PORT, 5);
	stop(f->ctx);
	records = f->witness.n_flows;
	lab_send(PORT, 5);
	for (int i = 0; i < 5; i++) {
		assert_int_equal(netobs_dispatch(f->ctx), -ECANCELED);
		assert_int_equal(netobs_poll(f->ctx, -1), -ECANCELED);
		assert_int_equal(netobs_drain(f->ctx), -ECANCELED);
		netobs_stop(f->ctx);
	}
	assert_int_equal(f->witness.n_flows, records);
	assert_int_equal(witness_packets_to(&f->witness, PORT), 5);
	assert_int_equal(netobs_stats_get(f->ctx, &stats), 0);
	assert_int_equal(stats.interfaces, 0);
}

static void stop_before_the_start_takes_effect_after_it(void **state)
{
	struct fixture *f = *state;
	struct netobs_opts opts = options_of(&f->witness, LONG_MS);

	assert_int_equal(netobs_new(&opts, &f->ctx), 0);
	netobs_stop(f->ctx);
	assert_int_equal(netobs_start(f->ctx), 0);
	await_stop(f->ctx);
}

/* In whatever phase: what it has and what came since are both delivered. */
static void stop_in_the_middle_of_a_drain(void **state)
{
	struct fixture *f = *state;

	for (int calls = 0; calls < 16; calls++) {
		start(f, 10);
		lab_send(PORT, 5);
		for (int i = 0; i < calls; i++)
			assert_true(netobs_poll(f->ctx, PATIENCE_MS) >= 0);
		lab_send(PORT, 6);
		stop(f->ctx);
		assert_int_equal(witness_packets_to(&f->witness, PORT), 11);
		assert_conserved(f->ctx);
		assert_int_equal(f->witness.errors, 0);
		netobs_free(f->ctx);
		f->ctx = NULL;
		witness_clear(&f->witness);
	}
}

/* Counting ends with the next call; what was seen until then takes several. */
static void stop_delivers_in_slices(void **state)
{
	struct fixture *f = *state;
	struct netobs_stats stats = { .sz = sizeof(stats) };
	uint32_t records;
	int ret;

	start(f, LONG_MS);
	lab_send(PORT, 5);
	netobs_stop(f->ctx);
	ret = netobs_dispatch(f->ctx);
	assert_true(ret >= 0);
	lab_send(PORT, 6);
	records = ret + await_stop(f->ctx);
	assert_int_equal(records, f->witness.n_flows);
	assert_int_equal(witness_packets_to(&f->witness, PORT), 5);
	assert_conserved(f->ctx);
	assert_int_equal(netobs_stats_get(f->ctx, &stats), 0);
	assert_int_equal(stats.exported.packets, stats.seen.packets);
	assert_true(lab_is_bare("lo"));
}

/* It delivers the rest at once, in whatever phase of the stop. */
static void drain_in_the_middle_of_a_stop(void **state)
{
	struct fixture *f = *state;

	for (int calls = 1; calls < 12; calls++) {
		int ret = 0;

		start(f, LONG_MS);
		lab_send(PORT, 5);
		netobs_stop(f->ctx);
		for (int i = 0; i < calls && ret >= 0; i++)
			ret = netobs_poll(f->ctx, PATIENCE_MS);
		assert_true(ret >= 0 || ret == -ECANCELED);
		ret = netobs_drain(f->ctx);
		assert_true(ret >= 0 || ret == -ECANCELED);
		assert_int_equal(witness_packets_to(&f->witness, PORT), 5);
		netobs_stop(f->ctx);
		await_stop(f->ctx);
		assert_int_equal(witness_packets_to(&f->witness, PORT), 5);
		assert_conserved(f->ctx);
		netobs_free(f->ctx);
		f->ctx = NULL;
		witness_clear(&f->witness);
	}
}

static void *stop_soon(void *ctx)
{
	const struct timespec wait = { .tv_nsec = 20 * NSEC_PER_MSEC };

	nanosleep(&wait, NULL);
	netobs_stop(ctx);
	return NULL;
}

static void stop_from_another_thread_ends_a_poll(void **state)
{
	struct fixture *f = *state;
	pthread_t thread;

	start(f, LONG_MS);
	lab_send(PORT, 9);
	assert_int_equal(pthread_create(&thread, NULL, stop_soon, f->ctx), 0);
	await_stop(f->ctx);
	pthread_join(thread, NULL);
	assert_int_equal(witness_packets_to(&f->witness, PORT), 9);
}

static struct netobs *stopped_by_signal;

static void on_signal(int signal)
{
	(void)signal;
	netobs_stop(stopped_by_signal);
}

static void stop_from_a_signal_handler(void **state)
{
	const struct sigaction action = { .sa_handler = on_signal };
	const struct itimerspec soon = { .it_value.tv_nsec = 20 * NSEC_PER_MSEC };
	struct fixture *f = *state;
	struct sigaction before;
	timer_t timer;
	int ret;

	start(f, LONG_MS);
	lab_send(PORT, 9);
	stopped_by_signal = f->ctx;
	assert_int_equal(sigaction(SIGALRM, &action, &before), 0);
	assert_int_equal(timer_create(CLOCK_MONOTONIC, NULL, &timer), 0);
	assert_int_equal(timer_settime(timer, 0, &soon, NULL), 0);
	ret = netobs_poll(f->ctx, -1);
	assert_true(ret >= 0 || ret == -EINTR);
	await_stop(f->ctx);
	timer_delete(timer);
	sigaction(SIGALRM, &before, NULL);
	assert_int_equal(witness_packets_to(&f->witness, PORT), 9);
}

static void stop_when_flow(const struct netobs_flow *flow, void *user)
{
	witness_on_flow(flow, user);
	netobs_stop(stopped_by_signal);
}

static void stop_from_a_callback(void **state)
{
	struct fixture *f = *state;
	struct netobs_opts opts = options_of(&f->witness, 20);

	opts.on_flow = stop_when_flow;
	start_with(f, &opts);
	stopped_by_signal = f->ctx;
	lab_send(PORT, 7);
	await_stop(f->ctx);
	assert_int_equal(witness_packets_to(&f->witness, PORT), 7);
}

static void two_contexts_do_not_disturb_each_other(void **state)
{
	struct fixture *f = *state;
	struct witness witness = { 0 };
	struct netobs_opts opts = options_of(&witness, 50);
	struct netobs *other;

	opts.direction = NETOBS_DIRECTION_EGRESS;
	opts.flags = NETOBS_PER_INTERFACE | NETOBS_TIMESTAMPS_PRECISE;
	opts.max_flows = 100;
	start(f, LONG_MS);
	assert_int_equal(netobs_new(&opts, &other), 0);
	assert_int_equal(netobs_start(other), 0);
	assert_int_not_equal(netobs_fd(other), netobs_fd(f->ctx));
	lab_send(PORT, 30);
	stop(f->ctx);
	netobs_free(f->ctx);
	f->ctx = NULL;
	lab_send(PORT, 12);
	stop(other);
	assert_int_equal(witness_packets_to(&f->witness, PORT), 30);
	assert_int_equal(witness_packets_to(&witness, PORT), 42);
	for (uint32_t i = 0; i < witness.n_flows; i++)
		assert_int_equal(witness.flows[i].points[0].direction,
				 NETOBS_EGRESS);
	assert_conserved(other);
	netobs_free(other);
	witness_clear(&witness);
}

static void per_interface_counts_both_directions(void **state)
{
	struct fixture *f = *state;
	struct netobs_opts opts = options_of(&f->witness, LONG_MS);

	opts.flags = NETOBS_PER_INTERFACE;
	start_with(f, &opts);
	lab_send(PORT, 10);
	stop(f->ctx);
	assert_int_equal(witness_packets_to(&f->witness, PORT), 20);
	assert_conserved(f->ctx);
}

static void start_fails_without_the_named_interface(void **state)
{
	static const char *const names[] = { "lo", "nosuch0", NULL };
	struct fixture *f = *state;
	struct netobs_opts opts = options_of(&f->witness, LONG_MS);

	opts.interfaces = names;
	assert_int_equal(netobs_new(&opts, &f->ctx), 0);
	assert_int_equal(netobs_start(f->ctx), -ENODEV);
	assert_true(witness_read(&f->witness, "nosuch0"));
	assert_int_equal(netobs_dispatch(f->ctx), -EINVAL);
	assert_int_equal(netobs_drain(f->ctx), -EINVAL);
	assert_int_equal(netobs_start(f->ctx), -EALREADY);
	assert_true(lab_is_bare("lo"));
}

static void start_fails_without_a_way_to_attach(void **state)
{
	const uint64_t both = 1 << NETOBS_FEATURE_TCX |
			      1 << NETOBS_FEATURE_CLSACT;
	struct fixture *f = *state;

	for (int named = 0; named < 2; named++) {
		struct netobs_opts opts = options_of(&f->witness, LONG_MS);

		opts.interfaces = named ? loopback : NULL;
		opts.disable_features = both;
		assert_int_equal(netobs_new(&opts, &f->ctx), 0);
		assert_int_equal(netobs_start(f->ctx), -ENOTSUP);
		assert_true(witness_read(&f->witness, "clsact"));
		netobs_free(f->ctx);
		f->ctx = NULL;
	}
}

static void either_way_to_attach_counts_the_same(void **state)
{
	const uint64_t disabled[] = { 1 << NETOBS_FEATURE_TCX,
				      1 << NETOBS_FEATURE_CLSACT };
	/* COMPAT(<6.6): clsact is the only way then. */
	const size_t ways = lab_has_tcx() ? 2 : 1;
	struct fixture *f = *state;

	for (size_t i = 0; i < ways; i++) {
		struct netobs_opts opts = options_of(&f->witness, LONG_MS);

		opts.disable_features = disabled[i];
		start_with(f, &opts);
		lab_send(PORT, 25);
		stop(f->ctx);
		assert_int_equal(witness_packets_to(&f->witness, PORT), 25);
		assert_conserved(f->ctx);
		assert_int_equal(f->witness.errors, 0);
		netobs_free(f->ctx);
		f->ctx = NULL;
		witness_clear(&f->witness);
	}
}

static int fail_to_print(enum libbpf_print_level level, const char *format,
			 va_list args)
{
	(void)level;
	(void)args;
	fail_msg("libbpf told the host: %s", format);
	return 0;
}

/* Even where it has much to say: interfaces that are not there any more. */
static void libbpf_prints_nothing_and_is_given_back(void **state)
{
	libbpf_print_fn_t before = libbpf_set_print(fail_to_print);
	struct fixture *f = *state;
	struct netobs_opts opts = options_of(&f->witness, LONG_MS);

	opts.interfaces = NULL;
	opts.disable_features = 1 << NETOBS_FEATURE_TCX;
	lab_run("ip link add v0 type veth peer name v1");
	start_with(f, &opts);
	lab_run("ip link del v0"); /* not told yet */
	netobs_free(f->ctx);
	f->ctx = NULL;
	assert_ptr_equal(libbpf_set_print(before), fail_to_print);
}

/* The thread that took programs off closes the last one when it ends. */
static void await_fds(int fds)
{
	const struct timespec wait = { .tv_nsec = NSEC_PER_MSEC };

	for (int i = 0; i < 1000 && lab_count_fds() != fds; i++)
		nanosleep(&wait, NULL);
	assert_int_equal(lab_count_fds(), fds);
}

/* After 0, 1, 2 ... calls, and so in every phase of a drain, or of a stop. */
static void free_after(struct fixture *f, int calls, bool is_stopped)
{
	struct netobs_opts opts = options_of(&f->witness, 10);
	int ret = 0;

	assert_int_equal(netobs_new(&opts, &f->ctx), 0);
	if (calls >= -1)
		assert_int_equal(netobs_start(f->ctx), 0);
	if (calls >= 0)
		lab_send(PORT, 10);
	if (is_stopped)
		netobs_stop(f->ctx);
	for (int i = 0; i < calls && ret >= 0; i++)
		ret = netobs_poll(f->ctx, PATIENCE_MS);
	assert_true(ret >= 0 || (is_stopped && ret == -ECANCELED));
	netobs_free(f->ctx);
	f->ctx = NULL;
}

static void free_at_every_stage_leaves_nothing(void **state)
{
	struct fixture *f = *state;
	int fds = lab_count_fds();

	for (int calls = -2; calls < 16; calls++) {
		free_after(f, calls, false);
		await_fds(fds);
		free_after(f, calls, true);
		await_fds(fds);
	}
	assert_true(lab_is_bare("lo"));
}

#define each(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		each(stop_delivers_what_was_seen_and_once),
		each(drain_delivers_what_was_seen_at_once),
		each(drain_in_the_middle_of_another),
		each(descriptor_is_constant_and_becomes_readable),
		each(dispatch_does_not_wait),
		each(return_values_count_the_records),
		each(start_twice_is_refused),
		each(stopped_stays_stopped),
		each(stop_before_the_start_takes_effect_after_it),
		each(stop_in_the_middle_of_a_drain),
		each(stop_delivers_in_slices),
		each(drain_in_the_middle_of_a_stop),
		each(stop_from_another_thread_ends_a_poll),
		each(stop_from_a_signal_handler),
		each(stop_from_a_callback),
		each(two_contexts_do_not_disturb_each_other),
		each(per_interface_counts_both_directions),
		each(start_fails_without_the_named_interface),
		each(start_fails_without_a_way_to_attach),
		each(either_way_to_attach_counts_the_same),
		each(libbpf_prints_nothing_and_is_given_back),
		each(free_at_every_stage_leaves_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
