// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/* Sessions over TCP: which records they deliver, and which are sent again. */
#include "lib_session.h"

#include <sys/socket.h>

/* Of the connections that are made from now on; the kernel doubles it. */
static void set_buffer(struct session *f, int size)
{
	assert_int_equal(
		setsockopt(f->fd, SOL_SOCKET, SO_RCVBUF, &size, sizeof(size)), 0);
}

static int accept_soon(struct session *f)
{
	int peer;

	await_by((peer = accept4(f->fd, NULL, NULL, SOCK_NONBLOCK)) >= 0, {
		session_work(f, false);
		test_host_wait(&f->host, 10);
	});
	return peer;
}

static void reset(int peer)
{
	const struct linger none = { .l_onoff = 1 };

	setsockopt(peer, SOL_SOCKET, SO_LINGER, &none, sizeof(none));
	close(peer);
}

/* All that was sent over a connection, from its beginning. */
struct received {
	uint8_t bytes[1 << 20];
	size_t used;
};

static ssize_t receive_some(struct received *all, int peer)
{
	ssize_t got = recv(peer, all->bytes + all->used,
			   sizeof(all->bytes) - all->used, 0);

	all->used += got > 0 ? (size_t)got : 0;
	return got;
}

static void read_messages(struct session *f, const struct received *all)
{
	const uint8_t *bytes = all->bytes;
	size_t used = all->used, at = 0, len;

	for (; at + 16 <= used; at += len) {
		len = ipfix_number(bytes + at + 2, 2);
		if (at + len > used)
			break;
		ipfix_read(&f->reader, bytes + at, len);
	}
}

/* All that is sent until @n records are acknowledged. */
static void read_session(struct session *f, int peer, uint64_t n)
{
	static struct received all;

	all.used = 0;
	await_by(f->host.acked >= n, {
		session_work_for(f, 1);
		receive_some(&all, peer);
	});
	while (receive_some(&all, peer) > 0)
		;
	assert_int_equal(f->host.acked, n);
	read_messages(f, &all);
}

/* The other side's kernel has all of it, and no process has read it. */
static void send_to_kernel(struct session *f, uint64_t n)
{
	f->host.n_records = n;
	session_work_for(f, 30);
	assert_int_equal(f->host.next, n);
}

#define CASE(name) \
	TEST_OF(name, struct session *f, session_set_up, session_tear_down)

CASE(each_connection_is_a_session_of_its_own)
{
	int peer;

	session_open(f, "tcp", "");
	for (unsigned int round = 1; round <= 3; round++) {
		/* A reader that knows nothing: sequence 0, no templates. */
		f->reader = session_reader(f);
		peer = accept_soon(f);
		f->host.n_records = 1000 * round;
		read_session(f, peer, 1000 * round);
		assert_int_equal(f->reader.n_templates, TEMPLATES);
		assert_int_equal(session_counter(f, "sessions"), round);
		reset(peer);
	}
	assert_int_equal(f->flows, 3000);
}

/* Whether the collector reads it or not. */
CASE(what_a_kernel_has_acknowledged_is_delivered)
{
	int peer;

	session_open(f, "tcp", "");
	peer = accept_soon(f);
	send_to_kernel(f, 500);
	assert_int_equal(f->host.acked, 500);
	reset(peer);
	peer = accept_soon(f);
	f->host.n_records = 600;
	read_session(f, peer, 600);
	assert_int_equal(f->flows, 100);
	assert_int_equal(session_counter(f, "broken_sessions"), 1);
	close(peer);
}

CASE(what_is_not_acknowledged_is_sent_again)
{
	enum { RECORDS = 8000 };
	uint64_t acked;
	int peer;

	session_listen(f, SOCK_STREAM);
	set_buffer(f, 32768);
	session_open(f, "tcp", "");
	peer = accept_soon(f);
	f->host.n_records = RECORDS;
	session_work_for(f, 30);
	acked = f->host.acked;
	assert_in_range(acked, 1, f->host.next - 1);
	reset(peer);
	set_buffer(f, 1 << 20);
	peer = accept_soon(f);
	f->reader = session_reader(f);
	read_session(f, peer, RECORDS);
	assert_int_equal(f->flows, RECORDS - acked);
	close(peer);
}

/* exportedFlowRecordTotalCount: no options records, nor what is sent again. */
CASE(flows_are_counted_once_each)
{
	int peer;

	f->host.has_stats = true;
	session_open(f, "tcp", "?options_refresh=1s");
	peer = accept_soon(f);
	send_to_kernel(f, 500);
	reset(peer);
	peer = accept_soon(f);
	send_to_kernel(f, 700);
	session_work_for(f, 150);
	read_session(f, peer, 700);
	assert_int_equal(f->flows, 200);
	assert_int_equal(f->flows_sent, 700);
	close(peer);
}

/* It may have restarted, and be asked again at once only if it was of use before. */
CASE(collector_that_closes_each_time_is_asked_now_and_then)
{
	session_open(f, "tcp", "");
	f->host.n_records = 100;
	for (unsigned int i = 1; i <= 3; i++) {
		int peer = accept_soon(f);

		session_work_for(f, 10);
		close(peer);
		assert_int_equal(session_counter(f, "sessions"), i);
	}
	await_by(session_counter(f, "broken_sessions") >= 3,
		 session_work_for(f, 1));
	assert_int_equal(session_counter(f, "broken_sessions"), 3);
	assert_int_equal(test_host_lines(&f->host), 1);
}
