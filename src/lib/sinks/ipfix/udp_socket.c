// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "output.h"

#include "base/util.h"
#include "sinks/net/address.h"

#include <errno.h>
#include <time.h> /* errqueue.h needs struct timespec, and does not declare it */

#include <linux/errqueue.h>
#include <netinet/in.h>

enum {
	UDP_HEADER = 8,
	IPV4_HEADER = 20,
	IPV6_HEADER = 40,
	SEND_BUFFER = 1 << 20, /* a burst of some hundred messages */
};

static void set_options(int fd, int family)
{
	int yes = 1, buffer = SEND_BUFFER, no_fragments = IP_PMTUDISC_DO;
	bool is_v6 = family == AF_INET6;
	int level = is_v6 ? IPPROTO_IPV6 : IPPROTO_IP;

	setsockopt(fd, level, is_v6 ? IPV6_RECVERR : IP_RECVERR, &yes,
		   sizeof(yes));
	setsockopt(fd, level, is_v6 ? IPV6_MTU_DISCOVER : IP_MTU_DISCOVER,
		   &no_fragments, sizeof(no_fragments));
	setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &buffer, sizeof(buffer));
}

int udp_socket_open(const struct addrinfo *address,
		    const struct sockaddr_storage *source)
{
	cleanup_fd int fd = socket(address->ai_family,
				   SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	int err;

	if (fd < 0)
		return -errno;
	err = address_bind_source(fd, address->ai_family, source);
	if (err)
		return err;
	set_options(fd, address->ai_family);
	if (connect(fd, address->ai_addr, address->ai_addrlen))
		return -errno;
	return TAKE_FD(fd);
}

size_t udp_socket_room(int fd)
{
	int family = AF_INET, mtu = 0, headers;
	socklen_t len = sizeof(family);

	getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &family, &len);
	len = sizeof(mtu);
	if (family == AF_INET6)
		getsockopt(fd, IPPROTO_IPV6, IPV6_MTU, &mtu, &len);
	else
		getsockopt(fd, IPPROTO_IP, IP_MTU, &mtu, &len);
	headers = UDP_HEADER + (family == AF_INET6 ? IPV6_HEADER : IPV4_HEADER);
	return mtu > headers ? (size_t)(mtu - headers) : SIZE_MAX;
}

static const struct sock_extended_err *find_error(struct msghdr *header)
{
	struct cmsghdr *cmsg = CMSG_FIRSTHDR(header);

	for (; cmsg; cmsg = CMSG_NXTHDR(header, cmsg))
		if ((cmsg->cmsg_level == IPPROTO_IP &&
		     cmsg->cmsg_type == IP_RECVERR) ||
		    (cmsg->cmsg_level == IPPROTO_IPV6 &&
		     cmsg->cmsg_type == IPV6_RECVERR))
			return (const struct sock_extended_err *)CMSG_DATA(cmsg);
	return NULL;
}

/* An error that is not in the queue, or was there and is pending as well. */
static int take_pending(int fd)
{
	int err = 0;
	socklen_t len = sizeof(err);

	getsockopt(fd, SOL_SOCKET, SO_ERROR, &err, &len);
	return -err;
}

int udp_socket_error(int fd)
{
	char control[512] __attribute__((aligned(8)));
	const struct sock_extended_err *error;

	do {
		struct msghdr header = { .msg_control = control,
					 .msg_controllen = sizeof(control) };

		if (recvmsg(fd, &header, MSG_ERRQUEUE | MSG_DONTWAIT) < 0)
			return take_pending(fd);
		take_pending(fd); /* it is the one from the queue */
		error = find_error(&header);
	} while (!error || error->ee_origin == SO_EE_ORIGIN_LOCAL);
	return -(int)error->ee_errno;
}
