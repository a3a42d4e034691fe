/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include "capture_client.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/clock_ms.h"
#include "base/util.h"

enum {
	QUEUE = 4 << 20, /* bytes of a client */
	/* Kept free for blocks beside packets: they are never left out. */
	RESERVE = 256 << 10,
	HANDSHAKE_MS = 5000,
	/* A peer that has vanished is noticed after about half a minute, and */
	KEEPALIVE_S = 10,
	KEEPALIVES = 3,
	/*
	 * this one if bytes wait for it. One that only pauses acknowledges the probes of
	 * its window, which the kernel sends every two minutes at least.
	 */
	SILENT_MS = 150000,
};

/* TCP; of a unix socket these fail, which does not matter. */
static void watch_peer(int fd)
{
	const int on = 1, seconds = KEEPALIVE_S, times = KEEPALIVES;

	setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
	setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &seconds, sizeof(seconds));
	setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &seconds, sizeof(seconds));
	setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &times, sizeof(times));
}

static bool has_vanished(int fd)
{
	struct tcp_info info = { 0 };
	socklen_t len = sizeof(info);

	return !getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &len) &&
	       info.tcpi_last_ack_recv > SILENT_MS;
}

/* ---- Connections ------------------------------------------------------------------- */

/* Only clients that may have packets get a queue. */
static void become_ready(struct capture_client *client)
{
	client->queue = malloc(QUEUE);
	client->is_ready = client->queue;
	client->is_gone = !client->queue;
}

struct capture_client *capture_client_new(int fd, const struct capture_tls *tls)
{
	struct capture_client *client = calloc(1, sizeof(*client));

	if (!client)
		return NULL;
	if (tls->module &&
	    tls->module->accept(tls->context, fd, &client->connection)) {
		free(client);
		return NULL;
	}
	client->fd = fd;
	client->tls = tls;
	client->due_ms = now_ms() + HANDSHAKE_MS;
	watch_peer(fd);
	if (!tls->module)
		become_ready(client);
	return client;
}

void capture_client_free(struct capture_client *client)
{
	if (client->connection)
		client->tls->module->stop(client->connection);
	netobs_packet_writer_free(client->writer);
	free(client->queue);
	close_fd(&client->fd);
	free(client);
}

static ssize_t client_send(struct capture_client *client, const void *from,
			   size_t len)
{
	ssize_t n;

	if (client->connection)
		return client->tls->module->write(client->connection, from, len);
	n = send(client->fd, from, len, MSG_NOSIGNAL | MSG_DONTWAIT);
	return n < 0 ? -errno : n;
}

static ssize_t client_receive(struct capture_client *client, void *to, size_t len)
{
	ssize_t n;

	if (client->connection)
		return client->tls->module->read(client->connection, to, len);
	n = recv(client->fd, to, len, MSG_DONTWAIT);
	return n < 0 ? -errno : n;
}

static void advance_handshake(struct capture_client *client)
{
	int err = client->tls->module->handshake(client->connection,
						 client->tls->context);

	if (!err)
		become_ready(client);
	else if (err != -EAGAIN)
		client->is_gone = client->is_refused = true;
}

short capture_client_events(const struct capture_client *client)
{
	bool wants_out =
		client->is_ready ?
			client->start < client->end :
			client->tls->module->wants_out(client->connection);

	return POLLIN | (wants_out ? POLLOUT : 0);
}

/* A client that closes its sending side has disconnected. */
void capture_client_read(struct capture_client *client)
{
	char nothing[4096];
	ssize_t n;

	if (!client->is_ready) {
		advance_handshake(client);
		return;
	}
	n = client_receive(client, nothing, sizeof(nothing));
	if (!n || (n < 0 && n != -EAGAIN && n != -EINTR))
		client->is_gone = true;
}

const char *capture_client_reason(const struct capture_client *client)
{
	const char *reason;

	if (client->is_ready)
		return "too many readers are connected";
	reason = client->tls->module->reason(client->connection);
	if (*reason)
		return reason;
	return now_ms() >= client->due_ms ? strerror(ETIMEDOUT) :
					    "too many connect at once";
}

/* ---- Its file ---------------------------------------------------------------------- */

static size_t queue_room(const struct capture_client *client)
{
	return QUEUE - (client->end - client->start);
}

/* Room was looked for. */
static int queue_block(const void *bytes, size_t len, void *user)
{
	struct capture_client *client = user;

	if (queue_room(client) < len)
		return -ENOBUFS;
	if (QUEUE - client->end < len) {
		memmove(client->queue, client->queue + client->start,
			client->end - client->start);
		client->end -= client->start;
		client->start = 0;
	}
	memcpy(client->queue + client->end, bytes, len);
	client->end += len;
	return 0;
}

void capture_client_flush(struct capture_client *client)
{
	while (!client->is_gone && client->start < client->end) {
		ssize_t n = client_send(client, client->queue + client->start,
					client->end - client->start);

		if (n == -EINTR)
			continue;
		if (n == -EAGAIN && !has_vanished(client->fd))
			return;
		client->is_gone = n < 0;
		if (n > 0)
			client->start += n;
	}
	client->start = client->end = 0;
}

void capture_client_begin(struct capture_client *client,
			  struct netobs_capture *capture,
			  enum netobs_packet_format format)
{
	const struct netobs_packet_writer_opts opts = {
		.sz = sizeof(opts),
		.capture = capture,
		.write = queue_block,
		.user = client,
		.format = format,
	};

	if (client->is_ready && !client->writer &&
	    netobs_packet_writer_new(&opts, &client->writer))
		client->is_gone = true;
}

bool capture_client_add(struct capture_client *client,
			const struct netobs_packet *packet)
{
	if (client->is_gone || !client->writer)
		return true;
	if (queue_room(client) < packet->captured + RESERVE)
		capture_client_flush(client);
	if (queue_room(client) < packet->captured + RESERVE) {
		netobs_packet_writer_miss(client->writer, packet);
		return false;
	}
	if (netobs_packet_writer_add(client->writer, packet))
		client->is_gone = true;
	return true;
}

void capture_client_stats(struct capture_client *client)
{
	if (client->writer && !client->is_gone &&
	    queue_room(client) >= RESERVE / 2)
		netobs_packet_writer_stats(client->writer);
}
