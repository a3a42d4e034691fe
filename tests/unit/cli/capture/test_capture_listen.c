/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* Readers that connect, with handshakes that a stub takes part in. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

/* The command's parts are in no library: compiled in here. */
#include "cli/capture/capture_client.c"
#include "cli/capture/capture_listen.c"
#include "service/socket/listen.c"

enum { READERS = 20, STEP_US = 1000 * HANDSHAKES_MS };

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
	union address address;
	socklen_t len = sizeof(address);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_int_equal(getsockname(f->listener.socket.fd, &address.any, &len),
			 0);
	assert_int_equal(connect(fd, &address.any, len), 0);
	return fd;
}

/* One look at what is ready, as the command has after each look at packets. */
static bool serve_once(struct fixture *f)
{
	struct pollfd fds[CAPTURE_LISTEN_FDS];
	size_t n = capture_listen_fds(&f->listener, fds);

	poll(fds, n, 100);
	capture_listen_ready(&f->listener, fds, n);
	return capture_listen_has_clients(&f->listener);
}

/* Accepted readers, in this order. */
static void add_readers(struct fixture *f, size_t n)
{
	while (n--) {
		size_t before = f->listener.n_clients;

		f->readers[f->n_readers++] = reader_connect(f);
		serve_once(f);
		assert_int_equal(f->listener.n_clients, before + 1);
	}
}

static void reader_send(struct fixture *f, size_t i)
{
	assert_int_equal(send(f->readers[i], "x", 1, MSG_NOSIGNAL), 1);
}

static void handshakes_that_compute_do_not_delay_packets(void **state)
{
	struct fixture *f = *state;

	f->listener.tls.module = &stub;
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

	f->listener.tls.module = &stub;
	add_readers(f, CAPTURE_HANDSHAKES);
	close(reader_connect(f));
	serve_once(f);
	assert_int_equal(f->listener.n_clients, CAPTURE_HANDSHAKES);
	assert_int_equal(f->listener.refused, 0);
	f->readers[f->n_readers++] = reader_connect(f);
	serve_once(f);
	assert_int_equal(f->listener.n_clients, CAPTURE_HANDSHAKES);
	assert_int_equal(f->listener.refused, 1);
}

static void the_latest_reader_to_be_ready_is_refused(void **state)
{
	struct fixture *f = *state;
	const struct capture_client *first;

	f->listener.tls.module = &stub;
	add_readers(f, 1);
	first = f->listener.clients[0];
	are_done = true;
	for (size_t i = 1; i <= CAPTURE_CLIENTS; i++) {
		add_readers(f, 1);
		reader_send(f, i);
		assert_true(serve_once(f));
	}
	assert_ptr_equal(f->listener.clients[0], first);
	reader_send(f, 0);
	serve_once(f);
	assert_int_equal(f->listener.n_clients, CAPTURE_CLIENTS);
	assert_ptr_not_equal(f->listener.clients[0], first);
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
	assert_int_equal(f->listener.n_clients, CAPTURE_CLIENTS);
	assert_int_equal(f->listener.refused, 1);
}

/* With the timeout, the kernel would end the connection of one that reads nothing. */
static void readers_may_pause(void **state)
{
	struct fixture *f = *state;
	int timeout_ms = -1;
	socklen_t len = sizeof(timeout_ms);

	add_readers(f, 1);
	assert_int_equal(getsockopt(f->listener.clients[0]->fd, IPPROTO_TCP,
				    TCP_USER_TIMEOUT, &timeout_ms, &len),
			 0);
	assert_int_equal(timeout_ms, 0);
	assert_false(has_vanished(f->listener.clients[0]->fd));
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
