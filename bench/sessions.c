// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/*
 * What sessions cost: a process opens TCP connections to itself and closes them, or sends and
 * receives over one of them, with and without an observer of sessions in turns. It is alone in a
 * network namespace. The programs run in its system calls, and in interrupts that come in the
 * meantime, so its own CPU time has all that they take.
 */
#include "bench.h"
#include "config.h"
#include "report.h"
#include "rounds.h"
#include "base/util.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <net/if.h>
#include <netinet/in.h>
#include <poll.h>
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

#include <netobs/session.h>

enum talk { LOAD_CONNECTIONS, LOAD_CALLS, LOADS };

enum {
	CONNECTIONS = 200, /* in a turn */
	CALLS = 20000,
	MESSAGE = 100, /* bytes */
	POLL_MS = 100,
	SILENT_MOST = 50, /* calls: then records were lost, as on a full host */
};

static const char *const load_names[LOADS] = { "connections",
					       "sends and receives" };

/* ---- The process that has connections ----------------------------------------------- */

struct talker {
	pid_t pid;
	int ask, answer; /* pipes: an enum talk; nanoseconds of CPU time for each */
};

struct ends {
	int client, server;
};

static int connect_ends(int listener, struct ends *ret)
{
	struct sockaddr_in address;
	socklen_t size = sizeof(address);

	if (getsockname(listener, (struct sockaddr *)&address, &size))
		return -errno;
	ret->client = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (ret->client < 0 ||
	    connect(ret->client, (const struct sockaddr *)&address, size))
		return -errno;
	ret->server = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
	return ret->server < 0 ? -errno : 0;
}

static int pass_message(int from, int to)
{
	char message[MESSAGE] = { 0 };

	if (send(from, message, sizeof(message), MSG_NOSIGNAL) < 0 ||
	    recv(to, message, sizeof(message), MSG_WAITALL) < 0)
		return -errno;
	return 0;
}

static void close_ends(const struct ends *ends)
{
	close(ends->client);
	close(ends->server);
}

/* A request and its answer over each of them. */
static int talk_connections(int listener)
{
	for (int i = 0; i < CONNECTIONS; i++) {
		struct ends ends = { -1, -1 };
		int err = connect_ends(listener, &ends);

		err = err ?: pass_message(ends.client, ends.server);
		err = err ?: pass_message(ends.server, ends.client);
		close_ends(&ends);
		if (err)
			return err;
	}
	return 0;
}

static int talk_calls(const struct ends *ends)
{
	int err = 0;

	for (int i = 0; i < CALLS / 2 && !err; i++)
		err = pass_message(ends->client, ends->server);
	return err;
}

static int write_whole(int fd, const void *bytes, size_t size)
{
	return write(fd, bytes, size) == (ssize_t)size ? 0 : -EIO;
}

static int read_whole(int fd, void *bytes, size_t size)
{
	return read(fd, bytes, size) == (ssize_t)size ? 0 : -EIO;
}

