// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/*
 * Gives records to a sink, without traffic:
 *
 *   sinkfeed SPEC [--rate R] [--seconds S] [--records N] [--first N] [--drain S]
 *            [--stats N] [--times]
 *
 * R records a second, or as fast as the sink takes them; for S seconds, or N records.
 * Then what is pending is sent, for --drain seconds at most, and what became of all
 * is printed as one JSON object. --times: with the longest time that a call took, in
 * microseconds of the clock and of its thread: "longest_us", "longest_cpu_us".
 * --stats: before each N-th record, one of totals, all of which are 0. SIGTERM ends the feed early.
 * Exit code 1: something is still pending.
 *
 * Record n (from --first, or 0) has Bytes n + 1, and addresses and ports of its own for the first
 * 2^38 records, so that their receiver can tell each from all others.
 */
#include "options.h"

#include <netobs/netobs.h>
#include <netobs/sink.h>

#include <poll.h>
#include <signal.h>

enum {
	FLUSH_MS = 100,
	BURST = 1000,	    /* records between looks at the sink */
	AHEAD = 100 * 1000, /* records that wait in it without a rate */
	STATS_SIZE = 64 << 10,
};

static volatile sig_atomic_t has_term;

struct feed {
	const char *spec;
	double rate, seconds, drain;
	uint64_t records, first, stats;
	bool has_times;
	double longest, longest_cpu, called, called_cpu;
	struct netobs_sink *sink;
	uint64_t written;
};

static void note_term(int number)
{
	has_term = number;
}

static double now(void)
{
	return tool_clock(CLOCK_MONOTONIC);
}

static void print_line(int level, const char *message, void *user)
{
	(void)user;
	if (level <= NETOBS_LOG_INFO || getenv("SINKFEED_DEBUG"))
		fprintf(stderr, "%s\n", message);
}

/* ---- Records --------------------------------------------------------------------- */

static const struct netobs_point eth0 = { .ifindex = 2,
					  .direction = NETOBS_INGRESS,
					  .name = "eth0" };

static void set_address(uint8_t address[16], uint8_t first, uint32_t rest)
{
	address[10] = address[11] = 0xff;
	address[12] = first;
	address[13] = (uint8_t)(rest >> 16);
	address[14] = (uint8_t)(rest >> 8);
	address[15] = (uint8_t)rest;
}

static struct netobs_flow make_record(uint64_t n)
{
	struct netobs_flow flow = {
		.sz = sizeof(flow),
		.has = NETOBS_HAS_PORTS | NETOBS_HAS_TCP | NETOBS_HAS_MAC,
		.start_ns = 1700000000000000000 + (int64_t)n * 1000,
		.end_ns = 1700000005000000000 + (int64_t)n * 1000,
		.packets = 1 + n % 7,
		.bytes = n + 1,
		.l2_bytes = n + 15,
		.src_port = (uint16_t)(32768 + (n >> 24) % 16384),
		.dst_port = 443,
		.ethertype = 0x0800,
		.tcp_flags = 0x1b,
		.proto = 6,
		.ttl_min = 64,
		.ttl_max = 64,
		.end_reason = NETOBS_END_ACTIVE,
		.src_mac = { 2, 0, 0, 0, 0, 1 },
		.dst_mac = { 2, 0, 0, 0, 0, 2 },
		.n_points = 1,
		.point_size = sizeof(struct netobs_point),
		.points = &eth0,
	};

	set_address(flow.src, 10, (uint32_t)n);
	set_address(flow.dst, 172, (uint32_t)(n % 1000));
	return flow;
}

static void write_record(struct feed *feed)
{
	const struct netobs_stats_record totals = {
		.record = { .sz = sizeof(totals), .type = NETOBS_RECORD_STATS },
		.stats.sz = sizeof(totals.stats),
	};
	struct netobs_flow flow = make_record(feed->first + feed->written++);

	if (feed->stats && feed->written % feed->stats == 0)
		netobs_sink_write(feed->sink, &totals.record);
	netobs_sink_write(feed->sink, &flow.record);
}

static uint64_t pending(const struct feed *feed)
{
	struct netobs_sink_stats stats = { .sz = sizeof(stats) };

	netobs_sink_stats_get(feed->sink, &stats);
	return stats.pending.records;
}

/* ---- Times ----------------------------------------------------------------------- */

/* Before a call of the library, and behind it. */
static void begin_call(struct feed *feed)
{
	if (!feed->has_times)
		return;
	feed->called = now();
	feed->called_cpu = tool_clock(CLOCK_THREAD_CPUTIME_ID);
}

