/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include "capture_listen.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/clock_ms.h"
#include "base/util.h"

#define UNIX "unix:"

enum {
	BACKLOG = 4096,
	LOCK_MS = 1000,
	LOCK_RETRY_MS = 10,
	CLOSE_MS = 1000,
	/*
	 * Of all handshakes, between two looks at packets: several for each new client, so
	 * that garbage gives way faster than it comes.
	 */
	HANDSHAKE_STEPS = 4 * CAPTURE_ACCEPTS,
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

const char *capture_listen_refuse(const struct capture_listen_options *options)
{
	const char *spec = options->spec;
	const size_t prefix = strlen(UNIX);
	union address address;

	if (!strncmp(spec, UNIX, prefix)) {
		if (options->tls_cert)
			return "TLS is for addresses, not for unix sockets";
		if (!spec[prefix])
			return "the path is missing";
		return strlen(spec + prefix) < sizeof(address.local.sun_path) ?
			       NULL :
			       "the path is too long for a socket";
	}
	if (!parse_tcp(spec, &address))
		return "it is none of ADDRESS:PORT, [ADDRESS]:PORT and unix:PATH, "
		       "with an address in numbers such as 127.0.0.1";
	return is_loopback(&address) || options->is_any ?
		       NULL :
		       "it is not a loopback address: needs --listen-any";
}

/*
 * Of processes that start at the same time, one replaces a socket that a killed one left
 * behind, and no other takes the new one for such before it is listened on: each holds
 * the directory's lock meanwhile. -1: it cannot be had.
 */
static int lock_directory(const char *path)
{
	const char *slash = strrchr(path, '/');
	const int64_t deadline = now_ms() + LOCK_MS;
	cleanup_free char *directory = slash ? strndup(path, slash - path + 1) :
					       strdup(".");
	cleanup_fd int fd =
		directory ? open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC) :
			    -1;

	while (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB)) {
		if (errno != EWOULDBLOCK || now_ms() >= deadline)
			return -1;
		poll(NULL, 0, LOCK_RETRY_MS);
	}
	return TAKE_FD(fd);
}

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

static int bind_unix(struct capture_listen *listener, int fd, const char *path,
		     bool is_locked)
{
	struct sockaddr_un local = { .sun_family = AF_UNIX };
	cleanup_free char *copy = strdup(path);
	struct stat status;
	mode_t mask;
	int err;

	if (!copy)
		return -ENOMEM;
	strcpy(local.sun_path, path); /* it was checked */
	if (is_locked)
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

/* While it is listened on, so that no other process replaces it in between. */
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

static int open_tls(const struct capture_listen_options *options,
		    struct capture_tls *tls, char *why, size_t why_size)
{
	tls->module = shared_object_find("tls", TLS_MODULE_SYMBOL, why, why_size);
	if (!tls->module)
		return -ENOENT;
	return tls->module->open(options->tls_ca, options->tls_cert,
				 options->tls_key, &tls->context, why, why_size);
}

static int open_socket(struct capture_listen *listener, const char *spec)
{
	union address address;
	socklen_t len = parse_tcp(spec, &address);
	bool is_unix = !strncmp(spec, UNIX, strlen(UNIX));
	const char *path = is_unix ? spec + strlen(UNIX) : NULL;
	int family = is_unix ? AF_UNIX : address.any.sa_family, err;
	cleanup_fd int lock = is_unix ? lock_directory(path) : -1;
	cleanup_fd int fd =
		socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd < 0)
		return -errno;
	err = is_unix ? bind_unix(listener, fd, path, lock >= 0) :
			bind_tcp(fd, &address, len);
	if (!err && listen(fd, BACKLOG))
		err = -errno;
	if (!err)
		listener->fd = TAKE_FD(fd);
	return err;
}

