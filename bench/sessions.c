// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/*
 * What sessions cost: a process opens TCP connections to itself and closes them, or sends and
 * receives over one of them, with and without an observer of sessions in turns: observed.h.
 */
#include "bench.h"
#include "config.h"
#include "observed.h"
#include "base/util.h"

#include <arpa/inet.h>
#include <errno.h>
#include <math.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include <netobs/session.h>

enum {
	CONNECTIONS = 200, /* in a turn */
	CALLS = 20000,
	MESSAGE = 100, /* bytes */
	POLL_MS = 100,
	SILENT_MOST = 50, /* calls: then records were lost, as on a full host */
};

struct ends {
	int client, server;
};

struct sessions_bench {
	int listener;	  /* of the process that has connections, */
	struct ends ends; /* and one of these */
	struct netobs_sessions *sessions;
	double reader_ns; /* all of it, of ... */
	uint64_t records;
};

/* ---- The process that has connections ----------------------------------------------- */

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
static int talk_connections(void *user)
{
	const struct sessions_bench *bench = user;

	for (int i = 0; i < CONNECTIONS; i++) {
		struct ends ends = { -1, -1 };
		int err = connect_ends(bench->listener, &ends);

		err = err ?: pass_message(ends.client, ends.server);
		err = err ?: pass_message(ends.server, ends.client);
		close_ends(&ends);
		if (err)
			return err;
	}
	return 0;
}

static int talk_calls(void *user)
{
	const struct sessions_bench *bench = user;
	int err = 0;

	for (int i = 0; i < CALLS / 2 && !err; i++)
		err = pass_message(bench->ends.client, bench->ends.server);
	return err;
}

static int prepare_talks(void *user)
{
	const struct sockaddr_in any = {
		.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)
	};
	struct sessions_bench *bench = user;

	bench->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (bind(bench->listener, (const struct sockaddr *)&any, sizeof(any)) ||
	    listen(bench->listener, SOMAXCONN))
		return -errno;
	return connect_ends(bench->listener, &bench->ends);
}

/* ---- The observer ------------------------------------------------------------------- */

static void count_record(const struct netobs_session *session, void *user)
{
	struct sessions_bench *bench = user;

	(void)session;
	bench->records++;
}

/* Of the turn, each connection has a record for either end. */
static int read_records(struct sessions_bench *bench)
{
	struct pollfd ready = { .fd = netobs_sessions_fd(bench->sessions),
				.events = POLLIN };
	int ret = 0, left = 2 * CONNECTIONS, silent = 0;

	while (left > 0 && ret >= 0 && silent < SILENT_MOST && !stop_requested()) {
		int64_t start;

		poll(&ready, 1, POLL_MS);
		start = clock_ns(CLOCK_THREAD_CPUTIME_ID);
		ret = netobs_sessions_dispatch(bench->sessions);
		bench->reader_ns += clock_ns(CLOCK_THREAD_CPUTIME_ID) - start;
		silent = ret ? 0 : silent + 1;
		left -= ret;
	}
	return ret < 0 ? ret : 0;
}

static int start_sessions(void *user)
{
	struct sessions_bench *bench = user;
	char why[NETOBS_ERROR_MAX];
	NETOBS_OPTS(netobs_sessions_opts, opts, .on_session = count_record,
		    .user = bench, .error = &why);
	int err = netobs_sessions_new(&opts, &bench->sessions);

	if (!err)
		err = netobs_sessions_start(bench->sessions);
	if (err)
		fprintf(stderr, "netobsctl bench: sessions: %s\n",
			bench->sessions ?
				netobs_sessions_last_error(bench->sessions) :
				why);
	return err;
}

static int end_sessions(void *user, bool is_complete)
{
	struct sessions_bench *bench = user;
	int err = is_complete ? read_records(bench) : 0;

	netobs_sessions_free(TAKE_PTR(bench->sessions));
	return err;
}

/* A connection has two. */
static double session_reader_ns(const void *user)
{
	const struct sessions_bench *bench = user;

	return bench->records ? 2 * bench->reader_ns / bench->records : NAN;
}

int sessions_run(const struct config *config)
{
	static const struct observed_load loads[] = {
		{ "connections", CONNECTIONS, talk_connections },
		{ "sends and receives", CALLS, talk_calls },
	};
	struct sessions_bench sessions = { .listener = -1 };
	const struct observed_bench bench = {
		.name = "sessions",
		.title = "TCP with and without sessions, as a ratio of connections or calls in a CPU time.",
		.loads = loads,
		.n_loads = ARRAY_SIZE(loads),
		.clock = CLOCK_PROCESS_CPUTIME_ID,
		.prepare = prepare_talks,
		.start = start_sessions,
		.end = end_sessions,
		.reader_ns = session_reader_ns,
		.user = &sessions,
	};

	return observed_run(&bench, config);
}
