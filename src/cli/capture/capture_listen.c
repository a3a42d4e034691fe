/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include "capture_out.h"

#include <errno.h>
#include <sys/socket.h>

enum {
	QUEUE = 4 << 20, /* bytes of a client */
	/* Kept free for blocks beside packets: they are never left out. */
	RESERVE = 256 << 10,
	CLOSE_MS = 1000,
};

struct capture_client {
	struct server_client base;
	struct netobs_packet_writer *writer; /* NULL: there is no capture yet */
};

/* ---- Clients ---------------------------------------------------------------------- */

static struct capture_listen *listener_of(const struct server_client *client)
{
	return (struct capture_listen *)client->server;
}

static bool is_open(int fd)
{
	char nothing;
	ssize_t n = recv(fd, &nothing, 1, MSG_DONTWAIT | MSG_PEEK);

	return n > 0 || (n < 0 && errno == EAGAIN);
}

/* A client that has already disconnected does not count, and starts no capture. */
static bool admit_client(struct server *server, int fd)
{
	(void)server;
	return is_open(fd);
}

/* If there are too many clients, the latest is refused. */
static void on_connect(struct server_client *client)
{
	if (client->server->n > CAPTURE_CLIENTS)
		server_close_client(client, "too many readers are connected");
	else
		server_make_queue(client, QUEUE);
}

static void on_close(struct server_client *client, const char *why)
{
	struct capture_listen *listener = listener_of(client);

	netobs_packet_writer_free(((struct capture_client *)client)->writer);
	listener->refused += why != NULL;
}

/* Room was looked for. */
static int queue_block(const void *bytes, size_t len, void *user)
{
	return server_queue(user, bytes, len) ? 0 : -ENOBUFS;
}

static void client_begin(struct capture_client *client, struct netobs *capture,
			 enum netobs_packet_format format)
{
	const NETOBS_OPTS(netobs_packet_writer_opts, opts, .capture = capture,
			  .write = queue_block, .user = client, .format = format);

	if (client->writer)
		return;
	if (netobs_packet_writer_new(&opts, &client->writer))
		server_close_client(&client->base, NULL);
	else
		server_send(&client->base);
}

/* @return false: the client has no room for it, which its file counts */
static bool client_add(struct capture_client *client,
		       const struct netobs_packet *packet)
{
	const size_t needed = packet->captured + RESERVE;

	if (!client->writer)
		return true;
	if (server_room(&client->base) < needed && !server_send(&client->base))
		return true;
	if (server_room(&client->base) < needed) {
		netobs_packet_writer_miss(client->writer, packet);
		return false;
	}
	if (netobs_packet_writer_add(client->writer, packet))
		server_close_client(&client->base, NULL);
	return true;
}

/* ---- The socket --------------------------------------------------------------------- */

const char *capture_listen_refuse(const char *spec)
{
	const char *why = listen_refuse(spec);

	if (why)
		return why;
	return listen_is_local(spec) ?
		       NULL :
		       "it is not a loopback address; to read packets on another "
		       "host, run 'ssh HOST netobsctl capture -w -' there";
}

int capture_listen_open(struct capture_listen *listener, const char *spec,
			enum netobs_packet_format format)
{
	static const struct server_ops ops = {
		.client_size = sizeof(struct capture_client),
		.admit = admit_client,
		.on_connect = on_connect,
		.on_close = on_close,
	};
	int err;

	*listener = (struct capture_listen){ .format = format };
	err = server_open(&listener->server, &ops);
	err = err ?: server_listen(&listener->server, spec);
	if (err)
		server_close(&listener->server, 0);
	return err;
}

/* ---- All clients, from the end: where one is closed, the last one takes its place ---- */

static struct capture_client *client_at(const struct capture_listen *listener,
					size_t i)
{
	return (struct capture_client *)listener->server.list[i];
}

void capture_listen_begin(struct capture_listen *listener, struct netobs *capture)
{
	for (size_t i = listener->server.n; i-- > 0;)
		client_begin(client_at(listener, i), capture, listener->format);
}

void capture_listen_add(struct capture_listen *listener,
			const struct netobs_packet *packet)
{
	for (size_t i = listener->server.n; i-- > 0;)
		listener->missed += !client_add(client_at(listener, i), packet);
}

void capture_listen_stats(struct capture_listen *listener)
{
	for (size_t i = listener->server.n; i-- > 0;) {
		struct capture_client *client = client_at(listener, i);

		if (client->writer && server_room(&client->base) >= RESERVE / 2)
			netobs_packet_writer_stats(client->writer);
	}
}

void capture_listen_flush(struct capture_listen *listener)
{
	for (size_t i = listener->server.n; i-- > 0;)
		server_send(listener->server.list[i]);
}

void capture_listen_close(struct capture_listen *listener)
{
	server_close(&listener->server, CLOSE_MS);
}
