/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* The address of a collector, the local address for it, as the user writes them, and sockets. */
#ifndef NETOBS_SINKS_NET_ADDRESS_H
#define NETOBS_SINKS_NET_ADDRESS_H

#include "base/spec.h"
#include "base/worker.h"
#include "sink/module.h"

#include <netdb.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/types.h>

struct address {
	char host[256]; /* a name, or an IP address without brackets */
	uint16_t port;
	char name[272]; /* both, for messages: host:port, [address]:port */
};

/*
 * @text: //HOST, //HOST:PORT, //ADDRESS:PORT or //[ADDRESS]:PORT; NULL: the user
 * gave none. @otherwise: the port where none is given; 0: it must be. What is wrong
 * is said by spec_refuse(). False: something was.
 */
bool address_parse(struct spec *spec, const char *text, uint16_t otherwise,
		   struct address *ret_address);

/* Option source: the IP address to send from; AF_UNSPEC where it is not given. */
void address_read_source(struct spec *spec, struct sockaddr_storage *ret_source);

/* @return whether @text is one, and not a name. @ret_address may be NULL. */
bool address_is_numeric(const char *text, struct sockaddr_storage *ret_address);

/*
 * Looks up the addresses of a name, in a thread that waits for the answer unless the name
 * is an address. It may be closed before there is an answer.
 */

enum { RESOLVE_REASON_SIZE = 128 };

/*
 * @type: SOCK_STREAM or SOCK_DGRAM. The sink is called when the answer is there. -errno:
 * the query could not be started.
 */
int resolve_start(struct sink_host *sink, const struct address *address,
		  int type, struct worker **ret_resolve);

/*
 * 0: @ret_list is the caller's, to be given to freeaddrinfo(); -EAGAIN: there is no answer yet; others:
 * there are no addresses, and @ret_reason says why: "the host name is unknown" ...
 */
int resolve_take(struct worker *resolve, struct addrinfo **ret_list,
		 char ret_reason[static RESOLVE_REASON_SIZE]);

/* May be called at any time; takes NULL. */
void resolve_close(struct sink_host *sink, struct worker *resolve);

/* @return the number of addresses in a list */
unsigned int address_count(const struct addrinfo *list);

/* @return address @i of a list; behind the last one, the first follows */
const struct addrinfo *address_at(const struct addrinfo *list, unsigned int i);

/* ---- Non-blocking sockets, and what TCP says of them: tcp.c. Errors are -errno. ------ */

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
