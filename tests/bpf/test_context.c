// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/* The public life of a context, on the loopback of a namespace of its own. */
#include "lib_context.h"
#include "lib_test.h"
#include "api/context.h"

#include <bpf/libbpf.h>
#include <netobs/probe.h>
#include <poll.h>

enum { PORT = 40000, LONG_MS = 60000, PATIENCE_MS = 30000 };

static int replay_file(struct netobs *ctx, const char *path)
{
	return netobs_replay_files(ctx, &path, 1);
}

CONTEXT_TEST(descriptor_is_constant_and_becomes_readable)
{
	struct netobs_opts opts = context_options(&f->witness, 20);
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
	context_stop(f->ctx);
	assert_int_equal(netobs_fd(f->ctx), fd.fd);
}

CONTEXT_TEST(dispatch_does_not_wait)
{
	context_start(f, LONG_MS);
	for (int i = 0; i < 100; i++)
		assert_int_equal(netobs_dispatch(f->ctx), 0);
	assert_int_equal(netobs_poll(f->ctx, 0), 0);
	assert_int_equal(f->witness.n_intervals, 0);
}

/* New flows until there is no room for more, and a drain is wanted, which has to rest. */
static void fill_up(struct context_fixture *f)
{
	enum { FLOWS = 60000, AT_ONCE = 200 };

	f->ctx->pipeline.rested_ns = f->ctx->due_ns;
	for (uint32_t flow = 0; !f->ctx->is_early_wanted; flow += AT_ONCE) {
		assert_in_range(flow, 0, FLOWS);
		for (uint32_t i = 0; i < AT_ONCE; i++)
			lab_send(PORT, 1);
		assert_true(netobs_poll(f->ctx, 1) >= 0);
	}
}

/* A log that has no room to go to is not read again and again. */
CONTEXT_TEST(context_without_room_sleeps_until_its_drain)
{
	struct netobs_stats stats = { .sz = sizeof(stats) };
	struct pollfd fd = { .events = POLLIN };

	context_start(f, LONG_MS);
	fd.fd = netobs_fd(f->ctx);
	fill_up(f);
	for (int i = 0; i < 5; i++) /* a notice may have been under way */
		assert_true(netobs_poll(f->ctx, 10) >= 0);
	assert_true(f->ctx->is_early_wanted);
	assert_int_equal(poll(&fd, 1, 50), 0);

	f->ctx->pipeline.rested_ns = 0;
	assert_true(netobs_drain(f->ctx) > 0);
	context_stop(f->ctx);
	assert_int_equal(netobs_stats_get(f->ctx, &stats), 0);
	assert_int_equal(stats.seen.packets,
			 stats.exported.packets +
				 stats.lost[NETOBS_LOST_TABLE_FULL].packets);
	assert_int_equal(f->witness.errors, 0);
}

CONTEXT_TEST(start_twice_is_refused)
{
	context_start(f, LONG_MS);
	assert_int_equal(netobs_start(f->ctx), -EALREADY);
	assert_int_equal(replay_file(f->ctx, "x.pcap"), -EINVAL);
	lab_send(PORT, 5);
	context_stop(f->ctx);
	assert_int_equal(netobs_start(f->ctx), -EALREADY);
	assert_int_equal(witness_packets_to(&f->witness, PORT), 5);
}

CONTEXT_TEST(per_interface_counts_both_directions)
{
	struct netobs_opts opts = context_options(&f->witness, LONG_MS);

	opts.flags = NETOBS_PER_INTERFACE;
	context_start_with(f, &opts);
	lab_send(PORT, 10);
	context_stop(f->ctx);
	assert_int_equal(witness_packets_to(&f->witness, PORT), 20);
	context_assert_conserved(f->ctx);
}

static void take_interface(const struct netobs_interface *interface, void *user)
{
	assert_string_equal(interface->name, "lo");
	assert_null(interface->netns);
	*(struct netobs_interface *)user = *interface;
}

