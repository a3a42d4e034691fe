// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "cmd.h"

#include <netobs/diagnosis.h>

#include "base/clock_ms.h"
#include "base/text.h"
#include "cli/diagnose/record_source.h"
#include "cli/diagnose/verdict_text.h"
#include "cli/flows/flows_request.h"
#include "cli/trace/tracer.h"
#include "cli/view/verb_run.h"
#include "service/diagnoses.h"
#include "service/options/privileges.h"
#include "service/service_trace.h"
#include "service/signals.h"

enum {
	DEFAULT_MS = 10000, /* of --before and --for */
	LOOK_MS = 100, /* between looks at other hosts, which bounds their rate */
	LATE_MS = 5000,	  /* for other hosts to end: they began later */
	ALERTS_MAX = 4,	  /* followed at a time */
	TRACED_MS = 6000, /* after an alert */
	JUDGED_MS = 8000,
	HOSTS_MAX = RECORD_HOSTS_MAX,
	SHOWN_MAX = 10, /* verdicts, for people */
	JSON_MAX = 64 << 10,
};

struct options {
	struct netobs_trace_opts traced; /* options of the tracer */
	struct args_list netns, filter_words, with;
	struct args_list files; /* of records, instead of tracing */
	uint32_t before_ms, for_ms, verbose; /* 0: not given */
	const char *ssh, *norms, *alerts;    /* NULL: not given */
	bool is_collector;
	int output; /* 0: for people; 1: JSON */
};

static const struct args_option options[] = {
#define SELECT_diagnose OPTION_SELECTED
#define OPTIONS_STRUCT struct options
#include "service/options/option_rows.h"
};

static const struct args_command command = {
	.name = "diagnose",
	.summary = "Judge what slows connections down: a process, its host, or the network",
	.options = options,
	.operands = "[FILTER]",
	.operand_list = offsetof(struct options, filter_words),
	.notes = "FILTER chooses connections by their addresses and ports: see pcap-filter(7).\n"
		 "Without --with, the network and the other host are \"beyond\" this one. HOST needs\n"
		 "netobsctl in its PATH, and a login that may trace. ^C ends the trace, and the time\n"
		 "of --for until then is judged.\n",
};

/* A diagnosis of its own: of all connections, or of the one of an alert. */
struct judged {
	struct netobs_diagnosis *diagnosis; /* NULL: not in use */
	struct netobs_alert alert; /* turns of its connection have its time; 0: there is none */
	int64_t due_ms;
};

struct diagnose {
	struct verb verb; /* without an observer: this host is not traced */
	struct options options;
	char *filter, *quoted; /* NULL: all connections */
	struct record_source alerts, hosts[HOSTS_MAX];
	struct record_reader reader; /* of files */
	size_t n_hosts, reading;     /* reading: which host, or which file */
	struct judged judged[ALERTS_MAX];
	unsigned int unfollowed, verdicts;
	unsigned int first_host;   /* the lowest one with turns */
	int64_t first_ns, last_ns; /* of its turns */
	int64_t stopped_ns;	   /* by the clock of this host */
	struct record_hosts found; /* in files */
	struct norms norms;
};

/* ---- Verdicts -------------------------------------------------------------------------- */

static void print_json(const struct netobs_record *record)
{
	char text[JSON_MAX];

	if (netobs_record_json(record, text, sizeof(text)) > 0)
		puts(text);
}

static void on_verdict(const struct netobs_verdict *verdict, void *user)
{
	struct diagnose *d = user;

	d->verdicts++;
	if (d->options.output)
		print_json(&verdict->record);
	else if (d->verdicts <= SHOWN_MAX)
		verdict_text_print(stdout, verdict, d->quoted);
	else if (d->verdicts == SHOWN_MAX + 1)
		puts("There are more verdicts: -o json prints all.");
}

static int judge(struct diagnose *d, const struct judged *judged,
		 int64_t since_ns, int64_t until_ns, int64_t before_ns)
{
	int r;

	d->verdicts = 0;
	r = netobs_diagnosis_judge(judged->diagnosis, since_ns, until_ns,
				   before_ns, on_verdict, d);
	if (d->verdicts)
		return 0;
	fprintf(stderr, "netobsctl diagnose: no verdict: %s\n",
		r == -ENOMEM ?
			strerror(-r) :
		d->first_ns ?
			"no turn was seen in the time that is judged" :
		d->verb.observer ?
			"no message of such a connection was seen" :
			"there are no records of turns, which --collect prints");
	return r < 0 ? r : -ENODATA;
}

