// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/* Connections over TCP, to sockets of this very thread: if one waited, all would. */
#include "sinks/net/net.h"

#include "lib_sink_host.h"
#include "lib_wait.h"
#include "base/clock_ms.h"

#include <arpa/inet.h>
#include <dlfcn.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/socket.h>

/* ---- Names: resolved by the test itself, without a DNS server --------------------- */

typedef int getaddrinfo_fn(const char *, const char *, const struct addrinfo *,
			   struct addrinfo **);

/* slow.test is known when this is unlocked. */
static pthread_mutex_t slowness = PTHREAD_MUTEX_INITIALIZER;
static atomic_int lookups;

static int look_up(const char *host, const char *port,
		   const struct addrinfo *hints, struct addrinfo **list)
{
	getaddrinfo_fn *real = (getaddrinfo_fn *)dlsym(RTLD_NEXT, "getaddrinfo");

	return real(host, port, hints, list);
}

int getaddrinfo(const char *restrict host, const char *restrict port,
		const struct addrinfo *restrict hints,
		struct addrinfo **restrict list)
{
	int err;

	if ((hints && hints->ai_flags & AI_NUMERICHOST) || !strstr(host, ".test"))
		return look_up(host, port, hints, list);
	atomic_fetch_add(&lookups, 1);
	if (!strcmp(host, "unknown.test"))
		return EAI_NONAME;
	if (!strcmp(host, "slow.test")) {
		pthread_mutex_lock(&slowness);
		pthread_mutex_unlock(&slowness);
	}
	/* two.test: no one listens at the first of its addresses. */
	if (strcmp(host, "two.test"))
		return look_up("127.0.0.1", port, hints, list);
	err = look_up("127.0.0.2", port, hints, list);
	return err ?: look_up("127.0.0.1", port, hints, &(*list)->ai_next);
}

/* ---- Fixture -------------------------------------------------------------------- */

struct fixture {
	struct test_host host;
	struct stream stream;
	int listener, peer;
	uint16_t port;
};

static void begin(struct fixture *f)
{
	test_host_open(&f->host);
	f->listener = f->peer = -1;
}

static void end(struct fixture *f)
{
	stream_close(&f->stream);
	close_fd(&f->peer);
	close_fd(&f->listener);
	test_host_close(&f->host);
}

TEST_FIXTURE(struct fixture, begin, end)

/* At f->port if there is one. */
static void start_listening(struct fixture *f)
{
	f->listener = test_listen(SOCK_STREAM | SOCK_NONBLOCK, &f->port);
}

/* A port without a listener. */
static void find_port(struct fixture *f)
{
	start_listening(f);
	close_fd(&f->listener);
}

static void open_stream(struct fixture *f, const char *host, const char *source)
{
	struct stream_options options = { .retry_ms = 20, .retry_max_ms = 40 };
	struct spec spec;
	char text[64];

	snprintf(text, sizeof(text), "x?source=%s", source ?: "127.0.0.1");
	test_host_spec(&f->host, text, &spec);
	if (source)
		address_read_source(&spec, &options.source);
	snprintf(text, sizeof(text), "//%s:%u", host, f->port);
	assert_true(address_parse(&spec, text, 0, &options.address));
	spec_free(&spec);
	stream_open(&f->stream, &options, &f->host.host);
}

/* What a module's work() does. */
static enum peer_state work(struct fixture *f)
{
	enum peer_state state = stream_prepare(&f->stream);
	ssize_t n = -EAGAIN;
	char byte;

	while (state >= PEER_READY && (n = stream_read(&f->stream, &byte, 1)) > 0)
		;
	if (n != -EAGAIN)
		state = PEER_AWAY;
	f->host.host.ops->wake_in(&f->host.host, stream_rest(&f->stream));
	return state;
}

static void work_until(struct fixture *f, enum peer_state wanted)
{
	for (int64_t end = now_ms() + WAIT_MS; now_ms() < end;) {
		if (work(f) == wanted)
			return;
		test_host_wait(&f->host, 100);
	}
	fail_msg("state %d did not come: %s", wanted, f->host.logged);
}

static void work_until_failures(struct fixture *f, unsigned int failures)
{
	await_by(f->stream.backoff.failures >= failures, {
		work(f);
		test_host_wait(&f->host, 100);
	});
}

static void work_until_lines(struct fixture *f, unsigned int lines)
{
	await_by(test_host_lines(&f->host) >= lines, {
		work(f);
		test_host_wait(&f->host, 100);
	});
}

static void accept_peer(struct fixture *f)
{
	work_until(f, PEER_NEW);
	f->peer = accept4(f->listener, NULL, NULL, SOCK_NONBLOCK);
	assert_true(f->peer >= 0);
}

