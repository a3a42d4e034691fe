/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include "cmd.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <netobs/capture.h>

#include "base/clock_ms.h"
#include "base/safe_text.h"
#include "base/util.h"
#include "cli/capture/capture_config.h"
#include "cli/flows/flows_request.h"
#include "cli/capture/capture_start.h"
#include "service/options/option_names.h"
#include "service/options/privileges.h"
#include "service/signals.h"
#include "service/text/human.h"
#include "cli/view/keys.h"
#include "cli/view/live.h"

enum {
	STATS_MS = 5000,   /* how often losses are written to files */
	REFUSED_MS = 1000, /* and how often refused readers are logged */
};

struct session {
	struct capture_config config;
	struct netobs_capture *capture; /* NULL: no reader is connected */
	struct capture_start *start;	/* starts the capture of readers */
	struct capture_out out;
	struct capture_listen listener; /* fd is -1 if the output is a file */
	struct netobs_capture_stats total;
	uint64_t left;	    /* packets still to be captured */
	uint64_t passed_on; /* packets, to readers that connected */
	int log_level;	    /* the least severe that is shown */
	int stop_fd;	    /* readable after a signal */
	bool error_logged;
	bool stopping;
	int64_t stats_ms; /* when the next statistics are due */
	int64_t refused_ms; /* when the next message about refused readers may be */
	uint64_t logged_refused;
	bool is_made;	/* the capture of @start exists, and is being started */
	bool is_ending; /* the capture, as its last reader has gone */
	struct live live;
};

/* Runs in a signal handler. */
static void request_stop(void *session)
{
	const uint64_t one = 1;
	int saved = errno;

	(void)!write(((const struct session *)session)->stop_fd, &one,
		     sizeof(one));
	errno = saved;
}

/* Once is enough: this may be asked for with every packet. */
static void stop_capture(struct session *session)
{
	if (!session->stopping && session->capture)
		netobs_capture_stop(session->capture);
	session->stopping = true;
}

static void print_capture_log(int level, const char *message, void *user)
{
	struct session *session = user;
	char text[512];

	if (level > session->log_level ||
	    (session->start &&
	     capture_start_keep_log(session->start, level, message)))
		return;
	option_name_write(message, text, sizeof(text));
	safe_cell(text);
	session->error_logged |= level <= NETOBS_LOG_ERROR;
	fprintf(stderr, "netobsctl capture: %s%s\n",
		level == NETOBS_LOG_WARNING ? "warning: " : "", text);
}

static void report_capture_error(const struct session *session,
				 const char *doing, int error)
{
	args_report_failure("capture", session->error_logged, doing, error);
}

static bool is_listening(const struct session *session)
{
	return session->config.listen;
}

static int on_packet(const struct netobs_packet *packet, void *user)
{
	struct session *session = user;

	if (!session->left || session->out.error)
		return 0;
	if (is_listening(session)) {
		capture_listen_add(&session->listener, packet);
		session->passed_on++;
	} else {
		capture_out_add(&session->out, packet);
	}
	if (--session->left == 0 || session->out.error)
		stop_capture(session);
	return 0;
}

static void fill_capture_options(struct session *session,
				 struct netobs_capture_opts *opts)
{
	capture_config_fill(&session->config, opts);
	opts->on_packet = on_packet;
	opts->on_log = print_capture_log;
	opts->user = session;
}

static int new_capture(struct session *session)
{
	NETOBS_OPTS(netobs_capture_opts, opts);
	int r;

	fill_capture_options(session, &opts);
	r = netobs_capture_new(&opts, &session->capture);
	if (r < 0)
		report_capture_error(session, "use these options", r);
	return r;
}

/* Once it has stopped. */
static void end_capture(struct session *session)
{
	struct netobs_capture_stats stats = { .sz = sizeof(stats) };
	struct netobs_capture_stats *total = &session->total;

	if (!session->capture)
		return;
	netobs_capture_stats_get(session->capture, &stats);
	total->matched += stats.matched;
	total->captured += stats.captured;
	total->limited += stats.limited;
	total->lost += stats.lost;
	netobs_capture_free(TAKE_PTR(session->capture));
}

