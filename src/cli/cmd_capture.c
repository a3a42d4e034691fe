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
#include "base/util.h"
#include "cli/capture/capture_out.h"
#include "cli/flows/flows_request.h"
#include "cli/view/verb_run.h"
#include "service/observe/flows_config.h"
#include "service/options/privileges.h"

enum { STATS_MS = 5000 }; /* how often losses are written to files */

/* Descriptors: to a file, the first two. */
enum { FD_STOP, FD_CAPTURE, FD_READERS };

struct capture_config {
	struct flows_config config; /* interfaces, how, and the filter */
	struct args_list filter_words;
	int format; /* enum netobs_packet_format; -1: by the name */
	const char *listen;
	struct netobs_capture_opts opts; /* options without a member of their own here; 0: not given */
	uint32_t duration_ms, verbose;
	uint64_t count;
	bool stats, process;

	struct capture_out_options out;
};

static const struct args_option options[] = {
#define SELECT_capture OPTION_SELECTED
#define OPTIONS_STRUCT struct capture_config
#include "service/options/option_rows.h"
};

static const struct args_command command = {
	.name = "capture",
	.summary = "Capture the packets that cross this host's interfaces",
	.options = options,
	.operands = "[FILTER]",
	.operand_list = offsetof(struct capture_config, filter_words),
	.notes = "FILTER selects packets, in the kernel, as tcpdump does: see pcap-filter(7).\n"
		 "Without -i, all interfaces are captured at, including new ones.\n"
		 "Without -w and --listen, packets go to stdout if that is not a terminal.\n",
};

struct session {
	struct verb verb;
	struct capture_config config;
	struct netobs *capture; /* NULL: no reader is connected */
	struct capture_out out;
	struct capture_listen listener; /* fd is -1 if the output is a file */
	struct netobs_capture_stats total;
	uint64_t left;	    /* packets still to be captured */
	uint64_t passed_on; /* packets, to readers that connected */
	int stop_fd;	    /* readable once it is to stop */
	int64_t stats_ms;   /* when the next statistics are due */
	bool is_ending;	    /* the capture, as its last reader has gone */
};

/* In a signal handler, the capture may be one that is being freed. */
static void request_stop(void *object)
{
	const uint64_t one = 1;
	int saved = errno;

	(void)!write(((const struct session *)object)->stop_fd, &one,
		     sizeof(one));
	errno = saved;
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
	if (--session->left == 0 || session->out.error) {
		netobs_stop(session->capture);
		verb_stop(&session->verb);
	}
	return 0;
}

static int new_capture(struct session *session)
{
	const struct capture_config *config = &session->config;
	const struct flows_config *observed = &config->config;
	struct netobs_capture_opts opts = config->opts;
	int r;

	opts.sz = sizeof(opts);
	opts.interfaces = observed->interfaces.items;
	opts.exclude = observed->exclude.items;
	opts.filter = observed->filter;
	opts.direction = observed->opts.direction;
	opts.attach_order = observed->opts.attach_order;
	opts.disable_features = flows_attachment_disables(observed->attach);
	opts.flags = config->process ? NETOBS_CAPTURE_PROCESSES : 0;
	opts.on_packet = on_packet;
	opts.on_log = verb_log;
	opts.user = session;
	r = netobs_capture_new(&opts, &session->capture);
	if (r < 0)
		verb_fail(&session->verb, "use these options", r);
	return r;
}

/* Free a capture that has stopped, and add its counts to the total. */
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
	netobs_free(TAKE_PTR(session->capture));
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

/* @return 0; 1: the output cannot begin, which is reported with its error; < 0 */
static int start_file(void *object)
{
	struct session *session = object;
	struct verb *verb = &session->verb;
	int r;

	live_start(&verb->live, false);
	r = capture_out_open(&session->out, &session->config.out);
	/* Packets lost from now on are missing in this file. */
	r = r ?: capture_out_begin(&session->out, session->capture);
	session->out.error = r;
	if (r < 0)
		return 1;
	r = netobs_start(session->capture);
	session->stats_ms = now_ms() + STATS_MS;
	if (r < 0)
		return verb_fail(verb, "start", r);
	capture_out_start(&session->out);
	verb->fds[FD_STOP] = session->stop_fd;
	verb->fds[FD_CAPTURE] = netobs_fd(session->capture);
	verb->n_fds = FD_CAPTURE + 1;
	verb->watches_stdout = session->out.fd == STDOUT_FILENO;
	live_say("capture", "capturing");
	privileges_drop(&session->config.config.interfaces,
			(session->config.out.rotate_bytes ? KEEP_FILES : 0) |
				(session->config.process ? KEEP_PROCESSES : 0));
	return 0;
}

