/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */

#include <errno.h>
#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <netobs/netobs.h>

#include "base/text.h"
#include "flows_request.h"
#include "cli/view/keys.h"
#include "cli/view/verb_run.h"
#include "service/options/args.h"
#include "service/options/privileges.h"
#include "service/signals.h"

enum { MAX_NOTES = 100 };

struct session {
	struct verb verb;
	struct flows_request *request;
	uint64_t left;	    /* records still to be printed */
	bool are_rules_due; /* read the file of rules again */
	bool has_alerts;    /* alerts were written since the last flush */
	bool is_replacing;  /* rules: with these, which messages are about */
	struct rules next;
	struct metrics_source metrics_source;
	struct metrics *metrics;
	char *notes[MAX_NOTES]; /* shown on a screen, to be said at its end */
	unsigned int n_notes; /* including notes beyond MAX_NOTES, which are not kept */
};

static void report_message(const struct session *session, const char *severity,
			   const char *message)
{
	fprintf(stderr, "netobsctl %s: %s%s\n", session->verb.name, severity,
		message);
}

static void keep_note(struct session *session, const char *text)
{
	if (session->n_notes < MAX_NOTES)
		session->notes[session->n_notes] = strdup(text);
	session->n_notes++;
}

/* The screen has shown them for a moment only. */
static void repeat_notes(struct session *session)
{
	for (unsigned int i = 0; i < session->n_notes && i < MAX_NOTES; i++) {
		if (session->notes[i])
			report_message(session, "", session->notes[i]);
		free(session->notes[i]);
	}
	if (session->n_notes > MAX_NOTES)
		fprintf(stderr, "netobsctl %s: and %u more messages\n",
			session->verb.name, session->n_notes - MAX_NOTES);
	session->n_notes = 0;
}

static void print_flow_log(int level, const char *message, void *user)
{
	struct session *session = user;
	char text[512];

	session->metrics_source.errors += level <= NETOBS_LOG_ERROR;
	session->metrics_source.warnings += level == NETOBS_LOG_WARNING;
	if (level > args_log_level(session->verb.verbose))
		return;
	if (!rules_place(session->is_replacing ? &session->next :
						 &session->request->config.rules,
			 message, text, sizeof(text)))
		option_name_write(message, text, sizeof(text));
	if (strstr(message, "unknown file format"))
		text_append(text, sizeof(text),
			    "; a compressed file: zstd -dc FILE | netobsctl %s -r -",
			    session->verb.name);
	safe_cell(text);
	if (level <= NETOBS_LOG_ERROR)
		session->verb.error_logged = true;

	/* A line in the middle of a screen would be gone at the next refresh. */
	for (size_t i = 0; i < session->request->outputs.n; i++) {
		struct output *output = &session->request->outputs.list[i];

		if ((level > NETOBS_LOG_ERROR || output_takes_keys(output)) &&
		    isatty(STDERR_FILENO) && output_note(output, text)) {
			keep_note(session, text);
			return;
		}
	}
	report_message(session, level == NETOBS_LOG_WARNING ? "warning: " : "",
		       text);
}

static void show_record(const struct netobs_record *record, void *user)
{
	struct session *session = user;

	if (!session->left)
		return;
	if (record->type == NETOBS_RECORD_FLOW)
		tcp_health_add(&session->metrics_source.health,
			       (const struct netobs_flow *)record);
	else
		session->has_alerts = true;
	output_list_record(&session->request->outputs, record);
	if (--session->left == 0 ||
	    output_list_has_failed(&session->request->outputs))
		verb_stop(&session->verb);
}

static void flush_outputs(struct session *session)
{
	output_list_interval(&session->request->outputs);
	if (output_list_has_failed(&session->request->outputs))
		verb_stop(&session->verb);
}

/* Alerts are sent at once, and not at the end of the interval. */
static void flush_alerts(struct session *session)
{
	if (session->has_alerts)
		flush_outputs(session);
	session->has_alerts = false;
}

static void on_interval(void *user)
{
	struct session *session = user;

	flush_outputs(session);
	metrics_write(session->metrics, false);
}

/* Check the outputs before anything is observed. False: an output is wrong. */
static bool check_outputs(struct session *session)
{
	for (size_t i = 0; i < session->request->outputs.n; i++) {
		struct output *output = &session->request->outputs.list[i];

		output->on_log = print_flow_log;
		output->user = session;
		if (output_check(output) < 0) {
			output_list_report(&session->request->outputs, output);
			return false;
		}
	}
	return true;
}

