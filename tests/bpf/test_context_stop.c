// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/* Drains and stops of a context, whenever they come: each packet is delivered once. */
#include "lib_context.h"
#include "lib_test.h"

#include <pthread.h>
#include <signal.h>
#include <time.h>

enum { PORT = 40000, LONG_MS = 60000, PATIENCE_MS = 30000 };

CONTEXT_TEST(stop_delivers_what_was_seen_and_once)
{
	context_start(f, LONG_MS);
	lab_send(PORT, 50);
	context_stop(f->ctx);
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
	context_assert_conserved(f->ctx);
	assert_int_equal(f->witness.errors, 0);
}

CONTEXT_TEST(drain_delivers_what_was_seen_at_once)
{
	context_start(f, LONG_MS);
	for (uint32_t i = 1; i <= 5; i++) {
		lab_send(PORT + i, 20);
		assert_true(netobs_drain(f->ctx) >= 1);
		assert_int_equal(witness_packets_to(&f->witness, PORT + i), 20);
		assert_int_equal(f->witness.n_intervals, i);
	}
	context_stop(f->ctx);
	for (uint32_t i = 1; i <= 5; i++)
		assert_int_equal(witness_packets_to(&f->witness, PORT + i), 20);
	context_assert_conserved(f->ctx);
}

/* A drain that the interval began is completed first. */
CONTEXT_TEST(drain_in_the_middle_of_another)
{
	uint64_t sent = 0;

	context_start(f, 10);
	for (int i = 0; i < 50; i++) {
		lab_send(PORT, 3);
		sent += 3;
		assert_true(netobs_poll(f->ctx, PATIENCE_MS) >= 0);
		assert_true(netobs_drain(f->ctx) >= 0);
		assert_int_equal(witness_packets_to(&f->witness, PORT), sent);
	}
	context_assert_conserved(f->ctx);
}

CONTEXT_TEST(stopped_stays_stopped)
{
	struct netobs_stats stats = { .sz = sizeof(stats) };
	uint32_t records;

	context_start(f, 10);
	lab_send(PORT, 5);
	context_stop(f->ctx);
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

CONTEXT_TEST(stop_before_the_start_takes_effect_after_it)
{
	struct netobs_opts opts = context_options(&f->witness, LONG_MS);

	assert_int_equal(netobs_new(&opts, &f->ctx), 0);
	netobs_stop(f->ctx);
	assert_int_equal(netobs_start(f->ctx), 0);
	context_await_stop(f->ctx);
}

/* In any phase: the packets that it has and those since then are delivered. */
CONTEXT_TEST(stop_in_the_middle_of_a_drain)
{
	for (int calls = 0; calls < 16; calls++) {
		context_start(f, 10);
		lab_send(PORT, 5);
		for (int i = 0; i < calls; i++)
			assert_true(netobs_poll(f->ctx, PATIENCE_MS) >= 0);
		lab_send(PORT, 6);
		context_stop(f->ctx);
		assert_int_equal(witness_packets_to(&f->witness, PORT), 11);
		context_assert_conserved(f->ctx);
		assert_int_equal(f->witness.errors, 0);
		netobs_free(TAKE_PTR(f->ctx));
		witness_clear(&f->witness);
	}
}

/* Counting ends with the next call; packets seen until then take several calls. */
CONTEXT_TEST(stop_delivers_in_slices)
{
	struct netobs_stats stats = { .sz = sizeof(stats) };
	uint32_t records;
	int ret;

	context_start(f, LONG_MS);
	lab_send(PORT, 5);
	netobs_stop(f->ctx);
	ret = netobs_dispatch(f->ctx);
	assert_true(ret >= 0);
	lab_send(PORT, 6);
	records = ret + context_await_stop(f->ctx);
	assert_int_equal(records, f->witness.n_flows);
	assert_int_equal(witness_packets_to(&f->witness, PORT), 5);
	context_assert_conserved(f->ctx);
	assert_int_equal(netobs_stats_get(f->ctx, &stats), 0);
	assert_int_equal(stats.exported.packets, stats.seen.packets);
	lab_await_bare("lo");
}

/* It delivers the rest at once, in whatever phase of the stop. */
CONTEXT_TEST(drain_in_the_middle_of_a_stop)
{
	for (int calls = 1; calls < 12; calls++) {
		int ret = 0;

		context_start(f, LONG_MS);
		lab_send(PORT, 5);
		netobs_stop(f->ctx);
		for (int i = 0; i < calls && ret >= 0; i++)
			ret = netobs_poll(f->ctx, PATIENCE_MS);
		assert_true(ret >= 0 || ret == -ECANCELED);
		ret = netobs_drain(f->ctx);
		assert_true(ret >= 0 || ret == -ECANCELED);
		assert_int_equal(witness_packets_to(&f->witness, PORT), 5);
		netobs_stop(f->ctx);
		context_await_stop(f->ctx);
		assert_int_equal(witness_packets_to(&f->witness, PORT), 5);
		context_assert_conserved(f->ctx);
		netobs_free(TAKE_PTR(f->ctx));
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

CONTEXT_TEST(stop_from_another_thread_ends_a_poll)
{
	pthread_t thread;

	context_start(f, LONG_MS);
	lab_send(PORT, 9);
	assert_int_equal(pthread_create(&thread, NULL, stop_soon, f->ctx), 0);
	context_await_stop(f->ctx);
	pthread_join(thread, NULL);
	assert_int_equal(witness_packets_to(&f->witness, PORT), 9);
}

static struct netobs *stopped_by_signal;

static void on_signal(int signal)
{
	(void)signal;
	netobs_stop(stopped_by_signal);
}

CONTEXT_TEST(stop_from_a_signal_handler)
{
	const struct sigaction action = { .sa_handler = on_signal };
	const struct itimerspec soon = { .it_value.tv_nsec = 20 * NSEC_PER_MSEC };
	struct sigaction before;
	timer_t timer;
	int ret;

	context_start(f, LONG_MS);
	lab_send(PORT, 9);
	stopped_by_signal = f->ctx;
	assert_int_equal(sigaction(SIGALRM, &action, &before), 0);
	assert_int_equal(timer_create(CLOCK_MONOTONIC, NULL, &timer), 0);
	assert_int_equal(timer_settime(timer, 0, &soon, NULL), 0);
	ret = netobs_poll(f->ctx, -1);
	assert_true(ret >= 0 || ret == -EINTR);
	context_await_stop(f->ctx);
	timer_delete(timer);
	sigaction(SIGALRM, &before, NULL);
	assert_int_equal(witness_packets_to(&f->witness, PORT), 9);
}

static void stop_when_flow(const struct netobs_record *record, void *user)
{
	witness_on_flow(record, user);
	netobs_stop(stopped_by_signal);
}

CONTEXT_TEST(stop_from_a_callback)
{
	struct netobs_opts opts = context_options(&f->witness, 20);

	opts.on_record = stop_when_flow;
	context_start_with(f, &opts);
	stopped_by_signal = f->ctx;
	lab_send(PORT, 7);
	context_await_stop(f->ctx);
	assert_int_equal(witness_packets_to(&f->witness, PORT), 7);
}
