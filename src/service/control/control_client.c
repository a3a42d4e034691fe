/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include "control_client.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock_ms.h"
#include "base/util.h"

enum {
	REQUEST_MS = 5000, /* for a client to send its request, and */
	ANSWER_MS = 10000, /* to take the answer */
	CLOSE_MS = 500,	   /* to deliver queued answers at the end */
	MARK_MAX = 128, /* bytes of the end of an interval: room is kept for it */
	GROUPS = 1024, /* groups of a client; one with more is not admitted by group */
};

static struct control_client *client_at(const struct control_clients *all,
					size_t i)
{
	return (struct control_client *)all->server.list[i];
}

static struct control_clients *clients_of(const struct control_client *client)
{
	return (struct control_clients *)client->base.server;
}

static void client_close(struct control_client *client)
{
	server_close_client(&client->base, NULL);
}

void control_client_answer(struct control_client *client, char *text)
{
	if (!text) {
		client_close(client);
		return;
	}
	client->state = CLIENT_ANSWERED;
	client->base.is_last = true;
	client->base.events = EPOLLHUP;
	client->base.out = text;
	client->base.end = strlen(text);
	server_set_due(&client->base, now_ms() + ANSWER_MS);
	server_send(&client->base);
}

/* ---- Waiting ---------------------------------------------------------------------- */

void control_client_wait(struct control_client *client)
{
	client->state = CLIENT_WAITING;
	client->base.events = EPOLLHUP;
	server_set_due(&client->base, 0);
	server_send(&client->base);
}

void control_clients_claim(struct control_clients *all)
{
	for (size_t i = 0; i < all->server.n; i++)
		client_at(all, i)->is_claimed = client_at(all, i)->state ==
						CLIENT_WAITING;
}

bool control_clients_are_claimed(const struct control_clients *all)
{
	for (size_t i = 0; i < all->server.n; i++)
		if (client_at(all, i)->is_claimed)
			return true;
	return false;
}

/* Walk backwards: closing a client moves the last one to its index. */
void control_clients_answer(struct control_clients *all, const char *text)
{
	for (size_t i = all->server.n; i-- > 0;) {
		struct control_client *client = client_at(all, i);

		if (!client->is_claimed)
			continue;
		client->is_claimed = false;
		control_client_answer(client, text ? strdup(text) : NULL);
	}
}

/* ---- Records ---------------------------------------------------------------------- */

bool control_clients_find_place(struct control_clients *all)
{
	const int64_t stalled_ms = now_ms() - CONTROL_STALL_MS;

	for (size_t i = all->server.n;
	     i-- > 0 && all->n_live == CONTROL_LIVE_CLIENTS;) {
		struct control_client *client = client_at(all, i);

		if (client->state == CLIENT_LIVE &&
		    client->base.start < client->base.end &&
		    client->base.taken_ms <= stalled_ms)
			client_close(client);
	}
	return all->n_live < CONTROL_LIVE_CLIENTS;
}

void control_client_follow(struct control_client *client, const char *text)
{
	if (!server_make_queue(&client->base, CONTROL_LIVE_QUEUE))
		return;
	client->state = CLIENT_LIVE;
	client->base.events = EPOLLHUP;
	client->base.taken_ms = now_ms();
	clients_of(client)->n_live++;
	server_set_due(&client->base, 0);
	server_queue(&client->base, text, strlen(text));
	server_send(&client->base);
}

static void client_add_flow(struct control_client *client, const char *line,
			    size_t len)
{
	const size_t queued = client->base.end - client->base.start;

	if (!len || server_room(&client->base) < len + MARK_MAX) {
		client->missed++;
		return;
	}
	server_queue(&client->base, line, len);
	client->sent++;
	if (queued / CONTROL_LIVE_BATCH != (queued + len) / CONTROL_LIVE_BATCH)
		server_send(&client->base);
}

static void client_add_mark(struct control_client *client)
{
	char text[MARK_MAX];
	int len = snprintf(text, sizeof(text),
			   "{\"interval\":{\"sent\":%llu,\"missed\":%llu}}\n",
			   (unsigned long long)client->sent,
			   (unsigned long long)client->missed);

	/* If there is no room, the next mark counts these records, too. */
	server_queue(&client->base, text, (size_t)len);
	server_send(&client->base);
}