static int each_connection(void (*take)(const struct netobs_connection *, void *),
			   void *arg, void *user)
{
	const struct session *session = user;
	uint64_t cursor = 0;
	int r;

	while ((r = netobs_connections(session->verb.observer, &cursor, take,
				       arg)) > 0)
		;
	return r;
}

static int open_outputs(struct session *session)
{
	int r;

	session->request->view.each_connection = each_connection;
	r = output_list_open(&session->request->outputs, session->verb.observer);
	if (r == -EINVAL)
		session->verb.status = EXIT_USAGE;
	return r;
}

static void fill_flow_options(struct session *session, struct netobs_opts *opts)
{
	flows_config_fill(&session->request->config, opts);
	opts->on_record = show_record;
	if (session->request->is_alerts)
		opts->records = 1 << NETOBS_RECORD_ALERT;
	opts->on_interval = on_interval;
	opts->on_log = print_flow_log;
	opts->user = session;
}

static void end_rules(struct session *session, int r)
{
	struct rules *rules = &session->request->config.rules;
	char text[512];

	session->is_replacing = false;
	if (r < 0) {
		rules_clear(&session->next);
		if (r != -ECANCELED)
			print_flow_log(NETOBS_LOG_WARNING,
				       "the previous rules stay in use", session);
		return;
	}
	rules_clear(rules);
	*rules = session->next;
	session->next = (struct rules){ 0 };
	metrics_forget(session->metrics);
	snprintf(text, sizeof(text), "%s: %u rules are in use",
		 session->request->config.rules_path, rules->n);
	print_flow_log(NETOBS_LOG_INFO, text, session);
}

/* The previous rules stay in use until the library has loaded programs with the new ones. */
static void begin_rules(struct session *session)
{
	struct rules *rules = &session->request->config.rules, before = *rules;
	char text[512];
	NETOBS_OPTS(netobs_opts, opts);
	int r;

	session->are_rules_due = false;
	if (!rules_read(session->request->config.rules_path, false,
			&session->next, text, sizeof(text))) {
		print_flow_log(NETOBS_LOG_ERROR, text, session);
		return;
	}
	session->is_replacing = true;
	*rules = session->next;
	fill_flow_options(session, &opts); /* opts points to these */
	r = netobs_change_begin(session->verb.observer, &opts);
	*rules = before;
	if (r < 0)
		end_rules(session, r);
}

static void tend_rules(struct session *session)
{
	int r = session->is_replacing ?
			netobs_change_result(session->verb.observer) :
			-EINPROGRESS;

	if (r != -EINPROGRESS)
		end_rules(session, r);
	if (session->are_rules_due && !session->is_replacing)
		begin_rules(session);
}

static int dispatch_flows(void *object)
{
	struct session *session = object;
	int r;

	metrics_dispatch(session->metrics);
	if (signals_take_resize())
		output_list_resize(&session->request->outputs);
	session->are_rules_due |= signals_take_hangup();
	r = netobs_dispatch(session->verb.observer);
	flush_alerts(session);
	tend_rules(session);
	return r;
}

/* An address that is in use is reported before programs are attached. */
static int open_metrics(struct session *session)
{
	const struct flows_request *request = session->request;
	char text[640];
	int r;

	session->metrics_source = (struct metrics_source){
		.ctx = session->verb.observer,
		.outputs = request->outputs.list,
		.n_outputs = request->outputs.n,
		.rules = request->config.rules_path ? &request->config.rules :
						      NULL,
		.sampling = request->config.opts.sampling,
		.on_log = print_flow_log,
		.user = session,
	};
	r = metrics_open(&request->config.metrics, &session->metrics_source,
			 &session->metrics, text, sizeof(text));
	if (r < 0)
		fprintf(stderr, "netobsctl %s: --metrics: %s\n",
			session->verb.name, text);
	else if (metrics_where(session->metrics, text, sizeof(text)))
		fprintf(stderr, "netobsctl %s: serving metrics at %s\n",
			session->verb.name, text);
	return r;
}

