/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include "armed.h"

#include "base/util.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <netobs/netobs.h>
#include <netobs/trace.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

enum { FILES = 2 * ARMED_OTHERS + 256 };

static int allow_files(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit))
		return -errno;
	if (limit.rlim_cur >= FILES)
		return 0;
	limit.rlim_cur = FILES;
	if (limit.rlim_max < FILES)
		limit.rlim_max = FILES;
	return setrlimit(RLIMIT_NOFILE, &limit) ? -errno : 0;
}

int armed_connect(const struct armed *armed, int ret_ends[2])
{
	struct sockaddr_in address = { 0 };
	socklen_t size = sizeof(address);
	const int one = 1;

	if (getsockname(armed->listener, (void *)&address, &size))
		return -errno;
	ret_ends[0] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (ret_ends[0] < 0 ||
	    connect(ret_ends[0], (void *)&address, sizeof(address)))
		return -errno;
	ret_ends[1] = accept4(armed->listener, NULL, NULL, SOCK_CLOEXEC);
	if (ret_ends[1] < 0)
		return -errno;
	for (int i = 0; i < 2; i++)
		if (setsockopt(ret_ends[i], IPPROTO_TCP, TCP_NODELAY, &one,
			       sizeof(one)))
			return -errno;
	return 0;
}

static int listen_at_loopback(void)
{
	struct sockaddr_in address = { .sin_family = AF_INET };
	const int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	if (listener >= 0 && (bind(listener, (void *)&address, sizeof(address)) ||
			      listen(listener, SOMAXCONN)))
		close(listener);
	else if (listener >= 0)
		return listener;
	return -errno;
}

int armed_open(struct armed *armed)
{
	struct sockaddr_in address = { 0 };
	socklen_t size = sizeof(address);
	int err = allow_files();

	*armed = (struct armed){ .listener = err ?: listen_at_loopback() };
	err = min_i64(armed->listener, 0);
	while (!err && armed->n < ARMED_OTHERS) {
		int *ends = armed->ends[armed->n++];

		ends[0] = ends[1] = -1;
		err = armed_connect(armed, ends);
	}
	if (!err && getsockname(armed->ends[0][0], (void *)&address, &size))
		err = -errno;
	armed->port = ntohs(address.sin_port);
	return err;
}

static void take_nothing(const struct netobs_record *record, void *user)
{
	(void)record;
	(void)user;
}

int armed_start(struct armed *armed)
{
	char filter[32];
	const struct netobs_trace_opts opts = {
		.sz = sizeof(opts),
		.filter = filter,
		.records = 1U << NETOBS_RECORD_TURN |
			   1U << NETOBS_RECORD_QUEUE | 1U << NETOBS_RECORD_HOST,
		.on_record = take_nothing,
	};
	int err;

	snprintf(filter, sizeof(filter), "tcp port %u", armed->port);
	err = netobs_trace_new(&opts, &armed->tracer);
	return err ?: netobs_start(armed->tracer);
}

void armed_stop(struct armed *armed)
{
	netobs_free(TAKE_PTR(armed->tracer));
}

void armed_close(struct armed *armed)
{
	armed_stop(armed);
	while (armed->n--)
		for (int i = 0; i < 2; i++)
			close_fd(&armed->ends[armed->n][i]);
	close_fd(&armed->listener);
}
