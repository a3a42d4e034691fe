// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/* What a collector gets, in which order, and what happens when it comes again. */
#include "lib_ipfix.h"
#include "lib_sink_host.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { PATIENCE = 2000 /* rounds of 10 ms */ };

struct fixture {
	struct test_host host;
	void *state;
	int fd; /* the collector's */
	uint16_t port;
	struct ipfix_reader reader;
	unsigned int messages, flows, interfaces;
	uint64_t interval, space, not_sent;
};

static const struct netobs_point point = { .ifindex = 3, .name = "eth0" };

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
	struct fixture *f = ctx;

	f->flows += ipfix_has(record, 1);
	f->interfaces += ipfix_has(record, 82);
	if (ipfix_has(record, 34))
		f->interval = ipfix_value(record, 0, 34);
	if (ipfix_has(record, 306))
		f->space = ipfix_value(record, 0, 306);
	if (ipfix_has(record, 166))
		f->not_sent = ipfix_value(record, 0, 166);
}

static void listen_at(struct fixture *f, int type)
{
	struct sockaddr_in address = { .sin_family = AF_INET };
	socklen_t len = sizeof(address);

	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	f->fd = socket(AF_INET, type | SOCK_NONBLOCK, 0);
	assert_int_equal(bind(f->fd, (struct sockaddr *)&address, len), 0);
	assert_int_equal(getsockname(f->fd, (struct sockaddr *)&address, &len),
			 0);
	if (type == SOCK_STREAM)
		assert_int_equal(listen(f->fd, 5), 0);
	f->port = ntohs(address.sin_port);
}

static void open_sink(struct fixture *f, const char *transport,
		      const char *options)
{
	char text[256];
	struct spec spec;

	snprintf(text, sizeof(text), "ipfix:%s://127.0.0.1:%u%s", transport,
		 f->port, options);
	test_host_spec(&f->host, text, &spec);
	assert_int_equal(
		netobs_sink_module.open(&spec, &f->host.host, &f->state), 0);
	spec_free(&spec);
}

static int set_up(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	test_host_open(&f->host);
	f->host.make = make_flow;
	f->reader = (struct ipfix_reader){ .on_record = keep, .ctx = f };
	*state = f;
	return 0;
}

static int tear_down(void **state)
{
	struct fixture *f = *state;

	if (f->state)
		netobs_sink_module.close(f->state);
	close(f->fd);
	test_host_close(&f->host);
	free(f);
	return 0;
}

static void work(struct fixture *f, bool flush)
{
	assert_int_equal(netobs_sink_module.work(f->state, flush), 0);
}

/* Reads a datagram; false: there is none. */
static bool receive(struct fixture *f)
{
	uint8_t bytes[65536];
	ssize_t len = recv(f->fd, bytes, sizeof(bytes), 0);

	if (len < 0)
		return false;
	ipfix_read(&f->reader, bytes, (size_t)len);
	f->messages++;
	return true;
}

static void receive_until_acked(struct fixture *f, uint64_t n)
{
	for (int i = 0; i < PATIENCE && f->host.acked < n; i++) {
		test_host_wait(&f->host, 10);
		work(f, false);
		while (receive(f))
			;
	}
	assert_int_equal(f->host.acked, n);
}

static uint64_t counter_value;

static void take_counter(void *ctx, const char *name, uint64_t value)
{
	if (!strcmp(ctx, name))
		counter_value = value;
}

static uint64_t counter(struct fixture *f, const char *name)
{
	netobs_sink_module.counters(f->state, take_counter, (void *)name);
	return counter_value;
}

/* ---- UDP ------------------------------------------------------------------------- */

static void data_come_some_time_after_the_templates(void **state)
{
	struct fixture *f = *state;

	listen_at(f, SOCK_DGRAM);
	open_sink(f, "udp", "");
	f->host.n_records = 100;
	work(f, true);
	assert_true(receive(f));
	assert_false(receive(f));
	assert_int_equal(f->reader.n_templates, 11);
	assert_int_equal(f->flows, 0);
	assert_true(f->host.wake_ms);
	receive_until_acked(f, 100);
	assert_int_equal(f->flows, 100);
	assert_int_equal(f->interfaces, 1);
	assert_int_equal(counter(f, "messages"), f->messages);
	assert_int_equal(counter(f, "data_records"), f->reader.sequence);
}

