// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/*
 * Connections whose last change of state no program saw, as happens where an interrupt makes
 * it while the same program runs: here the program is detached before.
 */
#include "lib_lab.h"
#include "lib_test.h"

#include "who/sessions.h"

#include <bpf/libbpf.h>
#include <sys/socket.h>

enum { CONNECTED, ACCEPTED };

struct fixture {
	struct lab lab;
	struct session_programs programs;
	struct ring_buffer *ring;
	uint16_t port; /* of the listener */
	int listener, fds[2];
	uint64_t cookies[2];
	int n_ends[2];
	struct session_event ends[2];
	bool is_lacking;
};

/* By cookie: a socket that reset its connection has no ports when it goes. */
static int take(void *ctx, void *data, size_t size)
{
	const struct session_event *event = data;
	struct fixture *f = ctx;

	(void)size;
	for (int i = 0; i < 2; i++)
		if (event->cookie == f->cookies[i]) {
			f->ends[i] = *event;
			f->n_ends[i]++;
		}
	return 0;
}

static void connect_fds(struct fixture *f)
{
	f->fds[CONNECTED] = lab_connect(f->port);
	f->fds[ACCEPTED] = accept4(f->listener, NULL, NULL, SOCK_CLOEXEC);
	assert_true(f->fds[ACCEPTED] >= 0);
	for (int i = 0; i < 2; i++) {
		socklen_t len = sizeof(f->cookies[i]);

		assert_int_equal(getsockopt(f->fds[i], SOL_SOCKET, SO_COOKIE,
					    &f->cookies[i], &len),
				 0);
	}
}

static void open_fixture(struct fixture *f)
{
	const struct session_knobs knobs = { .ring_bytes = 1 << 24 };
	static const struct log silent;
	int r;

	lab_enter(&f->lab);
	f->listener = lab_listen(&f->port, 1);
	f->is_lacking = lab_lacks(LAB_FEATURE(SESSIONS));
	r = session_programs_open(&f->programs, &knobs, &silent);
	if (f->is_lacking) {
		assert_true(r < 0);
		return;
	}
	assert_int_equal(r, 0);
	assert_int_equal(session_programs_read(&f->programs, take, f, &f->ring),
			 0);
	connect_fds(f);
}

static void close_fixture(struct fixture *f)
{
	if (!f->is_lacking)
		ring_buffer__free(f->ring);
	session_programs_close(&f->programs);
	close(f->listener);
	lab_leave(&f->lab);
}

TEST_FIXTURE(struct fixture, open_fixture, close_fixture)

/* The host's other connections do not fill the ring buffer meanwhile. */
static void see_no_more_states(struct fixture *f)
{
	assert_true(ring_buffer__consume(f->ring) >= 0);
	program_set_detach(&f->programs.sockets, "netobs_sess_set");
}

static void assert_each_ended_once(struct fixture *f)
{
	assert_true(ring_buffer__consume(f->ring) >= 0);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(f->n_ends[i], 1);
		assert_int_not_equal(f->ends[i].end.time_ns, 0);
	}
}

#define CASE(name) TEST_OF(name, struct fixture *f, set_up, tear_down)

CASE(a_reset_is_reported_by_closing)
{
	if (f->is_lacking)
		return;
	see_no_more_states(f);
	lab_reset(f->fds[CONNECTED]);
	close(f->fds[ACCEPTED]);
	assert_each_ended_once(f);
	assert_int_equal(f->ends[ACCEPTED].owner.pid_tgid >> 32, getpid());
	assert_int_equal(session_ended(&f->ends[ACCEPTED].end),
			 NETOBS_SESSION_RESET);
}

CASE(an_end_by_fin_is_one)
{
	if (f->is_lacking)
		return;
	assert_int_equal(shutdown(f->fds[CONNECTED], SHUT_WR), 0);
	see_no_more_states(f);
	close(f->fds[ACCEPTED]);
	close(f->fds[CONNECTED]);
	assert_each_ended_once(f);
	assert_int_equal(session_ended(&f->ends[CONNECTED].end),
			 NETOBS_SESSION_FIN);
}

/* No process closes it before the end of the observer. */
CASE(one_that_is_left_is_in_the_last_list)
{
	int err;

	if (f->is_lacking)
		return;
	see_no_more_states(f);
	lab_reset(f->fds[CONNECTED]);
	session_programs_detach(&f->programs);
	assert_int_equal(session_programs_begin_list(&f->programs), 0);
	do {
		assert_true(ring_buffer__consume(f->ring) >= 0);
		err = session_programs_go_on_listing(&f->programs);
	} while (err == -EAGAIN);
	assert_int_equal(err, 0);
	close(f->fds[ACCEPTED]);
	assert_each_ended_once(f);
}

CASE(one_that_was_seen_is_not_reported_again)
{
	if (f->is_lacking)
		return;
	lab_reset(f->fds[CONNECTED]);
	see_no_more_states(f);
	close(f->fds[ACCEPTED]);
	assert_each_ended_once(f);
}
