// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/* When programs report the owner of a socket of UDP: not with each datagram; and lists of sockets. */
#include "lib_lab.h"
#include "lib_test.h"

#include "base/clock_ms.h"
#include "who/sessions.h"

#include <arpa/inet.h>
#include <bpf/libbpf.h>
#include <pthread.h>
#include <sys/socket.h>
#include <sys/wait.h>

enum {
	IN_ROW = 8,
	TURNS = 300,
	SOCKETS = 300, /* more than an eighth of the ring buffer can hold */
};

struct fixture {
	struct lab lab;
	struct session_programs programs;
	struct ring_buffer *ring;
	uint16_t port;
	int fd, n_events, n_starts;
	uint32_t last_pid;
	uint64_t last_start_ns;
	bool is_lacking; /* this kernel has no such programs: it refuses to load them */
	int open_error;
	pthread_barrier_t barrier;
};

static int take(void *ctx, void *data, size_t size)
{
	const struct session_event *event = data;
	struct fixture *f = ctx;

	(void)size;
	if (event->protocol != IPPROTO_UDP || event->local_port != f->port)
		return 0;
	f->n_events++;
	f->last_pid = event->owner.pid_tgid >> 32;
	/* Bound or connected to something else, it is another one that began later. */
	assert_true(event->start_ns >= f->last_start_ns);
	f->n_starts += event->start_ns > f->last_start_ns;
	f->last_start_ns = event->start_ns;
	return 0;
}

static void open_fixture(struct fixture *f)
{
	const struct session_knobs knobs = { .ring_bytes = 1 << 18,
					     .wants_owners = true };
	static const struct log silent;

	lab_enter(&f->lab);
	f->is_lacking =
		lab_lacks(LAB_FEATURE(SESSIONS) | LAB_FEATURE(SESSION_IO));
	f->open_error = session_programs_open(&f->programs, &knobs, &silent);
	if (f->is_lacking) {
		assert_true(f->open_error || f->programs.io_error);
		return;
	}
	assert_int_equal(f->open_error, 0);
	f->ring = ring_buffer__new(program_set_map_fd(&f->programs.sockets,
						      "session_events"),
				   take, f, NULL);
	assert_non_null(f->ring);
	f->fd = lab_bind(SOCK_DGRAM, &f->port);
}

static void close_fixture(struct fixture *f)
{
	if (!f->is_lacking) {
		close(f->fd);
		ring_buffer__free(f->ring);
	}
	session_programs_close(&f->programs);
	lab_leave(&f->lab);
}

TEST_FIXTURE(struct fixture, open_fixture, close_fixture)

/* To itself, so that there is no error. */
static void send_one(int fd, uint16_t port)
{
	const struct sockaddr_in to = lab_address(port);

	assert_int_equal(sendto(fd, "x", 1, 0, (const void *)&to, sizeof(to)), 1);
}

static void *send_in_turn(void *user)
{
	struct fixture *f = user;

	for (int i = 0; i < TURNS; i++) {
		pthread_barrier_wait(&f->barrier);
		send_one(f->fd, f->port);
	}
	return NULL;
}

#define CASE(name) TEST_OF(name, struct fixture *f, set_up, tear_down)

CASE(threads_of_a_process_are_one_user)
{
	pthread_t thread;

	if (f->is_lacking)
		return;
	pthread_barrier_init(&f->barrier, NULL, 2);
	assert_int_equal(pthread_create(&thread, NULL, send_in_turn, f), 0);
	send_in_turn(f);
	pthread_join(thread, NULL);
	pthread_barrier_destroy(&f->barrier);
	assert_true(ring_buffer__consume(f->ring) >= 0);
	assert_in_range(f->n_events, 1, 2); /* both may be the first */
	assert_int_equal(f->last_pid, getpid());
}