/* pcap cannot store statistics, and its writer would begin a file without packets. */
static void pass_packets(struct session *session)
{
	bool are_stats_due = session->capture &&
			     session->config.out.format == NETOBS_PCAPNG &&
			     now_ms() >= session->stats_ms;

	if (are_stats_due)
		session->stats_ms = now_ms() + STATS_MS;
	if (!is_listening(session)) {
		if (are_stats_due)
			capture_out_stats(&session->out);
		capture_out_flush(&session->out);
		return;
	}
	if (are_stats_due)
		capture_listen_stats(&session->listener);
	capture_listen_flush(&session->listener);
}

/* ---- A file ------------------------------------------------------------------------- */

/* Run until the capture has stopped, by a signal or by itself. */
static int write_capture_file(struct session *session, int64_t deadline_ms)
{
	struct pollfd fds[] = {
		{ .fd = netobs_capture_fd(session->capture), .events = POLLIN },
		{ .fd = session->stop_fd, .events = POLLIN },
		/* Without packets there is no write that fails. */
		{ .fd = session->out.fd == STDOUT_FILENO ? STDOUT_FILENO : -1 },
		{ .events = POLLIN }, /* keys */
	};

	for (;;) {
		int r;

		fds[3].fd = keys_fd();
		poll(fds, ARRAY_SIZE(fds),
		     session->stopping ? -1 : until_ms(deadline_ms));
		if (fds[1].revents)
			fds[1].fd = -1;
		if (fds[2].revents & (POLLERR | POLLHUP)) {
			session->out.error = -EPIPE;
			fds[2].fd = -1;
		}
		if (fds[1].revents || session->out.error ||
		    (fds[3].revents && !live_take_keys(&session->live)) ||
		    (deadline_ms && now_ms() >= deadline_ms))
			stop_capture(session);
		r = netobs_capture_dispatch(session->capture);
		pass_packets(session);
		if (r < 0 && r != -EINTR)
			return r == -ECANCELED ? 0 : r;
	}
}

static int capture_to_file(struct session *session, int64_t deadline_ms)
{
	/* Packets lost from now on are missing in this file. */
	int r = capture_out_begin(&session->out, session->capture);

	session->out.error = r;
	if (r < 0)
		return 0; /* it is reported with the output's error */
	r = netobs_capture_start(session->capture);
	session->stats_ms = now_ms() + STATS_MS;
	if (r < 0) {
		report_capture_error(session, "start", r);
		return r;
	}
	capture_out_start(&session->out);
	live_say("capture", "capturing");
	privileges_drop(&session->config.observed.interfaces,
			(session->config.rotate_bytes ? KEEP_FILES : 0) |
				(session->config.process ? KEEP_PROCESSES : 0));
	r = write_capture_file(session, deadline_ms);
	if (r < 0)
		report_capture_error(session, "continue", r);
	capture_out_stats(&session->out);
	return r;
}

/* ---- Readers that connect ----------------------------------------------------------- */

/* Packets that are still on their way are counted, too. */
static int finish_capture(struct session *session)
{
	int r;

	if (!session->capture)
		return 0;
	netobs_capture_stop(session->capture);
	do {
		struct pollfd fd = { .fd = netobs_capture_fd(session->capture),
				     .events = POLLIN };

		poll(&fd, 1, -1);
		r = netobs_capture_dispatch(session->capture);
		capture_listen_flush(&session->listener);
	} while (r >= 0 || r == -EINTR);
	capture_listen_stats(&session->listener);
	return r == -ECANCELED ? 0 : r;
}

/* Readers may connect again: an interface may be gone for a moment only. */
static void fail_to_start(struct session *session, const char *doing, int error)
{
	report_capture_error(session, doing, error);
	server_drop(&session->listener.server);
	session->error_logged = false;
}

static void start_for_clients(struct session *session)
{
	NETOBS_OPTS(netobs_capture_opts, opts);

	fill_capture_options(session, &opts);
	session->is_made = false;
	capture_start_make(session->start, &opts);
}

/* Begin the next step of the start once the previous one is done. */
static void advance_start(struct session *session)
{
	struct netobs_capture *capture;
	int r;

	if (!capture_start_take(session->start, &capture, &r))
		return;
	if (r < 0) {
		fail_to_start(session,
			      session->is_made ? "start" : "use these options",
			      r);
	} else if (session->is_made) {
		session->capture = capture;
		session->stats_ms = now_ms() + STATS_MS;
	} else {
		session->is_made = true;
		/* Packets lost from now on are missing in the readers' files. */
		capture_listen_begin(&session->listener, capture);
		capture_start_run(session->start, capture);
	}
}