static void message_waits_for_more_until_it_is_full_or_flushed(void **state)
{
	struct fixture *f = *state;

	listen_at(f, SOCK_DGRAM);
	open_sink(f, "udp", "");
	f->host.n_records = 1;
	work(f, true);
	receive_until_acked(f, 1);
	f->host.n_records = 4;
	work(f, false);
	assert_false(receive(f));
	work(f, true);
	assert_true(receive(f));
	assert_int_equal(f->flows, 4);
	f->host.n_records = 40;
	work(f, false);
	assert_true(receive(f));
	assert_in_range(f->flows, 10, 39);
	receive_until_acked(f, 40); /* the rest by itself, after a second */
}

static void sampling_and_what_was_not_sent_are_told(void **state)
{
	struct fixture *f = *state;

	listen_at(f, SOCK_DGRAM);
	f->host.host.sampling = 100;
	open_sink(f, "udp", "?sampling_options=both&options_refresh=1s");
	f->host.n_records = 10;
	work(f, true);
	receive_until_acked(f, 10);
	assert_int_equal(f->interval, 100);
	assert_int_equal(f->space, 99);
	assert_int_equal(f->not_sent, 0);
	f->host.next = 17; /* seven were dropped */
	f->host.n_records = 20;
	work(f, true);
	receive_until_acked(f, 20);
	for (int i = 0; i < PATIENCE && !f->not_sent; i++) {
		test_host_wait(&f->host, 10);
		work(f, true);
		while (receive(f))
			;
	}
	assert_int_equal(f->not_sent, 7);
	assert_int_equal(f->flows, 13);
}

static void templates_are_repeated(void **state)
{
	struct fixture *f = *state;

	listen_at(f, SOCK_DGRAM);
	open_sink(f, "udp", "?template_refresh=1s");
	for (int i = 0; i < PATIENCE && f->reader.templates_read < 33; i++) {
		work(f, false);
		test_host_wait(&f->host, 10);
		receive(f);
	}
	assert_int_equal(f->reader.templates_read, 33);
	assert_int_equal(f->reader.n_templates, 11);
}

static void collector_that_is_away_is_asked_now_and_then(void **state)
{
	struct fixture *f = *state;
	unsigned int rounds = 0;

	listen_at(f, SOCK_DGRAM);
	close(f->fd);
	f->fd = -1;
	open_sink(f, "udp", "");
	f->host.n_records = 1000;
	for (; counter(f, "refused_messages") < 3 && rounds < PATIENCE; rounds++) {
		work(f, true);
		test_host_wait(&f->host, PATIENCE);
	}
	assert_in_range(rounds, 3, 30);
	assert_int_equal(f->host.acked, 0);
	assert_int_equal(test_host_lines(&f->host), 1);
}

/* ---- TCP ------------------------------------------------------------------------- */

static int accept_soon(struct fixture *f)
{
	for (int i = 0; i < PATIENCE; i++) {
		int peer = accept4(f->fd, NULL, NULL, SOCK_NONBLOCK);

		if (peer >= 0)
			return peer;
		work(f, false);
		test_host_wait(&f->host, 10);
	}
	fail_msg("nobody connected");
	return -1;
}

/* A stream of messages, until @n records are acknowledged. */
static void read_stream(struct fixture *f, int peer, uint64_t n)
{
	static uint8_t bytes[1 << 20];
	size_t used = 0, at = 0, len;

	for (int i = 0; i < PATIENCE && f->host.acked < n; i++) {
		ssize_t got = recv(peer, bytes + used, sizeof(bytes) - used, 0);

		used += got > 0 ? (size_t)got : 0;
		work(f, true);
		test_host_wait(&f->host, 10);
	}
	assert_int_equal(f->host.acked, n);
	for (; at + 16 <= used; at += len) {
		len = ipfix_number(bytes + at + 2, 2);
		if (at + len > used)
			break;
		ipfix_read(&f->reader, bytes + at, len);
	}
}

static void each_connection_is_a_session_of_its_own(void **state)
{
	struct fixture *f = *state;
	int peer;

	listen_at(f, SOCK_STREAM);
	open_sink(f, "tcp", "");
	for (unsigned int round = 1; round <= 3; round++) {
		/* A reader that knows nothing: sequence 0, no templates. */
		f->reader = (struct ipfix_reader){ .on_record = keep, .ctx = f };
		peer = accept_soon(f);
		f->host.n_records = 1000 * round;
		read_stream(f, peer, 1000 * round);
		assert_int_equal(f->reader.n_templates, 11);
		assert_int_equal(counter(f, "sessions"), round);
		close(peer);
	}
}

#define session_test(test) \
	cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		session_test(data_come_some_time_after_the_templates),
		session_test(message_waits_for_more_until_it_is_full_or_flushed),
		session_test(sampling_and_what_was_not_sent_are_told),
		session_test(templates_are_repeated),
		session_test(collector_that_is_away_is_asked_now_and_then),
		session_test(each_connection_is_a_session_of_its_own),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
