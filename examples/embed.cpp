/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* embed-cpp [INTERFACE]...: as embed.c, with a timer beside the flows. */
#include <cerrno>
#include <csignal>
#include <iostream>
#include <memory>
#include <netobs/netobs.h>
#include <stdexcept>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

static netobs *ctx; /* for the signal handler */
static char why[NETOBS_ERROR_MAX];

static int check(int ret)
{
	if (ret < 0 && ret != -ECANCELED)
		throw std::runtime_error(ctx ? netobs_last_error(ctx) : why);
	return ret;
}

static void print_record(const netobs_record *record, void *user)
{
	char json[NETOBS_FLOW_JSON_MAX];
	if (netobs_record_json(record, json, sizeof(json)) >= 0)
		std::cout << json << std::endl;
	++*static_cast<uint64_t *>(user);
}

int main(int argc, char **argv)
try {
	uint64_t flows = 0, ticks;
	NETOBS_OPTS(netobs_opts, opts);
	opts.interfaces = argc > 1 ? argv + 1 : nullptr;
	opts.on_record = print_record;
	opts.user = &flows;
	opts.error = &why;
	check(netobs_new(&opts, &ctx));
	std::unique_ptr<netobs, void (*)(netobs *)> own(ctx, netobs_free);
	std::signal(SIGINT, [](int) { netobs_stop(ctx); });
	check(netobs_start(ctx));
	int timer = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK);
	int loop = epoll_create1(EPOLL_CLOEXEC);
	itimerspec second = { { 1, 0 }, { 1, 0 } };
	timerfd_settime(timer, 0, &second, nullptr);
	epoll_event event = { EPOLLIN, {} };
	for (int fd : { timer, netobs_fd(ctx) }) {
		event.data.fd = fd;
		epoll_ctl(loop, EPOLL_CTL_ADD, fd, &event);
	}
	while (check(netobs_dispatch(ctx)) != -ECANCELED) {
		epoll_wait(loop, &event, 1, -1);
		if (event.data.fd == timer && read(timer, &ticks, 8) == 8)
			std::cerr << flows << " flow records so far\n";
	}
} catch (const std::exception &error) {
	std::cerr << "embed-cpp: " << error.what() << std::endl;
	return 1;
}
