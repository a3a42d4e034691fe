/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include "cmd.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <netobs/session.h>

#include "service/options/args.h"
#include "base/clock_ms.h"
#include "base/safe_text.h"
#include "base/util.h"
#include "service/text/human.h"
#include "cli/view/keys.h"
#include "cli/view/live.h"
#include "cli/view/view_output.h"
#include "service/options/privileges.h"
#include "service/options/session_choice.h"
#include "service/signals.h"

struct sessions_config {
	struct args_list output_specs;
	uint32_t duration_ms;
	uint64_t count;
	struct session_choice choice;
	bool stats;
	uint32_t verbose;
};

static const struct args_option options[] = {
#define SELECT_sessions OPTION_SELECTED
#define OPTIONS_STRUCT struct sessions_config
#define OPTIONS_SHARED(member) choice.member
#include "service/options/option_rows.h"
};

static const struct args_command command = {
	.name = "sessions",
	.summary = "Show the TCP connections of this host when they end, with their processes",
	.options = options,
	.positional = "sessions takes no FILTER; see --pid and --comm",
};

struct session {
	struct sessions_config config;
	struct netobs_sessions *sessions;
	struct output_list outputs;
	uint64_t left; /* records still to be printed */
	int log_level; /* the least severe that is shown */
	bool error_logged;
	bool wrong_spec; /* an output's spec is wrong */
	volatile sig_atomic_t stopping;
};

/* Also runs in a signal handler; a second call has no effect. */
static void stop_sessions(void *object)
{
	struct session *session = object;

	if (!session->stopping)
		netobs_sessions_stop(session->sessions);
	session->stopping = true;
}

static void print_session_log(int level, const char *message, void *user)
{
	struct session *session = user;
	char text[512];

	if (level > session->log_level)
		return;
	snprintf(text, sizeof(text), "%s", message);
	safe_cell(text);
	session->error_logged |= level <= NETOBS_LOG_ERROR;
	fprintf(stderr, "netobsctl sessions: %s%s\n",
		level == NETOBS_LOG_WARNING ? "warning: " : "", text);
}

static void report_session_error(const struct session *session,
				 const char *doing, int error)
{
	args_report_failure("sessions", session->error_logged, doing, error);
}

/* ---- Records --------------------------------------------------------------------------- */

static void print_session(const struct netobs_session *record, void *user)
{
	struct session *session = user;

	if (!session->left ||
	    !session_choice_takes(&session->config.choice, record))
		return;
	output_list_record(&session->outputs, &record->record);
	if (--session->left == 0)
		stop_sessions(session);
}

/* ---- Outputs ---------------------------------------------------------------------------- */

static enum args_result parse_outputs(struct session *session)
{
	struct output_list *outputs = &session->outputs;
	enum args_result result = output_list_parse(
		outputs, &command, &session->config.output_specs, false);

	if (result != ARGS_RUN)
		return result;
	output_list_take(outputs, "session", &output_sessions);
	for (size_t i = 0; i < outputs->n; i++) {
		outputs->list[i].on_log = print_session_log;
		outputs->list[i].user = session;
	}
	return ARGS_RUN;
}

/* Check options by the names that they have in this command. */
static enum args_result check_choice(const struct session_choice *choice)
{
	const struct {
		const char *option;
		struct session_choice choice;
	} parts[] = {
		{ "--interval", { .interval_ms = choice->interval_ms } },
		{ "-B, --buffer", { .buffer_bytes = choice->buffer_bytes } },
	};
	char why[160];

	if (choice->container_root && !choice->container_names) {
		args_complain_alone(&command, "--container-root",
				    "--container-names");
		return ARGS_WRONG;
	}
	for (size_t i = 0; i < ARRAY_SIZE(parts); i++) {
		if (session_choice_check(&parts[i].choice, why, sizeof(why)))
			continue;
		args_complain(&command, "%s: %s", parts[i].option, why);
		return ARGS_WRONG;
	}
	return ARGS_RUN;
}

/* ---- The run ------------------------------------------------------------------------------ */

enum { FD_SESSIONS, FD_STDOUT, FD_KEYS, FD_OUTPUTS };

