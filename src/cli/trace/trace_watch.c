// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "trace_watch.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>

#include <netobs/trace.h>

#include "base/clock_ms.h"
#include "base/util.h"
#include "service/options/privileges.h"
#include "cli/view/keys.h"
#include "cli/view/live.h"
#include "cli/view/text_table.h"
#include "service/signals.h"
#include "trace_follow.h"
#include "trace_left_out.h"
#include "trace_line.h"
#include "trace_outputs.h"
#include "trace_report.h"

enum { REFRESH_MS = 1000 };

struct watch {
	const struct trace_request *request;
	struct netobs_trace *trace;
	struct trace_follow follow; /* used with rules */
	struct trace_outputs outputs;
	bool counts_journeys;	    /* by --count; else events */
	uint8_t layers;		    /* layers of events; 0: all */
	struct trace_report report; /* report of journeys */
	struct live live;
	int64_t drawn_ms; /* when the summary was, on a screen */
	uint64_t shown;
	bool error_logged;
	int write_error; /* error of stdout; < 0 */
	volatile bool is_stopping;
};

static void stop_watch(void *object)
{
	struct watch *watch = object;

	if (watch->trace && !watch->is_stopping)
		netobs_trace_stop(watch->trace);
	watch->is_stopping = true;
}

static void on_log(int level, const char *message, void *user)
{
	struct watch *watch = user;

	watch->error_logged |= args_report_log("trace", watch->request->verbose,
					       level, message);
}

/* ---- Records --------------------------------------------------------------------------- */

static bool is_full(const struct watch *watch)
{
	return watch->write_error ||
	       (watch->request->count && watch->shown >= watch->request->count);
}

static void flush_output(struct watch *watch)
{
	watch->write_error = watch->write_error ?: text_flush("trace");
	watch->write_error = watch->write_error ?:
				     trace_outputs_flush(&watch->outputs);
	if (is_full(watch))
		stop_watch(watch);
}

static void show_line(struct watch *watch, const char *line)
{
	if (puts(line) < 0)
		flush_output(watch);
}

/* Fold the line to the width of a terminal. */
static void show_folded(struct watch *watch, char line[TRACE_LINE_MAX])
{
	char text[2 * TRACE_LINE_MAX];

	live_measure(&watch->live);
	trace_line_fold(text, sizeof(text), line, watch->live.columns);
	show_line(watch, text);
}

static void show_json(struct watch *watch, const struct netobs_record *record)
{
	char text[NETOBS_TRACE_JSON_MAX];

	if (netobs_record_json(record, text, sizeof(text)) > 0)
		show_line(watch, text);
}

static void show_event(struct watch *watch, const struct netobs_trace_event *event)
{
	char line[TRACE_LINE_MAX];

	if (watch->outputs.lines == TRACE_JSON)
		show_json(watch, &event->record);
	if (watch->outputs.lines != TRACE_TABLE)
		return;
	trace_line_event(line, event);
	show_folded(watch, line);
}

static void on_event(const struct netobs_trace_event *event, void *user)
{
	struct watch *watch = user;
	const bool is_shown = watch->request->show == TRACE_SHOW_EVENTS;
	bool counts = is_shown || !watch->outputs.pcapng;

	if (is_full(watch))
		return;
	if (watch->outputs.pcapng)
		counts |= trace_pcapng_add(watch->outputs.pcapng, event);
	if (!watch->counts_journeys)
		watch->shown += counts;
	if (is_shown)
		show_event(watch, event);
	trace_outputs_record(&watch->outputs, &event->record);
}

static void show_journey(struct watch *watch, const struct netobs_journey *journey)
{
	char line[TRACE_LINE_MAX];

	if (watch->outputs.lines == TRACE_JSON)
		show_json(watch, &journey->record);
	if (watch->outputs.lines != TRACE_TABLE)
		return;
	trace_line_journey(line, journey);
	show_folded(watch, line);
}

static void on_journey(const struct netobs_journey *journey, void *user)
{
	struct watch *watch = user;

	if (is_full(watch))
		return;
	watch->shown += watch->counts_journeys;
	trace_report_add(&watch->report, journey);
	if (watch->request->show == TRACE_SHOW_JOURNEYS)
		show_journey(watch, journey);
	trace_outputs_record(&watch->outputs, &journey->record);
}

/* Lines of alerts are not counted: they are no journeys. */
static void on_alert(const struct netobs_alert *alert, void *user)
{
	struct watch *watch = user;
	char line[TRACE_LINE_MAX];

	if (is_full(watch))
		return;
	trace_outputs_record(&watch->outputs, &alert->record);
	if (watch->outputs.lines == TRACE_JSON)
		show_json(watch, &alert->record);
	if (watch->outputs.lines != TRACE_TABLE)
		return;
	trace_line_alert(line, alert);
	show_folded(watch, line);
}