/* Until the other process closes its end. */
static int serve_turns(const struct talker *talker, int listener,
		       const struct ends *ends)
{
	enum talk load;

	while (!read_whole(talker->ask, &load, sizeof(load))) {
		const int64_t start = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
		double ns;
		int err = load == LOAD_CONNECTIONS ? talk_connections(listener) :
						     talk_calls(ends);

		ns = clock_ns(CLOCK_PROCESS_CPUTIME_ID) - start;
		ns /= load == LOAD_CONNECTIONS ? CONNECTIONS : CALLS;
		err = err ?: write_whole(talker->answer, &ns, sizeof(ns));
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

static _Noreturn void run_talker(const struct talker *talker)
{
	const struct sockaddr_in any = {
		.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)
	};
	struct ends ends = { -1, -1 };
	int listener, err = enter_own_namespace();

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (!err && (bind(listener, (const struct sockaddr *)&any, sizeof(any)) ||
		     listen(listener, SOMAXCONN)))
		err = -errno;
	err = err ?: connect_ends(listener, &ends);
	err = err ?: serve_turns(talker, listener, &ends);
	_exit(err ? EXIT_FAILURE : EXIT_SUCCESS);
}

static int start_talker(struct talker *talker)
{
	int ask[2], answer[2];

	if (pipe2(ask, O_CLOEXEC) || pipe2(answer, O_CLOEXEC))
		return -errno;
	talker->pid = fork();
	if (talker->pid < 0)
		return -errno;
	if (!talker->pid) {
		close(ask[1]);
		close(answer[0]);
		talker->ask = ask[0];
		talker->answer = answer[1];
		run_talker(talker);
	}
	close(ask[0]);
	close(answer[1]);
	talker->ask = ask[1];
	talker->answer = answer[0];
	return 0;
}

static void end_talker(const struct talker *talker)
{
	if (talker->pid <= 0)
		return;
	close(talker->ask);
	close(talker->answer);
	waitpid(talker->pid, NULL, 0);
}

/* ---- Turns ------------------------------------------------------------------------- */

struct sessions_bench {
	struct talker talker;
	struct rounds rounds;
	/* Nanoseconds of CPU time for each connection or call, by round. */
	double *plain[LOADS], *observed[LOADS];
	double *ratios;
	double reader_ns; /* all of it, of ... */
	uint64_t records;
	struct progress progress;
};

static void count_record(const struct netobs_session *session, void *user)
{
	struct sessions_bench *bench = user;

	(void)session;
	bench->records++;
}

/* Of the turn, each connection has a record for either end. */
static int read_records(struct sessions_bench *bench,
			struct netobs_sessions *sessions)
{
	struct pollfd ready = { .fd = netobs_sessions_fd(sessions),
				.events = POLLIN };
	int ret = 0, left = 2 * CONNECTIONS, silent = 0;

	while (left > 0 && ret >= 0 && silent < SILENT_MOST && !stop_requested()) {
		int64_t start;

		poll(&ready, 1, POLL_MS);
		start = clock_ns(CLOCK_THREAD_CPUTIME_ID);
		ret = netobs_sessions_dispatch(sessions);
		bench->reader_ns += clock_ns(CLOCK_THREAD_CPUTIME_ID) - start;
		silent = ret ? 0 : silent + 1;
		left -= ret;
	}
	return ret < 0 ? ret : 0;
}

static int take_turn(const struct sessions_bench *bench, double *const *values,
		     uint32_t round)
{
	for (enum talk load = 0; load < LOADS; load++) {
		int err = write_whole(bench->talker.ask, &load, sizeof(load));

		if (!err)
			err = read_whole(bench->talker.answer,
					 &values[load][round], sizeof(double));
		if (err)
			return err;
	}
	return stop_requested() ? -EINTR : 0;
}

static int take_observed_turn(struct sessions_bench *bench, uint32_t round)
{
	char why[NETOBS_ERROR_MAX];
	NETOBS_OPTS(netobs_sessions_opts, opts, .on_session = count_record,
		    .user = bench, .error = &why);
	struct netobs_sessions *sessions = NULL;
	int err = netobs_sessions_new(&opts, &sessions);

	if (!err)
		err = netobs_sessions_start(sessions);
	if (err)
		fprintf(stderr, "netobsctl bench: sessions: %s\n",
			sessions ? netobs_sessions_last_error(sessions) : why);
	err = err ?: take_turn(bench, bench->observed, round);
	err = err ?: read_records(bench, sessions);
	netobs_sessions_free(sessions);
	return err;
}

static int measure_sessions_round(void *user, uint32_t round)
{
	struct sessions_bench *bench = user;
	const bool observed_first = rand() % 2;
	int err;

	progress_show(&bench->progress, "sessions");
	progress_add(&bench->progress, 1);
	err = observed_first ? take_observed_turn(bench, round) : 0;
	err = err ?: take_turn(bench, bench->plain, round);
	if (!err && !observed_first)
		err = take_observed_turn(bench, round);
	return err;
}

/* Of the rate of connections or calls, in all CPU time that they have: 1 is no cost. */
static struct interval find_ratio(const struct sessions_bench *bench,
				  enum talk load, uint32_t rounds)
{
	for (uint32_t i = 0; i < rounds; i++)
		bench->ratios[i] =
			bench->plain[load][i] / bench->observed[load][i];
	return interval_of(bench->ratios, rounds);
}

static bool are_sessions_settled(void *user, uint32_t n, bool is_last)
{
	struct sessions_bench *bench = user;
	bool is_settled = true;

	for (enum talk load = 0; load < LOADS; load++) {
		const struct interval ratio = find_ratio(bench, load, n);

		if (interval_is_narrow(&ratio, bench->rounds.width))
			continue;
		is_settled = false;
		if (is_last)
			rounds_report_noise(&bench->rounds, load_names[load],
					    &ratio, n);
	}
	return is_settled;
}

/* ---- Results -------------------------------------------------------------------- */

struct sessions_result {
	const char *load;
	double plain_ns, observed_ns; /* medians */
	double reader_ns; /* of the process that gets the records; NAN: none comes */
	double ratio, ratio_low, ratio_high;
};

static const struct report_field sessions_fields[] = {
	REPORT_FIELD(sessions_result, "load", REPORT_TEXT, load),
	REPORT_FIELD(sessions_result, "cpu_ns", REPORT_NS, plain_ns),
	REPORT_FIELD(sessions_result, "observed_cpu_ns", REPORT_NS, observed_ns),
	REPORT_FIELD(sessions_result, "reader_cpu_ns", REPORT_NS, reader_ns),
	REPORT_FIELD(sessions_result, "ratio", REPORT_RATIO, ratio),
	REPORT_FIELD(sessions_result, "ratio_low", REPORT_RATIO, ratio_low),
	REPORT_FIELD(sessions_result, "ratio_high", REPORT_RATIO, ratio_high),
	{ 0 }
};

static void print_sessions_table(const struct report *report)
{
	const struct sessions_bench *bench = report->user;
	const struct sessions_result *results = report->rows;

	printf("TCP with and without sessions, as a ratio of connections or calls in a CPU time. ");
	rounds_print(&bench->rounds);
	report_print_machine();
	printf("\n%8s %8s %8s %7s %15s  %s\n", "CPU ns", "observed", "reader",
	       "ratio", "interval", "for each of");
	for (uint32_t i = 0; i < report->n; i++) {
		const struct sessions_result *result = &results[i];

		printf("%8.0f %8.0f %8.0f %7.3f %7.3f - %.3f  %s\n",
		       result->plain_ns, result->observed_ns,
		       isnan(result->reader_ns) ? 0 : result->reader_ns,
		       result->ratio, result->ratio_low, result->ratio_high,
		       result->load);
	}
}

static struct sessions_result sum_up_load(const struct sessions_bench *bench,
					  enum talk load, uint32_t rounds)
{
	const struct interval ratio = find_ratio(bench, load, rounds);

	return (struct sessions_result){
		.load = load_names[load],
		.plain_ns = summarize(bench->plain[load], rounds).median,
		.observed_ns = summarize(bench->observed[load], rounds).median,
		.reader_ns = load == LOAD_CONNECTIONS && bench->records ?
				     2 * bench->reader_ns / bench->records :
				     NAN,
		.ratio = ratio.median,
		.ratio_low = ratio.low,
		.ratio_high = ratio.high,
	};
}

static int print_sessions(const struct sessions_bench *bench,
			  const struct config *config, uint32_t rounds)
{
	struct sessions_result results[LOADS];
	const struct report report = {
		.rounds = rounds,
		.turns = &bench->rounds,
		.fields = sessions_fields,
		.rows = results,
		.row_size = sizeof(*results),
		.n = LOADS,
		.print_table = print_sessions_table,
		.user = bench,
	};

	for (enum talk load = 0; load < LOADS; load++)
		results[load] = sum_up_load(bench, load, rounds);
	return report_print(&report, config->output == OUTPUT_JSON);
}

static bool make_room(struct sessions_bench *bench, uint32_t rounds)
{
	bool has_room = true;

	bench->ratios = calloc(rounds, sizeof(double));
	for (enum talk load = 0; load < LOADS; load++) {
		bench->plain[load] = calloc(rounds, sizeof(double));
		bench->observed[load] = calloc(rounds, sizeof(double));
		has_room &= bench->plain[load] && bench->observed[load];
	}
	return has_room && bench->ratios;
}

static void clear_sessions(struct sessions_bench *bench)
{
	end_talker(&bench->talker);
	for (enum talk load = 0; load < LOADS; load++) {
		free(bench->plain[load]);
		free(bench->observed[load]);
	}
	free(bench->ratios);
}

int sessions_run(const struct config *config)
{
	struct sessions_bench bench = {
		.rounds = { .width = config->width, .most = config->rounds },
	};
	const struct rounds_work work = { .measure = measure_sessions_round,
					  .is_settled = are_sessions_settled,
					  .user = &bench };
	uint32_t rounds;
	int err = make_room(&bench, config->rounds) ? 0 : -ENOMEM;

	err = err ?: start_talker(&bench.talker);
	progress_begin(&bench.progress, INTERVAL_ENOUGH);
	err = err ?: rounds_measure(&bench.rounds, &work, &rounds);
	progress_clear(&bench.progress);
	err = err ?: print_sessions(&bench, config, rounds);
	clear_sessions(&bench);
	if (err == -ENOMEM || err == -EIO)
		fprintf(stderr, "netobsctl bench: sessions: %s\n",
			err == -EIO ? "connections in a new namespace failed" :
				      strerror(-err));
	return err;
}
