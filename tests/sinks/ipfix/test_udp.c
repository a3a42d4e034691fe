// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/* What a collector gets over UDP, in which order, and what happens when it is away. */
#include "lib_session.h"
#include "base/clock_ms.h"

#include <dlfcn.h>
#include <netdb.h>
#include <sys/socket.h>

/* Reads a datagram; false: there is none. */
static bool receive(struct session *f)
{
	uint8_t bytes[65536];
	ssize_t len = recv(f->fd, bytes, sizeof(bytes), 0);

	if (len < 0)
		return false;
	ipfix_read(&f->reader, bytes, (size_t)len);
	f->messages++;
	return true;
}

/* The same after messages were lost, from the first templates on. */
static bool receive_again(struct session *f)
{
	enum { FIRST_DATA_SET = 256 };
	uint8_t bytes[65536];
	ssize_t len = recv(f->fd, bytes, sizeof(bytes), 0);

	if (len < 0)
		return false;
	if (f->reader.n_templates < TEMPLATES &&
	    ipfix_number(bytes + 16, 2) >= FIRST_DATA_SET)
		return true;
	f->reader.sequence = (uint32_t)ipfix_number(bytes + 8, 4);
	ipfix_read(&f->reader, bytes, (size_t)len);
	return true;
}

/* Go on until the log has @n lines. */
static void work_until_logged(struct session *f, unsigned int n)
{
	await_by(test_host_lines(&f->host) == n, {
		f->host.n_records++;
		session_work_for(f, 1);
		while (receive_again(f))
			;
	});
}

static void receive_until_acked(struct session *f, uint64_t n)
{
	await_by(f->host.acked >= n, {
		test_host_wait(&f->host, 10);
		session_work(f, false);
		while (receive(f))
			;
	});
	/* On a slow machine, the sink may have stopped after it had sent the last message. */
	session_work(f, false);
	while (receive(f))
		;
	assert_int_equal(f->host.acked, n);
}

/* Where the first message was slow, the second one waits for a moment. */
static void receive_templates(struct session *f)
{
	await_by(f->reader.n_templates >= TEMPLATES, {
		session_work(f, true);
		while (receive(f))
			;
		usleep(WAIT_STEP_US);
	});
	assert_int_equal(f->reader.n_templates, TEMPLATES);
}

#define CASE(name) \
	TEST_OF(name, struct session *f, session_set_up, session_tear_down)

CASE(data_come_some_time_after_the_templates)
{
	session_open(f, "udp", "");
	f->host.n_records = 100;
	receive_templates(f);
	assert_int_equal(f->flows, 0);
	assert_true(f->host.wake_ms);
	receive_until_acked(f, 100);
	assert_int_equal(f->flows, 100);
	assert_int_equal(f->interfaces, 1);
	assert_int_equal(session_counter(f, "messages"), f->messages);
	assert_int_equal(session_counter(f, "data_records"), f->reader.sequence);
}

CASE(message_waits_for_more_until_it_is_full_or_flushed)
{
	session_open(f, "udp", "");
	f->host.n_records = 1;
	session_work(f, true);
	receive_until_acked(f, 1);
	f->host.n_records = 4;
	session_work(f, false);
	assert_false(receive(f));
	session_work(f, true);
	assert_true(receive(f));
	assert_int_equal(f->flows, 4);
	f->host.n_records = 40;
	session_work(f, false);
	assert_true(receive(f));
	assert_in_range(f->flows, 10, 39);
	receive_until_acked(f, 40); /* the rest by itself, after a second */
}

CASE(sampling_and_what_was_not_sent_are_told)
{
	f->host.host.sampling = 100;
	session_open(f, "udp", "?options_refresh=1s");
	f->host.n_records = 10;
	session_work(f, true);
	receive_until_acked(f, 10);
	assert_int_equal(f->interval, 100);
	assert_int_equal(f->not_sent, 0);
	f->host.next = 17; /* seven were dropped */
	f->host.n_records = 20;
	session_work(f, true);
	receive_until_acked(f, 20);
	await_by(f->not_sent, {
		test_host_wait(&f->host, 10);
		session_work(f, true);
		while (receive(f))
			;
	});
	assert_int_equal(f->not_sent, 7);
	assert_int_equal(f->flows, 13);
}

