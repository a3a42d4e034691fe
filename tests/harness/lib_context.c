/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include "lib_context.h"

#include "lib_test.h"
#include "lib_wait.h"

enum { PATIENCE_MS = 30000 };

static const char *const loopback[] = { "lo", NULL };

int context_setup(void **state)
{
	static struct context_fixture f;

	memset(&f, 0, sizeof(f));
	*state = &f;
	lab_enter(&f.lab);
	return 0;
}

int context_teardown(void **state)
{
	struct context_fixture *f = *state;

	netobs_free(f->ctx);
	witness_clear(&f->witness);
	lab_leave(&f->lab);
	return 0;
}

struct netobs_opts context_options(struct witness *witness, uint32_t interval_ms)
{
	NETOBS_OPTS(netobs_opts, opts);

	opts.interfaces = loopback;
	opts.interval_ms = interval_ms;
	opts.max_flows = 1000; /* quickly made, quickly freed */
	witness_listen(witness, &opts);
	return opts;
}

void context_start_with(struct context_fixture *f, const struct netobs_opts *opts)
{
	assert_int_equal(netobs_new(opts, &f->ctx), 0);
	assert_int_equal(netobs_start(f->ctx), 0);
}

void context_start(struct context_fixture *f, uint32_t interval_ms)
{
	struct netobs_opts opts = context_options(&f->witness, interval_ms);

	context_start_with(f, &opts);
}

int context_change(struct netobs *ctx, const struct netobs_opts *opts)
{
	int ret = netobs_change_begin(ctx, opts);

	while (ret >= 0 && netobs_change_result(ctx) == -EINPROGRESS)
		ret = netobs_poll(ctx, PATIENCE_MS);
	return ret < 0 ? ret : netobs_change_result(ctx);
}

void context_assert_refused(struct context_fixture *f,
			    const struct netobs_opts *opts, int err,
			    const char *words)
{
	assert_int_equal(context_change(f->ctx, opts), err);
	if (!strstr(netobs_last_error(f->ctx), words))
		fail_msg("'%s' lacks '%s'", netobs_last_error(f->ctx), words);
}

uint32_t context_interfaces(const struct netobs *ctx)
{
	struct netobs_stats stats = { .sz = sizeof(stats) };

	assert_int_equal(netobs_stats_get(ctx, &stats), 0);
	return stats.interfaces;
}

void context_await_interfaces(struct netobs *ctx, uint32_t n)
{
	await_by(context_interfaces(ctx) == n,
		 assert_true(netobs_poll(ctx, 100) >= 0));
}

void context_await_fds(struct netobs *ctx, int most)
{
	await_by(lab_count_fds() <= most,
		 assert_true(netobs_poll(ctx, 100) >= 0));
}

uint32_t context_await_stop(struct netobs *ctx)
{
	uint32_t records = 0;
	int ret;

	while ((ret = netobs_poll(ctx, PATIENCE_MS)) >= 0)
		records += ret;
	assert_int_equal(ret, -ECANCELED);
	return records;
}

void context_stop(struct netobs *ctx)
{
	netobs_stop(ctx);
	context_await_stop(ctx);
}

void context_assert_conserved(const struct netobs *ctx)
{
	struct netobs_stats stats = { .sz = sizeof(stats) };
	uint64_t packets, bytes;

	assert_int_equal(netobs_stats_get(ctx, &stats), 0);
	packets = stats.exported.packets + stats.pending.packets +
		  stats.filtered.packets + stats.sampled_out.packets;
	bytes = stats.exported.bytes + stats.pending.bytes +
		stats.filtered.bytes + stats.sampled_out.bytes;
	for (int i = 0; i < NETOBS_UNPARSED_REASONS; i++) {
		packets += stats.unparsed[i].packets;
		bytes += stats.unparsed[i].bytes;
	}
	assert_int_equal(stats.seen.packets, packets);
	assert_int_equal(stats.seen.bytes, bytes);
}