/* The time to judge ends when this host stopped; if it has no turns, with the last one. */
static int judge_last(struct diagnose *d)
{
	const int64_t until_ns =
		d->verb.observer && !d->first_host ? d->stopped_ns : d->last_ns;
	const int64_t half_ns = d->first_ns ? (until_ns - d->first_ns) / 2 :
					      INT64_MAX;
	/* The first half of short files is the time before. */
	const int64_t for_ns =
		d->options.for_ms ? d->options.for_ms * NSEC_PER_MSEC :
				    min_i64(half_ns, DEFAULT_MS * NSEC_PER_MSEC);
	const int64_t since_ns = until_ns - for_ns;
	const int64_t long_ns = d->options.before_ms * NSEC_PER_MSEC;

	return judge(d, d->judged, max_i64(since_ns, 1), max_i64(until_ns, 2),
		     long_ns ? max_i64(since_ns - long_ns, 0) : 0);
}

/* ---- Records --------------------------------------------------------------------------- */

/* Times of other hosts may be any numbers. */
static void note_time(struct diagnose *d, unsigned int host,
		      const struct netobs_turn *turn)
{
	const int64_t begin_ns = turn->record.time_ns;

	if (host > d->first_host || begin_ns <= 0 || turn->end_ns < begin_ns)
		return;
	if (host < d->first_host)
		d->first_ns = d->last_ns = 0;
	if (!d->first_ns || begin_ns < d->first_ns)
		d->first_ns = begin_ns;
	d->last_ns = max_i64(d->last_ns, turn->end_ns);
	d->first_host = host;
}

static void add_record(struct diagnose *d, unsigned int host,
		       const struct netobs_record *record)
{
	const struct netobs_turn *turn = (const struct netobs_turn *)record;
	const bool is_turn = record->type == NETOBS_RECORD_TURN;

	if (is_turn)
		note_time(d, host, turn);
	for (struct judged *it = d->judged; it < d->judged + ALERTS_MAX; it++)
		if (it->diagnosis && (!is_turn || !it->alert.record.time_ns ||
				      turn->alert_ns == it->alert.record.time_ns))
			netobs_diagnosis_add(it->diagnosis, host, record);
}

static void on_record(const struct netobs_record *record, void *user)
{
	struct diagnose *d = user;

	d->options.is_collector ? print_json(record) : add_record(d, 0, record);
}

/* Verdicts of other hosts are no norms here. Other types are no mistake. */
static bool take_record(const char *line, void *user)
{
	union {
		struct netobs_record record;
		struct netobs_turn turn;
		struct netobs_queue queue;
		struct netobs_host host;
		struct netobs_verdict verdict;
	} any;
	struct diagnose *d = user;
	const int r = netobs_record_parse(line, &any, sizeof(any));

	if (r > 0 && any.record.type != NETOBS_RECORD_VERDICT)
		add_record(d,
			   d->options.files.n ?
				   record_hosts_find(&d->found, d->reading, line) :
				   (unsigned int)d->reading + 1,
			   &any.record);
	return r > 0 || r == -ENOTSUP;
}

static int take_line(const struct record_input *input, const char *line,
		     void *user)
{
	struct diagnose *d = user;

	if (!take_record(line, d))
		record_reader_refuse(&d->reader, input, "it is no record");
	return 0;
}

static int begin_judged(const struct diagnose *d, struct judged *judged)
{
	return netobs_diagnosis_new(NULL, &judged->diagnosis) ?:
		       norms_add(&d->norms, judged->diagnosis);
}

/* ---- Alerts ---------------------------------------------------------------------------- */

/* @return NULL: there is no room, or its connection is followed already */
static struct judged *find_room(struct diagnose *d,
				const struct netobs_alert *alert)
{
	const size_t size = offsetof(struct netobs_alert, protocol) -
			    offsetof(struct netobs_alert, client);
	struct judged *room = NULL;

	for (struct judged *it = d->judged; it < d->judged + ALERTS_MAX; it++)
		if (!it->diagnosis)
			room = it;
		else if (!memcmp(it->alert.client, alert->client, size))
			return NULL;
	d->unfollowed += !room;
	return room;
}

/* Other hosts get what was read of the alert as JSON, and no word for their shell. */
static void follow_alert(struct diagnose *d, const struct netobs_alert *alert)
{
	struct judged *room = find_room(d, alert);
	char text[NETOBS_TRACE_JSON_MAX + 1];

	if (!room)
		return;
	service_trace_arm(d->verb.observer, alert, TRACED_MS);
	if (d->options.is_collector || begin_judged(d, room) ||
	    netobs_record_json(&alert->record, text, sizeof(text) - 1) < 0)
		return;
	room->alert = *alert;
	room->due_ms = now_ms() + JUDGED_MS;
	strcat(text, "\n");
	for (size_t i = 0; i < d->n_hosts; i++)
		record_source_tell(&d->hosts[i], text);
}