static void send_records(struct session *f, const char *options, uint64_t n)
{
	session_open(f, "udp", options);
	f->host.n_records = n;
	session_work(f, true);
	receive_until_acked(f, n);
}

CASE(options_can_be_left_out)
{
	send_records(f, "?options=no&record=extended", 100);
	assert_int_equal(f->flows, 100);
	assert_int_equal(f->interfaces, 0);
	assert_int_equal(f->reader.n_templates,
			 FLOW_TEMPLATES + EXTENDED_TEMPLATES);
	assert_int_equal(f->reader.sequence, 100);
}

CASE(own_elements_are_named)
{
	enum { ELEMENTS = 48 };

	send_records(f, "?record=extended&pen=4711", 1);
	await_by(f->elements >= ELEMENTS, {
		session_work_for(f, 1);
		while (receive(f))
			;
	});
	assert_int_equal(f->elements, ELEMENTS);
	assert_int_equal(f->pen, 4711);
	assert_int_equal(f->reader.n_templates,
			 TEMPLATES + EXTENDED_TEMPLATES + 2);
}

CASE(messages_keep_their_pace)
{
	enum { PER_MS = 10, BURST = 20, RECORDS = 20000 };
	int64_t begin_ms = clock_ms(CLOCK_MONOTONIC), took_ms;

	session_open(f, "udp", "");
	f->host.n_records = RECORDS;
	await_by(f->host.acked >= RECORDS, {
		session_work(f, true);
		took_ms = clock_ms(CLOCK_MONOTONIC) - begin_ms;
		while (receive(f))
			;
		assert_true(f->messages <= BURST + PER_MS * (took_ms + 1));
		test_host_wait(&f->host, 1);
	});
	assert_int_equal(f->flows, RECORDS);
}

CASE(templates_are_repeated)
{
	session_open(f, "udp", "?template_refresh=1s");
	await_by(f->reader.templates_read >= 3 * TEMPLATES, {
		session_work(f, false);
		test_host_wait(&f->host, 10);
		receive(f);
	});
	assert_int_equal(f->reader.templates_read, 3 * TEMPLATES);
	assert_int_equal(f->reader.n_templates, TEMPLATES);
}

CASE(refused_messages_are_counted_and_not_sent_again)
{
	session_listen(f, SOCK_DGRAM);
	close(f->fd);
	f->fd = -1;
	session_open(f, "udp", "");
	f->host.n_records = 1000;
	receive_until_acked(f, 1000);
	assert_in_range(session_counter(f, "refused_messages"), 1,
			session_counter(f, "messages"));
	assert_int_equal(session_counter(f, "failed_messages"), 0);
	assert_int_equal(test_host_lines(&f->host), 1);
	session_listen(f, SOCK_DGRAM);
	work_until_logged(f, 2);
	assert_int_equal(f->reader.n_templates, TEMPLATES);
	assert_in_range(f->flows, 1, f->host.n_records - 1000);
}

/* two.test: no one listens at the first of its addresses. */
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

CASE(all_addresses_of_a_name_are_tried)
{
	f->name = "two.test";
	session_open(f, "udp", "");
	f->host.n_records = 100;
	session_work(f, true);
	receive_until_acked(f, 100);
	assert_int_equal(f->flows, 100);
	assert_int_equal(session_counter(f, "refused_messages") > 0, 1);
	assert_string_equal(f->host.logged, "");
}

CASE(all_addresses_are_tried_until_one_listens)
{
	session_listen(f, SOCK_DGRAM);
	close(f->fd);
	f->fd = -1;
	f->name = "two.test";
	session_open(f, "udp", "");
	f->host.n_records = 100;
	await_by(session_counter(f, "sessions") >= 4, session_work_for(f, 1));
	assert_int_equal(test_host_lines(&f->host), 1);
	session_listen(f, SOCK_DGRAM);
	work_until_logged(f, 2);
	assert_in_range(f->flows, 1, f->host.n_records);
}