/* No further step is begun. */
static void end_start(struct session *session)
{
	struct netobs_capture *capture;
	int r;

	if (!capture_start_finish(session->start, &capture, &r) || r < 0)
		return;
	if (session->is_made)
		session->capture = capture;
	else
		netobs_capture_free(capture);
}

/*
 * A capture runs while a reader is connected. It ends while others may connect, which get
 * the next one.
 */
static void follow_clients(struct session *session)
{
	bool has_clients = capture_listen_has_clients(&session->listener);

	if (session->is_ending || capture_start_is_busy(session->start))
		return;
	if (!session->capture) {
		if (has_clients)
			start_for_clients(session);
		return;
	}
	if (has_clients) {
		capture_listen_begin(&session->listener, session->capture);
		return;
	}
	netobs_capture_stop(session->capture);
	session->is_ending = true;
}

static int dispatch_for_clients(struct session *session)
{
	int r = session->capture ? netobs_capture_dispatch(session->capture) : 0;

	if (r == -ECANCELED && session->is_ending) {
		end_capture(session);
		session->is_ending = false;
	}
	return r == -EINTR || r == -ECANCELED ? 0 : r;
}

static bool are_refused_unlogged(const struct session *session)
{
	return session->listener.refused != session->logged_refused;
}

/* Log a sum of refused clients: there may be many. */
static void log_refused(struct session *session)
{
	const struct capture_listen *listener = &session->listener;
	const int64_t now = now_ms();

	if (!are_refused_unlogged(session) || now < session->refused_ms)
		return;
	if (session->log_level >= NETOBS_LOG_INFO)
		fprintf(stderr,
			"netobsctl capture: refused %" PRIu64
			" readers, the last one %s\n",
			listener->refused - session->logged_refused,
			listener->reason);
	session->logged_refused = listener->refused;
	session->refused_ms = now + REFUSED_MS;
}

/* @return milliseconds until there is work without an event */
static int serve_wait_ms(const struct session *session, int64_t deadline_ms)
{
	return sooner_ms(until_ms(deadline_ms),
			 are_refused_unlogged(session) ?
				 left_ms(session->refused_ms) :
				 -1);
}

static int serve_capture(struct session *session, int64_t deadline_ms)
{
	struct pollfd fds[] = {
		{ .fd = session->listener.server.loop.fd, .events = POLLIN },
		{ .fd = session->stop_fd, .events = POLLIN },
		{ .events = POLLIN }, /* descriptor of the capture */
		{ .fd = capture_start_fd(session->start), .events = POLLIN },
		{ .events = POLLIN }, /* keys */
	};
	int r = 0;

	while (r >= 0 && !session->stopping) {
		fds[2].fd = session->capture ?
				    netobs_capture_fd(session->capture) :
				    -1;
		fds[4].fd = keys_fd();
		poll(fds, ARRAY_SIZE(fds), serve_wait_ms(session, deadline_ms));
		if (fds[1].revents ||
		    (fds[4].revents && !live_take_keys(&session->live)) ||
		    (deadline_ms && now_ms() >= deadline_ms))
			stop_capture(session);
		server_dispatch(&session->listener.server);
		r = dispatch_for_clients(session);
		pass_packets(session);
		advance_start(session);
		if (r >= 0)
			follow_clients(session);
		log_refused(session);
	}
	end_start(session);
	finish_capture(session);
	return r;
}

static int capture_for_clients(struct session *session, int64_t deadline_ms)
{
	const struct capture_config *config = &session->config;
	char text[160];
	int r = capture_listen_open(&session->listener, config->listen,
				    config->out.format);

	if (r < 0) {
		fprintf(stderr, "netobsctl capture: --listen '%s': %s\n",
			config->listen, strerror(-r));
		return r;
	}
	privileges_drop(&config->observed.interfaces,
			config->process ? KEEP_PROCESSES : 0);
	listen_where(&session->listener.server.listener, text, sizeof(text));
	fprintf(stderr, "netobsctl capture: listening on %s\n", text);
	/* Free the capture that was made to check the options. */
	netobs_capture_free(TAKE_PTR(session->capture));
	r = capture_start_new(print_capture_log, session, &session->start);
	if (r >= 0)
		r = serve_capture(session, deadline_ms);
	capture_start_free(TAKE_PTR(session->start));
	capture_listen_close(&session->listener);
	return r;
}

