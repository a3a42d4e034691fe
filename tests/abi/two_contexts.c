/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * two_contexts INTERFACE: two contexts in one process see the same datagrams,
 * and the second goes on when the first is gone. Built against the installed
 * package; prints what each counted: first half, second half.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netobs/netobs.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>

enum { PORT = 40000, FIRST = 100, SECOND = 50 };

static void count_flow(const struct netobs_record *record, void *user)
{
	const struct netobs_flow *flow = (const void *)record;
	uint64_t *packets = user;

	if ((flow->has & NETOBS_HAS_PORTS) && flow->dst_port == PORT)
		*packets += flow->packets;
}

static void print_log(int level, const char *message, void *user)
{
	(void)user;
	if (level <= NETOBS_LOG_WARNING)
		fprintf(stderr, "two_contexts: %s\n", message);
}

static struct netobs *start(const char *interface, uint64_t *packets)
{
	const char *interfaces[] = { interface, NULL };
	struct netobs *ctx = NULL;
	NETOBS_OPTS(netobs_opts, opts);

	opts.interfaces = interfaces;
	opts.direction = NETOBS_EGRESS;
	opts.on_record = count_flow;
	opts.on_log = print_log;
	opts.user = packets;
	if (netobs_new(&opts, &ctx) < 0 || netobs_start(ctx) < 0)
		exit(1);
	return ctx;
}

static void send_datagrams(int n)
{
	struct sockaddr_in to = {
		.sin_family = AF_INET,
		.sin_port = htons(PORT),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};
	int fd = socket(AF_INET, SOCK_DGRAM, 0);

	for (int i = 0; i < n; i++)
		if (sendto(fd, "x", 1, 0, (void *)&to, sizeof(to)) != 1)
			exit(1);
}

static void finish(struct netobs *ctx)
{
	int ret;

	netobs_stop(ctx);
	do {
		ret = netobs_poll(ctx, 1000);
	} while (ret >= 0);
	if (ret != -ECANCELED)
		exit(1);
	netobs_free(ctx);
}

int main(int argc, char **argv)
{
	const char *interface = argc > 1 ? argv[1] : "lo";
	uint64_t packets[2] = { 0, 0 };
	struct netobs *one = start(interface, &packets[0]);
	struct netobs *two = start(interface, &packets[1]);

	send_datagrams(FIRST);
	finish(one);
	send_datagrams(SECOND);
	finish(two);

	printf("%d %d\n", (int)packets[0], (int)packets[1]);
	return packets[0] == FIRST && packets[1] == FIRST + SECOND ? 0 : 1;
}
