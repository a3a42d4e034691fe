/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* Readers that connect. */
#include "lib_test.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include "base/io.h"
#include "cli/capture/capture_out.h"

struct fixture {
	struct capture_listen listener;
	int readers[2 * CAPTURE_CLIENTS];
	size_t n_readers;
};

static void begin(struct fixture *f)
{
	assert_int_equal(capture_listen_open(&f->listener, "127.0.0.1:0",
					     NETOBS_PCAPNG),
			 0);
}

static void end(struct fixture *f)
{
	for (size_t i = 0; i < f->n_readers; i++)
		close(f->readers[i]);
	capture_listen_close(&f->listener);
}

TEST_FIXTURE(struct fixture, begin, end)

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
static void serve_once(struct fixture *f)
{
	struct pollfd fd = { .fd = f->listener.server.loop.fd, .events = POLLIN };

	poll(&fd, 1, 100);
	server_dispatch(&f->listener.server);
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

/* One that has gone takes no place. */
TEST_WITH(too_many_readers_are_refused, set_up, tear_down)
{
	struct fixture *f = *state;
	const struct server_client *last;

	assert_false(f->listener.server.n);
	add_readers(f, CAPTURE_CLIENTS);
	assert_true(f->listener.server.n);
	last = f->listener.server.list[CAPTURE_CLIENTS - 1];
	close(reader_connect(f));
	f->readers[f->n_readers++] = reader_connect(f);
	serve_once(f);
	assert_int_equal(f->listener.server.n, CAPTURE_CLIENTS);
	assert_ptr_equal(f->listener.server.list[CAPTURE_CLIENTS - 1], last);
	assert_int_equal(f->listener.refused, 1);
}