static bool take_alert(const char *line, void *user)
{
	struct netobs_alert alert;

	if (!record_read_alert(line, &alert))
		return false;
	follow_alert(user, &alert);
	return true;
}

/* Judge those whose time has come. @return whether others are followed */
static bool judge_alerts(struct diagnose *d)
{
	bool has_others = false;

	for (struct judged *it = d->judged; it < d->judged + ALERTS_MAX; it++) {
		if (it->diagnosis && it->due_ms <= now_ms()) {
			judge(d, it, 0, 0, 0);
			netobs_diagnosis_free(TAKE_PTR(it->diagnosis));
		}
		has_others |= it->diagnosis != NULL;
	}
	if (d->unfollowed)
		fprintf(stderr,
			"netobsctl diagnose: alerts that are not followed, as %d are: %u\n",
			ALERTS_MAX, d->unfollowed);
	d->unfollowed = 0;
	return has_others;
}

/* ---- The run --------------------------------------------------------------------------- */

static int begin_sources(struct diagnose *d)
{
	const struct options *o = &d->options;
	cleanup_free char *there = NULL;
	int err = o->alerts ? record_source_follow(&d->alerts, o->alerts) : 0;

	if (asprintf(&there,
		     "netobsctl diagnose --collect%s --before %ums --for %ums -- %s",
		     o->alerts ? " --follow-alerts -" : "", o->before_ms,
		     o->for_ms, d->quoted ?: "") < 0)
		return -ENOMEM;
	for (size_t i = 0; !err && i < o->with.n; i++)
		err = record_source_reach(&d->hosts[d->n_hosts++],
					  o->with.items[i], o->ssh, there);
	for (size_t i = 0; !err && !o->alerts && i < d->n_hosts; i++)
		record_source_tell(&d->hosts[i], NULL);
	return err;
}

static int begin_tracer(struct diagnose *d)
{
	struct netobs_trace_opts opts = d->options.traced;
	int r;

	opts.sz = sizeof(opts);
	opts.filter = d->filter;
	opts.netns = d->options.netns.items;
	opts.only_armed = d->options.alerts != NULL;
	opts.records = 1 << NETOBS_RECORD_TURN | 1 << NETOBS_RECORD_QUEUE |
		       1 << NETOBS_RECORD_HOST;
	opts.on_record = on_record;
	opts.on_log = verb_log;
	opts.user = d;
	r = netobs_trace_new(&opts, &d->verb.observer);
	if (r < 0)
		d->verb.status = args_refusal_status(r);
	else if (d->verb.is_stopping) /* by a signal that came before */
		netobs_stop(d->verb.observer);
	/* Programs run once the options are known to be right, and with all privileges. */
	r = r ?: begin_sources(d) ?: netobs_start(d->verb.observer);
	privileges_drop(NULL, KEEP_FILES | KEEP_PROCESSES);
	return r;
}

static int read_norms(struct diagnose *d)
{
	char why[1200];
	int err = 0;

	if (d->options.norms)
		err = norms_read(&d->norms, d->options.norms, why, sizeof(why));
	if (!err)
		return 0;
	safe_cell(why);
	fprintf(stderr, "netobsctl diagnose: --norms: %s\n", why);
	return err;
}

static int start_diagnose(void *object)
{
	struct diagnose *d = object;
	const struct options *o = &d->options;
	char text[64] = "waiting for alerts";
	int r = read_norms(d);

	if (!r && !o->is_collector && !o->alerts)
		r = begin_judged(d, d->judged);
	for (; !r && d->reading < o->files.n; d->reading++)
		r = record_reader_read(&d->reader, o->files.items[d->reading],
				       take_line, d);
	if (r || o->files.n)
		return r ?: 1;
	r = begin_tracer(d);
	if (r == -EINTR && d->verb.is_stopping)
		return 1;
	if (r < 0)
		return verb_fail(&d->verb, "start", r);
	live_start(&d->verb.live, false);
	if (!o->alerts)
		snprintf(text, sizeof(text), "collecting for %.1f s",
			 d->verb.duration_ms / 1000.);
	live_say(command.name, text);
	return 0;
}

static int prepare_diagnose(void *object)
{
	const struct diagnose *d = object;

	return d->n_hosts || d->options.alerts ? LOOK_MS : -1;
}

