/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* Readers that connect, with handshakes that a stub takes part in. */
#include "lib_test.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/io.h"
#include "service/capture/capture_listen.h"
#include "service/tls/tls_module.h"

enum { READERS = 20, STEP_US = 1000 * SERVER_HANDSHAKES_MS };

/* A handshake, and how the stub's go. */
struct tls {
	int fd;
};
static bool are_slow, are_done;
static int n_steps;

static int stub_accept(struct tls_context *context, int fd, struct tls **ret_tls)
{
	(void)context;
	*ret_tls = calloc(1, sizeof(**ret_tls));
	(*ret_tls)->fd = fd;
	return 0;
}

static int stub_handshake(struct tls *tls, const struct tls_context *context)
{
	char byte;

	(void)context;
	n_steps++;
	assert_int_equal(recv(tls->fd, &byte, 1, MSG_DONTWAIT), 1);
	if (are_slow)
		usleep(STEP_US);
	return are_done ? 0 : -EAGAIN;
}

static const char *stub_reason(const struct tls *tls)
{
	(void)tls;
	return "";
}

static bool stub_wants_out(const struct tls *tls)
{
	(void)tls;
	return false;
}

static ssize_t stub_read(struct tls *tls, void *to, size_t len)
{
	(void)tls;
	(void)to;
	(void)len;
	return -EAGAIN;
}

static void stub_stop(struct tls *tls)
{
	free(tls);
}

static void stub_close(struct tls_context *context)
{
	(void)context;
}

static const struct tls_module stub = {
	.close = stub_close,
	.accept = stub_accept,
	.handshake = stub_handshake,
	.reason = stub_reason,
	.wants_out = stub_wants_out,
	.read = stub_read,
	.stop = stub_stop,
};

struct fixture {
	struct capture_listen listener;
	int readers[2 * CAPTURE_CLIENTS];
	size_t n_readers;
};

static int setup(void **state)
{
	static struct fixture f;
	const struct capture_listen_options options = { .spec = "127.0.0.1:0" };

	f = (struct fixture){ 0 };
	are_slow = are_done = false;
	n_steps = 0;
	assert_int_equal(capture_listen_open(&f.listener, &options), 0);
	*state = &f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	for (size_t i = 0; i < f->n_readers; i++)
		close(f->readers[i]);
	capture_listen_close(&f->listener);
	return 0;
}

static int reader_connect(const struct fixture *f)
{
	struct sockaddr_in address;
	socklen_t len = sizeof(address);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_int_equal(getsockname(f->listener.server.listener.fd,
				     (struct sockaddr *)&address, &len),
			 0);
	assert_int_equal(connect(fd, (struct sockaddr *)&address, len), 0);
	return fd;
}

/* One look at what is ready, as the command has after each look at packets. */
static bool serve_once(struct fixture *f)
{
	struct pollfd fd = { .fd = f->listener.server.loop.fd, .events = POLLIN };

	poll(&fd, 1, 100);
	server_dispatch(&f->listener.server);
	return capture_listen_has_clients(&f->listener);
}

/* Accepted readers, in this order. */
static void add_readers(struct fixture *f, size_t n)
{
	while (n--) {
		size_t before = f->listener.server.n;

		f->readers[f->n_readers++] = reader_connect(f);
		serve_once(f);
		assert_int_equal(f->listener.server.n, before + 1);
	}
}

static void reader_send(struct fixture *f, size_t i)
{
	assert_int_equal(send(f->readers[i], "x", 1, MSG_NOSIGNAL), 1);
}

static void handshakes_that_compute_do_not_delay_packets(void **state)
{
	struct fixture *f = *state;

	f->listener.server.tls = &stub;
	add_readers(f, READERS);
	for (size_t i = 0; i < READERS; i++)
		reader_send(f, i);
	are_slow = true;
	serve_once(f);
	assert_int_equal(n_steps, 1);
	for (int i = 0; i < READERS - 1; i++)
		serve_once(f);
	assert_int_equal(n_steps, READERS);
}

static void one_that_has_gone_takes_no_place(void **state)
{
	struct fixture *f = *state;

	f->listener.server.tls = &stub;
	add_readers(f, CAPTURE_HANDSHAKES);
	close(reader_connect(f));
	serve_once(f);
	assert_int_equal(f->listener.server.n, CAPTURE_HANDSHAKES);
	assert_int_equal(f->listener.refused, 0);
	f->readers[f->n_readers++] = reader_connect(f);
	serve_once(f);
	assert_int_equal(f->listener.server.n, CAPTURE_HANDSHAKES);
	assert_int_equal(f->listener.refused, 1);
}

static void the_latest_reader_to_be_ready_is_refused(void **state)
{
	struct fixture *f = *state;
	const struct server_client *first;

	f->listener.server.tls = &stub;
	add_readers(f, 1);
	first = f->listener.server.list[0];
	are_done = true;
	for (size_t i = 1; i <= CAPTURE_CLIENTS; i++) {
		add_readers(f, 1);
		reader_send(f, i);
		assert_true(serve_once(f));
	}
	assert_ptr_equal(f->listener.server.list[0], first);
	reader_send(f, 0);
	serve_once(f);
	assert_int_equal(f->listener.server.n, CAPTURE_CLIENTS);
	assert_ptr_not_equal(f->listener.server.list[0], first);
	assert_int_equal(f->listener.refused, 1);
	assert_non_null(strstr(f->listener.reason, "too many readers"));
}

static void too_many_readers_without_tls_are_refused(void **state)
{
	struct fixture *f = *state;

	add_readers(f, CAPTURE_CLIENTS);
	close(reader_connect(f));
	f->readers[f->n_readers++] = reader_connect(f);
	serve_once(f);
	assert_int_equal(f->listener.server.n, CAPTURE_CLIENTS);
	assert_int_equal(f->listener.refused, 1);
}

/* With the timeout, the kernel would end the connection of one that reads nothing. */
static void readers_may_pause(void **state)
{
	struct fixture *f = *state;
	int timeout_ms = -1;
	socklen_t len = sizeof(timeout_ms);

	add_readers(f, 1);
	assert_int_equal(getsockopt(f->listener.server.list[0]->fd, IPPROTO_TCP,
				    TCP_USER_TIMEOUT, &timeout_ms, &len),
			 0);
	assert_int_equal(timeout_ms, 0);
	assert_false(server_has_vanished(f->listener.server.list[0]));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			handshakes_that_compute_do_not_delay_packets, setup,
			teardown),
		cmocka_unit_test_setup_teardown(one_that_has_gone_takes_no_place,
						setup, teardown),
		cmocka_unit_test_setup_teardown(
			the_latest_reader_to_be_ready_is_refused, setup, teardown),
		cmocka_unit_test_setup_teardown(
			too_many_readers_without_tls_are_refused, setup, teardown),
		cmocka_unit_test_setup_teardown(readers_may_pause, setup,
						teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
