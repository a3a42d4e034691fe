/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * embed [INTERFACE]...: flow records in an event loop, beside signals.
 * cc embed.c -o embed $(pkg-config --cflags --libs libnetobs)
 */
#include <errno.h>
#include <netobs/netobs.h>
#include <signal.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>

static void print_record(const struct netobs_record *record, void *user)
{
	char json[NETOBS_FLOW_JSON_MAX];

	if (netobs_record_json(record, json, sizeof(json)) >= 0)
		fprintf(user, "%s\n", json);
}

static void print_log(int level, const char *message, void *user)
{
	(void)user;
	if (level <= NETOBS_LOG_WARNING)
		fprintf(stderr, "embed: %s\n", message);
}

int main(int argc, char **argv)
{
	int loop = epoll_create1(EPOLL_CLOEXEC), ret, signals;
	struct epoll_event event = { .events = EPOLLIN | EPOLLONESHOT };
	struct netobs *netobs = NULL;
	sigset_t mask;
	NETOBS_OPTS(netobs_opts, opts);

	sigemptyset(&mask);
	sigaddset(&mask, SIGINT);
	sigaddset(&mask, SIGTERM);
	sigprocmask(SIG_BLOCK, &mask, NULL);
	event.data.fd = signals = signalfd(-1, &mask, SFD_CLOEXEC);
	epoll_ctl(loop, EPOLL_CTL_ADD, signals, &event);

	opts.interfaces = argc > 1 ? (const char *const *)argv + 1 : NULL;
	opts.on_record = print_record;
	opts.on_log = print_log;
	opts.user = stdout;
	if (netobs_new(&opts, &netobs) < 0 || netobs_start(netobs) < 0)
		return netobs_free(netobs), 1;
	setlinebuf(stdout);
	event = (struct epoll_event){ EPOLLIN, { .fd = netobs_fd(netobs) } };
	epoll_ctl(loop, EPOLL_CTL_ADD, event.data.fd, &event);
	do {
		epoll_wait(loop, &event, 1, -1);
		if (event.data.fd == signals)
			netobs_stop(netobs); /* dispatch delivers the rest */
		ret = netobs_dispatch(netobs);
	} while (ret >= 0);
	netobs_free(netobs);
	return ret == -ECANCELED ? 0 : 1;
}
