/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* UDP sockets, and ICMP errors about their datagrams. */
#ifndef NETOBS_SINKS_IPFIX_UDP_SOCKET_H
#define NETOBS_SINKS_IPFIX_UDP_SOCKET_H

#include <netdb.h>
#include <stddef.h>
#include <sys/socket.h>

/** @return a socket that is connected to @address and never fragments; or -errno */
int udp_socket_open(const struct addrinfo *address,
		    const struct sockaddr_storage *source);

/** @return bytes of the largest message without fragments, as far as the kernel knows */
size_t udp_socket_room(int fd);

/** @return the next ICMP error about a datagram: -ECONNREFUSED ...; 0: there is none */
int udp_socket_error(int fd);

#endif
