// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "lib_session.h"

#include <sys/socket.h>

static const struct netobs_point point = { .ifindex = 3,
					   .direction = NETOBS_INGRESS,
					   .name = "eth0" };

static void make_flow(uint64_t n, struct netobs_flow *flow)
{
	*flow = (struct netobs_flow){ .sz = sizeof(*flow),
				      .ethertype = n % 2 ? 0x0800 : 0x86dd,
				      .packets = 1,
				      .bytes = n + 1,
				      .n_points = 1,
				      .point_size = sizeof(struct netobs_point),
				      .points = &point };
}

static void keep(const struct ipfix_record *record, void *ctx)
{
	struct session *f = ctx;

	f->flows += ipfix_has(record, 1);
	f->interfaces += ipfix_has(record, 82);
	f->elements += ipfix_has(record, 341);
	if (ipfix_has(record, 346))
		f->pen = ipfix_value(record, 0, 346);
	if (ipfix_has(record, 42))
		f->flows_sent = ipfix_value(record, 0, 42);
	if (ipfix_has(record, 34))
		f->interval = ipfix_value(record, 0, 34);
	if (ipfix_has(record, 166))
		f->not_sent = ipfix_value(record, 0, 166);
}

void session_listen(struct session *f, int type)
{
	f->fd = test_listen(type | SOCK_NONBLOCK, &f->port);
}

void session_open(struct session *f, const char *transport, const char *options)
{
	char text[256];

	if (!f->port)
		session_listen(f, strcmp(transport, "udp") ? SOCK_STREAM :
							     SOCK_DGRAM);
	snprintf(text, sizeof(text), "ipfix:%s://%s:%u%s", transport,
		 f->name ?: "127.0.0.1", f->port, options);
	f->state = test_host_module(&f->host, &netobs_sink_module, text);
}

struct ipfix_reader session_reader(struct session *f)
{
	return (struct ipfix_reader){ .on_record = keep, .ctx = f };
}

int session_set_up(void **state)
{
	struct session *f = calloc(1, sizeof(*f));

	test_host_open(&f->host);
	f->host.make = make_flow;
	f->reader = session_reader(f);
	*state = f;
	return 0;
}

int session_tear_down(void **state)
{
	struct session *f = *state;

	if (f->state)
		sink_module_close(&netobs_sink_module, f->state);
	close(f->fd);
	test_host_close(&f->host);
	free(f);
	return 0;
}

void session_work(struct session *f, bool flush)
{
	assert_int_equal(netobs_sink_module.work(f->state, flush), 0);
}

void session_work_for(struct session *f, int turns)
{
	while (turns-- > 0) {
		session_work(f, true);
		test_host_wait(&f->host, 10);
	}
}

uint64_t session_counter(struct session *f, const char *name)
{
	return test_counter(&netobs_sink_module, f->state, name);
}
