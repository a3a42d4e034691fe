/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include "capture_listen.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/clock_ms.h"
#include "base/util.h"

#define UNIX "unix:"

enum {
	QUEUE = 4 << 20, /* bytes of a client */
	/* Kept free for blocks beside packets: they are never left out. */
	RESERVE = 256 << 10,
	BACKLOG = 128,
	CLOSE_MS = 1000,
	/* A peer that has vanished is noticed after about half a minute. */
	KEEPALIVE_S = 10,
	KEEPALIVES = 3,
	UNACKNOWLEDGED_MS = 30000,
};

union address {
	struct sockaddr any;
	struct sockaddr_in v4;
	struct sockaddr_in6 v6;
	struct sockaddr_un local;
};

/* ---- Addresses -------------------------------------------------------------------- */

/* HOST:PORT or [HOST]:PORT, of numbers. Returns the length, 0: it is none. */
static socklen_t parse_tcp(const char *spec, union address *address)
{
	const char *colon = strrchr(spec, ':');
	char host[64], *end;
	unsigned long port;
	size_t len;

	*address = (union address){ 0 };
	if (!colon || !colon[1])
		return 0;
	port = strtoul(colon + 1, &end, 10);
	if (*end || port > UINT16_MAX || colon[1] < '0' || colon[1] > '9')
		return 0;
	len = colon - spec;
	if (len >= 2 && *spec == '[' && spec[len - 1] == ']') {
		spec++;
		len -= 2;
	}
	snprintf(host, sizeof(host), "%.*s", (int)len, spec);
	if (inet_pton(AF_INET, host, &address->v4.sin_addr) == 1) {
		address->v4.sin_family = AF_INET;
		address->v4.sin_port = htons(port);
		return sizeof(address->v4);
	}
	if (inet_pton(AF_INET6, host, &address->v6.sin6_addr) != 1)
		return 0;
	address->v6.sin6_family = AF_INET6;
	address->v6.sin6_port = htons(port);
	return sizeof(address->v6);
}

static bool is_loopback(const union address *address)
{
	if (address->any.sa_family == AF_INET6)
		return IN6_IS_ADDR_LOOPBACK(&address->v6.sin6_addr);
	return ntohl(address->v4.sin_addr.s_addr) >> 24 == IN_LOOPBACKNET;
}

const char *capture_listen_refuse(const char *spec)
{
	const size_t prefix = strlen(UNIX);
	union address address;

	if (!strncmp(spec, UNIX, prefix)) {
		if (!spec[prefix])
			return "the path is missing";
		return strlen(spec + prefix) < sizeof(address.local.sun_path) ?
			       NULL :
			       "the path is too long for a socket";
	}
	if (!parse_tcp(spec, &address))
		return "it is none of 127.0.0.1:PORT, [::1]:PORT and unix:PATH";
	return is_loopback(&address) ?
		       NULL :
		       "this version listens on loopback addresses and unix "
		       "sockets only, since it does not ask who connects";
}

/* A socket that a process left behind when it was killed. */
static void remove_stale(const struct sockaddr_un *local)
{
	cleanup_fd int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct stat status;

	if (lstat(local->sun_path, &status) || !S_ISSOCK(status.st_mode))
		return;
	if (connect(fd, (const struct sockaddr *)local, sizeof(*local)) &&
	    errno == ECONNREFUSED)
		unlink(local->sun_path);
}

static int bind_unix(struct capture_listen *listener, int fd, const char *path)
{
	struct sockaddr_un local = { .sun_family = AF_UNIX };
	cleanup_free char *copy = strdup(path);
	struct stat status;
	mode_t mask;
	int err;

	if (!copy)
		return -ENOMEM;
	strcpy(local.sun_path, path); /* it was checked */
	remove_stale(&local);
	mask = umask(0177);
	err = bind(fd, (struct sockaddr *)&local, sizeof(local)) ? -errno : 0;
	umask(mask);
	if (!err && stat(path, &status))
		err = -errno;
	if (err)
		return err;
	listener->device = status.st_dev;
	listener->inode = status.st_ino;
	listener->unix_path = TAKE_PTR(copy);
	return 0;
}

