// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "lib_sink_host.h"

#include "base/clock_ms.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/epoll.h>
#include <sys/socket.h>

static void keep_line(int level, const char *message, void *user)
{
	struct test_host *host = user;
	size_t used = strlen(host->logged);

	if (level <= NETOBS_LOG_INFO)
		snprintf(host->logged + used, sizeof(host->logged) - used,
			 "%s\n", message);
}

static bool next(struct sink_host *arg, struct sink_item *ret_item)
{
	struct test_host *host = (struct test_host *)arg;

	if (host->next == host->n_records)
		return false;
	if (!host->make_other)
		host->make(host->next, &host->flow);
	*ret_item = (struct sink_item){
		.record = host->make_other ? host->make_other(host->next) :
					     &host->flow.record,
		.own = { 1, host->flow.packets, host->flow.bytes },
		.end = { .seq = ++host->next },
	};
	return true;
}

static bool has_more(const struct sink_host *arg)
{
	const struct test_host *host = (const struct test_host *)arg;

	return host->next < host->n_records;
}

static bool is_out_of_time(const struct sink_host *host)
{
	(void)host;
	return false;
}

static void ack(struct sink_host *arg, struct position end)
{
	struct test_host *host = (struct test_host *)arg;

	assert_true(end.seq > host->acked && end.seq <= host->next);
	host->acked = end.seq;
}

static void refuse(struct sink_host *arg, struct position end)
{
	struct test_host *host = (struct test_host *)arg;

	host->refused += end.seq - host->acked;
	ack(arg, end);
}

static void start_over(struct sink_host *arg)
{
	struct test_host *host = (struct test_host *)arg;

	host->next = host->acked;
}

static int watch(struct sink_host *arg, int fd, uint32_t events)
{
	struct test_host *host = (struct test_host *)arg;
	struct epoll_event event = { .events = events, .data.fd = fd };

	if (!events && epoll_ctl(host->epoll_fd, EPOLL_CTL_DEL, fd, NULL))
		return -errno;
	if (!events)
		host->n_watched--;
	else if (epoll_ctl(host->epoll_fd, EPOLL_CTL_MOD, fd, &event)) {
		if (epoll_ctl(host->epoll_fd, EPOLL_CTL_ADD, fd, &event))
			return -errno;
		host->n_watched++;
	}
	return 0;
}

static void wake_in(struct sink_host *arg, int ms)
{
	struct test_host *host = (struct test_host *)arg;

	host->wake_ms = ms < 0 ? 0 : now_ms() + ms;
}

static bool get_stats(struct sink_host *arg, struct netobs_stats *ret_stats)
{
	*ret_stats = (struct netobs_stats){ .sz = sizeof(*ret_stats) };
	return ((const struct test_host *)arg)->has_stats;
}

static const struct sink_host_ops ops = {
	.next = next,
	.has_more = has_more,
	.is_out_of_time = is_out_of_time,
	.ack = ack,
	.refuse = refuse,
	.rewind = start_over,
	.watch = watch,
	.wake_in = wake_in,
	.get_stats = get_stats,
};

void test_host_open(struct test_host *host)
{
	*host = (struct test_host){
		.host = { .ops = &ops,
			  .log = &host->log,
			  .types = SINK_TYPE(FLOW),
			  .sampling = 1 },
		.log = { .write = keep_line, .user = host },
		.epoll_fd = epoll_create1(EPOLL_CLOEXEC),
	};
	assert_true(host->epoll_fd >= 0);
}

void test_host_close(struct test_host *host)
{
	close_fd(&host->epoll_fd);
	assert_int_equal(host->n_watched, 0);
}

void test_host_spec(struct test_host *host, const char *text,
		    struct spec *ret_spec)
{
	host->logged[0] = '\0';
	assert_int_equal(spec_parse(ret_spec, text, &host->log), 0);
}

void test_host_wait(struct test_host *host, int ms)
{
	struct epoll_event event;
	int64_t left = host->wake_ms - now_ms();

	if (host->wake_ms && left < ms)
		ms = left < 0 ? 0 : (int)left;
	epoll_wait(host->epoll_fd, &event, 1, ms);
}

unsigned int test_host_lines(const struct test_host *host)
{
	unsigned int lines = 0;

	for (const char *at = host->logged; *at; at++)
		lines += *at == '\n';
	return lines;
}

void *test_host_module(struct test_host *host, const struct sink_module *module,
		       const char *text)
{
	struct spec spec;
	void *state = NULL;

	test_host_spec(host, text, &spec);
	if (sink_module_open(module, &spec, &host->host, &state))
		fail_msg("%s", host->logged);
	spec_free(&spec);
	return state;
}

struct wanted {
	const char *name;
	uint64_t value;
};

static void take_counter(void *ctx, const char *name, uint64_t value)
{
	struct wanted *wanted = ctx;

	if (!strcmp(wanted->name, name))
		wanted->value = value;
}

uint64_t test_counter(const struct sink_module *module, const void *state,
		      const char *name)
{
	struct wanted wanted = { name, UINT64_MAX };

	module->counters(state, take_counter, &wanted);
	assert_true(wanted.value != UINT64_MAX);
	return wanted.value;
}

int test_listen(int type, uint16_t *port)
{
	struct sockaddr_in address = { .sin_family = AF_INET,
				       .sin_port = htons(*port),
				       .sin_addr = { htonl(INADDR_LOOPBACK) } };
	socklen_t len = sizeof(address);
	int fd = socket(AF_INET, type, 0), one = 1;

	if (type & SOCK_STREAM)
		setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	assert_int_equal(bind(fd, (struct sockaddr *)&address, len), 0);
	if (type & SOCK_STREAM)
		assert_int_equal(listen(fd, 4), 0);
	getsockname(fd, (struct sockaddr *)&address, &len);
	*port = ntohs(address.sin_port);
	return fd;
}

void test_flow(uint64_t n, struct netobs_flow *ret_flow)
{
	static const struct netobs_point eth0 = { .ifindex = 2,
						  .direction = NETOBS_INGRESS,
						  .name = "eth0" };

	*ret_flow = (struct netobs_flow){ .sz = sizeof(*ret_flow),
					  .ethertype = 0x0800,
					  .src = { [10] = 0xff, 0xff },
					  .dst = { [10] = 0xff, 0xff },
					  .proto = 17,
					  .packets = 1,
					  .bytes = n,
					  .n_points = 1,
					  .point_size = sizeof(eth0),
					  .points = &eth0 };
}