static int dispatch_file(void *object)
{
	struct session *session = object;
	struct verb *verb = &session->verb;
	int r;

	if (verb->is_reader_gone)
		session->out.error = session->out.error ?: -EPIPE;
	if (session->out.error)
		verb_stop(verb);
	if (verb->is_stopping && verb->fds[FD_STOP] >= 0) {
		netobs_stop(session->capture);
		verb->fds[FD_STOP] = -1;
	}
	r = netobs_dispatch(session->capture);
	pass_packets(session);
	return r;
}

static int finish_file(void *object, int r)
{
	struct session *session = object;

	if (session->out.is_started)
		capture_out_stats(&session->out);
	capture_out_close(&session->out);
	return r;
}

static const struct verb_ops file_ops = {
	.start = start_file,
	.dispatch = dispatch_file,
	.stop = request_stop,
	.finish = finish_file,
};

/* ---- Readers that connect ----------------------------------------------------------- */

/* Packets that are still on their way are counted, too. */
static int finish_capture(struct session *session)
{
	int r;

	if (!session->capture)
		return 0;
	netobs_stop(session->capture);
	do {
		struct pollfd fd = { .fd = netobs_fd(session->capture),
				     .events = POLLIN };

		poll(&fd, 1, -1);
		r = netobs_dispatch(session->capture);
		capture_listen_flush(&session->listener);
	} while (r >= 0 || r == -EINTR);
	capture_listen_stats(&session->listener);
	return r == -ECANCELED ? 0 : r;
}

static int start_for_clients(struct session *session)
{
	int r = new_capture(session);

	if (r < 0)
		return r;
	/* Packets lost from now on are missing in the readers' files. */
	capture_listen_begin(&session->listener, session->capture);
	r = netobs_start(session->capture);
	if (r < 0)
		verb_fail(&session->verb, "start", r);
	session->stats_ms = now_ms() + STATS_MS;
	return r;
}

/* Readers may connect again: an interface may be gone for a moment only. */
static void try_to_start(struct session *session)
{
	if (start_for_clients(session) >= 0)
		return;
	server_drop(&session->listener.server);
	netobs_free(TAKE_PTR(session->capture));
	session->verb.error_logged = false;
}

/*
 * A capture runs while a reader is connected. It ends while others may connect, which get
 * the next one.
 */
static void follow_clients(struct session *session)
{
	bool has_clients = session->listener.server.n;

	if (session->is_ending)
		return;
	if (!session->capture) {
		if (has_clients)
			try_to_start(session);
		return;
	}
	if (has_clients) {
		capture_listen_begin(&session->listener, session->capture);
		return;
	}
	netobs_stop(session->capture);
	session->is_ending = true;
}

static int dispatch_for_clients(struct session *session)
{
	int r = session->capture ? netobs_dispatch(session->capture) : 0;

	if (r == -ECANCELED && session->is_ending) {
		end_capture(session);
		session->is_ending = false;
	}
	return r == -EINTR || r == -ECANCELED ? 0 : r;
}

static int start_listening(void *object)
{
	struct session *session = object;
	const struct capture_config *config = &session->config;
	struct verb *verb = &session->verb;
	char text[160];
	int r;

	live_start(&verb->live, false);
	/* Free the capture that was made to check the options. */
	netobs_free(TAKE_PTR(session->capture));
	r = capture_listen_open(&session->listener, config->listen,
				config->out.format);
	if (r < 0) {
		fprintf(stderr, "netobsctl capture: --listen '%s': %s\n",
			config->listen, strerror(-r));
		return r;
	}
	privileges_drop(&config->config.interfaces,
			config->process ? KEEP_PROCESSES : 0);
	listen_where(&session->listener.server.listener, text, sizeof(text));
	fprintf(stderr, "netobsctl capture: listening on %s\n", text);
	verb->fds[FD_STOP] = session->stop_fd;
	verb->fds[FD_READERS] = session->listener.server.loop.fd;
	verb->n_fds = FD_READERS + 1;
	return 0;
}

static int prepare_readers(void *object)
{
	struct session *session = object;

	session->verb.fds[FD_CAPTURE] =
		session->capture ? netobs_fd(session->capture) : -1;
	return -1;
}

