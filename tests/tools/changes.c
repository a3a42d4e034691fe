// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/*
 * Observes interfaces, and changes which, and the interval, at random while it runs:
 *
 *   changes SEED CHANGES INTERFACE [OPTIONAL]...
 *
 * INTERFACE stays observed; of the others some are, others after each change. Records
 * go to standard output as lines of JSON. On standard error it prints "started", after
 * the last change "changed", and at its end, which SIGTERM asks for, the statistics.
 */
#include <netobs/netobs.h>

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum {
	OPTIONAL_MAX = 16,
	INTERVAL_MIN_MS = 10,
	INTERVAL_MAX_MS = 400,
	PAUSE_MAX_MS = 600,
};

static struct netobs *context;

struct plan {
	unsigned int seed;
	int changes; /* still to be made */
	char **interfaces;
	int n_interfaces;
};

static void on_signal(int number)
{
	(void)number;
	netobs_stop(context);
}

static void print_record(const struct netobs_record *record, void *user)
{
	char json[4 * NETOBS_FLOW_JSON_MAX];

	(void)user;
	if (netobs_record_json(record, json, sizeof(json)) > 0)
		puts(json);
}

static void print_line(int level, const char *message, void *user)
{
	(void)user;
	if (level <= NETOBS_LOG_WARNING)
		fprintf(stderr, "%s\n", message);
}

static int64_t now_ms(void)
{
	struct timespec at;

	clock_gettime(CLOCK_MONOTONIC, &at);
	return at.tv_sec * 1000LL + at.tv_nsec / 1000000;
}

static int pick(struct plan *plan, int below)
{
	return rand_r(&plan->seed) / 7 % below;
}

static struct netobs_opts make_options(struct plan *plan,
				       const char *interfaces[OPTIONAL_MAX + 2])
{
	NETOBS_OPTS(netobs_opts, opts);
	int n = 0;

	interfaces[n++] = plan->interfaces[0];
	for (int i = 1; i < plan->n_interfaces; i++)
		if (pick(plan, 2))
			interfaces[n++] = plan->interfaces[i];
	interfaces[n] = NULL;
	opts.interfaces = interfaces;
	opts.interval_ms =
		INTERVAL_MIN_MS + pick(plan, INTERVAL_MAX_MS - INTERVAL_MIN_MS);
	opts.on_record = print_record;
	opts.on_log = print_line;
	return opts;
}

static int change(struct plan *plan)
{
	const char *interfaces[OPTIONAL_MAX + 2];
	struct netobs_opts opts = make_options(plan, interfaces);
	int ret = netobs_change_begin(context, &opts);

	while (ret >= 0 && netobs_change_result(context) == -EINPROGRESS) {
		ret = netobs_poll(context, 20);
		if (ret == -EINTR)
			ret = 0;
	}
	if (ret >= 0)
		ret = netobs_change_result(context);
	if (!ret && !--plan->changes)
		fprintf(stderr, "changed\n");
	return ret;
}

static int run(struct plan *plan)
{
	int64_t due_ms = now_ms();
	int ret = 0;

	while (ret >= 0) {
		if (plan->changes && now_ms() >= due_ms) {
			ret = change(plan);
			if (ret < 0)
				return ret;
			due_ms = now_ms() + pick(plan, PAUSE_MAX_MS);
		}
		ret = netobs_poll(context, 20);
		if (ret == -EINTR)
			ret = 0;
	}
	return ret;
}

static void print_stats(void)
{
	struct netobs_stats stats = { .sz = sizeof(stats) };
	char json[NETOBS_FLOW_JSON_MAX];

	if (!netobs_stats_get(context, &stats) &&
	    netobs_stats_json(&stats, json, sizeof(json)) > 0)
		fprintf(stderr, "%s\n", json);
}

static int observe(struct plan *plan)
{
	const char *interfaces[OPTIONAL_MAX + 2];
	const struct sigaction action = { .sa_handler = on_signal,
					  .sa_flags = SA_RESTART };
	struct netobs_opts opts = make_options(plan, interfaces);
	int err = netobs_new(&opts, &context);

	if (err)
		return err;
	sigaction(SIGTERM, &action, NULL);
	err = netobs_start(context);
	if (!err) {
		fprintf(stderr, "started\n");
		err = run(plan);
	}
	print_stats();
	if (err != -ECANCELED)
		fprintf(stderr, "%s\n", netobs_last_error(context));
	netobs_free(context);
	return err == -ECANCELED ? 0 : err;
}

int main(int argc, char **argv)
{
	struct plan plan;

	if (argc < 4 || argc > 4 + OPTIONAL_MAX)
		return 2;
	plan = (struct plan){
		.seed = strtoul(argv[1], NULL, 10),
		.changes = atoi(argv[2]),
		.interfaces = argv + 3,
		.n_interfaces = argc - 3,
	};
	return observe(&plan) ? 1 : 0;
}
