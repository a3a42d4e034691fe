/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include "capture_listen.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock_ms.h"
#include "base/util.h"

enum {
	CLOSE_MS = 1000,
	HANDSHAKES_MS = 2, /* of computing, between two looks at packets */
};

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

static int open_tls(const struct capture_listen_options *options,
		    struct capture_tls *tls, char *why, size_t why_size)
{
	tls->module = shared_object_find("tls", TLS_MODULE_SYMBOL, why, why_size);
	if (!tls->module)
		return -ENOENT;
	return tls->module->open(options->tls_ca, options->tls_cert,
				 options->tls_key, &tls->context, why, why_size);
}

int capture_listen_open(struct capture_listen *listener,
			const struct capture_listen_options *options)
{
	const char *spec = options->spec;
	int err;

	*listener = (struct capture_listen){ .socket.fd = -1,
					     .format = options->format };
	if (options->tls_cert) {
		err = open_tls(options, &listener->tls, listener->reason,
			       sizeof(listener->reason));
		if (err)
			return err;
	}
	err = listen_open(&listener->socket, spec);
	if (err)
		snprintf(listener->reason, sizeof(listener->reason),
			 "--listen '%s': %s", spec, strerror(-err));
	return err;
}

/* The files may be readable with privileges only. */
void capture_listen_check(struct capture_listen *listener)
{
	if (listener->tls.module)
		listener->tls.module->refresh(listener->tls.context, true);
}

const char *capture_listen_fault(const struct capture_listen *listener)
{
	return listener->tls.module ?
		       listener->tls.module->fault(listener->tls.context) :
		       "";
}

/* ---- Clients ---------------------------------------------------------------------- */

static bool is_open(int fd)
{
	char nothing;
	ssize_t n = recv(fd, &nothing, 1, MSG_DONTWAIT | MSG_PEEK);

	return n > 0 || (n < 0 && errno == EAGAIN);
}

static void refuse_client(struct capture_client *client)
{
	client->is_gone = client->is_refused = true;
}

/* Of those whose handshake is under way, the oldest gives way to new ones. */
static bool make_room(struct capture_listen *listener)
{
	struct capture_client *oldest = NULL;
	size_t n_waiting = 0;

	for (size_t i = 0; i < listener->n_clients; i++) {
		if (listener->clients[i]->is_ready ||
		    listener->clients[i]->is_gone)
			continue;
		oldest = oldest ?: listener->clients[i];
		n_waiting++;
	}
	if (n_waiting == CAPTURE_HANDSHAKES)
		refuse_client(oldest);
	return listener->n_clients < ARRAY_SIZE(listener->clients);
}

static size_t count_ready(const struct capture_listen *listener)
{
	size_t n = 0;

	for (size_t i = 0; i < listener->n_clients; i++)
		n += listener->clients[i]->is_ready &&
		     !listener->clients[i]->is_gone;
	return n;
}

/* The latest to become ready gives way to those that have packets already. */
static void limit_ready(const struct capture_listen *listener,
			struct capture_client *latest)
{
	if (latest->is_ready && count_ready(listener) > CAPTURE_CLIENTS)
		refuse_client(latest);
}

/* @return false: there was none */
static bool accept_client(struct capture_listen *listener)
{
	char address[64] = "";
	cleanup_fd int fd =
		listen_accept(&listener->socket, address, sizeof(address));
	struct capture_client *client = NULL;

	if (fd < 0)
		return false;
	/* One that has gone already is worth neither another's place nor attaching. */
	if (is_open(fd) && make_room(listener))
		client = capture_client_new(fd, &listener->tls);
	if (!client)
		return true;
	TAKE_FD(fd);
	memcpy(client->address, address, sizeof(client->address));
	listener->clients[listener->n_clients++] = client;
	limit_ready(listener, client);
	return true;
}

size_t capture_listen_fds(const struct capture_listen *listener,
			  struct pollfd *fds)
{
	size_t n = 0;

	fds[n++] = (struct pollfd){ .fd = listener->socket.fd, .events = POLLIN };
	for (size_t i = 0; i < listener->n_clients; i++)
		fds[n++] = (struct pollfd){
			.fd = listener->clients[i]->fd,
			.events = capture_client_events(listener->clients[i]),
		};
	return n;
}