static void say_what_is_waited_for(const struct session *session)
{
	const struct flows_request *request = session->request;
	char text[64];

	if (request->once || output_list_has_screen(&request->outputs))
		return;
	snprintf(text, sizeof(text), "waiting for %s",
		 request->is_alerts ? "alerts" :
		 request->is_tcp    ? "connections" :
				      "flows");
	live_say(session->verb.name, text);
}

static int observe_flows(void *object)
{
	struct session *session = object;
	struct verb *verb = &session->verb;
	int r;

	if (session->request->config.rules_path) {
		signals_catch_hangup();
		signals_hold(SIGHUP);
	}
	r = open_metrics(session);
	if (r < 0)
		return r;
	r = netobs_start(session->verb.observer);
	if (r < 0)
		return verb_fail(verb, "start", r);
	/* Outputs may start threads, which would keep more. */
	privileges_drop(&session->request->config.interfaces,
			KEEP_FILES | flows_config_privileges(
					     &session->request->config));
	r = open_outputs(session);
	malloc_trim(0); /* libbpf needed more to load programs */
	if (r < 0)
		return r;
	verb->fds[verb->n_fds++] = metrics_fd(session->metrics);
	verb->live.has_keys = output_list_needs_keys(&session->request->outputs);
	if (verb->live.has_keys)
		keys_start();
	say_what_is_waited_for(session);
	return 0;
}

static int prepare_view(void *object)
{
	return ((const struct session *)object)->verb.is_stopping ? 0 : -1;
}

/* The file has been read: its flows are shown until the user has seen enough. */
static int dispatch_view(void *object)
{
	struct session *session = object;

	if (signals_take_resize())
		output_list_resize(&session->request->outputs);
	return session->verb.is_stopping ? -ECANCELED : 0;
}

/* @return 0: there is a screen of what was read; 1: there is none; < 0: it failed, which was reported */
static int replay_files(void *object)
{
	struct session *session = object;
	int r;

	/* Files may come from anywhere. */
	privileges_drop(&session->request->config.interfaces, KEEP_FILES);
	r = open_outputs(session);
	if (r < 0)
		return r;
	r = netobs_replay_files(session->verb.observer,
				session->request->files.items,
				session->request->files.n);
	if (r < 0 && r != -ECANCELED)
		return verb_fail(&session->verb, "read the file", r);
	for (size_t i = 0; i < session->request->outputs.n; i++)
		if (output_takes_keys(&session->request->outputs.list[i]) &&
		    !session->verb.is_stopping) {
			output_list_resize(&session->request->outputs);
			return 0;
		}
	return 1;
}

static int finish_flows(void *object, int r)
{
	struct session *session = object;
	const struct flows_request *request = session->request;
	bool is_complete;

	metrics_write(session->metrics, true);
	metrics_close(session->metrics);
	is_complete = output_list_close(&session->request->outputs);
	repeat_notes(session);
	if (request->is_alerts)
		flows_print_alerts(request, session->verb.observer);
	else if (request->stats)
		flows_print_stats(request, session->verb.observer);
	return is_complete ? r : -EIO;
}

static const struct verb_ops live_ops = {
	.start = observe_flows,
	.dispatch = dispatch_flows,
	.finish = finish_flows,
};

static const struct verb_ops replay_ops = {
	.start = replay_files,
	.prepare = prepare_view,
	.dispatch = dispatch_view,
	.finish = finish_flows,
};

int flows_session(struct flows_request *request)
{
	struct session session = {
		.verb = { .ops = request->files.n ? &replay_ops : &live_ops,
			  .name = request->command->name,
			  .verbose = request->verbose,
			  .duration_ms =
				  request->files.n ? 0 : request->duration_ms,
			  .outputs = &request->outputs },
		.request = request,
		.left = request->count ?: UINT64_MAX,
	};
	NETOBS_OPTS(netobs_opts, opts);
	int status, r;

	if (!check_outputs(&session))
		return EXIT_USAGE;
	fill_flow_options(&session, &opts);
	r = netobs_new(&opts, &session.verb.observer);
	if (r == 0 && request->is_alerts)
		r = netobs_alerts_set(session.verb.observer,
				      request->config.alerts.list,
				      request->config.alerts.n);
	if (r < 0)
		verb_fail(&session.verb, "use these options", r);
	status = r < 0 ? args_refusal_status(r) : verb_run(&session.verb);
	netobs_free(session.verb.observer);
	rules_clear(&session.next);
	return status;
}