int capture_listen_open(struct capture_listen *listener,
			const struct capture_listen_options *options)
{
	const char *spec = options->spec;
	int err;

	*listener =
		(struct capture_listen){ .fd = -1, .format = options->format };
	if (options->tls_cert) {
		err = open_tls(options, &listener->tls, listener->reason,
			       sizeof(listener->reason));
		if (err)
			return err;
	}
	err = open_socket(listener, spec);
	if (err)
		snprintf(listener->reason, sizeof(listener->reason),
			 "--listen '%s': %s", spec, strerror(-err));
	return err;
}

/* As --listen has it. */
static void format_address(const union address *address, char *text, size_t size)
{
	char host[INET6_ADDRSTRLEN] = "";

	if (address->any.sa_family == AF_INET6)
		snprintf(text, size, "[%s]:%u",
			 inet_ntop(AF_INET6, &address->v6.sin6_addr, host,
				   sizeof(host)),
			 ntohs(address->v6.sin6_port));
	else if (address->any.sa_family == AF_INET)
		snprintf(text, size, "%s:%u",
			 inet_ntop(AF_INET, &address->v4.sin_addr, host,
				   sizeof(host)),
			 ntohs(address->v4.sin_port));
}

void capture_listen_where(const struct capture_listen *listener, char *text,
			  size_t size)
{
	union address address = { 0 };
	socklen_t len = sizeof(address);

	if (listener->unix_path) {
		snprintf(text, size, UNIX "%s", listener->unix_path);
		return;
	}
	getsockname(listener->fd, &address.any, &len);
	format_address(&address, text, size);
}

/* ---- Clients ---------------------------------------------------------------------- */

/* One that has gone already is not worth attaching anything. */
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
static bool has_room(struct capture_listen *listener)
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
	if (listener->tls.module && n_waiting == CAPTURE_HANDSHAKES)
		refuse_client(oldest);
	return listener->n_clients < ARRAY_SIZE(listener->clients) &&
	       (listener->tls.module || listener->n_clients < CAPTURE_CLIENTS);
}

/* @return false: there was none */
static bool accept_client(struct capture_listen *listener)
{
	union address address = { 0 };
	socklen_t len = sizeof(address);
	cleanup_fd int fd = accept4(listener->fd, &address.any, &len,
				    SOCK_CLOEXEC | SOCK_NONBLOCK);
	struct capture_client *client = NULL;

	if (fd < 0)
		return false;
	if (has_room(listener) && is_open(fd))
		client = capture_client_new(fd, &listener->tls);
	if (!client)
		return true;
	TAKE_FD(fd);
	format_address(&address, client->address, sizeof(client->address));
	listener->clients[listener->n_clients++] = client;
	return true;
}

size_t capture_listen_fds(const struct capture_listen *listener,
			  struct pollfd *fds)
{
	size_t n = 0;

	fds[n++] = (struct pollfd){ .fd = listener->fd, .events = POLLIN };
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

/* @steps: so many handshakes may still advance, which take long, before packets do. */
static void handle_client(struct capture_client *client, short events, int *steps)
{
	if (!client->is_ready) {
		if (now_ms() >= client->due_ms)
			refuse_client(client);
		else if (events && (*steps)-- > 0)
			capture_client_read(client);
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
	int steps = HANDSHAKE_STEPS;

	for (size_t i = 1; i < n_fds; i++)
		handle_client(listener->clients[i - 1], fds[i].revents, &steps);
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
	size_t kept = 0, ready = 0;

	for (size_t i = 0; i < listener->n_clients; i++) {
		struct capture_client *client = listener->clients[i];

		if (client->is_ready && ready == CAPTURE_CLIENTS)
			client->is_gone = true;
		ready += client->is_ready && !client->is_gone;
		if (!client->is_gone) {
			listener->clients[kept++] = client;
			continue;
		}
		note_refused(listener, client);
		capture_client_free(client);
	}
	listener->n_clients = kept;
	return ready;
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
	remove_unix(listener);
	close_fd(&listener->fd);
}
