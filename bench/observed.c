// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "observed.h"

#include "bench.h"
#include "config.h"
#include "report.h"
#include "rounds.h"
#include "base/util.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <net/if.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- The process that does the loads ------------------------------------------------- */

struct worker {
	pid_t pid;
	int ask, answer; /* pipes: a load's number; nanoseconds for each thing */
};

static int write_whole(int fd, const void *bytes, size_t size)
{
	return write(fd, bytes, size) == (ssize_t)size ? 0 : -EIO;
}

static int read_whole(int fd, void *bytes, size_t size)
{
	return read(fd, bytes, size) == (ssize_t)size ? 0 : -EIO;
}

/* Until the other process closes its end. */
static int serve_turns(const struct worker *worker,
		       const struct observed_bench *bench)
{
	uint32_t load;

	while (!read_whole(worker->ask, &load, sizeof(load))) {
		const int64_t start = clock_ns(bench->clock);
		int err = bench->loads[load].work(bench->user);
		double ns = clock_ns(bench->clock) - start;

		ns /= bench->loads[load].n;
		err = err ?: write_whole(worker->answer, &ns, sizeof(ns));
		if (err)
			return err;
	}
	return 0;
}

static int enter_own_namespace(void)
{
	struct ifreq loopback = { .ifr_name = "lo", .ifr_flags = IFF_UP };
	cleanup_fd int fd = -1;

	if (unshare(CLONE_NEWNET))
		return -errno;
	fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	return fd < 0 || ioctl(fd, SIOCSIFFLAGS, &loopback) ? -errno : 0;
}

static _Noreturn void run_worker(const struct worker *worker,
				 const struct observed_bench *bench)
{
	int err = enter_own_namespace();

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	err = err ?: bench->prepare(bench->user);
	err = err ?: serve_turns(worker, bench);
	_exit(err ? EXIT_FAILURE : EXIT_SUCCESS);
}

static int start_worker(struct worker *worker, const struct observed_bench *bench)
{
	int ask[2], answer[2];

	if (pipe2(ask, O_CLOEXEC) || pipe2(answer, O_CLOEXEC))
		return -errno;
	worker->pid = fork();
	if (worker->pid < 0)
		return -errno;
	if (!worker->pid) {
		close(ask[1]);
		close(answer[0]);
		worker->ask = ask[0];
		worker->answer = answer[1];
		run_worker(worker, bench);
	}
	close(ask[0]);
	close(answer[1]);
	worker->ask = ask[1];
	worker->answer = answer[0];
	return 0;
}

static void end_worker(const struct worker *worker)
{
	if (worker->pid <= 0)
		return;
	close(worker->ask);
	close(worker->answer);
	waitpid(worker->pid, NULL, 0);
}

/* ---- Turns ------------------------------------------------------------------------- */

struct turns {
	const struct observed_bench *bench;
	struct worker worker;
	struct rounds rounds;
	/* Nanoseconds for each thing, by round. */
	double *plain[OBSERVED_LOADS_MAX], *observed[OBSERVED_LOADS_MAX];
	double *ratios;
	struct progress progress;
};

static int take_turn(const struct turns *turns, double *const *values,
		     uint32_t round)
{
	for (uint32_t load = 0; load < turns->bench->n_loads; load++) {
		int err = write_whole(turns->worker.ask, &load, sizeof(load));

		if (!err)
			err = read_whole(turns->worker.answer,
					 &values[load][round], sizeof(double));
		if (err)
			return err;
	}
	return stop_requested() ? -EINTR : 0;
}

static int take_observed_turn(const struct turns *turns, uint32_t round)
{
	const struct observed_bench *bench = turns->bench;
	int err = bench->start(bench->user);
	int end_err;

	err = err ?: take_turn(turns, turns->observed, round);
	end_err = bench->end(bench->user, !err);
	return err ?: end_err;
}

static int measure_observed_round(void *user, uint32_t round)
{
	struct turns *turns = user;
	const bool observed_first = rand() % 2;
	int err;

	progress_show(&turns->progress, turns->bench->name);
	progress_add(&turns->progress, 1);
	err = observed_first ? take_observed_turn(turns, round) : 0;
	err = err ?: take_turn(turns, turns->plain, round);
	if (!err && !observed_first)
		err = take_observed_turn(turns, round);
	return err;
}

/* Of the rate of things: 1 is no cost. */
static struct interval find_ratio(const struct turns *turns, uint32_t load,
				  uint32_t rounds)
{
	for (uint32_t i = 0; i < rounds; i++)
		turns->ratios[i] =
			turns->plain[load][i] / turns->observed[load][i];
	return interval_of(turns->ratios, rounds);
}

static bool are_turns_settled(void *user, uint32_t n, bool is_last)
{
	struct turns *turns = user;
	bool is_settled = true;

	for (uint32_t load = 0; load < turns->bench->n_loads; load++) {
		const struct interval ratio = find_ratio(turns, load, n);

		if (interval_is_narrow(&ratio, turns->rounds.width))
			continue;
		is_settled = false;
		if (is_last)
			rounds_report_noise(&turns->rounds,
					    turns->bench->loads[load].name,
					    &ratio, n);
	}
	return is_settled;
}