static void assert_logged(const struct fixture *f, unsigned int lines,
			  const char *text)
{
	if (test_host_lines(&f->host) != lines || !strstr(f->host.logged, text))
		fail_msg("not %u lines with '%s': %s", lines, text,
			 f->host.logged);
}

#define CASE(name) TEST_OF(name, struct fixture *f, set_up, tear_down)

/* ---- Connections ------------------------------------------------------------------ */

CASE(bytes_go_both_ways)
{
	char buf[16];

	start_listening(f);
	open_stream(f, "127.0.0.1", NULL);
	accept_peer(f);
	assert_int_equal(stream_write(&f->stream, "hello", 5), 5);
	assert_int_equal(recv(f->peer, buf, sizeof(buf), 0), 5);
	assert_int_equal(send(f->peer, "you", 3, 0), 3);
	test_host_wait(&f->host, 10000);
	assert_int_equal(stream_prepare(&f->stream), PEER_READY);
	assert_int_equal(stream_read(&f->stream, buf, sizeof(buf)), 3);
	assert_int_equal(stream_read(&f->stream, buf, sizeof(buf)), -EAGAIN);
	assert_int_equal(stream_unacknowledged(&f->stream), 0);
	assert_string_equal(f->host.logged, "");
}

CASE(all_addresses_of_a_name_are_tried)
{
	start_listening(f);
	open_stream(f, "two.test", NULL);
	accept_peer(f);
	assert_string_equal(f->host.logged, "");
}

CASE(refusal_is_told_once_and_so_is_its_end)
{
	find_port(f);
	open_stream(f, "127.0.0.1", NULL);
	work_until_failures(f, 4);
	assert_logged(f, 1, "Connection refused; trying again");
	start_listening(f);
	accept_peer(f);
	assert_logged(f, 1, "refused");
	stream_is_good(&f->stream);
	stream_is_good(&f->stream);
	assert_logged(f, 2, "again\nconnected to 127.0.0.1:");
}

/* At 127.0.0.2, and the same port. */
static int listen_beside(const struct fixture *f)
{
	struct sockaddr_in address = { .sin_family = AF_INET,
				       .sin_port = htons(f->port),
				       .sin_addr = { htonl(0x7f000002) } };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);

	assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof(address)),
			 0);
	assert_int_equal(listen(fd, 4), 0);
	return fd;
}

CASE(address_that_is_of_no_use_is_tried_last)
{
	int other, peer;

	start_listening(f);
	other = listen_beside(f);
	open_stream(f, "two.test", NULL);
	work_until(f, PEER_NEW);
	peer = accept(other, NULL, NULL);
	assert_true(peer >= 0);
	close(peer);
	work_until_failures(f, 1);
	for (int i = 0; i < 3; i++) {
		accept_peer(f);
		stream_is_good(&f->stream);
		close_fd(&f->peer);
		work_until_failures(f, 1);
	}
	close(other);
}

CASE(idle_connection_may_be_closed)
{
	start_listening(f);
	open_stream(f, "127.0.0.1", NULL);
	accept_peer(f);
	stream_is_good(&f->stream);
	f->stream.is_idle = true;
	close_fd(&f->peer);
	accept_peer(f);
	assert_string_equal(f->host.logged, "");
	/* This one was of no use. */
	close_fd(&f->peer);
	work_until_lines(f, 1);
}

/* Else a server that fails in two ways in turn would fill the log. */
CASE(faults_that_take_turns_are_told_once_each)
{
	start_listening(f);
	open_stream(f, "127.0.0.1", NULL);
	for (int i = 0; i < 3; i++) {
		accept_peer(f);
		close_fd(&f->peer);
		close_fd(&f->listener);
		work_until_failures(f, f->stream.backoff.failures + 2);
		start_listening(f);
	}
	assert_logged(f, 2, "it closed the connection");
	assert_non_null(strstr(f->host.logged, "refused"));
}

CASE(connection_that_holds_is_good_by_itself)
{
	find_port(f);
	open_stream(f, "127.0.0.1", NULL);
	f->stream.options.good_ms = 50;
	work_until_failures(f, 1);
	start_listening(f);
	accept_peer(f);
	assert_logged(f, 1, "refused");
	work_until_lines(f, 2);
	assert_logged(f, 2, "connected to");
}

CASE(name_that_is_not_known_is_told_once)
{
	f->port = 1;
	open_stream(f, "unknown.test", NULL);
	work_until_failures(f, 4);
	assert_logged(f, 1, "unknown.test:1: the host name is unknown");
}

/* The thread that looks it up is left behind, and must find its own things there. */
CASE(stream_may_be_closed_while_a_name_is_looked_up)
{
	int before = lookups;

	start_listening(f);
	pthread_mutex_lock(&slowness);
	for (int i = 0; i < 3; i++) {
		open_stream(f, "slow.test", NULL);
		assert_int_equal(work(f), PEER_CONNECTING);
		stream_close(&f->stream);
	}
	open_stream(f, "slow.test", NULL);
	await_by(lookups >= before + 4,
		 assert_int_equal(work(f), PEER_CONNECTING));
	pthread_mutex_unlock(&slowness);
	accept_peer(f);
}

