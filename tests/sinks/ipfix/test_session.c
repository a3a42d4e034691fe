// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/* What a collector gets, in which order, and what happens when it comes again. */
#include "lib_ipfix.h"
#include "lib_sink_host.h"

#include <arpa/inet.h>
#include <dlfcn.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { PATIENCE = 2000 /* rounds of 10 ms */ };

/* Of flows, and with those of options; extended records have one more. */
enum { FLOW_TEMPLATES = 4, TEMPLATES = 10 };

struct fixture {
	struct test_host host;
	void *state;
	const char *name; /* the collector's; NULL: its address */
	int fd;		  /* the collector's */
	uint16_t port;
	struct ipfix_reader reader;
	unsigned int messages, flows, interfaces;
	unsigned int elements;
	uint64_t pen, flows_sent;
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
	f->elements += ipfix_has(record, 341);
	if (ipfix_has(record, 346))
		f->pen = ipfix_value(record, 0, 346);
	if (ipfix_has(record, 42))
		f->flows_sent = ipfix_value(record, 0, 42);
	if (ipfix_has(record, 34))
		f->interval = ipfix_value(record, 0, 34);
	if (ipfix_has(record, 306))
		f->space = ipfix_value(record, 0, 306);
	if (ipfix_has(record, 166))
		f->not_sent = ipfix_value(record, 0, 166);
}