/* ---- Results -------------------------------------------------------------------- */

struct observed_result {
	const char *load;
	double plain_ns, observed_ns; /* medians */
	double reader_ns; /* of the process that gets the records; NAN: none comes */
	double ratio, ratio_low, ratio_high;
};

static const struct report_field observed_fields[] = {
	REPORT_FIELD(observed_result, "load", REPORT_TEXT, load),
	REPORT_FIELD(observed_result, "cpu_ns", REPORT_NS, plain_ns),
	REPORT_FIELD(observed_result, "observed_cpu_ns", REPORT_NS, observed_ns),
	REPORT_FIELD(observed_result, "reader_cpu_ns", REPORT_NS, reader_ns),
	REPORT_FIELD(observed_result, "ratio", REPORT_RATIO, ratio),
	REPORT_FIELD(observed_result, "ratio_low", REPORT_RATIO, ratio_low),
	REPORT_FIELD(observed_result, "ratio_high", REPORT_RATIO, ratio_high),
	{ 0 }
};

static void print_observed_table(const struct report *report)
{
	const struct turns *turns = report->user;
	const struct observed_result *results = report->rows;

	printf("%s ", turns->bench->title);
	rounds_print(&turns->rounds);
	report_print_machine();
	printf("\n%8s %8s %8s %7s %15s  %s\n", "ns", "observed", "reader",
	       "ratio", "interval", "for each of");
	for (uint32_t i = 0; i < report->n; i++) {
		const struct observed_result *result = &results[i];

		printf("%8.0f %8.0f %8.0f %7.3f %7.3f - %.3f  %s\n",
		       result->plain_ns, result->observed_ns,
		       isnan(result->reader_ns) ? 0 : result->reader_ns,
		       result->ratio, result->ratio_low, result->ratio_high,
		       result->load);
	}
}

static struct observed_result sum_up_load(const struct turns *turns,
					  uint32_t load, uint32_t rounds)
{
	const struct observed_bench *bench = turns->bench;
	const struct interval ratio = find_ratio(turns, load, rounds);

	return (struct observed_result){
		.load = bench->loads[load].name,
		.plain_ns = summarize(turns->plain[load], rounds).median,
		.observed_ns = summarize(turns->observed[load], rounds).median,
		.reader_ns = load ? NAN : bench->reader_ns(bench->user),
		.ratio = ratio.median,
		.ratio_low = ratio.low,
		.ratio_high = ratio.high,
	};
}

static int print_observed(const struct turns *turns,
			  const struct config *config, uint32_t rounds)
{
	struct observed_result results[OBSERVED_LOADS_MAX];
	const struct report report = {
		.rounds = rounds,
		.turns = &turns->rounds,
		.fields = observed_fields,
		.rows = results,
		.row_size = sizeof(*results),
		.n = turns->bench->n_loads,
		.print_table = print_observed_table,
		.user = turns,
	};

	for (uint32_t load = 0; load < turns->bench->n_loads; load++)
		results[load] = sum_up_load(turns, load, rounds);
	return report_print(&report, config->output == OUTPUT_JSON);
}

/* ---- All of it --------------------------------------------------------------------- */

static bool make_room(struct turns *turns, uint32_t rounds)
{
	bool has_room = true;

	turns->ratios = calloc(rounds, sizeof(double));
	for (uint32_t load = 0; load < turns->bench->n_loads; load++) {
		turns->plain[load] = calloc(rounds, sizeof(double));
		turns->observed[load] = calloc(rounds, sizeof(double));
		has_room &= turns->plain[load] && turns->observed[load];
	}
	return has_room && turns->ratios;
}

static void clear_turns(struct turns *turns)
{
	end_worker(&turns->worker);
	for (uint32_t load = 0; load < turns->bench->n_loads; load++) {
		free(turns->plain[load]);
		free(turns->observed[load]);
	}
	free(turns->ratios);
}

int observed_run(const struct observed_bench *bench, const struct config *config)
{
	struct turns turns = {
		.bench = bench,
		.rounds = { .width = config->width, .most = config->rounds },
	};
	const struct rounds_work work = { .measure = measure_observed_round,
					  .is_settled = are_turns_settled,
					  .user = &turns };
	uint32_t rounds;
	int err = make_room(&turns, config->rounds) ? 0 : -ENOMEM;

	err = err ?: start_worker(&turns.worker, bench);
	progress_begin(&turns.progress, INTERVAL_ENOUGH);
	err = err ?: rounds_measure(&turns.rounds, &work, &rounds);
	progress_clear(&turns.progress);
	err = err ?: print_observed(&turns, config, rounds);
	clear_turns(&turns);
	if (err == -ENOMEM || err == -EIO)
		fprintf(stderr, "netobsctl bench: %s: %s\n", bench->name,
			err == -EIO ? "connections in a new namespace failed" :
				      strerror(-err));
	return err;
}