/* ---- The end -------------------------------------------------------------------------- */

static void print_summary(const struct session *session)
{
	const struct netobs_capture_stats *total = &session->total;
	const uint64_t missed = session->listener.missed;
	const uint64_t refused = session->listener.refused;
	const uint64_t written = is_listening(session) ? session->passed_on :
							 session->out.packets;
	const uint64_t unwritten = total->captured - written;

	if (session->config.stats) {
		fprintf(stderr,
			"{\"matched\":%" PRIu64 ",\"captured\":%" PRIu64
			",\"unwritten\":%" PRIu64 ",\"limited\":%" PRIu64
			",\"lost\":%" PRIu64,
			total->matched, written, unwritten, total->limited,
			total->lost);
		if (is_listening(session))
			fprintf(stderr,
				",\"missed\":%" PRIu64 ",\"refused\":%" PRIu64,
				missed, refused);
		fputs("}\n", stderr);
		return;
	}
	fprintf(stderr,
		"%" PRIu64 " packets captured\n%" PRIu64 " packets matched\n",
		written, total->matched);
	if (unwritten)
		fprintf(stderr, "%" PRIu64 " packets not written\n", unwritten);
	if (session->config.rate)
		fprintf(stderr, "%" PRIu64 " packets beyond --rate\n",
			total->limited);
	if (missed)
		fprintf(stderr, "%" PRIu64 " packets missed by slow readers\n",
			missed);
	fprintf(stderr, "%" PRIu64 " packets lost\n", total->lost);
	if (refused)
		fprintf(stderr, "%" PRIu64 " readers refused\n", refused);
}

/* The reader of standard output may go away when it has seen enough. */
static bool is_out_fine(const struct session *session)
{
	const struct capture_out *out = &session->out;
	const char *path = session->config.path;
	bool is_stdout = path && !strcmp(path, "-");

	if (!out->error || (out->error == -EPIPE && is_stdout))
		return true;
	fprintf(stderr, "netobsctl capture: %s%s%s: %s\n",
		is_stdout ? "standard output" : "-w '", is_stdout ? "" : path,
		is_stdout ? "" : "'",
		out->error == -EPROTONOSUPPORT ?
			"interfaces of several link types: use --format pcapng" :
		out->error == -EPERM ?
			"the file is another user's, or cannot be changed" :
			strerror(-out->error));
	return false;
}

static int capture_packets(struct session *session)
{
	const uint32_t duration_ms = session->config.duration_ms;
	int64_t deadline_ms = duration_ms ? now_ms() + duration_ms : 0;
	int r;

	if (is_listening(session))
		return capture_for_clients(session, deadline_ms);
	session->out.error =
		capture_out_open(&session->out, &session->config.out);
	r = session->out.error ? 0 : capture_to_file(session, deadline_ms);
	capture_out_close(&session->out);
	return r;
}

static int run_capture(struct session *session)
{
	bool is_fine;
	int r = new_capture(session);

	if (r < 0)
		return args_refusal_status(r);
	signals_catch(request_stop, session);
	live_start(&session->live, false);
	r = capture_packets(session);
	live_end();
	signals_release();
	end_capture(session);
	is_fine = is_out_fine(session);
	if (session->total.matched ||
	    (r >= 0 && (is_fine || session->config.stats)))
		print_summary(session);
	return r < 0 || !is_fine ? EXIT_FAILED : EXIT_FINE;
}

int cmd_capture(int argc, char **argv)
{
	struct session session = { 0 };
	enum args_result result =
		capture_config_parse(&session.config, argc, argv);
	int status = result;

	session.stop_fd = eventfd(0, EFD_CLOEXEC);
	session.left = session.config.count ? session.config.count : UINT64_MAX;
	session.log_level = args_log_level(session.config.verbose);
	if (result == ARGS_RUN)
		status = run_capture(&session);
	close_fd(&session.stop_fd);
	capture_config_clear(&session.config);
	return status;
}
