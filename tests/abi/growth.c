/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * growth CAPTURE LINES: a program that may be older or newer than the library. Its
 * headers have today's structs, or shorter ones, or, with NEWER, each a member `later`
 * that the library does not know. Replays the capture, and writes each record to the sink
 * json:LINES as its own headers have it. Prints sizes and what was refused.
 */
#include <errno.h>
#include <netobs/capture.h>
#include <netobs/session.h>
#include <netobs/drop.h>
#include <netobs/netobs.h>
#include <netobs/probe.h>
#include <netobs/sink.h>
#include <netobs/stats.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef NEWER
#define SET_LATER(of) ((of)->later = 1)
#define IS_LATER_ZERO(of) (!(of)->later)
#else
#define SET_LATER(of)
#define IS_LATER_ZERO(of) 1
#endif

enum { GUARD = 0x5a, GUARDS = 64 };

#define CHECK(condition)                                               \
	do {                                                           \
		if (!(condition)) {                                    \
			fprintf(stderr, "growth.c:%d: %s\n", __LINE__, \
				#condition);                           \
			exit(1);                                       \
		}                                                      \
	} while (0)

/* A struct of this program's size, and bytes behind it that the library must not write. */
static void *guarded(size_t size)
{
	char *block = malloc(size + GUARDS);

	CHECK(block);
	memset(block, 0, size);
	memset(block + size, GUARD, GUARDS);
	return block;
}

static void check_guard(const void *block, size_t size)
{
	for (size_t i = 0; i < GUARDS; i++)
		CHECK(((const char *)block)[size + i] == GUARD);
}

/* @call fills @stats, of this program's size, with what the library knows of it. */
#define GET(stats, call)                                                        \
	do {                                                                    \
		(stats)->sz = sizeof(*(stats));                                 \
		CHECK((call) == 0);                                             \
		check_guard(stats, sizeof(*(stats)));                           \
		CHECK((stats)->sz <= sizeof(*(stats)) && IS_LATER_ZERO(stats)); \
	} while (0)

/* @call refuses the member that the library does not know; then, it is zero. */
#define REFUSE_LATER(opts, call)                                            \
	do {                                                                \
		SET_LATER(opts);                                            \
		if (!IS_LATER_ZERO(opts)) {                                 \
			CHECK((call) == -EINVAL);                           \
			printf("refused\n");                                \
			memset((char *)(opts) + sizeof(*(opts)) - 8, 0, 8); \
		}                                                           \
	} while (0)

static size_t min_size(size_t a, size_t b)
{
	return a < b ? a : b;
}

/* As a program keeps a record that has a point of its own. */
static void on_flow(const struct netobs_record *record, void *user)
{
	const struct netobs_flow *flow = (const void *)record;
	struct netobs_point points[2];
	struct netobs_flow mine = { .sz = 0 }, *copy;
	char json[NETOBS_FLOW_JSON_MAX];

	memcpy(&mine, flow, min_size(flow->sz, sizeof(mine)));
	mine.sz = sizeof(mine);
	memset(points, 0, sizeof(points));
	points[0].ifindex = points[1].ifindex = 7;
	points[1].direction = NETOBS_EGRESS;
	points[0].name = points[1].name = "eth0";
	mine.points = points;
	mine.n_points = 2;
	mine.point_size = sizeof(points[0]);
	SET_LATER(&mine);
	SET_LATER(&points[0]);

	CHECK(netobs_flow_point(&mine, 1) == &points[1]);
	CHECK(netobs_flow_dup(&mine, &copy) == 0);
	CHECK(copy->packets == flow->packets && copy->n_points == 2);
	CHECK(!strcmp(netobs_flow_point(copy, 1)->name, "eth0"));
	CHECK(netobs_flow_json(copy, json, sizeof(json)) > 0);
	netobs_flow_free(copy);
	CHECK(netobs_sink_write(user, (const void *)&mine) == 0);
	printf("flow %zu of %zu\n", sizeof(mine), flow->sz);
}

#ifdef NEWER
/* Elements of this program's size. Older headers lack the last option of rules. */
static void take_rules(void)
{
	struct netobs_rule rules[2] = { { .sz = sizeof(rules[0]) } };
	struct netobs *ctx = NULL;
	NETOBS_OPTS(netobs_opts, opts);

	rules[0].filter = "udp";
	rules[0].action = NETOBS_REJECT;
	rules[1] = rules[0];
	rules[1].filter = "tcp";
	opts.rules = rules;
	opts.n_rules = 2;
	opts.default_action = NETOBS_ACCEPT;
	CHECK(netobs_new(&opts, &ctx) == 0);
	netobs_free(ctx);
	rules[1].later = 1;
	CHECK(netobs_new(&opts, &ctx) == -EINVAL);
}
#endif

static void count_connections(const struct netobs *ctx)
{
	struct netobs_connection_stats *stats = guarded(sizeof(*stats));

	GET(stats, netobs_connection_stats_get(ctx, stats));
	CHECK(stats->sz < sizeof(*stats) || stats->capacity > 0);
	free(stats);
}

static void replay(const char *path, struct netobs_sink *sink)
{
	struct netobs_engine_stats *engine = guarded(sizeof(*engine));
	struct netobs_stats *stats = guarded(sizeof(*stats));
	struct netobs *ctx = NULL;
	NETOBS_OPTS(netobs_opts, opts);

	opts.on_record = on_flow;
	opts.user = sink;
	opts.rtt = 1;
	REFUSE_LATER(&opts, netobs_new(&opts, &ctx));
	CHECK(netobs_new(&opts, &ctx) == 0);
	CHECK(netobs_replay_files(ctx, &path, 1) > 0);

	GET(stats, netobs_stats_get(ctx, stats));
	CHECK(stats->exported.packets == stats->seen.packets);
	printf("stats %zu of %zu\n", stats->sz, sizeof(*stats));
	free(stats);

	GET(engine, netobs_engine_stats_get(ctx, engine));
	CHECK(engine->drains > 0);
	free(engine);
	count_connections(ctx);
	netobs_free(ctx);
}

static struct netobs_sink *open_sink(const char *spec)
{
	NETOBS_OPTS(netobs_sink_opts, opts);
	struct netobs_sink *sink = NULL;

	REFUSE_LATER(&opts, netobs_sink_open(spec, &opts, &sink));
	CHECK(netobs_sink_open(spec, &opts, &sink) == 0);
	return sink;
}

static void close_sink(struct netobs_sink *sink)
{
	struct netobs_sink_stats *stats = guarded(sizeof(*stats));

	CHECK(netobs_sink_wait(sink, 10000) == 0);
	GET(stats, netobs_sink_stats_get(sink, stats));
	CHECK(stats->delivered.records == stats->taken.records);
	free(stats);
	netobs_sink_close(sink);
}

static int on_packet(const struct netobs_packet *packet, void *user)
{
	(void)packet;
	(void)user;
	return 0;
}

static void on_record(const struct netobs_record *record, void *user)
{
	(void)record;
	(void)user;
}

/* Contexts that are not started. */
#define OBSERVE(kind, callback, function)                                      \
	static void observe_##kind(void)                                       \
	{                                                                      \
		struct netobs_##kind##_stats *stats = guarded(sizeof(*stats)); \
		NETOBS_OPTS(netobs_##kind##_opts, opts, .callback = function); \
		struct netobs *ctx = NULL;                                     \
                                                                               \
		REFUSE_LATER(&opts, netobs_##kind##_new(&opts, &ctx));         \
		CHECK(netobs_##kind##_new(&opts, &ctx) == 0);                  \
		GET(stats, netobs_##kind##_stats_get(ctx, stats));             \
		free(stats);                                                   \
		netobs_free(ctx);                                              \
	}
OBSERVE(capture, on_packet, on_packet)
OBSERVE(sessions, on_record, on_record)
OBSERVE(drops, on_record, on_record)

#ifdef NEWER /* older programs have other rules */
static void set_alerts(void)
{
	struct netobs_alert_counts *counts = guarded(sizeof(*counts));
	struct netobs_alert_rule rules[2] = {
		{ .sz = sizeof(*rules), .rule = "rtt > 1ms" },
		{ .sz = sizeof(*rules), .rule = "rate > 1Gbit" },
	};
	struct netobs *ctx = NULL;
	NETOBS_OPTS(netobs_opts, opts);

	opts.rtt = 1;
	opts.on_record = on_record;
	opts.records = 1 << NETOBS_RECORD_ALERT;
	CHECK(netobs_new(&opts, &ctx) == 0);
	CHECK(netobs_alerts_set(ctx, rules, 2) == 0);
	SET_LATER(&rules[1]);
	if (!IS_LATER_ZERO(&rules[1]))
		CHECK(netobs_alerts_set(ctx, rules, 2) == -EINVAL);
	GET(counts, netobs_alert_counts_get(ctx, 1, counts));
	free(counts);
	netobs_free(ctx);
}
#endif

static void probe(void)
{
	const size_t size = sizeof(struct netobs_feature);
	struct netobs_feature *features = guarded(NETOBS_FEATURES * size);

	CHECK(netobs_probe(0, NULL, NULL, features, NETOBS_FEATURES, size) == 1);
	check_guard(features, NETOBS_FEATURES * size);
	for (size_t i = 0; i < NETOBS_FEATURES; i++)
		CHECK(features[i].name && IS_LATER_ZERO(&features[i]));
	free(features);
}

int main(int argc, char **argv)
{
	char spec[4096];
	struct netobs_sink *sink;

	CHECK(argc == 3);
	probe();
	observe_capture();
	observe_sessions();
	observe_drops();
#ifdef NEWER
	set_alerts();
	take_rules();
#endif
	snprintf(spec, sizeof(spec), "json:%s", argv[2]);
	sink = open_sink(spec);
	replay(argv[1], sink);
	close_sink(sink);
	return 0;
}
