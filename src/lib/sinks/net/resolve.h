/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * Looks up the addresses of a name, in a thread that waits for the answer unless the name
 * is an address. It may be closed before there is an answer.
 */
#ifndef NETOBS_SINKS_NET_RESOLVE_H
#define NETOBS_SINKS_NET_RESOLVE_H

#include "address.h"
#include "sink/module.h"

#include <netdb.h>

struct resolve;

/*
 * @type: SOCK_STREAM or SOCK_DGRAM. The sink is called when the answer is there. -errno:
 * the query could not be started.
 */
int resolve_start(struct sink_host *sink, const struct address *address,
		  int type, struct resolve **ret_resolve);

/*
 * 0: @ret_list is the caller's, to be given to freeaddrinfo(); -EAGAIN: there is no
 * answer yet; others: there are no addresses, and resolve_error() says why.
 */
int resolve_take(struct resolve *resolve, struct addrinfo **ret_list);

/* "the host name is unknown" ... */
const char *resolve_error(const struct resolve *resolve);

/* May be called at any time; takes NULL. */
void resolve_close(struct resolve *resolve);

#endif
