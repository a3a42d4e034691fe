// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/*
 * What an observer of drops costs for each packet that the kernel drops: a process sends datagrams to a
 * socket of its own whose buffer is full, with and without the observer in turns: observed.h.
 */
#include "bench.h"
#include "config.h"
#include "observed.h"
#include "base/util.h"

#include <arpa/inet.h>
#include <errno.h>
#include <math.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <netobs/drop.h>

enum {
	PACKETS = 10000, /* in a turn: there is room for their flows */
	FILLING = 1000,	 /* more than the smallest buffer takes */
	PAYLOAD = 64,
	POLL_MS = 100,
	RECEIVE_BUFFER = 2048,
};

struct drops_bench {
	int receiver, sender; /* of the process that sends */
	struct sockaddr_in to;
	uint32_t n_sources; /* that had a flow */
	struct netobs_drops *drops;
	double reader_ns; /* all of it, of ... */
	uint64_t records;
};

/* ---- The process that sends --------------------------------------------------------- */

/* @source: any of 127.0.0.0/8, which are the host's own */
static int send_from(const struct drops_bench *bench, uint32_t source)
{
	char payload[PAYLOAD] = { 0 };
	struct iovec part = { payload, sizeof(payload) };
	struct in_pktinfo info = { .ipi_spec_dst.s_addr = htonl(source) };
	union {
		char bytes[CMSG_SPACE(sizeof(struct in_pktinfo))];
		struct cmsghdr align;
	} control = { { 0 } };
	struct sockaddr_in to = bench->to;
	struct msghdr message = { .msg_name = &to,
				  .msg_namelen = sizeof(to),
				  .msg_iov = &part,
				  .msg_iovlen = 1,
				  .msg_control = control.bytes,
				  .msg_controllen = sizeof(control.bytes) };
	struct cmsghdr *header = CMSG_FIRSTHDR(&message);

	header->cmsg_level = IPPROTO_IP;
	header->cmsg_type = IP_PKTINFO;
	header->cmsg_len = CMSG_LEN(sizeof(info));
	memcpy(CMSG_DATA(header), &info, sizeof(info));
	return sendmsg(bench->sender, &message, 0) < 0 ? -errno : 0;
}

static int send_known(void *user)
{
	int err = 0;

	for (int i = 0; i < PACKETS && !err; i++)
		err = send_from(user, INADDR_LOOPBACK);
	return err;
}

/* Sources repeat after as many turns as there are few in one table. */
static int send_new(void *user)
{
	enum { SOURCES = 1 << 22 };
	struct drops_bench *bench = user;
	int err = 0;

	for (int i = 0; i < PACKETS && !err; i++) {
		bench->n_sources = (bench->n_sources + 1) % SOURCES;
		err = send_from(bench, INADDR_LOOPBACK + 1 + bench->n_sources);
	}
	return err;
}

static int prepare_sockets(void *user)
{
	const struct sockaddr_in any = {
		.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)
	};
	struct drops_bench *bench = user;
	const int size = RECEIVE_BUFFER;
	socklen_t len = sizeof(bench->to);
	int err = 0;

	bench->receiver = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	bench->sender = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (setsockopt(bench->receiver, SOL_SOCKET, SO_RCVBUF, &size,
		       sizeof(size)) ||
	    bind(bench->receiver, (const struct sockaddr *)&any, sizeof(any)) ||
	    getsockname(bench->receiver, (struct sockaddr *)&bench->to, &len))
		return -errno;
	for (int i = 0; i < FILLING && !err; i++)
		err = send_from(bench, INADDR_LOOPBACK);
	return err;
}

/* ---- The observer ------------------------------------------------------------------- */

static void count_drop(const struct netobs_drop *drop, void *user)
{
	struct drops_bench *bench = user;

	(void)drop;
	bench->records++;
}

static int start_drops(void *user)
{
	struct drops_bench *bench = user;
	char why[NETOBS_ERROR_MAX];
	NETOBS_OPTS(netobs_drops_opts, opts, .on_drop = count_drop,
		    .user = bench, .error = &why);
	int err = netobs_drops_new(&opts, &bench->drops);

	if (!err)
		err = netobs_drops_start(bench->drops);
	if (err)
		fprintf(stderr, "netobsctl bench: drops: %s\n",
			bench->drops ? netobs_drops_last_error(bench->drops) :
				       why);
	return err;
}

static int read_drops(struct drops_bench *bench)
{
	struct pollfd ready = { .fd = netobs_drops_fd(bench->drops),
				.events = POLLIN };
	int ret = 0;

	netobs_drops_stop(bench->drops);
	while (ret >= 0 && !stop_requested()) {
		int64_t start;

		poll(&ready, 1, POLL_MS);
		start = clock_ns(CLOCK_THREAD_CPUTIME_ID);
		ret = netobs_drops_dispatch(bench->drops);
		bench->reader_ns += clock_ns(CLOCK_THREAD_CPUTIME_ID) - start;
	}
	return ret < 0 && ret != -ECANCELED ? ret : 0;
}

static int end_drops(void *user, bool is_complete)
{
	struct drops_bench *bench = user;
	int err = is_complete ? read_drops(bench) : 0;

	netobs_drops_free(TAKE_PTR(bench->drops));
	return err;
}

static double drop_reader_ns(const void *user)
{
	const struct drops_bench *bench = user;

	return bench->records ? bench->reader_ns / bench->records : NAN;
}

int drops_run(const struct config *config)
{
	static const struct observed_load loads[] = {
		{ "drops of new flows", PACKETS, send_new },
		{ "drops of a known flow", PACKETS, send_known },
	};
	struct drops_bench drops = { .receiver = -1 };
	const struct observed_bench bench = {
		.name = "drops",
		.title = "Packets that the kernel drops with and without an observer, as a ratio of packets in a time.",
		.loads = loads,
		.n_loads = ARRAY_SIZE(loads),
		.clock = CLOCK_MONOTONIC,
		.prepare = prepare_sockets,
		.start = start_drops,
		.end = end_drops,
		.reader_ns = drop_reader_ns,
		.user = &drops,
	};

	return observed_run(&bench, config);
}
