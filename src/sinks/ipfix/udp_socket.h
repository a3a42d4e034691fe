/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* UDP sockets, and what ICMP says about what they sent. Errors are -errno. */
#ifndef NETOBS_SINKS_IPFIX_UDP_SOCKET_H
#define NETOBS_SINKS_IPFIX_UDP_SOCKET_H

#include <netdb.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

/* Connected to @address; nothing is ever fragmented. @source: as in tcp.h. */
int udp_socket_open(const struct addrinfo *address,
		    const struct sockaddr_storage *source);

/* The largest message that needs no fragments, as far as the kernel knows. */
size_t udp_socket_room(int fd);

struct udp_error {
	int err;	   /* -ECONNREFUSED ... */
	bool has_sequence; /* that of the message that was refused is known */
	uint32_t sequence;
};

/* What came back since the last time, one by one. False: nothing. */
bool udp_socket_error(int fd, struct udp_error *ret_error);

#endif
