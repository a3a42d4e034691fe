// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/*
 * Observes all interfaces for some seconds, then stops, and says how long the longest
 * call of the library took meanwhile:
 *
 *   callclock SECONDS
 *
 * It prints "started" when the context is, and at its end one JSON object. Time in
 * which the thread could have run, and another had the CPU, is not the library's.
 */
#include <netobs/netobs.h>

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { WAIT_MS = 50 };

static double now_ms(void)
{
	struct timespec at;

	clock_gettime(CLOCK_MONOTONIC, &at);
	return (double)at.tv_sec * 1e3 + (double)at.tv_nsec / 1e6;
}

/* How long this thread has waited for a CPU so far. */
static double queued_ms(void)
{
	FILE *file = fopen("/proc/thread-self/schedstat", "re");
	unsigned long long waited = 0;

	if (!file)
		return 0;
	if (fscanf(file, "%*u %llu", &waited) != 1)
		waited = 0;
	fclose(file);
	return (double)waited / 1e6;
}

static void print_line(int level, const char *message, void *user)
{
	(void)user;
	if (level <= NETOBS_LOG_WARNING)
		fprintf(stderr, "%s\n", message);
}

struct clock {
	double longest_ms;
	unsigned long calls;
	double begin_ms, queued_ms; /* of the call that is under way */
};

static void begin_call(struct clock *clock)
{
	clock->queued_ms = queued_ms();
	clock->begin_ms = now_ms();
}

static void end_call(struct clock *clock)
{
	double took = now_ms() - clock->begin_ms;

	took -= queued_ms() - clock->queued_ms;
	if (took > clock->longest_ms)
		clock->longest_ms = took;
	clock->calls++;
}

static int dispatch(struct netobs *ctx, struct clock *clock)
{
	struct pollfd fd = { .fd = netobs_fd(ctx), .events = POLLIN };
	int ret;

	poll(&fd, 1, WAIT_MS);
	begin_call(clock);
	ret = netobs_dispatch(ctx);
	end_call(clock);
	return ret;
}

static int observe(struct netobs *ctx, double seconds, struct clock *clock)
{
	double end = now_ms() + seconds * 1e3;
	int ret = 0;

	while (ret >= 0 && now_ms() < end)
		ret = dispatch(ctx, clock);
	return ret;
}

static int stop(struct netobs *ctx, struct clock *clock)
{
	int ret;

	netobs_stop(ctx);
	while ((ret = dispatch(ctx, clock)) >= 0)
		continue;
	if (ret != -ECANCELED)
		return ret;
	begin_call(clock);
	netobs_free(ctx);
	end_call(clock);
	return 0;
}

/* @ctx is freed unless it fails. */
static int run(struct netobs *ctx, double seconds)
{
	struct netobs_stats stats = { .sz = sizeof(stats) };
	struct clock running = { 0 }, stopping = { 0 };
	double start = now_ms(), end;
	int ret = netobs_start(ctx);

	if (ret < 0)
		return ret;
	printf("started\n");
	fflush(stdout);
	start = now_ms() - start;
	ret = observe(ctx, seconds, &running);
	netobs_stats_get(ctx, &stats);
	end = now_ms();
	if (ret >= 0)
		ret = stop(ctx, &stopping);
	printf("{\"start_ms\":%.3f,\"longest_ms\":%.3f,\"calls\":%lu,\"interfaces\":%u,"
	       "\"stop_ms\":%.3f,\"longest_stopping_ms\":%.3f}\n",
	       start, running.longest_ms, running.calls, stats.interfaces,
	       now_ms() - end, stopping.longest_ms);
	return ret;
}

int main(int argc, char **argv)
{
	struct netobs *ctx;
	NETOBS_OPTS(netobs_opts, opts);
	int err;

	if (argc != 2)
		return 2;
	opts.on_log = print_line;
	err = netobs_new(&opts, &ctx);
	if (err < 0)
		return 1;
	err = run(ctx, strtod(argv[1], NULL));
	if (!err)
		return 0;
	fprintf(stderr, "callclock: %s\n", strerror(-err));
	netobs_free(ctx);
	return 1;
}
