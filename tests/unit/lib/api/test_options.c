// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/* What netobs_new() takes and refuses. Nothing here needs privileges. */
#include "lib_test.h"
#include "lib_witness.h"

#include <fcntl.h>

static const char *const good_names[] = { "lo",
					  "/^eth/",
					  "netns:blue/eth0",
					  "netns:/proc/1/ns/net/eth0",
					  "netns:blue//^veth/",
					  NULL };

static int replay_file(struct netobs *ctx, const char *path)
{
	return netobs_replay_files(ctx, &path, 1);
}

/* netobs_new() that must refuse and say @words. */
static void assert_refused(struct netobs_opts *opts, const char *words)
{
	struct witness witness = { 0 };
	struct netobs *ctx = NULL;

	witness_listen(&witness, opts);
	assert_int_equal(netobs_new(opts, &ctx), -EINVAL);
	assert_null(ctx);
	assert_int_equal(witness.errors, 1);
	if (!witness_read(&witness, words))
		fail_msg("'%s' is not in: %s", words, witness.log);
	witness_clear(&witness);
}

TEST(new_takes_defaults)
{
	struct netobs *ctx = NULL;
	NETOBS_OPTS(netobs_opts, opts);

	assert_int_equal(netobs_new(NULL, &ctx), 0);
	netobs_free(ctx);
	assert_int_equal(netobs_new(&opts, &ctx), 0);
	assert_true(netobs_fd(ctx) >= 0);
	netobs_free(ctx);
}

TEST(new_takes_over_the_lists)
{
	char name[] = "/^eth/";
	const char *interfaces[] = { name, NULL };
	struct netobs *ctx = NULL;
	NETOBS_OPTS(netobs_opts, opts);

	opts.interfaces = interfaces;
	opts.exclude = interfaces;
	assert_int_equal(netobs_new(&opts, &ctx), 0);
	memset(name, 'x', sizeof(name));
	memset(interfaces, 0xff, sizeof(interfaces));
	memset(&opts, 0xff, sizeof(opts));
	netobs_free(ctx);
}

TEST(new_takes_every_kind_of_interface)
{
	struct netobs *ctx = NULL;
	NETOBS_OPTS(netobs_opts, opts);

	opts.interfaces = good_names;
	opts.flags = NETOBS_PER_INTERFACE;
	opts.direction = NETOBS_EGRESS;
	opts.attach_order = NETOBS_ATTACH_LAST;
	opts.interval_ms = 10;
	opts.max_flows = 1;
	opts.sampling = UINT32_MAX;
	opts.sampling_mode = NETOBS_SAMPLE_FLOWS;
	opts.min_bytes = UINT64_MAX;
	assert_int_equal(netobs_new(&opts, &ctx), 0);
	netobs_free(ctx);
}

#define REFUSED(words, ...)                                                     \
	assert_refused(&(struct netobs_opts){ .sz = sizeof(struct netobs_opts), \
					      __VA_ARGS__ },                    \
		       words)

TEST(new_refuses_bad_values)
{
	const char *wrong[] = { "lo", "/(/", NULL };

	REFUSED("attach_order", .attach_order = 2);
	REFUSED("sampling_mode", .sampling = 100, .sampling_mode = 2);
	REFUSED("flags", .flags = NETOBS_CONTAINER_NAMES << 1);
	REFUSED("flags", .flags = 1U << 31 | NETOBS_PER_INTERFACE);
	REFUSED("records", .records = 1 << NETOBS_RECORD_SESSION);
	REFUSED("interval", .interval_ms = 9);
	REFUSED("exclude: ", .exclude = wrong);
	REFUSED("interfaces: ", .interfaces = wrong);
}

TEST(new_refuses_unknown_directions)
{
	static const unsigned int wrong[] = { NETOBS_DIRECTIONS, 0x10, 0x20,
					      UINT32_MAX };

	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
		NETOBS_OPTS(netobs_opts, opts);

		memcpy(&opts.direction, &wrong[i], sizeof(wrong[i]));
		assert_refused(&opts, "direction");
	}
}

/* What a program has that was compiled for a later library. */
struct later_opts {
	struct netobs_opts opts;
	uint64_t more[4];
};

TEST(new_refuses_later_options_that_are_used)
{
	struct later_opts unused = { .opts.sz = sizeof(unused) };
	struct netobs *ctx = NULL;

	assert_int_equal(netobs_new(&unused.opts, &ctx), 0);
	netobs_free(ctx);
	for (size_t i = 0; i < sizeof(uint64_t) * 4; i += 5) {
		struct later_opts later = { .opts.sz = sizeof(later) };

		((uint8_t *)later.more)[i] = 1;
		assert_refused(&later.opts, "sz");
	}
}

/* Of a program that was compiled for an earlier library: not read beyond. */
TEST(new_takes_shorter_options)
{
	volatile size_t sz = offsetof(struct netobs_opts, idle_timeout_ms);
	struct netobs_opts *opts = calloc(1, sz);
	struct netobs *ctx = NULL;

	opts->sz = sz;
	opts->interval_ms = 20;
	assert_int_equal(netobs_new(opts, &ctx), 0);
	netobs_free(ctx);
	free(opts);
}

