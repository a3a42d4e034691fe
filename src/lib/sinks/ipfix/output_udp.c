// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/*
 * A datagram per message, which counts as delivered once it is sent. If the collector is
 * down, its host or a router answers with an ICMP error: the message is lost, and counted
 * as refused. Templates are sent again then, since the collector may come back without
 * them. A name is looked up again for that, and the next one of its addresses is used.
 */
#include "base/outage.h"
#include "base/clock_ms.h"
#include "sinks/net/net.h"
#include "ipfix.h"

#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <time.h> /* errqueue.h needs struct timespec, and does not declare it */

#include <linux/errqueue.h>
#include <netinet/in.h>

enum {
	BUSY_MS = 10,
	RENEW_MS = 1000, /* between sessions that refusals begin */
	CALM_MS = 2000, /* an outage is over after so long without a refused message */
	SIZE_V4 = 1400,
	SIZE_V6 = 1380,
};

/* By default, a collector's socket has room for some ninety messages, and drops further ones silently. */
enum { MESSAGES_PER_MS = 10, BURST = 20 };

/* ---- Sockets ------------------------------------------------------------------ */

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

/* @return a socket that is connected to @address and never fragments; or -errno */
static int udp_socket_open(const struct addrinfo *address,
			   const struct sockaddr_storage *source)
{
	int fd = socket_connect(address, source);

	if (fd >= 0)
		set_options(fd, address->ai_family);
	return fd;
}

/* @return bytes of the largest message without fragments, as far as the kernel knows */
static size_t udp_socket_room(int fd)
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

/* @return the next ICMP error about a datagram: -ECONNREFUSED ...; 0: there is none */
static int udp_socket_error(int fd)
{
	char control[512] __attribute__((aligned(8)));
	const struct sock_extended_err *error;

	do {
		struct msghdr header = { .msg_control = control,
					 .msg_controllen = sizeof(control) };

		if (recvmsg(fd, &header, MSG_ERRQUEUE | MSG_DONTWAIT) < 0)
			return socket_error(fd);
		socket_error(fd); /* it is the one from the queue */
		error = find_error(&header);
	} while (!error || error->ee_origin == SO_EE_ORIGIN_LOCAL);
	return -(int)error->ee_errno;
}

/* ---- The output ---------------------------------------------------------------- */

struct udp {
	struct output output;
	struct backoff retry; /* while there is no socket */
	struct worker *resolve;
	unsigned int first; /* number of the best address so far */
	bool is_name;
	bool has_others; /* the name has several addresses */
	int fd;		 /* -1: none */
	uint32_t watched;
	bool is_new;
	bool is_full;  /* the kernel has no room for more */
	bool is_early; /* the kernel has room, but the next message must wait */
	uint64_t allowance; /* messages that may be sent now */
	int64_t allowed_ms; /* when it was last added to */
	int64_t renewed_ms; /* when a refusal began a session */
	int64_t calm_ms; /* time of the first message since the last refusal; 0: none */
	struct outage outage;
};

/* ---- Failures ------------------------------------------------------------------ */

static void log_failure(struct udp *udp, const char *reason)
{
	outage_log(&udp->outage, udp->output.host->log, NETOBS_LOG_ERROR,
		   reason, "cannot send to %s: %s; trying again",
		   udp->output.config->address.name, reason);
}

static void note_sent(struct udp *udp)
{
	int64_t now = now_ms();

	udp->calm_ms = udp->calm_ms ?: now;
	if (now - udp->calm_ms >= CALM_MS)
		outage_end(&udp->outage, udp->output.host->log, NETOBS_LOG_INFO,
			   "can send to %s again",
			   udp->output.config->address.name);
}

static void watch_socket(struct udp *udp, uint32_t events)
{
	if (udp->fd < 0 || events == udp->watched)
		return;
	udp->output.host->ops->watch(udp->output.host, udp->fd, events);
	udp->watched = events;
}

static void close_socket(struct udp *udp)
{
	watch_socket(udp, 0);
	close_fd(&udp->fd);
}

static void wait_to_resolve(struct udp *udp, const char *reason)
{
	log_failure(udp, reason);
	close_socket(udp);
	udp->calm_ms = 0;
	backoff_wait(&udp->retry, now_ms());
}

/* ---- Opening ------------------------------------------------------------------- */

/* After EMSGSIZE: have smaller messages made. False: they cannot be smaller. */
static bool shrink_message(struct udp *udp)
{
	size_t room = udp_socket_room(udp->fd);

	if (room >= udp->output.size || room < ENCODER_SIZE_MIN)
		return false;
	udp->output.size = room;
	return true;
}

static void choose_size(struct udp *udp, int family)
{
	size_t wanted = udp->output.config->mtu ?:
				(family == AF_INET6 ? SIZE_V6 : SIZE_V4);

	udp->output.size = wanted;
	shrink_message(udp);
}

/* Open a socket to the best address so far, or the next one behind it that there is a route to. */
static void open_socket(struct udp *udp, const struct addrinfo *list)
{
	const unsigned int n = address_count(list);
	const struct addrinfo *address;
	unsigned int i = 0;
	int fd;

	do {
		address = address_at(list, udp->first + i);
		fd = udp_socket_open(address, &udp->output.config->source);
	} while (fd < 0 && ++i < n);
	if (fd < 0) {
		wait_to_resolve(udp, strerror(-fd));
		return;
	}
	close_socket(udp);
	udp->fd = fd;
	udp->first += i;
	udp->has_others = n > 1;
	choose_size(udp, address->ai_family);
	watch_socket(udp, EPOLLERR);
	udp->is_new = true;
	udp->is_full = false;
	udp->output.sequence = 0;
	udp->output.counts.sessions++;
}

