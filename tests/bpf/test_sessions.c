// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/* An observer of sessions by the library's API, with each of its sets of programs left out. */
#include "lib_context.h"
#include "lib_test.h"

#include "base/clock_ms.h"

#include <sys/resource.h>
#include <sys/socket.h>

#include <netobs/session.h>

enum { PATIENCE_MS = 60000 };

/* The last record of the end that accepted, and of the one that connected. */
struct fixture {
	struct lab lab;
	struct netobs *sessions;
	struct netobs_session ends[2];
	int n_ended[2]; /* records that say so */
	int n_open[2];	/* and others */
	uint16_t port;
	bool names_absent; /* a message */
};

static void on_log(int level, const char *message, void *user)
{
	struct fixture *f = user;

	(void)level;
	f->names_absent |= strstr(message, "(session_io)") != NULL;
}

static void on_session(const struct netobs_record *record, void *user)
{
	const struct netobs_session *session = (const void *)record;
	struct fixture *f = user;
	int i = session->local_port != f->port;

	if (i && session->remote_port != f->port)
		return;
	f->ends[i] = *session;
	if (session->ended)
		f->n_ended[i]++;
	else
		f->n_open[i]++;
}

static void begin(struct fixture *f)
{
	lab_enter(&f->lab);
}

static void end(struct fixture *f)
{
	netobs_free(f->sessions);
	lab_leave(&f->lab);
}

TEST_FIXTURE(struct fixture, begin, end)

/* False: this kernel lacks a required feature, and the start says so. */
static bool start(struct fixture *f, uint64_t disabled, uint32_t interval_ms)
{
	const NETOBS_OPTS(netobs_sessions_opts, opts,
			  .disable_features = disabled,
			  .interval_ms = interval_ms, .on_record = on_session,
			  .on_log = on_log, .user = f);

	assert_int_equal(netobs_sessions_new(&opts, &f->sessions), 0);
	if (lab_lacks(LAB_FEATURE(SESSIONS))) {
		assert_true(netobs_start(f->sessions) < 0);
		assert_string_not_equal(netobs_last_error(f->sessions), "");
		assert_int_equal(netobs_dispatch(f->sessions), -EINVAL);
		return false;
	}
	assert_int_equal(netobs_start(f->sessions), 0);
	assert_int_equal(netobs_start(f->sessions), -EALREADY);
	return true;
}

/* Until all is delivered. */
static void stop(struct fixture *f)
{
	struct netobs_sessions_stats stats = { .sz = sizeof(stats) };

	context_stop(f->sessions);
	assert_int_equal(netobs_sessions_stats_get(f->sessions, &stats), 0);
	assert_int_equal(stats.ended, stats.reported + stats.lost);
	netobs_free(TAKE_PTR(f->sessions));
}

/* A listener, and one that connected. */
static int connect_to(struct fixture *f, int *ret_fd)
{
	int listener;

	f->port = 0;
	listener = lab_listen(&f->port, 1);
	*ret_fd = lab_connect(f->port);
	return listener;
}

/* A connection, with the descriptor of the end that connected first. */
static void make_connection(struct fixture *f, bool wants_address, int ret_fds[2])
{
	int listener = connect_to(f, &ret_fds[0]);
	struct sockaddr_in address;
	socklen_t len = sizeof(address);

	ret_fds[1] = wants_address ? accept(listener, (void *)&address, &len) :
				     accept(listener, NULL, NULL);
	assert_true(ret_fds[1] >= 0);
	close(listener);
}

static void close_both(const int fds[2])
{
	close(fds[0]);
	close(fds[1]);
}

static void assert_is_ours(const struct netobs_session *session,
			   enum netobs_session_process_by by)
{
	assert_int_equal(session->record.type, NETOBS_RECORD_SESSION);
	assert_int_equal(session->process_by, by);
	assert_true(session->record.has & NETOBS_SESSION_HAS_PROCESS);
	assert_int_equal(session->pid, getpid());
	assert_int_equal(session->ended, NETOBS_SESSION_FIN);
}

/* How the accepting process is known, if it neither sends nor receives. */
static enum netobs_session_process_by by_accepting(void)
{
	return lab_lacks(LAB_FEATURE(SESSION_ACCEPT)) ?
		       NETOBS_SESSION_BY_CLOSING :
		       NETOBS_SESSION_BY_OPENING;
}

#define CASE(name) TEST_OF(name, struct fixture *f, set_up, tear_down)

/* ---- How the process is known -------------------------------------------------------- */

static void talk(const int fds[2])
{
	char byte = 'x';

	assert_int_equal(send(fds[0], &byte, 1, 0), 1);
	assert_int_equal(recv(fds[1], &byte, 1, 0), 1);
}

