/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* Non-blocking sockets, and what TCP says of them. Errors are -errno. */
#ifndef NETOBS_SINKS_NET_TCP_H
#define NETOBS_SINKS_NET_TCP_H

#include <netdb.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/types.h>

/*
 * A socket on its way to @address, of its type. @source: the address to send from, unless it is
 * AF_UNSPEC; -EAFNOSUPPORT: it is of another family.
 */
int socket_connect(const struct addrinfo *address,
		   const struct sockaddr_storage *source);

ssize_t socket_read(int fd, void *to, size_t len);
ssize_t socket_write(int fd, const void *from, size_t len);

/* @return the error of the socket since the last call; 0: none */
int socket_error(int fd);

/* socket_connect(), with keepalives. */
int tcp_connect(const struct addrinfo *address,
		const struct sockaddr_storage *source);

/* 0: connected; -EAGAIN: not yet; others: why not. */
int tcp_connect_result(int fd);

/* Bytes that were written and that the other side has not acknowledged. */
size_t tcp_unacknowledged(int fd);

struct tcp_peer {
	/* Data were sent again, or a closed window was probed: no answer so far. */
	bool is_silent;
	uint32_t silent_ms; /* since its last acknowledgement */
};

/* Get the state of the other side from TCP_INFO. @return 0 or -errno */
int tcp_look(int fd, struct tcp_peer *ret_peer);

#endif
