/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include "server.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock_ms.h"
#include "base/util.h"

enum {
	ACCEPTS = 4,	/* in one dispatch */
	PAUSE_MS = 500, /* without accepting, where a connection cannot be */
};

/* ---- Times ------------------------------------------------------------------------- */

/* The timer may expire too early: then it is set again. */
static void wake_at(struct server *server, int64_t at_ms)
{
	if (!at_ms || (server->wake_ms && server->wake_ms <= at_ms))
		return;
	server->wake_ms = at_ms;
	loop_set_timer(server->timer, at_ms * NSEC_PER_MSEC);
}

void server_set_due(struct server_client *client, int64_t due_ms)
{
	client->due_ms = due_ms;
	wake_at(client->server, due_ms);
}

/* ---- Clients ----------------------------------------------------------------------- */

void server_close_client(struct server_client *client, const char *why)
{
	struct server *server = client->server;
	size_t i = 0;

	if (server->ops->on_close)
		server->ops->on_close(client, why);
	while (server->list[i] != client)
		i++;
	server->list[i] = server->list[--server->n];
	loop_watch(&server->loop, client->fd, 0, NULL, NULL);
	close_fd(&client->fd);
	free(client->out);
	free(client);
}

static bool has_queued(const struct server_client *client)
{
	return client->start < client->end;
}

static int on_client(void *arg, int fd);

/* @return false: it was closed */
static bool watch_client(struct server_client *client)
{
	const uint32_t events = client->events |
				(has_queued(client) ? EPOLLOUT : 0);

	if (events == client->watched)
		return true;
	if (loop_watch(&client->server->loop, client->fd, events, on_client,
		       client)) {
		server_close_client(client, NULL);
		return false;
	}
	client->watched = events;
	return true;
}

bool server_make_queue(struct server_client *client, size_t size)
{
	client->out = malloc(size);
	client->size = size;
	if (!client->out)
		server_close_client(client, NULL);
	return client->out;
}

size_t server_room(const struct server_client *client)
{
	return client->size - (client->end - client->start);
}

bool server_queue(struct server_client *client, const void *bytes, size_t len)
{
	if (server_room(client) < len)
		return false;
	if (client->size - client->end < len) {
		client->end -= client->start;
		memmove(client->out, client->out + client->start, client->end);
		client->start = 0;
	}
	memcpy(client->out + client->end, bytes, len);
	client->end += len;
	return true;
}

static ssize_t send_some(struct server_client *client)
{
	const char *from = client->out + client->start;
	const size_t len = client->end - client->start;
	const ssize_t n =
		send(client->fd, from, len, MSG_NOSIGNAL | MSG_DONTWAIT);

	return n < 0 ? -errno : n;
}

bool server_send(struct server_client *client)
{
	while (has_queued(client)) {
		const ssize_t n = send_some(client);

		if (n == -EINTR)
			continue;
		if (n == -EAGAIN)
			return watch_client(client);
		if (n < 0) {
			server_close_client(client, NULL);
			return false;
		}
		client->start += (size_t)n;
		client->taken_ms = now_ms();
	}
	client->start = client->end = 0;
	if (!client->is_last)
		return watch_client(client);
	server_close_client(client, NULL);
	return false;
}

ssize_t server_receive(struct server_client *client, void *to, size_t len)
{
	const ssize_t n = recv(client->fd, to, len, MSG_DONTWAIT);

	return n < 0 ? -errno : n;
}

static void ignore_input(struct server_client *client)
{
	char nothing[4096];
	const ssize_t n = server_receive(client, nothing, sizeof(nothing));

	if (!n || (n < 0 && n != -EAGAIN && n != -EINTR))
		server_close_client(client, NULL);
}

/* A client without input and queue has closed its own end. */
static int on_client(void *arg, int fd)
{
	struct server_client *client = arg;
	bool is_sending = has_queued(client);

	(void)fd;
	if (is_sending && !server_send(client))
		return 0;
	else if (!(client->events & EPOLLIN) && !is_sending)
		server_close_client(client, NULL);
	else if (client->events & EPOLLIN && client->server->ops->on_input)
		client->server->ops->on_input(client);
	else if (client->events & EPOLLIN)
		ignore_input(client);
	return 0;
}