static void end_call(struct feed *feed)
{
	double clock, cpu;

	if (!feed->has_times)
		return;
	cpu = tool_clock(CLOCK_THREAD_CPUTIME_ID) - feed->called_cpu;
	clock = now() - feed->called;
	feed->longest = clock > feed->longest ? clock : feed->longest;
	feed->longest_cpu = cpu > feed->longest_cpu ? cpu : feed->longest_cpu;
}

static void dispatch(struct feed *feed)
{
	begin_call(feed);
	netobs_sink_dispatch(feed->sink);
	end_call(feed);
}

static void flush(struct feed *feed)
{
	begin_call(feed);
	netobs_sink_flush(feed->sink);
	end_call(feed);
}

/* What netobs_sink_wait() begins is gone on with a call at a time. */
static int drain(struct feed *feed)
{
	double end = now() + feed->drain;

	begin_call(feed);
	netobs_sink_wait(feed->sink, 0);
	end_call(feed);
	while (pending(feed) && now() < end) {
		struct pollfd fd = { .fd = netobs_sink_fd(feed->sink),
				     .events = POLLIN };

		poll(&fd, 1, (int)((end - now()) * 1000));
		dispatch(feed);
	}
	return pending(feed) ? -ETIMEDOUT : 0;
}

/* ---- Feeding --------------------------------------------------------------------- */

/* Records that should have been written by now. */
static uint64_t due(const struct feed *feed, double elapsed)
{
	uint64_t target = feed->written + BURST;

	if (feed->rate > 0)
		target = (uint64_t)(feed->rate * elapsed);
	else if (pending(feed) > AHEAD)
		target = feed->written;
	return target < feed->records ? target : feed->records;
}

static void feed_all(struct feed *feed)
{
	double start = now(), end = start + feed->seconds, flushed = start;

	while (feed->written < feed->records && now() < end && !has_term) {
		struct pollfd fd = { .fd = netobs_sink_fd(feed->sink),
				     .events = POLLIN };
		uint64_t target = due(feed, now() - start);
		bool is_idle = target <= feed->written;

		for (int i = 0; i < BURST && feed->written < target; i++) {
			begin_call(feed);
			write_record(feed);
			end_call(feed);
		}
		if ((now() - flushed) * 1000 >= FLUSH_MS) {
			flush(feed);
			flushed = now();
		}
		if (poll(&fd, 1, is_idle) > 0)
			dispatch(feed);
	}
}

/* ---- Options --------------------------------------------------------------------- */

static bool parse(int argc, char **argv, struct feed *feed)
{
	const struct tool_option table[] = {
		{ "rate", tool_read_real, &feed->rate },
		{ "seconds", tool_read_real, &feed->seconds },
		{ "records", tool_read_number, &feed->records },
		{ "first", tool_read_number, &feed->first },
		{ "stats", tool_read_number, &feed->stats },
		{ "times", NULL, &feed->has_times },
		{ "drain", tool_read_real, &feed->drain },
		{ 0 },
	};

	if (tool_options_read(argc, argv, table) || optind != argc - 1)
		return false;
	feed->spec = argv[optind];
	return true;
}

int main(int argc, char **argv)
{
	const NETOBS_OPTS(netobs_sink_opts, opts, .on_log = print_line);
	struct feed feed = { .seconds = 1e9, .drain = 60, .records = UINT64_MAX };
	static char stats[STATS_SIZE];
	double start = now(), opened, fed;
	int err;

	if (!parse(argc, argv, &feed)) {
		fputs("sinkfeed: see the head of sinkfeed.c\n", stderr);
		return 2;
	}
	signal(SIGTERM, note_term);
	err = netobs_sink_open(feed.spec, &opts, &feed.sink);
	if (err)
		return err == -EINVAL ? 2 : 1;
	opened = now();
	feed_all(&feed);
	fed = now();
	err = drain(&feed);
	netobs_sink_stats_json(feed.sink, stats, sizeof(stats));
	printf("{\"written\":%llu,\"feed_seconds\":%.3f,\"seconds\":%.3f,\"open_seconds\":%.3f,"
	       "\"longest_us\":%.0f,\"longest_cpu_us\":%.0f,\"stats\":%s}\n",
	       (unsigned long long)feed.written, fed - start, now() - start,
	       opened - start, feed.longest * 1e6, feed.longest_cpu * 1e6, stats);
	netobs_sink_close(feed.sink);
	return err ? 1 : 0;
}
