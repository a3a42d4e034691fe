/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* Clients that read their queues, that read nothing, and that are too many at once. */
#include "lib_clock.h"
#include "lib_test.h"
#include "lib_wait.h"

#include <netinet/in.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include "base/clock_ms.h"
#include "service/socket/server.h"

enum { QUEUE = 1 << 20, CLOSE_MS = 50 };

static size_t n_connected, n_closed;
static char reason[64];

static bool admit(struct server *server, int fd)
{
	(void)fd;
	return server->n < SERVER_CLIENTS;
}

static void on_connect(struct server_client *client)
{
	n_connected += server_make_queue(client, QUEUE);
}

static void on_close(struct server_client *client, const char *why)
{
	(void)client;
	n_closed++;
	snprintf(reason, sizeof(reason), "%s", why ?: "");
}

static const struct server_ops ops = {
	.client_size = sizeof(struct server_client),
	.admit = admit,
	.on_connect = on_connect,
	.on_close = on_close,
};

static void begin(struct server *server)
{
	clock_skip_waits();
	n_connected = n_closed = 0;
	assert_int_equal(server_open(server, &ops), 0);
}

static void end(struct server *server)
{
	server_close(server, CLOSE_MS);
}

TEST_FIXTURE(struct server, begin, end)

static void serve(struct server *server, int ms)
{
	struct pollfd fd = { .fd = server->loop.fd, .events = POLLIN };

	poll(&fd, 1, ms);
	server_dispatch(server);
}

/* @return the client's own end */
static int add_client(struct server *server)
{
	int fds[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
	server_add(server, fds[0], "");
	return fds[1];
}

static size_t read_all(struct server *server, int fd, char expected)
{
	char bytes[4096];
	size_t total = 0;
	ssize_t n;

	while ((n = recv(fd, bytes, sizeof(bytes), MSG_DONTWAIT)) > 0) {
		for (ssize_t i = 0; i < n; i++)
			assert_int_equal(bytes[i], expected);
		total += (size_t)n;
		serve(server, 0);
	}
	return total;
}

#define CASE(name) TEST_OF(name, struct server *server, set_up, tear_down)

CASE(a_queue_is_bounded_and_sent_whole)
{
	static char bytes[QUEUE];
	int fd = add_client(server);
	struct server_client *client = server->list[0];
	size_t sent;

	memset(bytes, 'a', sizeof(bytes));
	assert_true(server_queue(client, bytes, QUEUE));
	assert_false(server_queue(client, bytes, 1));
	assert_true(server_send(client)); /* as much as the socket has room for */
	sent = server_room(client);
	assert_in_range(sent, 1, QUEUE - 1);
	assert_true(server_queue(client, bytes, sent));
	assert_false(server_queue(client, bytes, 1));
	assert_int_equal(read_all(server, fd, 'a'), QUEUE + sent);
	assert_int_equal(server_room(client), QUEUE);
	close(fd);
}

CASE(the_last_bytes_close)
{
	int fd = add_client(server);

	assert_true(server_queue(server->list[0], "b", 1));
	server->list[0]->is_last = true;
	assert_false(server_send(server->list[0]));
	assert_int_equal(server->n, 0);
	assert_int_equal(read_all(server, fd, 'b'), 1);
	close(fd);
}

CASE(one_is_closed_when_its_time_is_over)
{
	int first = add_client(server), second = add_client(server);

	server_set_due(server->list[1], now_ms() + 60000);
	server_set_due(server->list[0], now_ms() + 10);
	serve(server, WAIT_MS);
	assert_int_equal(server->n, 1);
	assert_int_equal(n_closed, 1);
	assert_string_equal(reason, strerror(ETIMEDOUT));
	close(second);
	serve(server, WAIT_MS);
	assert_int_equal(server->n, 0);
	assert_string_equal(reason, "");
	close(first);
}

static int connect_to(const struct server *server)
{
	const struct timespec patience = { .tv_sec = WAIT_MS / 1000 };
	struct pollfd listener = { .fd = server->listener.fd, .events = POLLIN };
	struct sockaddr_storage address;
	socklen_t len = sizeof(address);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_int_equal(getsockname(server->listener.fd,
				     (struct sockaddr *)&address, &len),
			 0);
	assert_int_equal(connect(fd, (struct sockaddr *)&address, len), 0);
	/* The kernel may take its time for the last packet of the handshake, and no clock is moved. */
	assert_int_equal(ppoll(&listener, 1, &patience, NULL), 1);
	return fd;
}

/* The listening socket stays readable meanwhile, and is not looked at. */
CASE(without_descriptors_accepting_pauses)
{
	struct rlimit limit, none;
	int fd;

	assert_int_equal(server_listen(server, "127.0.0.1:0"), 0);
	fd = connect_to(server);
	getrlimit(RLIMIT_NOFILE, &limit);
	none = (struct rlimit){ (rlim_t)fd + 1, limit.rlim_max };
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	serve(server, WAIT_MS);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
	assert_int_equal(server->n, 0);
	serve(server, 0);
	assert_int_equal(server->n, 0);
	serve(server, 5000); /* the pause is over */
	serve(server, 5000);
	assert_int_equal(server->n, 1);
	assert_int_equal(n_connected, 1);
	close(fd);
}