CONTEXT_TEST(drains_and_what_crosses_interfaces_are_counted)
{
	struct netobs_engine_stats stats = { .sz = sizeof(stats) };
	struct netobs_interface lo = { 0 };
	struct netobs_crossings all[NETOBS_DIRECTIONS];
	uint64_t sum = 0;

	context_start(f, LONG_MS);
	lab_send(PORT, 10);
	netobs_drain(f->ctx);
	assert_int_equal(netobs_interfaces(f->ctx, take_interface, &lo, all), 0);
	for (int direction = 0; direction < NETOBS_DIRECTIONS; direction++) {
		assert_true(lo.crossed[direction].flows.packets >= 10);
		assert_memory_equal(&lo.crossed[direction], &all[direction],
				    sizeof(all[0]));
	}

	assert_int_equal(netobs_engine_stats_get(f->ctx, &stats), 0);
	for (int i = 0; i < NETOBS_DRAIN_TIMES; i++)
		sum += stats.drains_by_time[i];
	assert_int_equal(stats.drains, 1);
	assert_int_equal(sum, 1);
	assert_true(stats.drain_ns > 0 && stats.drain_cpu_ns > 0);
	assert_true(stats.max_flows > 0);
	assert_int_equal(stats.programs, 2);

	assert_int_equal(netobs_engine_stats_get(NULL, &stats), -EINVAL);
	assert_int_equal(netobs_interfaces(f->ctx, NULL, NULL, all), -EINVAL);
	context_stop(f->ctx);
	memset(&lo, 0, sizeof(lo));
	assert_int_equal(netobs_interfaces(f->ctx, take_interface, &lo, all), 0);
	assert_true(all[NETOBS_EGRESS].flows.packets >= 10);
}

CONTEXT_TEST(start_fails_without_the_named_interface)
{
	static const char *const names[] = { "lo", "nosuch0", NULL };
	struct netobs_opts opts = context_options(&f->witness, LONG_MS);
	struct netobs_stats stats = { .sz = sizeof(stats) };

	opts.interfaces = names;
	assert_int_equal(netobs_new(&opts, &f->ctx), 0);
	assert_int_equal(netobs_start(f->ctx), -ENODEV);
	assert_int_equal(netobs_stats_get(f->ctx, &stats), 0);
	assert_true(witness_read(&f->witness, "nosuch0"));
	assert_int_equal(netobs_dispatch(f->ctx), -EINVAL);
	assert_int_equal(netobs_drain(f->ctx), -EINVAL);
	assert_int_equal(netobs_start(f->ctx), -EALREADY);
	lab_await_bare("lo");
}

CONTEXT_TEST(start_fails_without_a_way_to_attach)
{
	const uint64_t both = 1 << NETOBS_FEATURE_TCX |
			      1 << NETOBS_FEATURE_CLSACT;

	for (int named = 0; named < 2; named++) {
		struct netobs_opts opts = context_options(&f->witness, LONG_MS);

		if (!named)
			opts.interfaces = NULL;
		opts.disable_features = both;
		assert_int_equal(netobs_new(&opts, &f->ctx), 0);
		assert_int_equal(netobs_start(f->ctx), -ENOTSUP);
		assert_true(witness_read(&f->witness, "clsact"));
		netobs_free(TAKE_PTR(f->ctx));
	}
}

static int fail_to_print(enum libbpf_print_level level, const char *format,
			 va_list args)
{
	(void)level;
	(void)args;
	fail_msg("libbpf logged: %s", format);
	return 0;
}

/* Even where it has much to say: interfaces that are not there any more. */
CONTEXT_TEST(libbpf_prints_nothing_and_is_given_back)
{
	libbpf_print_fn_t before = libbpf_set_print(fail_to_print);
	struct netobs_opts opts = context_options(&f->witness, LONG_MS);

	opts.interfaces = NULL;
	opts.disable_features = 1 << NETOBS_FEATURE_TCX;
	lab_run("ip link add v0 type veth peer name v1");
	context_start_with(f, &opts);
	lab_run("ip link del v0"); /* not notified yet */
	netobs_free(TAKE_PTR(f->ctx));
	assert_ptr_equal(libbpf_set_print(before), fail_to_print);
}

/* After 0, 1, 2 ... calls, and so in every phase of a drain, or of a stop. */
static void free_after(struct context_fixture *f, int calls, bool is_stopped)
{
	struct netobs_opts opts = context_options(&f->witness, 10);
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
	netobs_free(TAKE_PTR(f->ctx));
}

CONTEXT_TEST(free_at_every_stage_leaves_nothing)
{
	const int step = lab_shrink() > 1 ? 5 : 1;
	int fds = lab_count_fds();

	/* Loading programs takes seconds in a slow guest: fewer of the later stages. */
	for (int calls = -2; calls < 16; calls += calls < 2 ? 1 : step) {
		free_after(f, calls, false);
		lab_await_fds(fds);
		free_after(f, calls, true);
		lab_await_fds(fds);
	}
	lab_await_bare("lo");
}
