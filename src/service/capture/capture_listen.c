/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include "capture_listen.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "service/tls/tls_module.h"

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

static size_t count_ready(const struct server *server)
{
	size_t n = 0;

	for (size_t i = 0; i < server->n; i++)
		n += server->list[i]->is_ready;
	return n;
}

/* Of those whose handshake is under way, the oldest gives way to new ones. */
static void make_listener_room(const struct server *server)
{
	struct server_client *oldest = NULL;

	for (size_t i = 0; i < server->n; i++) {
		struct server_client *client = server->list[i];

		if (!client->is_ready &&
		    (!oldest || client->due_ms < oldest->due_ms))
			oldest = client;
	}
	if (server->n - count_ready(server) == CAPTURE_HANDSHAKES)
		server_close_client(oldest, "too many TLS handshakes at once");
}

/* A client that has already disconnected takes no place, and starts no capture. */
static bool admit_client(struct server *server, int fd)
{
	if (!is_open(fd))
		return false;
	make_listener_room(server);
	return true;
}

/*
 * The latest to become ready gives way to those that have packets already. Only clients that
 * may have packets get a queue.
 */
static void on_ready(struct server_client *client)
{
	if (count_ready(client->server) > CAPTURE_CLIENTS)
		server_close_client(client, "too many readers are connected");
	else
		server_make_queue(client, QUEUE);
}

static void on_close(struct server_client *client, const char *why)
{
	struct capture_listen *listener = listener_of(client);

	netobs_packet_writer_free(((struct capture_client *)client)->writer);
	if (!why)
		return;
	listener->refused++;
	snprintf(listener->reason, sizeof(listener->reason), "%s: %s",
		 client->address, why);
}

/* Room was looked for. */
static int queue_block(const void *bytes, size_t len, void *user)
{
	return server_queue(user, bytes, len) ? 0 : -ENOBUFS;
}

static void client_begin(struct capture_client *client,
			 struct netobs_capture *capture,
			 enum netobs_packet_format format)
{
	const NETOBS_OPTS(netobs_packet_writer_opts, opts, .capture = capture,
			  .write = queue_block, .user = client, .format = format);

	if (!client->base.is_ready || client->writer)
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

const char *capture_listen_refuse(const struct capture_listen_options *options)
{
	const char *why;

	if (listen_is_unix(options->spec) && options->tls_cert)
		return "TLS is for addresses, not for unix sockets";
	why = listen_refuse(options->spec);
	if (why)
		return why;
	return listen_is_local(options->spec) || options->is_any ?
		       NULL :
		       "it is not a loopback address: needs --listen-any";
}

int capture_listen_open(struct capture_listen *listener,
			const struct capture_listen_options *options)
{
	static const struct server_ops ops = {
		.client_size = sizeof(struct capture_client),
		.admit = admit_client,
		.on_ready = on_ready,
		.on_close = on_close,
	};
	const char *spec = options->spec;
	int err;

	*listener = (struct capture_listen){ .format = options->format };
	err = server_open(&listener->server, &ops);
	if (!err && options->tls_cert)
		err = server_use_tls(&listener->server, options->tls_ca,
				     options->tls_cert, options->tls_key,
				     listener->reason, sizeof(listener->reason));
	err = err ?: server_listen(&listener->server, spec);
	if (!err)
		return 0;
	if (!*listener->reason)
		snprintf(listener->reason, sizeof(listener->reason),
			 "--listen '%s': %s", spec, strerror(-err));
	server_close(&listener->server, 0);
	return err;
}

/* The files may be readable with privileges only. */
void capture_listen_check(struct capture_listen *listener)
{
	const struct server *server = &listener->server;

	if (server->tls)
		server->tls->refresh(server->tls_context, true);
}

const char *capture_listen_fault(const struct capture_listen *listener)
{
	const struct server *server = &listener->server;

	return server->tls ? server->tls->fault(server->tls_context) : "";
}

/* ---- All clients, from the end: where one is closed, the last one takes its place ---- */

static struct capture_client *client_at(const struct capture_listen *listener,
					size_t i)
{
	return (struct capture_client *)listener->server.list[i];
}

void capture_listen_begin(struct capture_listen *listener,
			  struct netobs_capture *capture)
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

bool capture_listen_has_clients(const struct capture_listen *listener)
{
	return count_ready(&listener->server);
}

void capture_listen_close(struct capture_listen *listener)
{
	server_close(&listener->server, CLOSE_MS);
}