/* Run until the observer has stopped, by a signal or by itself. */
static int loop_sessions(struct session *session, struct pollfd *fds)
{
	const uint32_t duration_ms = session->config.duration_ms;
	const int64_t deadline_ms = duration_ms ? now_ms() + duration_ms : 0;
	struct live live;

	live_start(&live, false);
	live_say("sessions", "waiting for TCP connections to end");
	for (;;) {
		int r;

		fds[FD_SESSIONS] = (struct pollfd){ .fd = netobs_sessions_fd(
							    session->sessions),
						    .events = POLLIN };
		fds[FD_KEYS] =
			(struct pollfd){ .fd = keys_fd(), .events = POLLIN };
		output_list_fill_fds(&session->outputs, &fds[FD_STDOUT],
				     &fds[FD_OUTPUTS]);
		if (poll(fds, FD_OUTPUTS + session->outputs.n,
			 session->stopping ? -1 : until_ms(deadline_ms)) > 0)
			output_list_ready(&session->outputs, &fds[FD_STDOUT],
					  &fds[FD_OUTPUTS]);
		if ((fds[FD_KEYS].revents && !live_take_keys(&live)) ||
		    (deadline_ms && now_ms() >= deadline_ms))
			stop_sessions(session);
		r = netobs_sessions_dispatch(session->sessions);
		if (r)
			output_list_interval(&session->outputs);
		if (output_list_has_failed(&session->outputs))
			stop_sessions(session);
		if (r < 0 && r != -EINTR)
			return r == -ECANCELED ? 0 : r;
	}
}

static int observe_sessions(struct session *session)
{
	struct pollfd *fds =
		calloc(FD_OUTPUTS + session->outputs.n, sizeof(*fds));
	int r = fds ? netobs_sessions_start(session->sessions) : -ENOMEM;

	if (r < 0) {
		report_session_error(session, "start", r);
	} else {
		const struct args_list none = { 0 };

		/* Outputs may start threads, which would keep more. */
		privileges_drop(&none, KEEP_FILES);
		r = output_list_open(&session->outputs, NULL);
		session->wrong_spec = r == -EINVAL;
		if (r < 0 && !session->wrong_spec)
			report_session_error(session, "open the output", r);
	}
	if (r == 0) {
		r = loop_sessions(session, fds);
		live_end();
		if (r < 0)
			report_session_error(session, "continue", r);
	}
	free(fds);
	return r;
}

static void print_stats(const struct session *session)
{
	struct netobs_sessions_stats stats = { .sz = sizeof(stats) };

	netobs_sessions_stats_get(session->sessions, &stats);
	if (session->config.stats)
		fprintf(stderr,
			"{\"ended\":%" PRIu64 ",\"reported\":%" PRIu64
			",\"lost\":%" PRIu64 ",\"updates\":%" PRIu64 "}\n",
			stats.ended, stats.reported, stats.lost, stats.updates);
	else if (stats.lost)
		fprintf(stderr, "netobsctl sessions: %" PRIu64 " sessions lost\n",
			stats.lost);
}

static int run_sessions(struct session *session)
{
	NETOBS_OPTS(netobs_sessions_opts, opts, .on_session = print_session,
		    .on_log = print_session_log, .user = session);
	bool is_complete;
	int r;

	session_choice_fill(&session->config.choice, &opts);
	r = netobs_sessions_new(&opts, &session->sessions);
	if (r < 0) {
		report_session_error(session, "use these options", r);
		return args_refusal_status(r);
	}
	signals_catch(stop_sessions, session);
	r = observe_sessions(session);
	is_complete = output_list_close(&session->outputs);
	print_stats(session);
	signals_release();
	netobs_sessions_free(session->sessions);
	if (session->wrong_spec)
		return EXIT_USAGE;
	return r < 0 || !is_complete ? EXIT_FAILED : EXIT_FINE;
}

int cmd_sessions(int argc, char **argv)
{
	struct session session = { 0 };
	struct sessions_config *config = &session.config;
	enum args_result result = args_parse(&command, argc, argv, config);
	int status;

	session.left = config->count ?: UINT64_MAX;
	session.log_level = args_log_level(config->verbose);
	if (result == ARGS_RUN)
		result = check_choice(&config->choice);
	if (result == ARGS_RUN)
		result = parse_outputs(&session);
	status = result == ARGS_RUN ? run_sessions(&session) : (int)result;
	output_list_free(&session.outputs);
	args_list_clear(&config->output_specs);
	return status;
}
