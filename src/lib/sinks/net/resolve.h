/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * Addresses of a name, from a thread that waits for the answer. Who asked may go
 * away before it is there. What is an address already needs no thread.
 */
#ifndef NETOBS_SINKS_NET_RESOLVE_H
#define NETOBS_SINKS_NET_RESOLVE_H

#include <netdb.h>
#include <stdint.h>

struct resolve;

/* @type: SOCK_STREAM or SOCK_DGRAM. -errno: the query could not be started. */
int resolve_start(const char *host, uint16_t port, int type,
		  struct resolve **ret_resolve);

/* Readable when the answer is there. Not to be watched after resolve_close(). */
int resolve_fd(const struct resolve *resolve);

/*
 * 0: @ret_list is the caller's, to be given to freeaddrinfo(); -EAGAIN: there is no
 * answer yet; others: there are no addresses, and resolve_error() says why.
 */
int resolve_take(struct resolve *resolve, struct addrinfo **ret_list);

/* "the host name is unknown" ... */
const char *resolve_error(const struct resolve *resolve);

/* At any time; takes NULL. */
void resolve_close(struct resolve *resolve);

#endif
