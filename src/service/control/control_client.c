/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include "control_client.h"

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
	REQUEST_MS = 5000, /* for a client to send its request, and */
	ANSWER_MS = 10000, /* to take the answer */
	CLOSE_MS = 500,	   /* to take what is queued at the end */
	STALL_MS = 5000, /* without taking records, then others may have its place */
	LIVE_QUEUE = 4 << 20,  /* bytes that wait for a client */
	LIVE_BATCH = 64 << 10, /* that are sent at once */
	MARK_MAX = 128, /* bytes of the end of an interval: room is kept for it */
	GROUPS = 1024, /* of a client; one with more is none of the group's members */
};

static void clients_set_timer(struct control_clients *all)
{
	int64_t due_ms = 0;

	for (size_t i = 0; i < all->n; i++) {
		const int64_t at_ms = all->list[i]->due_ms;

		if (at_ms && (!due_ms || at_ms < due_ms))
			due_ms = at_ms;
	}
	loop_set_timer(all->timer, due_ms * NSEC_PER_MSEC);
}

static void client_close(struct control_client *client)
{
	struct control_clients *all = client->all;
	size_t i = 0;

	while (all->list[i] != client)
		i++;
	all->list[i] = all->list[--all->n];
	all->n_live -= client->state == CLIENT_LIVE;
	loop_watch(&all->loop, client->fd, 0, NULL, NULL);
	close_fd(&client->fd);
	free(client->out);
	free(client);
}

/* ---- Sending ---------------------------------------------------------------------- */

static int on_client(void *arg, int fd);

static void client_watch(struct control_client *client, uint32_t events)
{
	if (loop_watch(&client->all->loop, client->fd, events, on_client, client))
		client_close(client);
}

/* The client may be closed by it. */
static void client_send(struct control_client *client)
{
	while (client->start < client->end) {
		ssize_t n = send(client->fd, client->out + client->start,
				 client->end - client->start,
				 MSG_NOSIGNAL | MSG_DONTWAIT);

		if (n >= 0) {
			client->start += (size_t)n;
			client->taken_ms = now_ms();
			continue;
		}
		if (errno == EINTR)
			continue;
		if (errno == EAGAIN)
			client_watch(client, EPOLLOUT);
		else
			client_close(client);
		return;
	}
	client->start = client->end = 0;
	if (client->state == CLIENT_LIVE)
		client_watch(client, EPOLLHUP);
	else
		client_close(client);
}

void control_client_answer(struct control_client *client, char *text)
{
	if (!text) {
		client_close(client);
		return;
	}
	client->state = CLIENT_ANSWERED;
	client->due_ms = now_ms() + ANSWER_MS;
	client->out = text;
	client->end = strlen(text);
	client_send(client);
}

/* ---- Waiting ---------------------------------------------------------------------- */

void control_client_wait(struct control_client *client)
{
	client->state = CLIENT_WAITING;
	client->due_ms = 0;
	client_watch(client, EPOLLHUP);
}

void control_clients_claim(struct control_clients *all)
{
	for (size_t i = 0; i < all->n; i++)
		all->list[i]->is_claimed = all->list[i]->state == CLIENT_WAITING;
}

bool control_clients_are_claimed(const struct control_clients *all)
{
	for (size_t i = 0; i < all->n; i++)
		if (all->list[i]->is_claimed)
			return true;
	return false;
}

/* From the end: where a client is closed, the last one takes its place. */
void control_clients_answer(struct control_clients *all, const char *text)
{
	for (size_t i = all->n; i-- > 0;) {
		struct control_client *client = all->list[i];

		if (!client->is_claimed)
			continue;
		client->is_claimed = false;
		control_client_answer(client, text ? strdup(text) : NULL);
	}
	clients_set_timer(all);
}

/* ---- Records ---------------------------------------------------------------------- */

bool control_clients_find_place(struct control_clients *all)
{
	const int64_t stalled_ms = now_ms() - STALL_MS;

	for (size_t i = all->n; i-- > 0 && all->n_live == CONTROL_LIVE_CLIENTS;) {
		struct control_client *client = all->list[i];

		if (client->state == CLIENT_LIVE && client->start < client->end &&
		    client->taken_ms <= stalled_ms)
			client_close(client);
	}
	return all->n_live < CONTROL_LIVE_CLIENTS;
}

void control_client_follow(struct control_client *client, const char *text)
{
	client->out = malloc(LIVE_QUEUE);
	if (!client->out) {
		client_close(client);
		return;
	}
	client->end = strlen(text);
	memcpy(client->out, text, client->end);
	client->state = CLIENT_LIVE;
	client->due_ms = 0;
	client->taken_ms = now_ms();
	client->all->n_live++;
	client_send(client);
}

/* False: there is no room. */
static bool client_queue(struct control_client *client, const char *text,
			 size_t len)
{
	if (LIVE_QUEUE - (client->end - client->start) < len)
		return false;
	if (LIVE_QUEUE - client->end < len) {
		memmove(client->out, client->out + client->start,
			client->end - client->start);
		client->end -= client->start;
		client->start = 0;
	}
	memcpy(client->out + client->end, text, len);
	client->end += len;
	return true;
}