/* Not one that took the place of ours. */
static void remove_unix(struct capture_listen *listener)
{
	struct stat status;

	if (listener->unix_path && !lstat(listener->unix_path, &status) &&
	    status.st_dev == listener->device && status.st_ino == listener->inode)
		unlink(listener->unix_path);
	free(TAKE_PTR(listener->unix_path));
}

static int bind_tcp(int fd, const union address *address, socklen_t len)
{
	const int on = 1;

	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	return bind(fd, &address->any, len) ? -errno : 0;
}

int capture_listen_open(struct capture_listen *listener, const char *spec,
			enum netobs_packet_format format)
{
	union address address;
	socklen_t len = parse_tcp(spec, &address);
	bool is_unix = !strncmp(spec, UNIX, strlen(UNIX));
	int family = is_unix ? AF_UNIX : address.any.sa_family, err;
	cleanup_fd int fd =
		socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	*listener = (struct capture_listen){ .fd = -1, .format = format };
	if (fd < 0)
		return -errno;
	err = is_unix ? bind_unix(listener, fd, spec + strlen(UNIX)) :
			bind_tcp(fd, &address, len);
	if (!err && listen(fd, BACKLOG))
		err = -errno;
	if (!err)
		listener->fd = TAKE_FD(fd);
	return err;
}

void capture_listen_where(const struct capture_listen *listener, char *text,
			  size_t size)
{
	union address address = { 0 };
	socklen_t len = sizeof(address);
	char host[INET6_ADDRSTRLEN] = "";

	if (listener->unix_path) {
		snprintf(text, size, UNIX "%s", listener->unix_path);
		return;
	}
	getsockname(listener->fd, &address.any, &len);
	if (address.any.sa_family == AF_INET6)
		snprintf(text, size, "[::1]:%u", ntohs(address.v6.sin6_port));
	else
		snprintf(text, size, "%s:%u",
			 inet_ntop(AF_INET, &address.v4.sin_addr, host,
				   sizeof(host)),
			 ntohs(address.v4.sin_port));
}

/* ---- One client ------------------------------------------------------------------- */

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

static void client_flush(struct capture_client *client)
{
	while (!client->is_gone && client->start < client->end) {
		ssize_t n = send(client->fd, client->queue + client->start,
				 client->end - client->start,
				 MSG_NOSIGNAL | MSG_DONTWAIT);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN)
			return;
		client->is_gone = n < 0;
		if (n > 0)
			client->start += n;
	}
	client->start = client->end = 0;
}

/* Discard all input. A client that closes its sending side has disconnected. */
static void client_listen(struct capture_client *client)
{
	char nothing[4096];
	ssize_t n = recv(client->fd, nothing, sizeof(nothing), MSG_DONTWAIT);

	if (!n || (n < 0 && errno != EAGAIN && errno != EINTR))
		client->is_gone = true;
}

static void client_free(struct capture_client *client)
{
	netobs_packet_writer_free(client->writer);
	free(client->queue);
	close_fd(&client->fd);
	free(client);
}

static struct capture_client *client_new(int fd)
{
	struct capture_client *client = calloc(1, sizeof(*client));
	char *queue = malloc(QUEUE);

	if (!client || !queue) {
		free(client);
		free(queue);
		return NULL;
	}
	*client = (struct capture_client){ .fd = fd, .queue = queue };
	return client;
}

/* TCP; of a unix socket these fail, which does not matter. */
static void watch_peer(int fd)
{
	const int on = 1, seconds = KEEPALIVE_S, times = KEEPALIVES,
		  unacknowledged = UNACKNOWLEDGED_MS;

	setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
	setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &seconds, sizeof(seconds));
	setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &seconds, sizeof(seconds));
	setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &times, sizeof(times));
	setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &unacknowledged,
		   sizeof(unacknowledged));
}

