// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "address.h"

#include "base/util.h"

#include <errno.h>
#include <linux/sockios.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/ioctl.h>

/* Seconds: keepalives detect a dead peer while nothing is sent. */
enum { KEEP_IDLE = 10, KEEP_INTERVAL = 5, KEEP_COUNT = 3 };

/*
 * No TCP_USER_TIMEOUT: it also ends a connection whose other side answers, but has
 * kept its window closed for that long. stream.c looks at the answers instead.
 */
static void set_options(int fd)
{
	const struct {
		int level, name, value;
	} options[] = {
		{ IPPROTO_TCP, TCP_NODELAY, 1 },
		{ IPPROTO_TCP, TCP_KEEPIDLE, KEEP_IDLE },
		{ IPPROTO_TCP, TCP_KEEPINTVL, KEEP_INTERVAL },
		{ IPPROTO_TCP, TCP_KEEPCNT, KEEP_COUNT },
		{ SOL_SOCKET, SO_KEEPALIVE, 1 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(options); i++)
		setsockopt(fd, options[i].level, options[i].name,
			   &options[i].value, sizeof(options[i].value));
}

int socket_connect(const struct addrinfo *address,
		   const struct sockaddr_storage *source)
{
	cleanup_fd int fd =
		socket(address->ai_family,
		       address->ai_socktype | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return -errno;
	if (source->ss_family != AF_UNSPEC &&
	    source->ss_family != address->ai_family)
		return -EAFNOSUPPORT;
	/* Addresses of a family have the same length. */
	if (source->ss_family != AF_UNSPEC &&
	    bind(fd, (const struct sockaddr *)source, address->ai_addrlen))
		return -errno;
	if (connect(fd, address->ai_addr, address->ai_addrlen) &&
	    errno != EINPROGRESS)
		return -errno;
	return TAKE_FD(fd);
}

int tcp_connect(const struct addrinfo *address,
		const struct sockaddr_storage *source)
{
	int fd = socket_connect(address, source);

	if (fd >= 0)
		set_options(fd);
	return fd;
}

int tcp_connect_result(int fd)
{
	struct pollfd ready = { .fd = fd, .events = POLLOUT };

	return poll(&ready, 1, 0) <= 0 ? -EAGAIN : socket_error(fd);
}

ssize_t socket_read(int fd, void *to, size_t len)
{
	ssize_t n;

	do {
		n = recv(fd, to, len, MSG_DONTWAIT);
	} while (n < 0 && errno == EINTR);
	return n < 0 ? -errno : n;
}

ssize_t socket_write(int fd, const void *from, size_t len)
{
	ssize_t n;

	do {
		n = send(fd, from, len, MSG_DONTWAIT | MSG_NOSIGNAL);
	} while (n < 0 && errno == EINTR);
	return n < 0 ? -errno : n;
}

size_t tcp_unacknowledged(int fd)
{
	int bytes;

	return ioctl(fd, SIOCOUTQ, &bytes) || bytes < 0 ? 0 : (size_t)bytes;
}

int tcp_look(int fd, struct tcp_peer *ret_peer)
{
	struct tcp_info info = { 0 };
	socklen_t len = sizeof(info);

	if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &len))
		return -errno;
	*ret_peer = (struct tcp_peer){
		.is_silent = info.tcpi_retransmits || info.tcpi_probes,
		.silent_ms = info.tcpi_last_ack_recv,
	};
	return 0;
}

int socket_error(int fd)
{
	int err = 0;
	socklen_t len = sizeof(err);

	if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &err, &len))
		return -errno;
	return -err;
}