static void listen_at(struct fixture *f, int type)
{
	struct sockaddr_in address = { .sin_family = AF_INET,
				       .sin_port = htons(f->port) };
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

	snprintf(text, sizeof(text), "ipfix:%s://%s:%u%s", transport,
		 f->name ?: "127.0.0.1", f->port, options);
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
	while (receive(f))
		;
	assert_int_equal(f->reader.n_templates, TEMPLATES);
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

static void options_can_be_left_out(void **state)
{
	struct fixture *f = *state;

	listen_at(f, SOCK_DGRAM);
	open_sink(f, "udp", "?options=no&sets=one&record=extended");
	f->host.n_records = 100;
	work(f, true);
	receive_until_acked(f, 100);
	assert_int_equal(f->flows, 100);
	assert_int_equal(f->interfaces, 0);
	assert_int_equal(f->reader.n_templates, FLOW_TEMPLATES);
	assert_int_equal(f->reader.sequence, 100);
}

static void own_elements_are_named(void **state)
{
	struct fixture *f = *state;

	listen_at(f, SOCK_DGRAM);
	open_sink(f, "udp", "?record=extended&pen=4711");
	f->host.n_records = 1;
	work(f, true);
	receive_until_acked(f, 1);
	assert_int_equal(f->elements, 8);
	assert_int_equal(f->pen, 4711);
	assert_int_equal(f->reader.n_templates, TEMPLATES + 1);
}

static void templates_are_repeated(void **state)
{
	struct fixture *f = *state;

	listen_at(f, SOCK_DGRAM);
	open_sink(f, "udp", "?template_refresh=1s");
	for (int i = 0;
	     i < PATIENCE && f->reader.templates_read < 3 * TEMPLATES; i++) {
		work(f, false);
		test_host_wait(&f->host, 10);
		receive(f);
	}
	assert_int_equal(f->reader.templates_read, 3 * TEMPLATES);
	assert_int_equal(f->reader.n_templates, TEMPLATES);
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

/* two.test: nobody listens at the first of its addresses. */
int getaddrinfo(const char *restrict host, const char *restrict port,
		const struct addrinfo *restrict hints,
		struct addrinfo **restrict list)
{
	typedef int getaddrinfo_fn(const char *, const char *,
				   const struct addrinfo *, struct addrinfo **);
	getaddrinfo_fn *real = (getaddrinfo_fn *)dlsym(RTLD_NEXT, "getaddrinfo");
	int err;

	if ((hints && hints->ai_flags & AI_NUMERICHOST) ||
	    strcmp(host, "two.test"))
		return real(host, port, hints, list);
	err = real("127.0.0.2", port, hints, list);
	return err ?: real("127.0.0.1", port, hints, &(*list)->ai_next);
}

static void all_addresses_of_a_name_are_tried(void **state)
{
	struct fixture *f = *state;

	listen_at(f, SOCK_DGRAM);
	f->name = "two.test";
	open_sink(f, "udp", "");
	f->host.n_records = 100;
	work(f, true);
	receive_until_acked(f, 100);
	assert_int_equal(f->flows, 100);
	assert_int_equal(counter(f, "refused_messages") > 0, 1);
	assert_string_equal(f->host.logged, "");
}

static void all_addresses_are_tried_until_one_listens(void **state)
{
	struct fixture *f = *state;

	listen_at(f, SOCK_DGRAM);
	close(f->fd);
	f->fd = -1;
	f->name = "two.test";
	open_sink(f, "udp", "");
	f->host.n_records = 100;
	for (int i = 0; i < PATIENCE && counter(f, "sessions") < 5; i++) {
		work(f, true);
		test_host_wait(&f->host, 10);
	}
	assert_int_equal(test_host_lines(&f->host), 1);
	listen_at(f, SOCK_DGRAM);
	receive_until_acked(f, 100);
	assert_int_equal(f->flows, 100);
	assert_int_equal(test_host_lines(&f->host), 2);
}

/* ---- TCP ------------------------------------------------------------------------- */

/* Of the connections that are made from now on; the kernel doubles it. */
static void set_buffer(struct fixture *f, int size)
{
	assert_int_equal(
		setsockopt(f->fd, SOL_SOCKET, SO_RCVBUF, &size, sizeof(size)), 0);
}

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

/* All that was sent over a connection, from its beginning. */
struct received {
	uint8_t bytes[1 << 20];
	size_t used;
};

static ssize_t receive_some(struct received *all, int peer)
{
	ssize_t got = recv(peer, all->bytes + all->used,
			   sizeof(all->bytes) - all->used, 0);

	all->used += got > 0 ? (size_t)got : 0;
	return got;
}

static void read_messages(struct fixture *f, const struct received *all)
{
	const uint8_t *bytes = all->bytes;
	size_t used = all->used, at = 0, len;

	for (; at + 16 <= used; at += len) {
		len = ipfix_number(bytes + at + 2, 2);
		if (at + len > used)
			break;
		ipfix_read(&f->reader, bytes + at, len);
	}
}

/* A session that is brought to its end, and @n records are acknowledged. */
static void read_session(struct fixture *f, int peer, uint64_t n)
{
	static struct received all;

	all.used = 0;
	f->host.host.is_ending = true;
	for (int i = 0; i < PATIENCE && f->host.acked < n; i++) {
		if (!receive_some(&all, peer))
			shutdown(peer, SHUT_RDWR);
		work(f, true);
		test_host_wait(&f->host, 10);
	}
	f->host.host.is_ending = false;
	assert_int_equal(f->host.acked, n);
	read_messages(f, &all);
}

static void reset(int peer)
{
	const struct linger none = { .l_onoff = 1 };

	setsockopt(peer, SOL_SOCKET, SO_LINGER, &none, sizeof(none));
	close(peer);
}

/* The other side's kernel has all, and nobody has read it. */
static void send_to_kernel(struct fixture *f, uint64_t n)
{
	f->host.n_records = n;
	for (int i = 0; i < 30; i++) {
		work(f, true);
		test_host_wait(&f->host, 10);
	}
	assert_int_equal(f->host.next, n);
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
		read_session(f, peer, 1000 * round);
		assert_int_equal(f->reader.n_templates, TEMPLATES);
		assert_int_equal(counter(f, "sessions"), round);
		close(peer);
	}
}

/* A backlog is had a part at a time; the session ends behind the last one. */
static void session_ends_when_all_records_are_in_it(void **state)
{
	struct fixture *f = *state;
	int peer;

	listen_at(f, SOCK_STREAM);
	open_sink(f, "tcp", "");
	peer = accept_soon(f);
	f->host.part = 100;
	f->host.n_records = 1000;
	read_session(f, peer, 1000);
	assert_int_equal(f->flows, 1000);
	assert_int_equal(counter(f, "sessions"), 1);
	close(peer);
}

static void what_a_kernel_has_taken_is_sent_again_after_a_reset(void **state)
{
	struct fixture *f = *state;
	int peer;

	listen_at(f, SOCK_STREAM);
	open_sink(f, "tcp", "");
	peer = accept_soon(f);
	send_to_kernel(f, 500);
	assert_int_equal(f->host.acked, 0);
	reset(peer);
	peer = accept_soon(f);
	read_session(f, peer, 500);
	assert_int_equal(f->flows, 500);
	assert_int_equal(f->host.unconfirmed, 0);
	assert_int_equal(counter(f, "broken_sessions"), 1);
	close(peer);
}

/* With the spool about to drop records, and by wish. */
static void what_is_delivered_unread_counts_as_unconfirmed(void **state)
{
	struct fixture *f = *state;
	int peer;

	listen_at(f, SOCK_STREAM);
	f->host.is_pressed = true;
	open_sink(f, "tcp", "");
	peer = accept_soon(f);
	send_to_kernel(f, 500);
	assert_int_equal(f->host.acked, 500);
	assert_int_equal(f->host.unconfirmed, 0);
	reset(peer);
	close(accept_soon(f));
	assert_int_equal(f->host.unconfirmed, 500);

	netobs_sink_module.close(f->state);
	f->host.is_pressed = false;
	open_sink(f, "tcp", "?resend=unacknowledged");
	peer = accept_soon(f);
	send_to_kernel(f, 900);
	assert_int_equal(f->host.acked, 900);
	reset(peer);
	close(accept_soon(f));
	assert_int_equal(f->host.unconfirmed, 900);
}

/* exportedFlowRecordTotalCount: no options records, nor what is sent again. */
static void flows_are_counted_once_each(void **state)
{
	struct fixture *f = *state;
	int peer;

	listen_at(f, SOCK_STREAM);
	f->host.has_stats = true;
	open_sink(f, "tcp", "?options_refresh=1s");
	peer = accept_soon(f);
	send_to_kernel(f, 500);
	reset(peer);
	peer = accept_soon(f);
	send_to_kernel(f, 700);
	for (int i = 0; i < 150; i++) {
		work(f, true);
		test_host_wait(&f->host, 10);
	}
	read_session(f, peer, 700);
	assert_int_equal(f->flows, 700);
	assert_int_equal(f->flows_sent, 700);
	close(peer);
}

static void what_is_far_behind_was_read(void **state)
{
	static struct received all;
	struct fixture *f = *state;
	int peer;

	listen_at(f, SOCK_STREAM);
	set_buffer(f, 32768);
	open_sink(f, "tcp", "?mtu=1000");
	peer = accept_soon(f);
	for (int i = 0; i < PATIENCE && f->host.acked < 1000; i++) {
		f->host.n_records += 500;
		work(f, true);
		all.used = 0;
		while (receive_some(&all, peer) > 0)
			all.used = 0;
	}
	assert_in_range(f->host.acked, 1000, f->host.n_records - 500);
	reset(peer);
	close(accept_soon(f));
	assert_int_equal(f->host.unconfirmed, 0);
}

static void half_of_a_connection_is_enough(void **state)
{
	static struct received all;
	struct fixture *f = *state;
	int peer;

	listen_at(f, SOCK_STREAM);
	open_sink(f, "tcp", "");
	peer = accept_soon(f);
	shutdown(peer, SHUT_WR);
	all.used = 0;
	for (int i = 0; i < 100; i++) {
		f->host.n_records += 10;
		work(f, true);
		test_host_wait(&f->host, 10);
		receive_some(&all, peer);
	}
	read_messages(f, &all);
	assert_in_range(f->flows, 980, 1000);
	assert_int_equal(counter(f, "sessions"), 1);
	assert_string_equal(f->host.logged, "");
	reset(peer);
	close(accept_soon(f));
}

/* It may have restarted, and be asked again at once only if it was of use before. */
static void collector_that_closes_each_time_delivers_nothing(void **state)
{
	struct fixture *f = *state;

	listen_at(f, SOCK_STREAM);
	open_sink(f, "tcp", "");
	f->host.n_records = 100;
	for (unsigned int i = 1; i <= 3; i++) {
		int peer = accept_soon(f);

		for (int j = 0; j < 10; j++) {
			work(f, true);
			test_host_wait(&f->host, 10);
		}
		close(peer);
		assert_int_equal(counter(f, "sessions"), i);
	}
	for (int i = 0; i < PATIENCE && counter(f, "broken_sessions") < 3; i++) {
		work(f, true);
		test_host_wait(&f->host, 10);
	}
	assert_int_equal(counter(f, "broken_sessions"), 3);
	assert_int_equal(f->host.acked, 0);
	assert_int_equal(test_host_lines(&f->host), 1);
}

#define session_test(test) \
	cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		session_test(data_come_some_time_after_the_templates),
		session_test(message_waits_for_more_until_it_is_full_or_flushed),
		session_test(sampling_and_what_was_not_sent_are_told),
		session_test(options_can_be_left_out),
		session_test(own_elements_are_named),
		session_test(templates_are_repeated),
		session_test(collector_that_is_away_is_asked_now_and_then),
		session_test(all_addresses_of_a_name_are_tried),
		session_test(all_addresses_are_tried_until_one_listens),
		session_test(each_connection_is_a_session_of_its_own),
		session_test(session_ends_when_all_records_are_in_it),
		session_test(what_a_kernel_has_taken_is_sent_again_after_a_reset),
		session_test(what_is_delivered_unread_counts_as_unconfirmed),
		session_test(what_is_far_behind_was_read),
		session_test(flows_are_counted_once_each),
		session_test(half_of_a_connection_is_enough),
		session_test(collector_that_closes_each_time_delivers_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