TEST(new_refuses_a_size_that_cannot_be)
{
	static const size_t wrong[] = { 0, 1, sizeof(size_t) - 1 };

	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
		struct netobs_opts opts = { .sz = wrong[i] };
		struct netobs *ctx = NULL;

		assert_int_equal(netobs_new(&opts, &ctx), -EINVAL);
		assert_null(ctx);
	}
}

TEST(new_writes_why_it_failed)
{
	char why[NETOBS_ERROR_MAX] = "untouched";
	struct netobs *ctx = NULL;
	NETOBS_OPTS(netobs_opts, opts);

	opts.error = &why;
	assert_int_equal(netobs_new(&opts, &ctx), 0);
	assert_string_equal(why, "untouched");
	assert_string_equal(netobs_last_error(ctx), "");
	netobs_free(ctx);

	opts.interval_ms = 1;
	assert_int_equal(netobs_new(&opts, &ctx), -EINVAL);
	assert_string_equal(why, "interval_ms: 1 is less than 10");
}

TEST(contexts_keep_the_last_error)
{
	struct netobs *ctx = NULL;

	assert_string_equal(netobs_last_error(NULL), "");
	assert_int_equal(netobs_new(NULL, &ctx), 0);
	assert_int_equal(netobs_dispatch(ctx), -EINVAL);
	assert_string_equal(netobs_last_error(ctx),
			    "cannot dispatch: Invalid argument");
	assert_int_equal(replay_file(ctx, "/nonexistent.pcap"), -ENOENT);
	assert_non_null(strstr(netobs_last_error(ctx), "/nonexistent.pcap"));
	assert_int_equal(netobs_start(ctx), -EALREADY);
	assert_non_null(strstr(netobs_last_error(ctx), "cannot start"));
	netobs_free(ctx);
}

static bool is_open(int fd)
{
	return fcntl(fd, F_GETFD) >= 0;
}

TEST(calls_without_a_context_are_refused)
{
	NETOBS_OPTS(netobs_opts, opts);
	struct netobs_stats stats = { .sz = sizeof(stats) };

	assert_int_equal(netobs_new(&opts, NULL), -EINVAL);
	assert_true(is_open(STDIN_FILENO)); /* 0 is no descriptor of ours */
	assert_int_equal(netobs_start(NULL), -EINVAL);
	assert_int_equal(netobs_fd(NULL), -EINVAL);
	assert_int_equal(netobs_dispatch(NULL), -EINVAL);
	assert_int_equal(netobs_poll(NULL, 0), -EINVAL);
	assert_int_equal(netobs_drain(NULL), -EINVAL);
	assert_int_equal(replay_file(NULL, "x.pcap"), -EINVAL);
	assert_int_equal(netobs_stats_get(NULL, &stats), -EINVAL);
	netobs_stop(NULL);
	netobs_free(NULL);
}

TEST(calls_before_the_start_are_refused)
{
	const char *const twice[] = { "-", "-" };
	struct netobs_stats stats = { .sz = sizeof(stats) };
	struct netobs *ctx = NULL;

	assert_int_equal(netobs_new(NULL, &ctx), 0);
	assert_int_equal(netobs_dispatch(ctx), -EINVAL);
	assert_int_equal(netobs_poll(ctx, 0), -EINVAL);
	assert_int_equal(netobs_drain(ctx), -EINVAL);
	assert_int_equal(replay_file(ctx, NULL), -EINVAL);
	assert_int_equal(netobs_replay_files(ctx, twice, 2), -EINVAL);
	assert_int_equal(netobs_replay_files(ctx, twice, 0), -EINVAL);
	assert_int_equal(netobs_stats_get(ctx, NULL), -EINVAL);
	assert_int_equal(netobs_stats_get(ctx, &stats), 0);
	assert_int_equal(stats.observed.packets, 0);
	netobs_free(ctx);
}

TEST(stats_fill_what_the_caller_knows)
{
	const size_t short_sz = offsetof(struct netobs_stats, pending);
	struct {
		struct netobs_stats stats;
		uint8_t more[32];
	} larger;
	struct netobs *ctx = NULL;

	assert_int_equal(netobs_new(NULL, &ctx), 0);
	memset(&larger, 0xee, sizeof(larger));
	larger.stats.sz = short_sz;
	assert_int_equal(netobs_stats_get(ctx, &larger.stats), 0);
	assert_int_equal(larger.stats.sz, short_sz);
	assert_int_equal(larger.stats.exported.bytes, 0);
	assert_int_equal(larger.stats.pending.packets, 0xeeeeeeeeeeeeeeee);

	memset(&larger, 0xee, sizeof(larger));
	larger.stats.sz = sizeof(larger);
	assert_int_equal(netobs_stats_get(ctx, &larger.stats), 0);
	assert_int_equal(larger.stats.sz, sizeof(larger.stats));
	assert_int_equal(larger.stats.flows, 0);
	assert_int_equal(larger.more[0], 0xee);

	larger.stats.sz = 0;
	assert_int_equal(netobs_stats_get(ctx, &larger.stats), -EINVAL);
	netobs_free(ctx);
}