void server_add(struct server *server, int fd, const char *address)
{
	struct server_client *client = NULL;

	if (server->ops->admit(server, fd))
		client = calloc(1, server->ops->client_size);
	if (!client) {
		close(fd);
		return;
	}
	client->server = server;
	client->fd = fd;
	client->events = EPOLLIN;
	snprintf(client->address, sizeof(client->address), "%s", address);
	server->list[server->n++] = client;
	if (watch_client(client))
		server->ops->on_connect(client);
}

/* ---- The socket -------------------------------------------------------------------- */

/* @return 0, or -errno */
static int accept_client(struct server *server)
{
	char address[64] = "";
	int fd = listen_accept(&server->listener, address, sizeof(address));

	if (fd < 0)
		return fd;
	server_add(server, fd, address);
	return 0;
}

/* Without memory or descriptors, the listening socket would stay readable. */
static void pause_accepting(struct server *server)
{
	loop_watch(&server->loop, server->listener.fd, 0, NULL, NULL);
	server->resume_ms = now_ms() + PAUSE_MS;
	wake_at(server, server->resume_ms);
}

static int on_connection(void *arg, int fd)
{
	int err = 0;

	(void)fd;
	for (int i = 0; !err && i < ACCEPTS; i++)
		err = accept_client(arg);
	if (err && err != -EAGAIN && err != -ECONNABORTED)
		pause_accepting(arg);
	return 0;
}

static int accept_clients(struct server *server)
{
	server->resume_ms = 0;
	return loop_watch(&server->loop, server->listener.fd, EPOLLIN,
			  on_connection, server);
}

/* Walk backwards: closing a client moves the last one to its index. */
static int on_due_timer(void *arg, int fd)
{
	struct server *server = arg;
	const int64_t now = now_ms();

	(void)fd;
	server->wake_ms = 0;
	for (size_t i = server->n; i-- > 0;) {
		struct server_client *client = server->list[i];

		if (client->due_ms && client->due_ms <= now)
			server_close_client(client, strerror(ETIMEDOUT));
		else
			wake_at(server, client->due_ms);
	}
	if (server->resume_ms > now)
		wake_at(server, server->resume_ms);
	else if (server->resume_ms && accept_clients(server))
		pause_accepting(server);
	return 0;
}

int server_open(struct server *server, const struct server_ops *ops)
{
	int err;

	*server = (struct server){ .ops = ops, .listener.fd = -1 };
	err = loop_open(&server->loop);
	return err ? err :
		     loop_add_timer(&server->loop, CLOCK_MONOTONIC,
				    on_due_timer, server, &server->timer);
}

int server_listen(struct server *server, const char *spec)
{
	return listen_open(&server->listener, spec) ?: accept_clients(server);
}

void server_dispatch(struct server *server)
{
	loop_dispatch(&server->loop);
}

void server_drop(struct server *server)
{
	while (server->n)
		server_close_client(server->list[server->n - 1], NULL);
}

static bool any_has_queued(const struct server *server)
{
	for (size_t i = 0; i < server->n; i++)
		if (has_queued(server->list[i]))
			return true;
	return false;
}

void server_close(struct server *server, int ms)
{
	const int64_t end_ms = now_ms() + ms;
	struct pollfd fd = { .fd = server->loop.fd, .events = POLLIN };

	if (server->listener.fd >= 0)
		loop_watch(&server->loop, server->listener.fd, 0, NULL, NULL);
	listen_close(&server->listener);
	server->resume_ms = 0;
	for (size_t i = server->n; i-- > 0;)
		server_send(server->list[i]);
	while (any_has_queued(server) && left_ms(end_ms)) {
		poll(&fd, 1, left_ms(end_ms));
		server_dispatch(server);
	}
	server_drop(server);
	loop_close(&server->loop);
}