/* ---- All of them ------------------------------------------------------------------- */

/* One that has gone already is not worth attaching anything. */
static bool is_open(int fd)
{
	char nothing;
	ssize_t n = recv(fd, &nothing, 1, MSG_DONTWAIT | MSG_PEEK);

	return n > 0 || (n < 0 && errno == EAGAIN);
}

static void accept_client(struct capture_listen *listener)
{
	cleanup_fd int fd =
		accept4(listener->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	struct capture_client *client = NULL;

	if (fd < 0)
		return;
	if (listener->n_clients < CAPTURE_CLIENTS && is_open(fd))
		client = client_new(fd);
	if (!client)
		return;
	watch_peer(TAKE_FD(fd));
	listener->clients[listener->n_clients++] = client;
}

size_t capture_listen_fds(const struct capture_listen *listener,
			  struct pollfd *fds)
{
	size_t n = 0;

	fds[n++] = (struct pollfd){ .fd = listener->fd, .events = POLLIN };
	for (size_t i = 0; i < listener->n_clients; i++) {
		const struct capture_client *client = listener->clients[i];
		bool has_more = client->start < client->end;

		fds[n++] = (struct pollfd){
			.fd = client->fd,
			.events = POLLIN | (has_more ? POLLOUT : 0),
		};
	}
	return n;
}

void capture_listen_ready(struct capture_listen *listener,
			  const struct pollfd *fds, size_t n_fds)
{
	for (size_t i = 1; i < n_fds; i++) {
		struct capture_client *client = listener->clients[i - 1];

		if (fds[i].revents & POLLOUT)
			client_flush(client);
		if (fds[i].revents & (POLLIN | POLLERR | POLLHUP))
			client_listen(client);
	}
	if (fds[0].revents)
		accept_client(listener);
}

void capture_listen_begin(struct capture_listen *listener,
			  struct netobs_capture *capture)
{
	for (size_t i = 0; i < listener->n_clients; i++) {
		struct capture_client *client = listener->clients[i];
		const struct netobs_packet_writer_opts opts = {
			.sz = sizeof(opts),
			.capture = capture,
			.write = queue_block,
			.user = client,
			.format = listener->format,
		};

		if (!client->writer &&
		    netobs_packet_writer_new(&opts, &client->writer))
			client->is_gone = true;
	}
}

void capture_listen_add(struct capture_listen *listener,
			const struct netobs_packet *packet)
{
	for (size_t i = 0; i < listener->n_clients; i++) {
		struct capture_client *client = listener->clients[i];

		if (client->is_gone || !client->writer)
			continue;
		if (queue_room(client) < packet->captured + RESERVE)
			client_flush(client);
		if (queue_room(client) < packet->captured + RESERVE) {
			netobs_packet_writer_miss(client->writer, packet);
			listener->missed++;
		} else if (netobs_packet_writer_add(client->writer, packet)) {
			client->is_gone = true;
		}
	}
}

void capture_listen_stats(struct capture_listen *listener)
{
	for (size_t i = 0; i < listener->n_clients; i++) {
		struct capture_client *client = listener->clients[i];

		if (client->writer && !client->is_gone &&
		    queue_room(client) >= RESERVE / 2)
			netobs_packet_writer_stats(client->writer);
	}
}

void capture_listen_flush(struct capture_listen *listener)
{
	for (size_t i = 0; i < listener->n_clients; i++)
		client_flush(listener->clients[i]);
}

bool capture_listen_has_clients(struct capture_listen *listener)
{
	size_t kept = 0;

	for (size_t i = 0; i < listener->n_clients; i++) {
		struct capture_client *client = listener->clients[i];

		if (client->is_gone)
			client_free(client);
		else
			listener->clients[kept++] = client;
	}
	listener->n_clients = kept;
	return kept;
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
		client_free(listener->clients[i]);
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
	close_fd(&listener->fd);
	remove_unix(listener);
}
