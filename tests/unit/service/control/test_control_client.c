/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* Clients of the control socket that do not read, and those that ask too late. */
#include "lib_clock.h"
#include "lib_test.h"

#include <sys/socket.h>

#include "base/clock_ms.h"
#include "service/control/control_client.h"

struct fixture {
	struct control_clients all;
	int peers[CONTROL_LIVE_CLIENTS + 1];
	size_t n_peers;
	unsigned int n_requests;
};

static void count_request(struct control_client *client, void *user)
{
	struct fixture *f = user;

	f->n_requests++;
	control_client_answer(client, NULL);
}

static void begin(struct fixture *f)
{
	clock_skip_waits();
	f->all.on_request = count_request;
	f->all.user = f;
	assert_int_equal(control_clients_open(&f->all), 0);
}

static void end(struct fixture *f)
{
	control_clients_close(&f->all);
	for (size_t i = 0; i < f->n_peers; i++)
		close(f->peers[i]);
}

TEST_FIXTURE(struct fixture, begin, end)

static struct control_client *client_at(const struct fixture *f, size_t i)
{
	return (struct control_client *)f->all.server.list[i];
}

static struct control_client *connect_client(struct fixture *f)
{
	int fds[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
	f->peers[f->n_peers++] = fds[1];
	server_add(&f->all.server, fds[0], "");
	assert_int_equal(f->all.server.n, f->n_peers);
	return client_at(f, f->all.server.n - 1);
}

/* Records until each client that follows them has some that wait. */
static void fill_queues(struct fixture *f)
{
	static char line[CONTROL_LIVE_BATCH];

	for (int i = 0; i < CONTROL_LIVE_QUEUE / CONTROL_LIVE_BATCH / 2; i++)
		control_clients_flow(&f->all, line, sizeof(line));
	for (size_t i = 0; i < f->all.server.n; i++)
		if (client_at(f, i)->state == CLIENT_LIVE)
			assert_true(f->all.server.list[i]->start <
				    f->all.server.list[i]->end);
}

TEST_WITH(one_that_takes_nothing_makes_room, set_up, tear_down)
{
	struct fixture *f = *state;

	while (f->all.server.n < CONTROL_LIVE_CLIENTS)
		control_client_follow(connect_client(f), "{}\n");
	f->all.server.list[5]->taken_ms -= CONTROL_STALL_MS;
	assert_false(control_clients_find_place(&f->all)); /* nothing waits */
	fill_queues(f);
	f->all.server.list[5]->taken_ms = now_ms();
	assert_false(control_clients_find_place(&f->all));
	f->all.server.list[5]->taken_ms -= CONTROL_STALL_MS;
	assert_true(control_clients_find_place(&f->all));
	assert_int_equal(f->all.n_live, CONTROL_LIVE_CLIENTS - 1);
	assert_true(control_clients_find_place(&f->all));
	assert_int_equal(f->all.n_live, CONTROL_LIVE_CLIENTS - 1);
}

TEST_WITH(no_request_is_taken_at_the_end, set_up, tear_down)
{
	struct fixture *f = *state;

	control_client_follow(connect_client(f), "{}\n");
	fill_queues(f);
	connect_client(f);
	assert_int_equal(send(f->peers[1], "reload\n", 7, 0), 7);
	control_clients_close(&f->all);
	assert_int_equal(f->n_requests, 0);
	assert_int_equal(control_clients_open(&f->all), 0);
}
