/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* Frames that go out of an interface through a packet socket, so that tc egress sees them. */
#ifndef NETOBS_TESTS_TOOLS_PACKET_SOCKET_H
#define NETOBS_TESTS_TOOLS_PACKET_SOCKET_H

#include "options.h"

#include <linux/if_packet.h>
#include <net/if.h>
#include <sys/socket.h>
#include <unistd.h>

/* Returns the socket, or a negated errno. */
static inline int packet_socket_open(const char *interface)
{
	struct sockaddr_ll addr = {
		.sll_family = AF_PACKET,
		.sll_ifindex = if_nametoindex(interface),
	};
	int fd, error;

	if (!addr.sll_ifindex)
		return -ENODEV;
	fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	if (bind(fd, (void *)&addr, sizeof(addr))) {
		error = -errno;
		close(fd);
		return error;
	}
	return fd;
}

/* Send @n frames, each exactly once. Adds those that the interface refused, behind tc egress, to @refused. */
static inline int packet_socket_send(int fd, struct mmsghdr *messages, int n,
				     uint64_t *refused)
{
	int done = 0;

	while (done < n) {
		int ret = sendmmsg(fd, messages + done, n - done, 0);

		if (ret > 0) {
			done += ret;
		} else if (ret < 0 && errno == ENOBUFS) {
			done++;
			(*refused)++;
		} else if (ret < 0 && errno != EINTR && errno != EAGAIN) {
			return -errno;
		}
	}
	return 0;
}

/* Sleep until @done are due, of @rate a second since @start; 0: no limit. */
static inline void pace(double rate, double start, uint64_t done)
{
	const double ahead = rate > 0 ? start + (double)done / rate -
						tool_clock(CLOCK_MONOTONIC) :
					0;

	if (ahead > 0)
		usleep(ahead * 1e6);
}

#endif
