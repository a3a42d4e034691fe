// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/* TLS connections to an echo server in a process of its own. */
#include "sinks/net/net.h"

#include "lib_sink_host.h"
#include "lib_tls_server.h"
#include "lib_wait.h"
#include "base/clock_ms.h"

#include <arpa/inet.h>
#include <limits.h>
#include <netinet/in.h>
#include <openssl/err.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>

/* ---- Fixture --------------------------------------------------------------------- */

struct fixture {
	struct test_host host;
	struct tls_context context;
	struct stream stream;
	int listener;
	uint16_t port;
	pid_t server;
};

static void begin(struct fixture *f)
{
	test_host_open(&f->host);
	f->listener = test_listen(SOCK_STREAM, &f->port);
}

static void stop_server(struct fixture *f)
{
	if (f->server > 0) {
		kill(f->server, SIGKILL);
		waitpid(f->server, NULL, 0);
	}
	f->server = 0;
}

static void end_connection(struct fixture *f)
{
	stream_close(&f->stream);
	tls_context_close(&f->context);
	stop_server(f);
}

static void end(struct fixture *f)
{
	end_connection(f);
	close(f->listener);
	test_host_close(&f->host);
}

TEST_FIXTURE(struct fixture, begin, end)

static void start_server(struct fixture *f, const char *name, bool wants_cert,
			 int most)
{
	f->server = fork();
	assert_true(f->server >= 0);
	if (!f->server)
		tls_server_run(f->listener, name, wants_cert, most);
}

/* @options: of a spec, behind the question mark. */
static int try_context(struct fixture *f, const char *host, const char *options)
{
	char text[4 * PATH_MAX];
	struct spec spec;
	int err;

	snprintf(text, sizeof(text), "grpc%s%s", *options ? "?" : "", options);
	test_host_spec(&f->host, text, &spec);
	err = tls_context_open(&f->context, &spec, host, "\2h2");
	err = err ?: spec_finish(&spec);
	spec_free(&spec);
	return err;
}

static void open_stream(struct fixture *f, const char *host, const char *options)
{
	struct stream_options stream = { .retry_ms = 20,
					 .retry_max_ms = 40,
					 .tls = &f->context };
	char text[64];
	struct spec spec;

	assert_int_equal(try_context(f, host, options), 0);
	snprintf(text, sizeof(text), "//%s:%u", host, f->port);
	test_host_spec(&f->host, "grpc", &spec);
	assert_true(address_parse(&spec, text, 0, &stream.address));
	spec_free(&spec);
	stream_open(&f->stream, &stream, &f->host.host);
}

static const char *ca_option(void)
{
	static char text[PATH_MAX + 16];

	snprintf(text, sizeof(text), "ca=%s", tls_cert("ca.pem"));
	return text;
}

static const char *mutual_options(const char *cert_file, const char *key_file)
{
	static char text[4 * PATH_MAX];

	snprintf(text, sizeof(text), "ca=%s&cert=%s&key_file=%s",
		 tls_cert("ca.pem"), tls_cert(cert_file), tls_cert(key_file));
	return text;
}

/* A round; bytes that came, which are added to @to. */
static size_t work(struct fixture *f, char *to, size_t size)
{
	size_t used = 0;
	ssize_t n;

	if (stream_prepare(&f->stream) >= PEER_READY)
		while ((n = stream_read(&f->stream, to + used, size - used)) > 0)
			used += (size_t)n;
	f->host.host.ops->wake_in(&f->host.host, stream_rest(&f->stream));
	return used;
}

static void work_for(struct fixture *f, int ms)
{
	char scrap[4096];

	for (int64_t end = now_ms() + ms; now_ms() < end;) {
		work(f, scrap, sizeof(scrap));
		test_host_wait(&f->host, 10);
	}
}

/* Until the connection has failed so often. */
static void work_until_failures(struct fixture *f, unsigned int failures)
{
	char scrap[4096];

	await_by(f->stream.backoff.failures >= failures, {
		work(f, scrap, sizeof(scrap));
		test_host_wait(&f->host, 10);
	});
}

static void assert_talks(struct fixture *f)
{
	char buf[16];
	size_t used = 0;

	for (int64_t end = now_ms() + WAIT_MS;
	     stream_prepare(&f->stream) < PEER_READY;) {
		f->host.host.ops->wake_in(&f->host.host, stream_rest(&f->stream));
		test_host_wait(&f->host, 100);
		if (now_ms() > end)
			fail_msg("no connection: %s", f->host.logged);
	}
	assert_int_equal(stream_write(&f->stream, "hello", 5), 5);
	await_by(used >= 5, {
		used += work(f, buf + used, sizeof(buf) - used);
		test_host_wait(&f->host, 100);
	});
	assert_int_equal(used, 5);
	assert_memory_equal(buf, "hello", 5);
}