static void look_up(struct udp *udp)
{
	int err = resolve_start(udp->output.host, &udp->output.config->address,
				SOCK_DGRAM, &udp->resolve);

	if (err && udp->fd < 0)
		wait_to_resolve(udp, strerror(-err));
}

static void finish_resolving(struct udp *udp)
{
	struct addrinfo *list = NULL;
	char reason[RESOLVE_REASON_SIZE];
	int err = resolve_take(udp->resolve, &list, reason);

	if (err == -EAGAIN)
		return;
	if (!err)
		open_socket(udp, list);
	else if (udp->fd < 0)
		wait_to_resolve(udp, reason);
	if (list)
		freeaddrinfo(list);
	resolve_close(udp->output.host, TAKE_PTR(udp->resolve));
}

/* ---- Use ----------------------------------------------------------------------- */

static enum peer_state udp_prepare(struct output *output)
{
	struct udp *udp = (struct udp *)output;

	if (udp->fd < 0 && !udp->resolve && backoff_is_due(&udp->retry))
		look_up(udp);
	if (udp->resolve)
		finish_resolving(udp);
	if (udp->fd < 0)
		return PEER_AWAY;
	if (!udp->is_new)
		return PEER_READY;
	udp->is_new = false;
	return PEER_NEW;
}

/*
 * An address that refuses is no outage if the next one does not. The only one stays in use while its
 * name is looked up again: name servers may be away as well.
 */
static void note_refused(struct udp *udp, int err)
{
	bool is_soon = now_ms() - udp->renewed_ms < RENEW_MS;

	udp->calm_ms = 0;
	if (!udp->has_others || is_soon)
		log_failure(udp, strerror(-err));
	if (is_soon)
		return;
	udp->renewed_ms = now_ms();
	udp->is_new = true;
	if (!udp->is_name || udp->resolve)
		return;
	udp->first++;
	if (udp->has_others)
		close_socket(udp);
	look_up(udp);
}

/* Count messages that ICMP reports as lost. False: there are no reports. */
static bool take_refusals(struct udp *udp)
{
	int err, last_err = 0;

	while (udp->fd >= 0 && (err = udp_socket_error(udp->fd))) {
		udp->output.counts.refused_messages++;
		last_err = err;
	}
	/* If a message was too large for the path, send(2) reports the next one. */
	if (last_err && last_err != -EMSGSIZE)
		note_refused(udp, last_err);
	return last_err;
}

/* The message was not sent, and its records are not acknowledged. */
static void note_failed(struct udp *udp, int err)
{
	udp->output.counts.failed_messages++;
	if (err == -EMSGSIZE && shrink_message(udp)) {
		udp->is_new = true;
		return;
	}
	udp->first++;
	wait_to_resolve(udp, strerror(-err));
}

/* False: so many messages were sent lately that the next has to wait. */
static bool take_allowance(struct udp *udp)
{
	int64_t now = now_ms();

	udp->allowance += (uint64_t)(now - udp->allowed_ms) * MESSAGES_PER_MS;
	udp->allowance = min_u64(udp->allowance, BURST);
	udp->allowed_ms = now;
	if (!udp->allowance)
		return false;
	udp->allowance--;
	return true;
}

static int udp_send(struct output *output, const struct output_message *message)
{
	struct udp *udp = (struct udp *)output;
	ssize_t n;

	udp->is_early = !take_allowance(udp);
	if (udp->is_early)
		return -EAGAIN;
	n = socket_write(udp->fd, message->encoded.bytes, message->encoded.len);
	udp->is_full = n == -EAGAIN || n == -ENOBUFS;
	if (udp->is_full)
		return -EAGAIN;
	if (n < 0) {
		/* The error may be the refusal of an earlier message. */
		if (!take_refusals(udp))
			note_failed(udp, (int)n);
		return (int)n;
	}
	output->sequence = message->encoded.sequence + message->encoded.records;
	output_count(output, message);
	output_ack(output, message->end);
	note_sent(udp);
	return 0;
}

static int udp_rest(struct output *output)
{
	struct udp *udp = (struct udp *)output;

	take_refusals(udp);
	watch_socket(udp, udp->is_full ? EPOLLOUT : EPOLLERR);
	if (udp->fd < 0)
		return udp->resolve ? -1 : left_ms(udp->retry.due_ms);
	if (udp->is_new)
		return 0;
	if (udp->is_early || udp->is_full)
		return udp->is_early ? 1 : BUSY_MS;
	return -1;
}

static int udp_open(struct output *output)
{
	struct udp *udp = (struct udp *)output;

	output->host->outage = &udp->outage;
	udp->fd = -1;
	udp->is_name = !address_is_numeric(output->config->address.host, NULL);
	udp->renewed_ms = now_ms() - RENEW_MS;
	/* Steadily: a name that does not resolve costs little, and may do so soon. */
	udp->retry.most_ms = BACKOFF_FIRST_MS;
	return 0;
}

static void udp_close(struct output *output)
{
	struct udp *udp = (struct udp *)output;

	close_socket(udp);
	resolve_close(udp->output.host, TAKE_PTR(udp->resolve));
}

const struct output_ops output_udp = {
	.size = sizeof(struct udp),
	.open = udp_open,
	.prepare = udp_prepare,
	.send = udp_send,
	.rest = udp_rest,
	.close = udp_close,
};