/* ---- Options --------------------------------------------------------------------------- */

/* @return the layer, or -EINVAL, which is reported */
static int find_layer(const char *name)
{
	for (int layer = 0; layer < NETOBS_TRACE_LAYERS; layer++)
		if (!strcmp(netobs_trace_layer_name((unsigned int)layer), name))
			return layer;
	fprintf(stderr,
		"netobsctl trace: --layer: '%s' is none of socket, tcp, qdisc, device and ip\n",
		name);
	return -EINVAL;
}

static int read_layers(struct watch *watch)
{
	const struct args_list *names = &watch->request->layers;

	for (size_t i = 0; i < names->n; i++) {
		int layer = find_layer(names->items[i]);

		if (layer < 0)
			return layer;
		watch->layers |= (uint8_t)(1U << layer);
	}
	return 0;
}

/* ---- The run --------------------------------------------------------------------------- */

enum { FD_TRACE, FD_FOLLOW, FD_KEYS, FD_OUTPUTS };

static void describe(const struct watch *watch, char *buf, size_t size)
{
	snprintf(buf, size, "tracing %s%.180s",
		 watch->request->rules.n ? "after alerts: " : "",
		 watch->request->filter ?: "all connections");
}

/* Once in a while; at the end, the report does so. */
static void draw_summary(struct watch *watch)
{
	char text[220];

	if (!watch->live.is_screen || watch->is_stopping ||
	    watch->live.is_paused || now_ms() < watch->drawn_ms + REFRESH_MS)
		return;
	describe(watch, text, sizeof(text));
	live_begin(&watch->live, text, REFRESH_MS);
	trace_summary_print(&watch->report.summary, watch->live.columns);
	flush_output(watch);
	watch->drawn_ms = now_ms();
}

/* Time to wait for a signal, the end, or the next picture. */
static int wait_ms(const struct watch *watch, int64_t deadline_ms)
{
	if (watch->is_stopping)
		return -1;
	return sooner_ms(until_ms(deadline_ms),
			 watch->live.is_screen ?
				 left_ms(watch->drawn_ms + REFRESH_MS) :
				 -1);
}

static void wait_for_any(struct watch *watch, struct pollfd *fds, int timeout_ms)
{
	fds[FD_TRACE] = (struct pollfd){ .fd = netobs_trace_fd(watch->trace),
					 .events = POLLIN };
	fds[FD_FOLLOW] = (struct pollfd){ .fd = trace_follow_fd(&watch->follow),
					  .events = POLLIN };
	fds[FD_KEYS] = (struct pollfd){ .fd = keys_fd(), .events = POLLIN };
	trace_outputs_fill_fds(&watch->outputs, &fds[FD_OUTPUTS]);
	if (poll(fds, FD_OUTPUTS + watch->outputs.n_sinks, timeout_ms) > 0)
		trace_outputs_ready(&watch->outputs, &fds[FD_OUTPUTS]);
	if (fds[FD_KEYS].revents && !live_take_keys(&watch->live))
		stop_watch(watch);
}

/* Run until the tracer has stopped, by a signal or by itself. */
static int loop_trace(struct watch *watch)
{
	const uint32_t duration_ms = watch->request->duration_ms;
	const int64_t deadline_ms = duration_ms ? now_ms() + duration_ms : 0;
	cleanup_free struct pollfd *fds =
		calloc(FD_OUTPUTS + watch->outputs.n_sinks, sizeof(*fds));
	int r = fds ? 0 : -ENOMEM;

	while (r >= 0 || r == -EINTR) {
		draw_summary(watch);
		wait_for_any(watch, fds, wait_ms(watch, deadline_ms));
		if (deadline_ms && now_ms() >= deadline_ms)
			stop_watch(watch);
		r = watch->is_stopping ? 0 :
					 trace_follow_dispatch(&watch->follow);
		r = r ?: netobs_trace_dispatch(watch->trace);
		if (r > 0)
			flush_output(watch);
	}
	flush_output(watch);
	return r == -ECANCELED ? 0 : r;
}

static bool wants_netfilter(const struct watch *watch)
{
	return watch->request->budget.netfilter ||
	       watch->layers & 1U << NETOBS_TRACE_LAYER_IP;
}

/* Rules about drops look for namespaces by processes, too. */
static unsigned int kept_privileges(const struct watch *watch)
{
	return wants_netfilter(watch) ||
			       alert_rules_need_drops(&watch->follow.rules) ?
		       KEEP_FILES | KEEP_PROCESSES :
		       KEEP_FILES;
}

static bool wants_journeys(const struct watch *watch)
{
	const struct trace_request *request = watch->request;

	return request->svg || trace_outputs_take(&watch->outputs, "journey") ||
	       (watch->outputs.lines && request->show != TRACE_SHOW_EVENTS);
}