CASE(processes_are_known_by_what_they_do)
{
	const bool sees_io = !lab_lacks(LAB_FEATURE(SESSION_IO));
	const struct {
		uint64_t disabled;
		bool wants_address, talks;
		enum netobs_session_process_by by[2];
	} cases[] = {
		{ 0, true, false, { by_accepting(), NETOBS_SESSION_BY_OPENING } },
		{ LAB_FEATURE(SESSION_ACCEPT),
		  true,
		  false,
		  { NETOBS_SESSION_BY_CLOSING, NETOBS_SESSION_BY_OPENING } },
		{ 0,
		  false,
		  false,
		  { NETOBS_SESSION_BY_CLOSING, NETOBS_SESSION_BY_OPENING } },
		{ LAB_FEATURE(SESSION_IO),
		  true,
		  true,
		  { by_accepting(), NETOBS_SESSION_BY_OPENING } },
		{ 0,
		  true,
		  true,
		  { sees_io ? NETOBS_SESSION_BY_USING : by_accepting(),
		    sees_io ? NETOBS_SESSION_BY_USING :
			      NETOBS_SESSION_BY_OPENING } },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		int fds[2];

		memset(f->ends, 0, sizeof(f->ends));
		f->names_absent = false;
		if (!start(f, cases[i].disabled, 0))
			return;
		assert_int_equal(f->names_absent,
				 !sees_io || cases[i].disabled ==
						     LAB_FEATURE(SESSION_IO));
		make_connection(f, cases[i].wants_address, fds);
		if (cases[i].talks)
			talk(fds);
		close_both(fds);
		stop(f);
		for (int end = 0; end < 2; end++)
			assert_is_ours(&f->ends[end], cases[i].by[end]);
		assert_int_equal(f->ends[0].local_port, f->port);
		assert_int_equal(f->ends[0].opened, NETOBS_SESSION_PASSIVE);
		assert_int_equal(f->ends[1].opened, NETOBS_SESSION_ACTIVE);
		assert_int_equal(f->ends[1].bytes_sent, cases[i].talks);
	}
}

/* ---- Ends that no process sees --------------------------------------------------------- */

static void assert_reset_once(const struct fixture *f)
{
	assert_int_equal(f->n_ended[0], 1);
	assert_int_equal(f->ends[0].ended, NETOBS_SESSION_RESET);
	assert_int_equal(f->ends[0].bytes_received, 1);
	assert_int_equal(f->n_ended[1], 1);
	assert_int_equal(f->ends[1].ended, NETOBS_SESSION_ABORTED);
}

CASE(one_that_is_reset_before_accept_is_reported)
{
	int fd, listener;

	if (!start(f, 0, 0))
		return;
	listener = connect_to(f, &fd);
	assert_int_equal(send(fd, "x", 1, 0), 1);
	lab_reset(fd);
	stop(f);
	close(listener);
	assert_reset_once(f);
}

/* It waits for the process that closes the socket. */
CASE(one_that_is_reset_and_not_closed_is_reported_at_the_stop)
{
	int fds[2];

	for (uint32_t interval_ms = 0; interval_ms <= 3600000;
	     interval_ms += 3600000) {
		memset(f->n_ended, 0, sizeof(f->n_ended));
		if (!start(f, 0, interval_ms))
			return;
		make_connection(f, false, fds);
		assert_int_equal(send(fds[0], "x", 1, 0), 1);
		lab_reset(fds[0]);
		stop(f);
		close(fds[1]);
		assert_reset_once(f);
	}
}

CASE(a_listener_that_closes_ends_those_it_has_not_accepted)
{
	int fd, listener;

	if (!start(f, 0, 0))
		return;
	listener = connect_to(f, &fd);
	assert_int_equal(send(fd, "hello", 5, 0), 5);
	close(listener);
	close(fd);
	stop(f);
	assert_int_equal(f->n_ended[0], 1);
	assert_int_equal(f->ends[0].ended, NETOBS_SESSION_ABORTED);
	assert_int_equal(f->ends[0].bytes_received, 5);
	assert_int_equal(f->ends[0].remote_port, f->ends[1].local_port);
	assert_int_equal(f->n_ended[1], 1);
	assert_int_equal(f->ends[1].ended, NETOBS_SESSION_RESET);
}

/* ---- Open ones ------------------------------------------------------------------------- */

CASE(open_ones_are_reported_at_the_end_if_at_all)
{
	int fds[2];

	for (uint32_t interval_ms = 0; interval_ms <= 3600000;
	     interval_ms += 3600000) {
		memset(f->ends, 0, sizeof(f->ends));
		if (!start(f, 0, interval_ms))
			return;
		make_connection(f, true, fds);
		stop(f);
		for (int i = 0; i < 2; i++) {
			assert_int_equal(f->ends[i].record.sz,
					 interval_ms ? sizeof(f->ends[i]) : 0);
			assert_int_equal(f->ends[i].ended, NETOBS_SESSION_OPEN);
		}
		close_both(fds);
	}
}