static void assert_told_once(const struct fixture *f, const char *text)
{
	if (test_host_lines(&f->host) != 1 || !strstr(f->host.logged, text))
		fail_msg("not one line with '%s': %s", text, f->host.logged);
}

#define CASE(name) TEST_OF(name, struct fixture *f, set_up, tear_down)

/* ---- Connections ------------------------------------------------------------------- */

CASE(name_or_address_of_the_host_is_checked)
{
	static const struct {
		const char *host;
		int version;
	} cases[] = {
		{ "localhost", TLS1_3_VERSION },
		{ "127.0.0.1", TLS1_2_VERSION },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		start_server(f, "server", false, cases[i].version);
		open_stream(f, cases[i].host, ca_option());
		assert_talks(f);
		assert_string_equal(f->host.logged, "");
		end_connection(f);
	}
}

CASE(wrong_certificates_are_refused_with_the_reason)
{
	static const struct {
		const char *cert, *host;
		bool has_ca;
		const char *text;
	} cases[] = {
		{ "other", "localhost", true,
		  "the certificate of localhost cannot be verified: hostname mismatch; trying" },
		/* Its name is in the subject alone. */
		{ "localhost", "localhost", true,
		  "the certificate of localhost cannot be verified: hostname mismatch; trying" },
		{ "other", "127.0.0.1", true,
		  "the certificate of 127.0.0.1 cannot be verified: IP address mismatch" },
		{ "expired", "localhost", true,
		  "the certificate of localhost cannot be verified: certificate has expired; trying" },
		{ "server", "localhost", false, "cannot be verified: " },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		start_server(f, cases[i].cert, false, TLS1_3_VERSION);
		open_stream(f, cases[i].host, cases[i].has_ca ? ca_option() : "");
		work_until_failures(f, 3);
		assert_told_once(f, cases[i].text);
		end_connection(f);
	}
}

CASE(another_name_can_be_asked_for)
{
	char options[PATH_MAX + 64];

	start_server(f, "other", false, TLS1_3_VERSION);
	snprintf(options, sizeof(options), "%s&server_name=other.test",
		 ca_option());
	open_stream(f, "localhost", options);
	assert_talks(f);
}

/* By a client that writes all the time, as most do; what fails may be that. */
static void write_until_failures(struct fixture *f, unsigned int failures)
{
	char scrap[4096];

	await_by(f->stream.backoff.failures >= failures, {
		if (stream_prepare(&f->stream) >= PEER_READY)
			stream_write(&f->stream, "hello", 5);
		if (f->stream.backoff.failures % 2)
			work(f, scrap, sizeof(scrap));
		test_host_wait(&f->host, 1);
	});
}

/* With TLS 1.3 it is only known once the connection is made. */
CASE(certificate_that_is_asked_for_and_missing_is_told_once)
{
	static const int versions[] = { TLS1_2_VERSION, TLS1_3_VERSION };

	for (size_t i = 0; i < 2; i++) {
		start_server(f, "server", true, versions[i]);
		open_stream(f, "localhost", ca_option());
		write_until_failures(f, 6);
		assert_told_once(f, "it requires a client certificate");
		end_connection(f);
	}
}

CASE(server_without_tls_is_told_once)
{
	static const char answer[] = "HTTP/1.1 400 Bad Request\r\n\r\n";

	open_stream(f, "localhost", ca_option());
	for (int i = 0; i < 3; i++) {
		int peer;

		while (f->stream.phase != STREAM_HANDSHAKE)
			work_for(f, 10);
		peer = accept(f->listener, NULL, NULL);
		assert_int_equal(send(peer, answer, sizeof(answer) - 1, 0),
				 sizeof(answer) - 1);
		work_until_failures(f, (unsigned int)i + 1);
		close(peer);
	}
	assert_told_once(f, "it does not speak TLS");
}

CASE(handshake_that_nobody_answers_ends)
{
	open_stream(f, "localhost", ca_option());
	f->stream.options.connect_ms = 100;
	work_until_failures(f, 2);
	assert_told_once(f, "timed out");
}

static void copy_cert(const char *from, const char *to)
{
	char command[3 * PATH_MAX];

	snprintf(command, sizeof(command), "cp '%s' '%s'", tls_cert(from),
		 tls_cert(to));
	assert_int_equal(system(command), 0);
}

