/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* TCP sockets that nobody waits for. Errors are -errno. */
#ifndef NETOBS_SINKS_NET_TCP_H
#define NETOBS_SINKS_NET_TCP_H

#include <netdb.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/types.h>

/*
 * A socket on its way to @address. @source: the address to send from, unless it is
 * AF_UNSPEC; -EAFNOSUPPORT: it is of another family. What is sent and not confirmed
 * for @unanswered_ms is taken for lost.
 */
int tcp_connect(const struct addrinfo *address,
		const struct sockaddr_storage *source, uint32_t unanswered_ms);

/* 0: connected; -EAGAIN: not yet; others: why not. */
int tcp_connect_result(int fd);

ssize_t tcp_read(int fd, void *to, size_t len);
ssize_t tcp_write(int fd, const void *from, size_t len);

/* Bytes that were written and that the other side has not confirmed. */
size_t tcp_unconfirmed(int fd);

#endif
