/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include "cmd.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#include <netobs/session.h>

#include "cli/view/verb_run.h"
#include "service/options/privileges.h"
#include "service/options/session_choice.h"

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
#include "service/options/option_rows.h"
};

static const struct args_command command = {
	.name = "sessions",
	.summary = "Show the TCP connections of this host when they end, with their processes",
	.options = options,
	.positional = "sessions takes no FILTER; see --pid and --comm",
};

struct session {
	struct verb verb;
	struct sessions_config config;
	struct output_list outputs;
	uint64_t left; /* records still to be printed */
};

/* ---- Records --------------------------------------------------------------------------- */

static void print_session(const struct netobs_record *record, void *user)
{
	struct session *session = user;

	if (!session->left ||
	    !session_choice_takes(&session->config.choice,
				  (const struct netobs_session *)record))
		return;
	output_list_record(&session->outputs, record);
	if (--session->left == 0)
		verb_stop(&session->verb);
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
		outputs->list[i].on_log = verb_log;
		outputs->list[i].user = session;
	}
	return ARGS_RUN;
}

/* ---- The run ------------------------------------------------------------------------------ */

static int start_sessions(void *object)
{
	struct session *session = object;
	struct verb *verb = &session->verb;
	NETOBS_OPTS(netobs_sessions_opts, opts, .on_record = print_session,
		    .on_log = verb_log, .user = session);
	int r;

	session_choice_fill(&session->config.choice, &opts);
	r = netobs_sessions_new(&opts, &session->verb.observer);
	if (r < 0) {
		verb->status = args_refusal_status(r);
		return verb_fail(verb, "use these options", r);
	}
	r = netobs_start(session->verb.observer);
	if (r < 0)
		return verb_fail(verb, "start", r);
	/* Outputs may start threads, which would keep more. */
	privileges_drop(NULL, KEEP_FILES);
	r = output_list_open(&session->outputs, NULL);
	if (r == -EINVAL)
		verb->status = EXIT_USAGE;
	else if (r < 0)
		verb_fail(verb, "open the output", r);
	if (r < 0)
		return r;
	live_start(&verb->live, false);
	live_say("sessions", "waiting for TCP connections to end");
	return 0;
}

static int dispatch_sessions(void *object)
{
	struct session *session = object;
	const int r = netobs_dispatch(session->verb.observer);

	if (r)
		output_list_interval(&session->outputs);
	return r;
}

static int finish_sessions(void *object, int r)
{
	struct session *session = object;
	struct netobs_sessions_stats stats = { .sz = sizeof(stats) };
	bool is_complete;

	if (!session->verb.observer)
		return r;
	is_complete = output_list_close(&session->outputs);
	netobs_sessions_stats_get(session->verb.observer, &stats);
	if (session->config.stats)
		fprintf(stderr,
			"{\"ended\":%" PRIu64 ",\"reported\":%" PRIu64
			",\"lost\":%" PRIu64 ",\"updates\":%" PRIu64 "}\n",
			stats.ended, stats.reported, stats.lost, stats.updates);
	else if (stats.lost)
		fprintf(stderr, "netobsctl sessions: %" PRIu64 " sessions lost\n",
			stats.lost);
	return r < 0 || is_complete ? r : -EIO;
}

static const struct verb_ops sessions_ops = {
	.start = start_sessions,
	.dispatch = dispatch_sessions,
	.finish = finish_sessions,
};

int cmd_sessions(int argc, char **argv)
{
	struct session session = { .verb.ops = &sessions_ops,
				   .verb.name = command.name,
				   .verb.outputs = &session.outputs };
	struct sessions_config *config = &session.config;
	enum args_result result = args_parse(&command, argc, argv, config);
	int status;

	session.left = config->count ?: UINT64_MAX;
	session.verb.verbose = config->verbose;
	session.verb.duration_ms = config->duration_ms;
	if (result == ARGS_RUN && config->choice.container_root &&
	    !config->choice.container_names) {
		args_complain_alone(&command, "--container-root",
				    "--container-names");
		result = ARGS_WRONG;
	}
	if (result == ARGS_RUN)
		result = parse_outputs(&session);
	status = result == ARGS_RUN ? verb_run(&session.verb) : (int)result;
	output_list_free(&session.outputs);
	args_list_clear(&config->output_specs);
	return status;
}