static bool wants_events(const struct watch *watch)
{
	return trace_request_has_events(watch->request) ||
	       trace_outputs_take(&watch->outputs, "trace");
}

static int start_trace(struct watch *watch)
{
	const struct trace_request *request = watch->request;
	NETOBS_OPTS(netobs_trace_opts, opts, .filter = request->filter,
		    .max_connections = request->budget.max_connections,
		    .max_events = request->budget.max_events,
		    .max_rate = request->budget.max_rate,
		    .netfilter = wants_netfilter(watch), .layers = watch->layers,
		    .only_armed = request->rules.n > 0, .pid = request->pid,
		    .command = request->command, .container = request->container,
		    .on_event = wants_events(watch) ? on_event : NULL,
		    .on_journey = wants_journeys(watch) || !wants_events(watch) ?
					  on_journey :
					  NULL,
		    .on_log = on_log, .user = watch);
	const struct args_list none = { 0 };
	/* Open it before anything is attached: a FIFO may have to wait for a reader. */
	int r = trace_report_open(&watch->report);

	r = r ?: trace_outputs_make(&watch->outputs);
	if (r < 0)
		return r;
	r = trace_follow_open(&watch->follow, request->interfaces.items,
			      request->filter);
	r = r ?: netobs_trace_new(&opts, &watch->trace);
	if (!r && watch->is_stopping) /* by a signal that came before */
		netobs_trace_stop(watch->trace);
	r = r ?: netobs_trace_start(watch->trace);
	watch->follow.trace = watch->trace;
	r = r ?: trace_follow_start(&watch->follow);
	if (r < 0) {
		args_report_failure("trace", watch->error_logged, "start", r);
		return r;
	}
	privileges_drop(request->rules.n ? &request->interfaces : &none,
			kept_privileges(watch));
	/* Open outputs after dropping privileges: their threads would keep them. */
	return trace_outputs_open(&watch->outputs);
}

static int run_trace(struct watch *watch)
{
	char text[220];
	int r = start_trace(watch);

	if (r == -EINTR && watch->is_stopping)
		return 0;
	if (r < 0)
		return r;
	live_start(&watch->live, watch->report.lines == TRACE_TABLE &&
					 !watch->request->rules.n);
	describe(watch, text, sizeof(text));
	if (!watch->live.is_screen)
		live_say("trace", text);
	r = loop_trace(watch);
	live_end();
	if (r < 0)
		args_report_failure("trace", watch->error_logged, "continue", r);
	trace_left_out_print(watch->trace);
	if (r < 0)
		return r;
	watch->live.is_paused = false;
	if (watch->live.is_screen)
		live_begin(&watch->live, text, REFRESH_MS);
	r = trace_report_end(&watch->report);
	flush_output(watch);
	return r;
}

bool trace_request_has_events(const struct trace_request *request)
{
	return request->show == TRACE_SHOW_EVENTS ||
	       trace_outputs_have_pcapng(&request->outputs);
}

static int read_request(struct watch *watch)
{
	const struct trace_request *request = watch->request;
	const bool is_events = request->show == TRACE_SHOW_EVENTS;
	const bool is_summary = request->show == TRACE_SHOW_SUMMARY;
	int err = trace_outputs_read(&watch->outputs, &request->outputs,
				     is_events ? "trace" : "journey", is_summary);

	watch->counts_journeys = !err && wants_journeys(watch);
	if (is_summary)
		watch->report.lines = watch->outputs.lines;
	err = err ?: read_layers(watch);
	err = err ?: trace_follow_interfaces(&request->interfaces);
	return err ?: trace_follow_rules(&watch->follow, &request->rules);
}

int trace_watch(const struct trace_request *request)
{
	struct watch watch = {
		.request = request,
		.follow = { .duration_ms = request->for_ms,
			    .on_alert = on_alert,
			    .on_log = on_log },
		.outputs = { .on_log = on_log },
		.report = { .svg = request->svg,
			    .title = request->filter ?: "all connections" },
	};
	bool is_complete, is_refused;
	int r;

	watch.follow.user = watch.outputs.user = &watch;
	if (read_request(&watch)) {
		trace_follow_close(&watch.follow);
		trace_outputs_close(&watch.outputs);
		return EXIT_USAGE;
	}
	signals_catch(stop_watch, &watch);
	r = run_trace(&watch);
	is_refused = r < 0 && !watch.trace;
	is_complete = trace_outputs_close(&watch.outputs);
	signals_release();
	trace_follow_close(&watch.follow);
	netobs_trace_free(watch.trace);
	trace_report_close(&watch.report);
	if (is_refused)
		return args_refusal_status(r);
	if (watch.write_error && watch.write_error != -EPIPE)
		return EXIT_FAILED;
	return r < 0 || !is_complete ? EXIT_FAILED : EXIT_FINE;
}