void control_clients_flow(struct control_clients *all, const char *line,
			  size_t len)
{
	for (size_t i = all->server.n; i-- > 0;)
		if (client_at(all, i)->state == CLIENT_LIVE)
			client_add_flow(client_at(all, i), line, len);
}

void control_clients_mark(struct control_clients *all)
{
	for (size_t i = all->server.n; i-- > 0;)
		if (client_at(all, i)->state == CLIENT_LIVE)
			client_add_mark(client_at(all, i));
}

/* ---- Requests --------------------------------------------------------------------- */

/* The request also ends where the client shuts its end down. */
static void on_input(struct server_client *base)
{
	struct control_client *client = (struct control_client *)base;
	struct control_clients *all = clients_of(client);
	char *start = client->request + client->asked, *end;
	ssize_t n =
		server_receive(base, start, CONTROL_REQUEST_MAX - client->asked);

	if (n == -EAGAIN || n == -EINTR)
		return;
	if (n < 0 || (!n && !client->asked)) {
		client_close(client);
		return;
	}
	client->asked += (size_t)n;
	client->request[client->asked] = '\0';
	end = memchr(start, '\n', (size_t)n);
	if (end)
		*end = '\0';
	if (end || !n || client->asked == CONTROL_REQUEST_MAX)
		all->on_request(client, all->user);
}

/* ---- Who may connect -------------------------------------------------------------- */

static bool is_in_group(int fd, gid_t primary, gid_t group)
{
	gid_t groups[GROUPS];
	socklen_t len = sizeof(groups);

	if (group == (gid_t)-1)
		return false;
	if (primary == group)
		return true;
	if (getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, groups, &len))
		return false;
	for (size_t i = 0; i < len / sizeof(*groups); i++)
		if (groups[i] == group)
			return true;
	return false;
}

/* A check beside the socket's mode, which may be wider. */
static bool client_is_admitted(struct control_client *client)
{
	const struct control_clients *all = clients_of(client);
	struct ucred peer;
	socklen_t len = sizeof(peer);

	if (getsockopt(client->base.fd, SOL_SOCKET, SO_PEERCRED, &peer, &len))
		return false;
	client->may_change = peer.uid == 0 || peer.uid == geteuid();
	return client->may_change ||
	       is_in_group(client->base.fd, peer.gid, all->group);
}

static void on_connect(struct server_client *base)
{
	struct control_client *client = (struct control_client *)base;
	struct control_clients *all = clients_of(client);

	if (client_is_admitted(client))
		server_set_due(base, now_ms() + REQUEST_MS);
	else
		all->on_stranger(client, all->user);
}

/* The oldest client without a request makes room, or else the oldest that is answered. */
static bool make_client_room(struct server *server, int fd)
{
	const struct control_clients *all = (struct control_clients *)server;
	struct control_client *oldest = NULL;

	(void)fd;
	if (server->n < CONTROL_CLIENTS)
		return true;
	for (size_t i = 0; i < server->n; i++) {
		struct control_client *client = client_at(all, i);

		if (client->state != CLIENT_LIVE &&
		    (!oldest || client->state < oldest->state ||
		     (client->state == oldest->state &&
		      client->base.due_ms < oldest->base.due_ms)))
			oldest = client;
	}
	client_close(oldest); /* there are fewer live ones than clients */
	return true;
}

static void on_close(struct server_client *base, const char *why)
{
	struct control_client *client = (struct control_client *)base;

	(void)why;
	clients_of(client)->n_live -= client->state == CLIENT_LIVE;
}

/* ---- All -------------------------------------------------------------------------- */

int control_clients_open(struct control_clients *all)
{
	static const struct server_ops ops = {
		.client_size = sizeof(struct control_client),
		.admit = make_client_room,
		.on_connect = on_connect,
		.on_input = on_input,
		.on_close = on_close,
	};

	return server_open(&all->server, &ops);
}

/* Take no more requests: clients that have not sent theirs yet are closed at once. */
void control_clients_close(struct control_clients *all)
{
	for (size_t i = all->server.n; i-- > 0;)
		if (client_at(all, i)->state == CLIENT_ASKING)
			client_close(client_at(all, i));
	control_clients_mark(all);
	server_close(&all->server, CLOSE_MS);
}