/* Other hosts began later, so they end later; a signal or a key ends all at once. */
static int dispatch_diagnose(void *object)
{
	struct diagnose *d = object;
	struct verb *verb = &d->verb;
	bool has_more = false;
	int r;

	if (verb->is_stopping && !d->stopped_ns)
		d->stopped_ns = clock_ns(CLOCK_REALTIME);
	for (d->reading = 0; d->reading < d->n_hosts; d->reading++)
		has_more |= record_source_read(&d->hosts[d->reading],
					       take_record, d);
	r = netobs_dispatch(d->verb.observer);
	if (d->options.alerts &&
	    record_source_read(&d->alerts, take_alert, d) + judge_alerts(d) == 0)
		verb_stop(verb);
	verb_flush(verb);
	return r == -ECANCELED && has_more && !signals_are_stopping() &&
			       (uint64_t)(now_ms() - verb->deadline_ms) < LATE_MS ?
		       0 :
		       r;
}

static int finish_diagnose(void *object, int r)
{
	struct diagnose *d = object;

	for (size_t i = 0; i < d->n_hosts; i++)
		record_source_close(&d->hosts[i]);
	record_source_close(&d->alerts);
	if (r >= 0 && d->verb.observer)
		tracer_report_left_out(command.name, d->verb.observer, false);
	if (r >= 0 && !d->options.is_collector && !d->options.alerts)
		r = judge_last(d);
	for (size_t i = 0; i < ALERTS_MAX; i++)
		netobs_diagnosis_free(d->judged[i].diagnosis);
	free(d->norms.list);
	return r;
}

static const struct verb_ops diagnose_ops = {
	.start = start_diagnose,
	.prepare = prepare_diagnose,
	.dispatch = dispatch_diagnose,
	.finish = finish_diagnose,
};

/* ---- Options --------------------------------------------------------------------------- */

static bool has_twice(const struct args_list *list)
{
	for (size_t i = 0; i < list->n; i++)
		for (size_t k = 0; k < i; k++)
			if (!strcmp(list->items[i], list->items[k]))
				return true;
	return false;
}

/* @return what does not go together; NULL: nothing */
static const char *refuse(const struct diagnose *d)
{
	static const struct netobs_trace_opts none;
	const struct options *o = &d->options;

	if (o->files.n &&
	    (d->filter || o->with.n || o->alerts || o->is_collector ||
	     o->netns.n || memcmp(&o->traced, &none, sizeof(none)) != 0))
		return "-r judges all records of files: it takes no FILTER, and no option that is about tracing";
	if (has_twice(&o->files) || has_twice(&o->with))
		return "a file of -r, or a host of --with, is given twice";
	if (o->is_collector && (o->with.n || o->norms))
		return "--collect judges nothing: it takes no --with and --norms";
	if (o->alerts && d->filter)
		return "--follow-alerts: alerts choose connections, and no FILTER does";
	if (o->alerts && !o->is_collector && (o->before_ms || o->for_ms))
		return "--follow-alerts: it traces for 6 seconds, and takes no --before and --for";
	if (o->ssh && !o->with.n)
		return "--ssh: there is no --with, so it is of no use";
	for (size_t i = 0; i < o->with.n; i++)
		if (strchr("-", *o->with.items[i]) || i == HOSTS_MAX - 1)
			return "--with: it is the name of a host, and there are 63 at most";
	return NULL;
}

static int run_diagnose(struct diagnose *d)
{
	struct options *o = &d->options;
	const char *why = refuse(d);

	if (why) {
		args_complain(&command, "%s", why);
		return EXIT_USAGE;
	}
	if (!tracer_check_pid(&command, o->traced.pid))
		return EXIT_FAILED;
	d->quoted = shell_quote(d->filter);
	d->first_host = HOSTS_MAX;
	d->reader.verb = command.name;
	if (!o->files.n) {
		o->before_ms = o->before_ms ?: DEFAULT_MS;
		o->for_ms = o->for_ms ?: DEFAULT_MS;
	}
	d->verb = (struct verb){
		.ops = &diagnose_ops,
		.name = command.name,
		.verbose = o->verbose,
		.duration_ms = o->alerts ? 0 : o->before_ms + o->for_ms,
		.watches_stdout = true,
	};
	return verb_run(&d->verb);
}

int cmd_diagnose(int argc, char **argv)
{
	static struct diagnose d;
	struct options *o = &d.options;
	int result = args_parse(&command, argc, argv, o);

	if (result == ARGS_RUN &&
	    flows_join_filter(&command, &o->filter_words, &d.filter) < 0)
		result = EXIT_FAILED;
	if (result == ARGS_RUN)
		result = run_diagnose(&d);
	free(d.filter);
	free(d.quoted);
	args_list_clear(&o->filter_words);
	args_list_clear(&o->netns);
	args_list_clear(&o->with);
	args_list_clear(&o->files);
	return result;
}