static int dispatch_readers(void *object)
{
	struct session *session = object;
	int r;

	server_dispatch(&session->listener.server);
	r = dispatch_for_clients(session);
	pass_packets(session);
	if (r >= 0)
		follow_clients(session);
	return r >= 0 && session->verb.is_stopping ? -ECANCELED : r;
}

static int finish_readers(void *object, int r)
{
	struct session *session = object;

	finish_capture(session);
	capture_listen_close(&session->listener);
	return r;
}

static const struct verb_ops readers_ops = {
	.start = start_listening,
	.prepare = prepare_readers,
	.dispatch = dispatch_readers,
	.stop = request_stop,
	.finish = finish_readers,
};

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
	if (session->config.opts.rate)
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
	const char *path = session->config.out.path;
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

static int run_capture(struct session *session)
{
	const struct capture_config *config = &session->config;
	struct verb *verb = &session->verb;
	bool is_fine;
	int status, r;

	*verb = (struct verb){
		.ops = is_listening(session) ? &readers_ops : &file_ops,
		.name = "capture",
		.verbose = config->verbose,
		.duration_ms = config->duration_ms,
	};
	r = new_capture(session);
	if (r < 0)
		return args_refusal_status(r);
	status = verb_run(verb);
	end_capture(session);
	is_fine = is_out_fine(session);
	if (session->total.matched ||
	    (status == EXIT_FINE && (is_fine || config->stats)))
		print_summary(session);
	return status ?: is_fine ? EXIT_FINE : EXIT_FAILED;
}

/* ---- Arguments ---------------------------------------------------------------------- */

static bool is_listen_refused(const struct capture_config *config)
{
	const char *why =
		config->listen ? capture_listen_refuse(config->listen) : NULL;

	if (why)
		args_complain(&command, "--listen '%s': %s", config->listen, why);
	return why;
}

/* @return NULL: no fault */
static const char *find_target_fault(const struct capture_config *config)
{
	const bool is_stdout = !config->out.path ||
			       !strcmp(config->out.path, "-");

	if (config->listen)
		return config->out.path || config->out.rotate_bytes ||
				       config->out.keep ?
			       "--listen: cannot be combined with -w, --rotate "
			       "and --keep" :
			       NULL;
	if (is_stdout && isatty(STDOUT_FILENO))
		return "-w: name a file; or, to read packets on this terminal, add "
		       "'| tcpdump -nr -'";
	if (config->out.rotate_bytes && is_stdout)
		return "--rotate: needs -w FILE; standard output is not rotated";
	if (config->out.keep && !config->out.rotate_bytes)
		return "--keep: needs --rotate";
	return NULL;
}

/* Without --listen, packets go to a file, whose name may give its format. */
static void choose_target(struct capture_config *config)
{
	const char *path = config->listen ? "" : config->out.path ?: "-";
	const char *extension = strrchr(path, '.');

	if (!config->listen)
		config->out.path = path;
	if (config->format < 0)
		config->format = extension && !strcmp(extension, ".pcap") ?
					 NETOBS_PCAP :
					 NETOBS_PCAPNG;
	config->out.format = (enum netobs_packet_format)config->format;
}

static enum args_result check_options(struct capture_config *config)
{
	const char *fault;

	if (is_listen_refused(config))
		return ARGS_WRONG;
	fault = find_target_fault(config);
	choose_target(config);
	if (!fault && config->process && config->format == NETOBS_PCAP)
		fault = "--process: pcap has no place for names of "
			"processes; use --format pcapng";
	if (!fault)
		return ARGS_RUN;
	args_complain(&command, "%s", fault);
	return ARGS_WRONG;
}

static enum args_result parse_arguments(struct capture_config *config, int argc,
					char **argv)
{
	enum args_result result;

	*config = (struct capture_config){ .format = -1 };
	result = args_parse(&command, argc, argv, config);
	if (result != ARGS_RUN)
		return result;
	if (check_options(config) != ARGS_RUN ||
	    flows_join_filter(&command, &config->filter_words,
			      &config->config.filter) < 0)
		return ARGS_WRONG;
	return ARGS_RUN;
}

int cmd_capture(int argc, char **argv)
{
	struct session session = { 0 };
	enum args_result result = parse_arguments(&session.config, argc, argv);
	int status = result;

	session.stop_fd = eventfd(0, EFD_CLOEXEC);
	session.left = session.config.count ? session.config.count : UINT64_MAX;
	if (result == ARGS_RUN)
		status = run_capture(&session);
	close_fd(&session.stop_fd);
	flows_config_clear(&session.config.config);
	args_list_clear(&session.config.filter_words);
	return status;
}