CASE(peer_that_closes_is_connected_to_anew)
{
	start_listening(f);
	open_stream(f, "127.0.0.1", NULL);
	for (uint64_t i = 1; i <= 3; i++) {
		accept_peer(f);
		assert_int_equal(f->stream.connections, i);
		close_fd(&f->peer);
		work_until(f, PEER_AWAY);
		assert_int_equal(stream_write(&f->stream, "x", 1), -ENOTCONN);
	}
	assert_logged(f, 1, "lost the connection to 127.0.0.1:");
}

/* SIGPIPE would end the test. */
CASE(writing_to_a_peer_that_is_gone_raises_no_signal)
{
	const struct linger reset = { .l_onoff = 1 };
	ssize_t n;

	signal(SIGPIPE, SIG_DFL);
	start_listening(f);
	open_stream(f, "127.0.0.1", NULL);
	accept_peer(f);
	setsockopt(f->peer, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
	close_fd(&f->peer);
	do {
		n = stream_write(&f->stream, "x", 1);
	} while (n > 0);
	assert_true(n == -ECONNRESET || n == -EPIPE);
	assert_int_equal(stream_prepare(&f->stream), PEER_AWAY);
}

CASE(peer_that_does_not_read_makes_nobody_wait)
{
	static char bytes[1 << 16], sink[1 << 16];
	size_t sent = 0, received = 0;
	ssize_t n;

	start_listening(f);
	open_stream(f, "127.0.0.1", NULL);
	accept_peer(f);
	while ((n = stream_write(&f->stream, bytes, sizeof(bytes))) > 0)
		sent += (size_t)n;
	assert_int_equal(n, -EAGAIN);
	assert_true(stream_unacknowledged(&f->stream) > 0);
	stream_rest(&f->stream);
	assert_true(f->stream.wants_out);

	/* It was asleep; the written data has arrived, and more can follow. */
	while (received < sent) {
		n = recv(f->peer, sink, sizeof(sink), MSG_DONTWAIT);
		if (n > 0)
			received += (size_t)n;
	}
	test_host_wait(&f->host, 10000);
	assert_int_equal(stream_prepare(&f->stream), PEER_READY);
	assert_true(stream_write(&f->stream, bytes, sizeof(bytes)) > 0);
	stream_rest(&f->stream);
	assert_false(f->stream.wants_out);
}

CASE(idle_connection_is_not_woken)
{
	start_listening(f);
	open_stream(f, "127.0.0.1", NULL);
	accept_peer(f);
	assert_int_equal(work(f), PEER_READY);
	assert_int_equal(stream_rest(&f->stream), -1);
	assert_int_equal(f->host.wake_ms, 0);
}

CASE(source_is_where_it_comes_from)
{
	struct sockaddr_in address = { 0 };
	socklen_t len = sizeof(address);

	start_listening(f);
	open_stream(f, "127.0.0.1", "127.0.0.3");
	accept_peer(f);
	getpeername(f->peer, (struct sockaddr *)&address, &len);
	assert_int_equal(ntohl(address.sin_addr.s_addr), 0x7f000003);
}

CASE(source_that_is_of_no_use_is_told)
{
	start_listening(f);
	open_stream(f, "127.0.0.1", "::1");
	work_until(f, PEER_AWAY);
	assert_logged(f, 1, "no address of the source's family");
	stream_close(&f->stream);
	open_stream(f, "127.0.0.1", "192.0.2.1");
	work_until(f, PEER_AWAY);
	assert_logged(f, 1, "no interface has the address");
}

CASE(restart_of_a_good_connection_is_soon_and_silent)
{
	start_listening(f);
	open_stream(f, "127.0.0.1", NULL);
	accept_peer(f);
	stream_is_good(&f->stream);
	close_fd(&f->peer);
	stream_restart(&f->stream);
	assert_int_equal(stream_rest(&f->stream), 0);
	accept_peer(f);
	/* This one was of no use: not at once again. */
	stream_restart(&f->stream);
	assert_true(stream_rest(&f->stream) > 0);
	assert_string_equal(f->host.logged, "");
}

CASE(delay_grows_up_to_its_limit)
{
	int last = 0;

	find_port(f);
	open_stream(f, "127.0.0.1", NULL);
	f->stream.backoff = (struct backoff){ 0 };
	for (int i = 0; i < 40; i++) {
		f->stream.due_ms = 0;
		work_until(f, PEER_AWAY);
		last = stream_rest(&f->stream);
		assert_true(last > 700 && last <= 3000);
	}
	assert_true(last > 2200);
}