CASE(files_that_have_changed_are_read_again)
{
	copy_cert("other.pem", "mine.pem");
	copy_cert("other.key", "mine.key");
	start_server(f, "server", true, TLS1_3_VERSION);
	open_stream(f, "localhost", mutual_options("mine.pem", "mine.key"));
	copy_cert("client.pem", "mine.pem"); /* one after the other */
	assert_talks(f);
	assert_told_once(f, "the previous one stays in use");
	copy_cert("client.key", "mine.key");
	stream_is_good(&f->stream);
	stream_restart(&f->stream);
	assert_talks(f);
	assert_int_equal(test_host_lines(&f->host), 2); /* it is over */
}

CASE(server_that_dies_is_connected_to_anew)
{
	start_server(f, "server", false, TLS1_3_VERSION);
	open_stream(f, "localhost", ca_option());
	assert_talks(f);
	stop_server(f);
	work_until_failures(f, 1);
	start_server(f, "server", false, TLS1_3_VERSION);
	assert_talks(f);
	stream_is_good(&f->stream);
	assert_int_equal(f->stream.connections, 2);
	assert_non_null(strstr(f->host.logged, "again"));
}

/* More than all buffers hold, while no one reads the echo. */
CASE(more_than_fits_goes_through)
{
	static char sent[1 << 20], received[1 << 20];
	size_t to_go = 8 * sizeof(sent), used = 0, back = 0;

	for (size_t i = 0; i < sizeof(sent); i++)
		sent[i] = (char)(i * 7 >> 3);
	start_server(f, "server", false, TLS1_3_VERSION);
	open_stream(f, "localhost", ca_option());
	assert_talks(f);
	for (int64_t end = now_ms() + WAIT_MS; back < to_go && now_ms() < end;) {
		ssize_t n = 1;

		stream_prepare(&f->stream);
		while (used < to_go && n > 0) {
			size_t at = used % sizeof(sent);

			n = stream_write(&f->stream, sent + at,
					 sizeof(sent) - at);
			used += n > 0 ? (size_t)n : 0;
		}
		do {
			size_t at = back % sizeof(received);

			n = stream_read(&f->stream, received + at,
					sizeof(received) - at);
			back += n > 0 ? (size_t)n : 0;
		} while (n > 0);
		assert_int_equal(n, -EAGAIN);
		stream_rest(&f->stream);
		test_host_wait(&f->host, 100);
	}
	assert_int_equal(back, to_go);
	assert_memory_equal(sent, received, sizeof(sent));
}

/* ---- Files ------------------------------------------------------------------------ */

static void assert_refused(struct fixture *f, const char *options,
			   const char *reason)
{
	int err = try_context(f, "localhost", options);

	if (!err || !strstr(f->host.logged, reason) ||
	    test_host_lines(&f->host) != 1)
		fail_msg("%s: not '%s': %s", options, reason, f->host.logged);
	assert_int_equal(ERR_peek_error(), 0);
	tls_context_close(&f->context);
}

CASE(files_of_no_use_are_refused_with_the_reason)
{
	char text[PATH_MAX * 2];

	assert_refused(f, "ca=/nonexistent",
		       "option ca: /nonexistent: No such file");
	assert_refused(f, "ca=/", "option ca: /: Is a directory");
	assert_refused(f, "ca=/dev/null",
		       "option ca: /dev/null: there is no certificate in it");
	assert_refused(f, "cert=/dev/null", "need each other");
	assert_refused(f, "key_file=/dev/null", "need each other");
	assert_refused(f, "server_name=", "server_name");
	assert_refused(f, mutual_options("client.key", "client.key"),
		       "there is no certificate in it");
	assert_refused(f, mutual_options("client.pem", "client.pem"),
		       "there is no private key without a passphrase in it");
	assert_refused(f, mutual_options("client.pem", "server.key"),
		       "server.key is not for the certificate in");
	snprintf(text, sizeof(text), "cert=%s&key_file=/nonexistent",
		 tls_cert("client.pem"));
	assert_refused(f, text, "option key_file: /nonexistent: No such file");
}

/* Were it asked for at a terminal, the test would hang. */
CASE(key_with_a_passphrase_is_refused)
{
	assert_refused(f, mutual_options("client.pem", "locked.key"),
		       "locked.key: there is no private key without a passphrase");
}

CASE(options_without_tls_are_refused)
{
	struct spec spec;

	test_host_spec(&f->host, "grpc?ca=x", &spec);
	assert_true(tls_has_options(&spec));
	tls_refuse_options(&spec);
	assert_int_equal(spec_finish(&spec), -EINVAL);
	assert_told_once(f, "option ca is for TLS only");
	spec_free(&spec);
	test_host_spec(&f->host, "grpc", &spec);
	assert_false(tls_has_options(&spec));
	tls_refuse_options(&spec);
	assert_int_equal(spec_finish(&spec), 0);
	spec_free(&spec);
}

int main(void)
{
	return tests_run(tls_certs_make, tls_certs_remove);
}
