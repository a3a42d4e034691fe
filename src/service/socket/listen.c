/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include "server.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/util.h"

#define UNIX "unix:"

enum { BACKLOG = 4096 };

union address {
	struct sockaddr any;
	struct sockaddr_in v4;
	struct sockaddr_in6 v6;
	struct sockaddr_un local;
};

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

static bool is_unix_spec(const char *spec)
{
	return !strncmp(spec, UNIX, strlen(UNIX));
}

bool listen_is_local(const char *spec)
{
	union address address;

	return is_unix_spec(spec) ||
	       (parse_tcp(spec, &address) && is_loopback(&address));
}

const char *listen_refuse(const char *spec)
{
	const size_t prefix = strlen(UNIX);
	union address address;

	if (is_unix_spec(spec)) {
		if (!spec[prefix])
			return "the path is missing";
		return strlen(spec + prefix) < sizeof(address.local.sun_path) ?
			       NULL :
			       "the path is too long for a socket";
	}
	return parse_tcp(spec, &address) ?
		       NULL :
		       "it is none of ADDRESS:PORT, [ADDRESS]:PORT and unix:PATH, "
		       "with an address in numbers such as 127.0.0.1";
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

static int bind_unix(struct listen *listener, int fd, const char *path)
{
	struct sockaddr_un local = { .sun_family = AF_UNIX };
	cleanup_free char *copy = strdup(path);
	struct stat status;
	mode_t mask;
	int err;

	if (!copy)
		return -ENOMEM;
	strcpy(local.sun_path, path); /* the length was checked */
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
static void remove_unix(struct listen *listener)
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

int listen_open(struct listen *listener, const char *spec)
{
	union address address;
	socklen_t len = parse_tcp(spec, &address);
	bool is_unix = is_unix_spec(spec);
	const char *path = is_unix ? spec + strlen(UNIX) : NULL;
	int family = is_unix ? AF_UNIX : address.any.sa_family, err;
	cleanup_fd int fd =
		socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	*listener = (struct listen){ .fd = -1 };
	if (fd < 0)
		return -errno;
	err = is_unix ? bind_unix(listener, fd, path) :
			bind_tcp(fd, &address, len);
	if (!err && listen(fd, BACKLOG))
		err = -errno;
	if (!err)
		listener->fd = TAKE_FD(fd);
	return err;
}

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

void listen_where(const struct listen *listener, char *text, size_t size)
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

int listen_accept(const struct listen *listener, char *address, size_t size)
{
	union address peer = { 0 };
	socklen_t len = sizeof(peer);
	int fd = accept4(listener->fd, &peer.any, &len,
			 SOCK_CLOEXEC | SOCK_NONBLOCK);

	if (fd < 0)
		return -errno;
	format_address(&peer, address, size);
	return fd;
}

void listen_close(struct listen *listener)
{
	remove_unix(listener);
	close_fd(&listener->fd);
}