/* A process that sends when it gets a byte, and answers with one. */
static pid_t start_sender(const struct fixture *f, const int pair[2])
{
	pid_t pid = fork();
	char byte;

	if (pid)
		return pid;
	close(pair[0]);
	while (read(pair[1], &byte, 1) == 1) {
		send_one(f->fd, f->port);
		if (write(pair[1], &byte, 1) != 1)
			break;
	}
	_exit(0);
}

CASE(processes_that_take_turns_are_not_reported_each_time)
{
	const int64_t start_ms = now_ms();
	int pair[2], status;
	char byte = 0;
	pid_t pid;

	if (f->is_lacking)
		return;
	assert_int_equal(
		socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
	pid = start_sender(f, pair);
	close(pair[1]);
	for (int i = 0; i < TURNS; i++) {
		send_one(f->fd, f->port);
		assert_int_equal(write(pair[0], &byte, 1), 1);
		assert_int_equal(read(pair[0], &byte, 1), 1);
	}
	close(pair[0]);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_true(ring_buffer__consume(f->ring) >= 0);
	assert_in_range(f->n_events, 1,
			1 + IN_ROW * (1 + (now_ms() - start_ms) / 1000));
}

/* As resolvers do: each of them is another one to user space. */
CASE(other_ends_are_reported_at_once)
{
	struct sockaddr_in to = { .sin_family = AF_INET };
	const struct sockaddr_in any = { .sin_family = AF_INET };
	int receiver = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	socklen_t len = sizeof(to);

	if (f->is_lacking)
		return;
	assert_int_equal(bind(receiver, (const void *)&any, len), 0);
	assert_int_equal(getsockname(receiver, (void *)&to, &len), 0);
	for (int i = 0; i < TURNS; i++) {
		to.sin_addr.s_addr = htonl(INADDR_LOOPBACK + 1 + i);
		assert_int_equal(connect(f->fd, (void *)&to, sizeof(to)), 0);
		assert_int_equal(send(f->fd, "x", 1, 0), 1);
	}
	assert_true(ring_buffer__consume(f->ring) >= 0);
	assert_int_equal(f->n_events, TURNS);
	assert_int_equal(f->n_starts, TURNS);
	close(receiver);
}

static int take_listed(void *ctx, void *data, size_t size)
{
	const struct session_event *event = data;
	bool *is_listed = ctx;

	(void)size;
	if (event->protocol == IPPROTO_UDP &&
	    event->owner.pid_tgid >> 32 == (uint32_t)getpid())
		is_listed[event->local_port] = true;
	return 0;
}

/* Begin a list, and read what its first part has. */
static void begin_list(struct fixture *f, struct ring_buffer *ring)
{
	assert_int_equal(session_programs_begin_list(&f->programs), 0);
	assert_true(ring_buffer__consume(ring) > 0);
	assert_int_equal(session_programs_go_on_listing(&f->programs), -EAGAIN);
}

CASE(list_that_fills_the_ring_has_every_socket)
{
	static bool is_listed[1 << 16];
	struct ring_buffer *ring = NULL;
	uint16_t ports[SOCKETS] = { 0 };
	int fds[SOCKETS];
	int err;

	if (f->is_lacking)
		return;
	for (int i = 0; i < SOCKETS; i++)
		fds[i] = lab_bind(SOCK_DGRAM, &ports[i]);
	assert_int_equal(session_programs_find_holders(&f->programs), 0);
	assert_int_equal(session_programs_read(&f->programs, take_listed,
					       is_listed, &ring),
			 0);
	begin_list(f, ring);
	do {
		assert_true(ring_buffer__consume(ring) >= 0);
		err = session_programs_go_on_listing(&f->programs);
	} while (err == -EAGAIN);
	assert_int_equal(err, 0);
	assert_true(ring_buffer__consume(ring) >= 0);
	for (int i = 0; i < SOCKETS; i++)
		assert_true(is_listed[ports[i]]);
	/* The programs are closed while a thread reads. */
	begin_list(f, ring);
	for (int i = 0; i < SOCKETS; i++)
		close(fds[i]);
	ring_buffer__free(ring);
}