int capture_listen_wait_ms(const struct capture_listen *listener)
{
	int ms = -1;

	for (size_t i = 0; i < listener->n_clients; i++)
		if (!listener->clients[i]->is_ready)
			ms = sooner_ms(ms, left_ms(listener->clients[i]->due_ms));
	return ms;
}

/*
 * A step of a handshake may take milliseconds of computing. One is taken each time, so
 * that all advance however long that takes.
 */
static void handle_handshake(struct capture_listen *listener,
			     struct capture_client *client, int64_t *end_ms)
{
	const int64_t now = now_ms();

	if (*end_ms && now >= *end_ms)
		return;
	*end_ms = *end_ms ?: now + HANDSHAKES_MS;
	capture_client_read(client);
	limit_ready(listener, client);
}

/* @end_ms: of the handshakes in this call; 0: there was none yet */
static void handle_client(struct capture_listen *listener,
			  struct capture_client *client, short events,
			  int64_t *end_ms)
{
	if (client->is_gone)
		return;
	if (!client->is_ready) {
		if (now_ms() >= client->due_ms)
			refuse_client(client);
		else if (events)
			handle_handshake(listener, client, end_ms);
		return;
	}
	if (events & POLLOUT)
		capture_client_flush(client);
	if (events & (POLLIN | POLLERR | POLLHUP))
		capture_client_read(client);
}

void capture_listen_ready(struct capture_listen *listener,
			  const struct pollfd *fds, size_t n_fds)
{
	int64_t end_ms = 0;

	for (size_t i = 1; i < n_fds; i++)
		handle_client(listener, listener->clients[i - 1],
			      fds[i].revents, &end_ms);
	for (int i = 0; fds[0].revents && i < CAPTURE_ACCEPTS; i++)
		if (!accept_client(listener))
			break;
}

void capture_listen_begin(struct capture_listen *listener,
			  struct netobs_capture *capture)
{
	for (size_t i = 0; i < listener->n_clients; i++)
		capture_client_begin(listener->clients[i], capture,
				     listener->format);
}

void capture_listen_add(struct capture_listen *listener,
			const struct netobs_packet *packet)
{
	for (size_t i = 0; i < listener->n_clients; i++)
		listener->missed +=
			!capture_client_add(listener->clients[i], packet);
}

void capture_listen_stats(struct capture_listen *listener)
{
	for (size_t i = 0; i < listener->n_clients; i++)
		capture_client_stats(listener->clients[i]);
}

void capture_listen_flush(struct capture_listen *listener)
{
	for (size_t i = 0; i < listener->n_clients; i++)
		capture_client_flush(listener->clients[i]);
}

static void note_refused(struct capture_listen *listener,
			 const struct capture_client *client)
{
	if (!client->is_refused)
		return;
	listener->refused++;
	snprintf(listener->reason, sizeof(listener->reason), "%s: %s",
		 client->address, capture_client_reason(client));
}

bool capture_listen_has_clients(struct capture_listen *listener)
{
	size_t kept = 0;

	for (size_t i = 0; i < listener->n_clients; i++) {
		struct capture_client *client = listener->clients[i];

		if (!client->is_gone) {
			listener->clients[kept++] = client;
			continue;
		}
		note_refused(listener, client);
		capture_client_free(client);
	}
	listener->n_clients = kept;
	return count_ready(listener);
}

static bool has_queued(const struct capture_listen *listener)
{
	for (size_t i = 0; i < listener->n_clients; i++)
		if (listener->clients[i]->start < listener->clients[i]->end)
			return true;
	return false;
}

void capture_listen_drop(struct capture_listen *listener)
{
	for (size_t i = 0; i < listener->n_clients; i++)
		capture_client_free(listener->clients[i]);
	listener->n_clients = 0;
}

void capture_listen_close(struct capture_listen *listener)
{
	const int64_t deadline = now_ms() + CLOSE_MS;
	struct pollfd fds[CAPTURE_LISTEN_FDS];

	while (has_queued(listener) && now_ms() < deadline) {
		size_t n = capture_listen_fds(listener, fds);

		fds[0].fd = -1;
		poll(fds, n, left_ms(deadline));
		capture_listen_ready(listener, fds, n);
		capture_listen_has_clients(listener);
	}
	capture_listen_drop(listener);
	if (listener->tls.module)
		listener->tls.module->close(listener->tls.context);
	listen_close(&listener->socket);
}
