/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include "cmd.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <netobs/capture.h>

#include "base/clock_ms.h"
#include "capture_config.h"
#include "human.h"
#include "signals.h"

enum { STATS_MS = 5000 }; /* how often losses are written to the file */

struct session {
	struct capture_config config;
	struct netobs_capture *capture;
	struct capture_out out;
	uint64_t left; /* packets still to be written */
	int log_level; /* the least severe that is shown */
	bool error_logged;
	bool stopping;
	int64_t stats_ms; /* when the next statistics are due */
};

static void stop_capture(void *capture)
{
	netobs_capture_stop(capture);
}

/* Once is enough: this may be asked for with every packet. */
static void stop(struct session *session)
{
	if (!session->stopping)
		netobs_capture_stop(session->capture);
	session->stopping = true;
}

static void on_log(int level, const char *message, void *user)
{
	const char *rest, *option = capture_config_option(message, &rest);
	struct session *session = user;
	char text[512];

	if (level > session->log_level)
		return;
	snprintf(text, sizeof(text), "%s%s%s", option ? option : "",
		 option ? ":" : "", option ? rest : message);
	human_clean(text);
	session->error_logged |= level <= NETOBS_LOG_ERROR;
	fprintf(stderr, "netobsctl capture: %s%s\n",
		level == NETOBS_LOG_WARNING ? "warning: " : "", text);
}

static void report_error(const struct session *session, const char *doing,
			 int error)
{
	if (!session->error_logged)
		fprintf(stderr, "netobsctl capture: cannot %s: %s\n", doing,
			strerror(-error));
	if (error == -EPERM)
		fprintf(stderr,
			"Run it as root, or see 'netobsctl check' for what is missing.\n");
}

static int on_packet(const struct netobs_packet *packet, void *user)
{
	struct session *session = user;

	if (!session->left || session->out.error)
		return 0;
	capture_out_add(&session->out, packet);
	if (--session->left == 0 || session->out.error)
		stop(session);
	return 0;
}

static void write_stats(struct session *session)
{
	if (now_ms() < session->stats_ms)
		return;
	capture_out_stats(&session->out);
	session->stats_ms = now_ms() + STATS_MS;
}

/* Until the capture has stopped, by a signal or by itself. */
static int loop(struct session *session)
{
	const uint32_t duration_ms = session->config.duration_ms;
	const int64_t deadline = now_ms() + duration_ms;
	struct pollfd fds[] = {
		{ .fd = netobs_capture_fd(session->capture), .events = POLLIN },
		/* Without packets there is no write that fails. */
		{ .fd = session->out.fd == STDOUT_FILENO ? STDOUT_FILENO : -1 },
	};
	bool expired = !duration_ms;

	for (;;) {
		int64_t left = expired ? -1 : deadline - now_ms();
		int r;

		if (!expired && left <= 0) {
			expired = true;
			stop(session);
		}
		poll(fds, 2, (int)(expired ? -1 : left));
		if (fds[1].revents & (POLLERR | POLLHUP)) {
			session->out.error = -EPIPE;
			fds[1].fd = -1;
		}
		if (session->out.error)
			stop(session);
		r = netobs_capture_dispatch(session->capture);
		if (r < 0 && r != -EINTR)
			return r == -ECANCELED ? 0 : r;
		if (r > 0)
			write_stats(session);
		capture_out_flush(&session->out);
	}
}

static int capture(struct session *session)
{
	int r = netobs_capture_start(session->capture);

	if (r < 0) {
		report_error(session, "start", r);
		return r;
	}
	r = capture_out_begin(&session->out, session->capture);
	if (r < 0)
		return 0; /* it is reported with the output's error */
	session->stats_ms = now_ms() + STATS_MS;
	r = loop(session);
	if (r < 0)
		report_error(session, "go on", r);
	capture_out_stats(&session->out);
	return r;
}

static void print_summary(const struct session *session)
{
	struct netobs_capture_stats stats = { .sz = sizeof(stats) };
	const uint64_t written = session->out.packets;
	uint64_t unwritten;

	if (netobs_capture_stats_get(session->capture, &stats))
		return;
	unwritten = stats.captured - written;
	if (session->config.stats) {
		fprintf(stderr,
			"{\"matched\":%" PRIu64 ",\"captured\":%" PRIu64
			",\"unwritten\":%" PRIu64 ",\"limited\":%" PRIu64
			",\"lost\":%" PRIu64 "}\n",
			stats.matched, written, unwritten, stats.limited,
			stats.lost);
		return;
	}
	fprintf(stderr,
		"%" PRIu64 " packets captured\n%" PRIu64 " packets matched\n",
		written, stats.matched);
	if (unwritten)
		fprintf(stderr, "%" PRIu64 " packets not written\n", unwritten);
	if (session->config.rate)
		fprintf(stderr, "%" PRIu64 " packets beyond --rate\n",
			stats.limited);
	fprintf(stderr, "%" PRIu64 " packets lost\n", stats.lost);
}

/* The reader of standard output may go away when it has seen enough. */
static bool is_out_fine(const struct session *session)
{
	const struct capture_out *out = &session->out;
	const char *path = session->config.path;

	if (!out->error || (out->error == -EPIPE && !strcmp(path, "-")))
		return true;
	fprintf(stderr, "netobsctl capture: -w '%s': %s\n", path,
		out->error == -EPROTONOSUPPORT ?
			"interfaces of several link types: use --format pcapng" :
			strerror(-out->error));
	return false;
}

static int run(struct session *session)
{
	struct netobs_capture_opts opts = { .sz = sizeof(opts) };
	bool is_fine;
	int r;

	capture_config_fill(&session->config, &opts);
	opts.on_packet = on_packet;
	opts.on_log = on_log;
	opts.user = session;
	r = netobs_capture_new(&opts, &session->capture);
	if (r < 0) {
		report_error(session, "use these options", r);
		return r == -EINVAL ? EXIT_USAGE : EXIT_FAILED;
	}
	r = capture_out_open(&session->out, &session->config.out);
	if (r < 0) {
		session->out.error = r;
	} else {
		signals_catch(stop_capture, session->capture);
		r = capture(session);
		signals_release();
	}
	capture_out_close(&session->out);
	is_fine = is_out_fine(session);
	if (r >= 0)
		print_summary(session);
	netobs_capture_free(session->capture);
	return r < 0 || !is_fine ? EXIT_FAILED : EXIT_FINE;
}

int cmd_capture(int argc, char **argv)
{
	struct session session = { 0 };
	enum args_result result =
		capture_config_parse(&session.config, argc, argv);
	int status = result == ARGS_WRONG ? EXIT_USAGE : EXIT_FINE;

	session.left = session.config.count ? session.config.count : UINT64_MAX;
	session.log_level = session.config.verbose > 1	? NETOBS_LOG_DEBUG :
			    session.config.verbose == 1 ? NETOBS_LOG_INFO :
							  NETOBS_LOG_WARNING;
	if (result == ARGS_RUN)
		status = run(&session);
	capture_config_clear(&session.config);
	return status;
}