static void client_add_flow(struct control_client *client, const char *line,
			    size_t len)
{
	const size_t queued = client->end - client->start;

	if (!len || LIVE_QUEUE - queued < len + MARK_MAX) {
		client->missed++;
		return;
	}
	client_queue(client, line, len);
	client->sent++;
	if (queued / LIVE_BATCH != (queued + len) / LIVE_BATCH)
		client_send(client);
}

static void client_add_mark(struct control_client *client)
{
	char text[MARK_MAX];
	int len = snprintf(text, sizeof(text),
			   "{\"interval\":{\"sent\":%llu,\"missed\":%llu}}\n",
			   (unsigned long long)client->sent,
			   (unsigned long long)client->missed);

	client_queue(client, text, (size_t)len); /* or the next one will do */
	client_send(client);
}

/* From the end: where a client is closed, the last one takes its place. */
void control_clients_flow(struct control_clients *all, const char *line,
			  size_t len)
{
	for (size_t i = all->n; i-- > 0;)
		if (all->list[i]->state == CLIENT_LIVE)
			client_add_flow(all->list[i], line, len);
}

void control_clients_mark(struct control_clients *all)
{
	for (size_t i = all->n; i-- > 0;)
		if (all->list[i]->state == CLIENT_LIVE)
			client_add_mark(all->list[i]);
}

/* ---- Receiving -------------------------------------------------------------------- */

/* The line also ends where a client ends what it sends. */
static void client_receive(struct control_client *client)
{
	char *start = client->request + client->asked, *end;
	ssize_t n = recv(client->fd, start, CONTROL_REQUEST_MAX - client->asked,
			 MSG_DONTWAIT);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
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
		client->all->on_request(client, client->all->user);
}

static int on_client(void *arg, int fd)
{
	struct control_client *client = arg;
	struct control_clients *all = client->all;

	(void)fd;
	if (client->state == CLIENT_ASKING)
		client_receive(client);
	else if (client->start < client->end)
		client_send(client);
	else
		client_close(client); /* it has closed its own end */
	clients_set_timer(all);
	return 0;
}

static int on_timer(void *arg, int fd)
{
	struct control_clients *all = arg;
	const int64_t now = now_ms();

	(void)fd;
	for (size_t i = all->n; i-- > 0;) {
		struct control_client *client = all->list[i];

		if (client->due_ms && client->due_ms <= now)
			client_close(client);
	}
	clients_set_timer(all);
	return 0;
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

/* Beside the socket's mode, which may be wider. */
bool control_client_is_admitted(struct control_client *client)
{
	const struct control_clients *all = client->all;
	struct ucred peer;
	socklen_t len = sizeof(peer);
	bool is_owner;

	if (getsockopt(client->fd, SOL_SOCKET, SO_PEERCRED, &peer, &len))
		return false;
	is_owner = peer.uid == 0 || peer.uid == geteuid();
	client->may_change = is_owner || all->group_may_change;
	return is_owner || is_in_group(client->fd, peer.gid, all->group);
}

/* Of those that have yet to ask, the oldest makes room; else of those that are answered. */
static void make_room(struct control_clients *all)
{
	struct control_client *oldest = NULL;

	for (size_t i = 0; i < all->n; i++) {
		struct control_client *client = all->list[i];

		if (client->state != CLIENT_LIVE &&
		    (!oldest || client->state < oldest->state ||
		     (client->state == oldest->state &&
		      client->due_ms < oldest->due_ms)))
			oldest = client;
	}
	if (oldest) /* there are fewer live ones than clients */
		client_close(oldest);
}

struct control_client *control_client_add(struct control_clients *all, int fd)
{
	struct control_client *client = calloc(1, sizeof(*client));

	if (!client) {
		close(fd);
		return NULL;
	}
	if (all->n == CONTROL_CLIENTS)
		make_room(all);
	client->all = all;
	client->fd = fd;
	client->due_ms = now_ms() + REQUEST_MS;
	all->list[all->n++] = client;
	clients_set_timer(all);
	return client;
}

void control_client_listen(struct control_client *client)
{
	client_watch(client, EPOLLIN);
}

/* ---- All -------------------------------------------------------------------------- */

int control_clients_open(struct control_clients *all)
{
	int err = loop_open(&all->loop);

	return err   ?:
		       loop_add_timer(&all->loop, CLOCK_MONOTONIC, on_timer,
				      all, &all->timer);
}

static bool has_queued(const struct control_clients *all)
{
	for (size_t i = 0; i < all->n; i++)
		if (all->list[i]->start < all->list[i]->end)
			return true;
	return false;
}

/* The service that they would ask is ending. */
static void close_asking(struct control_clients *all)
{
	for (size_t i = all->n; i-- > 0;)
		if (all->list[i]->state == CLIENT_ASKING)
			client_close(all->list[i]);
}

void control_clients_close(struct control_clients *all)
{
	const int64_t end_ms = now_ms() + CLOSE_MS;
	struct pollfd fd = { .fd = all->loop.fd, .events = POLLIN };

	close_asking(all);
	control_clients_mark(all);
	while (has_queued(all) && left_ms(end_ms)) {
		poll(&fd, 1, left_ms(end_ms));
		loop_dispatch(&all->loop);
	}
	while (all->n)
		client_close(all->list[0]);
	loop_close(&all->loop);
}