/* Until there are so many reports of it at each end, or for a while. */
static void await_open(struct fixture *f, int n, int64_t ms)
{
	const int64_t deadline = now_ms() + ms;

	while ((f->n_open[0] < n || f->n_open[1] < n) && now_ms() < deadline)
		assert_true(netobs_poll(f->sessions, 100) >= 0);
}

CASE(the_interval_changes_while_sessions_are_followed)
{
	int fds[2];

	if (!start(f, 0, 0))
		return;
	make_connection(f, true, fds);
	assert_int_equal(netobs_sessions_interval_set(f->sessions, 99), -EINVAL);
	assert_non_null(strstr(netobs_last_error(f->sessions), "interval_ms"));
	assert_int_equal(netobs_sessions_interval_set(NULL, 100), -EINVAL);
	await_open(f, 1, 300);
	assert_int_equal(f->n_open[0] + f->n_open[1], 0);

	assert_int_equal(netobs_sessions_interval_set(f->sessions, 100), 0);
	await_open(f, 3, PATIENCE_MS);
	assert_in_range(f->n_open[0], 3, 4);

	/* From now on there is one of a list that had begun, at most. */
	assert_int_equal(netobs_sessions_interval_set(f->sessions, 0), 0);
	memset(f->n_open, 0, sizeof(f->n_open));
	await_open(f, 2, 500);
	assert_in_range(f->n_open[0], 0, 1);
	close_both(fds);
	stop(f);
	assert_int_equal(f->n_ended[0], 1);
	assert_int_equal(f->n_ended[1], 1);
}

/* ---- Options and order of calls ----------------------------------------------------------- */

CASE(wrong_options_are_named)
{
	char why[NETOBS_ERROR_MAX] = "";
	const struct {
		const char *name;
		struct netobs_sessions_opts opts;
	} wrong[] = {
		{ "on_record", { .sz = sizeof(wrong[0].opts) } },
		{ "interval_ms",
		  { .sz = sizeof(wrong[0].opts),
		    .on_record = on_session,
		    .interval_ms = 99 } },
		{ "buffer_bytes",
		  { .sz = sizeof(wrong[0].opts),
		    .on_record = on_session,
		    .buffer_bytes = 1 } },
	};

	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
		struct netobs_sessions_opts opts = wrong[i].opts;

		opts.error = &why;
		assert_int_equal(netobs_sessions_new(&opts, &f->sessions),
				 -EINVAL);
		assert_ptr_equal(strstr(why, wrong[i].name), why);
	}
	assert_int_equal(netobs_sessions_new(NULL, &f->sessions), -EINVAL);
}

CASE(nothing_is_delivered_before_the_start)
{
	const NETOBS_OPTS(netobs_sessions_opts, opts, .on_record = on_session);

	assert_int_equal(netobs_sessions_new(&opts, &f->sessions), 0);
	assert_int_equal(netobs_dispatch(f->sessions), -EINVAL);
	assert_int_equal(netobs_dispatch(NULL), -EINVAL);
	assert_string_not_equal(netobs_last_error(f->sessions), "");
}

CASE(without_names_there_is_nothing_to_share)
{
	const NETOBS_OPTS(netobs_sessions_opts, opts, .on_record = on_session);
	struct netobs *ctx;

	assert_int_equal(netobs_new(NULL, &ctx), 0);
	assert_int_equal(netobs_sessions_new(&opts, &f->sessions), 0);
	assert_int_equal(netobs_sessions_share(f->sessions, ctx), -ENOENT);
	assert_int_equal(netobs_sessions_share(f->sessions, NULL), -EINVAL);
	assert_int_equal(netobs_sessions_share(NULL, ctx), -EINVAL);
	netobs_free(ctx);
}

/* ---- Want of descriptors ------------------------------------------------------------- */

static void count_errors(int level, const char *message, void *user)
{
	(void)message;
	*(int *)user += level <= NETOBS_LOG_ERROR;
}

/* @return the result; the log has the reason of a failure */
static int start_with_descriptors(rlim_t max)
{
	int errors = 0, err;
	const NETOBS_OPTS(netobs_sessions_opts, opts, .on_record = on_session,
			  .on_log = count_errors, .user = &errors);
	struct netobs *sessions;
	struct rlimit before, limit;

	assert_int_equal(netobs_sessions_new(&opts, &sessions), 0);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	limit = before;
	limit.rlim_cur = max;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
	err = netobs_start(sessions);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
	assert_int_equal(errors > 0, err < 0);
	netobs_free(sessions);
	return err;
}

/* libbpf names some wants of descriptors otherwise, but they are none of memory, or of files. */
CASE(a_want_of_descriptors_is_named)
{
	rlim_t max = (rlim_t)dup(STDERR_FILENO);
	int err;

	close((int)max);
	if (lab_lacks(LAB_FEATURE(SESSIONS)))
		return;
	while ((err = start_with_descriptors(max++))) {
		assert_int_not_equal(err, -ENOMEM);
		assert_int_not_equal(err, -ENOENT);
	}
}
