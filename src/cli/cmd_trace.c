/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include "cmd.h"

#include <errno.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <netobs/trace.h>
#include <netobs/turn.h>

#include "base/clock_ms.h"
#include "catalogue/fields.h"
#include "cli/flows/flows_request.h"
#include "cli/trace/trace_summary.h"
#include "cli/trace/trace_outputs.h"
#include "cli/trace/tracer.h"
#include "cli/view/verb_run.h"
#include "service/observe/flows_config.h"
#include "service/options/privileges.h"
#include "service/options/rules.h"
#include "service/options/session_choice.h"
#include "service/service_trace.h"

enum { FOR_DEFAULT_MS = 10000, REFRESH_MS = 1000 };

/* The choices of --show. */
enum {
	SHOW_DEFAULT = -1,
	SHOW_JOURNEYS,
	SHOW_EVENTS,
	SHOW_SUMMARY,
	SHOW_TURNS
};

/* The parts that --show summary names. */
#define LIST_JourneyPart(line) ~, line
#define ENUM_VALUE(type, number, NAME, name, text) \
	FIELD_CHOOSE(LIST_##type("  " name ": " text "\n"), )

struct options {
	struct netobs_trace_opts traced; /* options without a member of their own here; 0: not given */
	struct args_list rules; /* rules that connections must break first; none: trace all */
	struct args_list interfaces; /* interfaces on which rules are evaluated; none: all */
	uint32_t for_ms;	/* after that */
	struct args_list netns; /* names of namespaces; none: all */
	int show;
	struct args_list filter_words;
	int layer;	 /* enum netobs_trace_layer: of events; -1: all */
	const char *svg; /* file for a picture; NULL: none */
	struct args_list outputs; /* values of -o */
	uint64_t count;		  /* 0: no limit */
	uint32_t duration_ms;
	uint32_t verbose;
};

static const struct args_option options[] = {
#define SELECT_trace OPTION_SELECTED
#define OPTIONS_STRUCT struct options
#include "service/options/option_rows.h"
};

static const struct args_command command = {
	.name = "trace",
	.summary = "Show where the bytes of connections spend their time, from send to read",
	.options = options,
	.operands = "[FILTER]",
	.operand_list = offsetof(struct options, filter_words),
	.notes = "FILTER chooses connections of TCP and UDP, and pings, by their addresses and ports, before\n"
		 "or after NAT: see pcap-filter(7). Without it, all are traced that --max-connections has\n"
		 "room for.\n"
		 "The parts of a journey:\n"
#include "catalogue/records.def"
		 "What a server takes for its answers is no part: see APP of netobsctl tcp.\n"
		 "On a terminal, q ends it, and p pauses the summary.\n",
};

struct watch {
	struct verb verb;
	struct options options;
	char *filter; /* NULL: all connections */
	struct alert_rules rules;
	struct netobs *alerts; /* observer of these; NULL: there are no rules */
	struct trace_outputs outputs;
	enum netobs_record_type counted; /* by --count */
	int64_t drawn_ms;		 /* when the summary was, on a screen */
	uint64_t shown;
	bool has_started;
};

/* ---- Records --------------------------------------------------------------------------- */

static bool is_full(const struct watch *watch)
{
	return watch->verb.write_error ||
	       (watch->options.count && watch->shown >= watch->options.count);
}

static void flush_output(struct watch *watch)
{
	if (!verb_flush(&watch->verb))
		watch->verb.write_error = trace_outputs_flush(&watch->outputs);
	if (is_full(watch))
		verb_stop(&watch->verb);
}

/* @return whether it is shown */
static bool add_record(struct watch *watch, const struct netobs_record *record)
{
	static const enum netobs_record_type shown[] = {
		[SHOW_JOURNEYS] = NETOBS_RECORD_JOURNEY,
		[SHOW_EVENTS] = NETOBS_RECORD_TRACE,
		[SHOW_SUMMARY] = NETOBS_RECORD_ALERT,
		[SHOW_TURNS] = NETOBS_RECORD_TURN,
	};

	watch->shown += record->type == watch->counted;
	if (record->type == NETOBS_RECORD_JOURNEY)
		trace_outputs_sum(&watch->outputs,
				  (const struct netobs_journey *)record);
	return record->type == NETOBS_RECORD_ALERT ||
	       record->type == shown[watch->options.show];
}

/* Called by the tracer and the observer of alerts. Alerts are not counted: they are no journeys. */
static void on_record(const struct netobs_record *record, void *user)
{
	const struct netobs_alert *alert = (const struct netobs_alert *)record;
	struct watch *watch = user;
	bool is_shown;

	if (record->type == NETOBS_RECORD_ALERT && alert->protocol == IPPROTO_TCP)
		service_trace_arm(watch->verb.observer, alert,
				  watch->options.for_ms);
	if (is_full(watch))
		return;
	is_shown = add_record(watch, record);
	output_list_record(&watch->outputs.sinks, record);
	if (is_shown && trace_outputs_print(&watch->outputs, record) < 0)
		flush_output(watch);
}

/* ---- Alerts that arm the tracer -------------------------------------------------------- */

/* Make the observer of alerts, if there are rules. @return 0; < 0 */
static int make_observer(struct watch *watch)
{
	NETOBS_OPTS(netobs_opts, opts,
		    .interfaces = watch->options.interfaces.items,
		    .filter = watch->filter, .rtt = 1,
		    .records = 1 << NETOBS_RECORD_ALERT, .on_record = on_record,
		    .on_log = verb_log, .user = watch);
	int err;

	if (!watch->rules.n)
		return 0;
	if (alert_rules_need_drops(&watch->rules))
		opts.flags |= NETOBS_DROPS;
	err = netobs_new(&opts, &watch->alerts);
	if (!err)
		err = netobs_alerts_set(watch->alerts, watch->rules.list,
					watch->rules.n);
	return err;
}

/* ---- The run --------------------------------------------------------------------------- */

static void describe(const struct watch *watch, char *buf, size_t size)
{
	snprintf(buf, size, "tracing %s%.180s",
		 watch->options.rules.n ? "after alerts: " : "",
		 watch->filter ?: "all connections");
}

/* Draw the summary every REFRESH_MS; at the end, the report does so. */
static void draw_summary(struct watch *watch)
{
	char text[220];

	if (!watch->verb.live.is_screen || watch->verb.is_stopping ||
	    watch->verb.live.is_paused || now_ms() < watch->drawn_ms + REFRESH_MS)
		return;
	describe(watch, text, sizeof(text));
	live_begin(&watch->verb.live, text, REFRESH_MS);
	trace_summary_print(watch->outputs.journeys, watch->verb.live.columns);
	flush_output(watch);
	watch->drawn_ms = now_ms();
}

/* @return time to wait for the next picture */
static int prepare_trace(void *object)
{
	struct watch *watch = object;

	draw_summary(watch);
	return watch->verb.live.is_screen && !watch->verb.is_stopping ?
		       left_ms(watch->drawn_ms + REFRESH_MS) :
		       -1;
}

static int dispatch_trace(void *object)
{
	struct watch *watch = object;
	int r = 0;

	if (watch->alerts && !watch->verb.is_stopping)
		r = netobs_dispatch(watch->alerts);
	r = r < 0 ? r : netobs_dispatch(watch->verb.observer);
	if (r)
		flush_output(watch);
	return r;
}

static bool wants_netfilter(const struct watch *watch)
{
	return watch->options.traced.netfilter ||
	       watch->options.layer == NETOBS_TRACE_LAYER_IP;
}

/* Rules about drops, and records of queues and hosts, look for namespaces by processes, too. */
static unsigned int kept_privileges(const struct watch *watch)
{
	return wants_netfilter(watch) || alert_rules_need_drops(&watch->rules) ||
			       trace_outputs_take(&watch->outputs, "queue") ||
			       trace_outputs_take(&watch->outputs, "host") ?
		       KEEP_FILES | KEEP_PROCESSES :
		       KEEP_FILES;
}

static bool wants_journeys(const struct watch *watch)
{
	const struct options *wanted = &watch->options;

	return wanted->svg || trace_outputs_take(&watch->outputs, "journey") ||
	       (watch->outputs.lines && wanted->show != SHOW_EVENTS &&
		wanted->show != SHOW_TURNS);
}

static bool wants_turns(const struct watch *watch)
{
	return watch->options.show == SHOW_TURNS ||
	       trace_outputs_take(&watch->outputs, "turn");
}

static bool wants_events(const struct watch *watch)
{
	return watch->options.show == SHOW_EVENTS ||
	       trace_outputs_take(&watch->outputs, "trace");
}

static int open_trace(struct watch *watch)
{
	struct verb *verb = &watch->verb;
	const struct options *wanted = &watch->options;
	struct netobs_trace_opts opts = wanted->traced;
	/* Open it before anything is attached: a FIFO may have to wait for a reader. */
	int r = trace_outputs_make(&watch->outputs);

	if (r < 0)
		return r;
	opts.sz = sizeof(opts);
	opts.filter = watch->filter;
	opts.netfilter = wants_netfilter(watch);
	opts.layers = wanted->layer < 0 ? 0 : (uint8_t)(1U << wanted->layer);
	opts.only_armed = wanted->rules.n > 0;
	opts.netns = wanted->netns.items;
	opts.on_record = on_record;
	if (wants_events(watch))
		opts.records |= 1 << NETOBS_RECORD_TRACE;
	if (trace_outputs_take(&watch->outputs, "queue"))
		opts.records |= 1 << NETOBS_RECORD_QUEUE;
	if (trace_outputs_take(&watch->outputs, "host"))
		opts.records |= 1 << NETOBS_RECORD_HOST;
	if (wants_turns(watch))
		opts.records |= 1 << NETOBS_RECORD_TURN;
	if (wants_journeys(watch) || !opts.records)
		opts.records |= 1 << NETOBS_RECORD_JOURNEY;
	opts.on_log = verb_log;
	opts.user = watch;
	r = make_observer(watch) ?:
				   netobs_trace_new(&opts, &watch->verb.observer);
	if (!r && watch->verb.is_stopping) /* by a signal that came before */
		netobs_stop(watch->verb.observer);
	r = r ?: netobs_start(watch->verb.observer);
	if (!r && watch->alerts)
		r = netobs_start(watch->alerts);
	if (r < 0)
		return verb_fail(verb, "start", r);
	verb->fds[verb->n_fds++] = netobs_fd(watch->alerts);
	privileges_drop(wanted->rules.n ? &wanted->interfaces : NULL,
			kept_privileges(watch));
	/* Open outputs after dropping privileges: their threads would keep them. */
	return trace_outputs_open(&watch->outputs);
}

static int start_trace(void *object)
{
	struct watch *watch = object;
	struct verb *verb = &watch->verb;
	const int r = open_trace(watch);
	char text[220];

	if (r == -EINTR && verb->is_stopping)
		return 1;
	if (r < 0) {
		verb->status = watch->verb.observer ? EXIT_FAILED :
						      args_refusal_status(r);
		return r;
	}
	live_start(&verb->live, watch->outputs.has_summary &&
					watch->outputs.lines == TRACE_TABLE &&
					!watch->options.rules.n);
	describe(watch, text, sizeof(text));
	if (!verb->live.is_screen)
		live_say("trace", text);
	watch->has_started = true;
	return 0;
}

/* Write the report, of what was traced to its end. @return 0; < 0: it was not written */
static int end_report(struct watch *watch)
{
	struct live *live = &watch->verb.live;
	char text[220];
	int r;

	describe(watch, text, sizeof(text));
	live->is_paused = false;
	if (live->is_screen)
		live_begin(live, text, REFRESH_MS);
	r = trace_outputs_report(&watch->outputs);
	flush_output(watch);
	return r;
}

static int finish_trace(void *object, int r)
{
	struct watch *watch = object;

	if (watch->has_started)
		tracer_report_left_out(command.name, watch->verb.observer, true);
	if (!r)
		r = end_report(watch);
	return trace_outputs_close(&watch->outputs) ? r : -EIO;
}

static const struct verb_ops trace_ops = {
	.start = start_trace,
	.prepare = prepare_trace,
	.dispatch = dispatch_trace,
	.finish = finish_trace,
};

static int read_options(struct watch *watch)
{
	const struct options *wanted = &watch->options;
	int err = trace_outputs_read(&watch->outputs, &wanted->outputs,
				     wanted->show == SHOW_EVENTS ? "trace" :
				     wanted->show == SHOW_TURNS	 ? "turn" :
								   "journey");

	if (!err)
		watch->counted = wants_journeys(watch) ? NETOBS_RECORD_JOURNEY :
				 wants_turns(watch)    ? NETOBS_RECORD_TURN :
							 NETOBS_RECORD_TRACE;
	if (err ||
	    flows_check_names(&command, &wanted->interfaces, "-i") != ARGS_RUN ||
	    flows_take_rules(&command, &wanted->rules, true, &watch->rules) !=
		    ARGS_RUN)
		return -EINVAL;
	return 0;
}

static int run_trace(struct watch *watch)
{
	const struct options *wanted = &watch->options;
	int status = EXIT_USAGE;

	watch->verb = (struct verb){ .ops = &trace_ops,
				     .name = command.name,
				     .verbose = wanted->verbose,
				     .duration_ms = wanted->duration_ms,
				     .outputs = &watch->outputs.sinks };
	watch->outputs = (struct trace_outputs){
		.on_log = verb_log,
		.user = watch,
		.svg = wanted->svg,
		.title = watch->filter ?: "all connections",
		.has_summary = wanted->show == SHOW_SUMMARY,
	};
	if (read_options(watch))
		trace_outputs_close(&watch->outputs);
	else
		status = verb_run(&watch->verb);
	netobs_free(watch->alerts);
	alert_rules_clear(&watch->rules);
	return status;
}

/* ---- Options --------------------------------------------------------------------------- */

/* A terminal shows too few journeys as lines at a time. */
static int default_show(const struct options *wanted)
{
	const struct args_list *outputs = &wanted->outputs;
	const bool is_table =
		!outputs->n ||
		(outputs->n == 1 && !strcmp(outputs->items[0], "table"));

	return is_table && !wanted->rules.n && isatty(STDOUT_FILENO) ?
		       SHOW_SUMMARY :
		       SHOW_JOURNEYS;
}

/* @return ARGS_RUN, or an exit status: some do not go together, which was printed */
static int check_options(const struct options *wanted)
{
	if (!wanted->rules.n && (wanted->for_ms || wanted->interfaces.n)) {
		args_complain_alone(&command, wanted->for_ms ? "--for" : "-i",
				    "--rule");
		return EXIT_USAGE;
	}
	if (!tracer_check_pid(&command, wanted->traced.pid))
		return EXIT_FAILED;
	if ((wanted->show == SHOW_EVENTS || wanted->show == SHOW_TURNS) &&
	    wanted->svg)
		args_complain(&command, "--svg draws journeys only");
	else if (wanted->rules.n && (wanted->traced.pid || wanted->traced.command ||
				     wanted->traced.container))
		args_complain(
			&command,
			"--pid, --comm and --container cannot be combined with --rule: alerts choose the connections");
	else if (wanted->layer >= 0 && wanted->show != SHOW_EVENTS)
		args_complain(&command, "--layer selects events: --show events");
	else if (wanted->traced.max_connections > TRACE_CONNECTIONS_MAX)
		args_complain(&command, "--max-connections: it is more than %d",
			      TRACE_CONNECTIONS_MAX);
	else
		return ARGS_RUN;
	return EXIT_USAGE;
}

int cmd_trace(int argc, char **argv)
{
	struct watch watch = { .options = { .show = SHOW_DEFAULT, .layer = -1 } };
	struct options *wanted = &watch.options;
	int result = args_parse(&command, argc, argv, wanted);

	if (result == ARGS_RUN &&
	    flows_join_filter(&command, &wanted->filter_words, &watch.filter) < 0)
		result = EXIT_FAILED;
	if (result == ARGS_RUN)
		result = check_options(wanted);
	wanted->for_ms = wanted->for_ms ?: FOR_DEFAULT_MS;
	if (wanted->show == SHOW_DEFAULT)
		wanted->show = default_show(wanted);
	if (result == ARGS_RUN)
		result = run_trace(&watch);
	free(watch.filter);
	args_list_clear(&wanted->filter_words);
	args_list_clear(&wanted->outputs);
	args_list_clear(&wanted->rules);
	args_list_clear(&wanted->netns);
	args_list_clear(&wanted->interfaces);
	return result;
}
