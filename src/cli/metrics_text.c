/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* All metrics, in one table, and how they are written. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <netobs/version.h>

#include "base/utf8.h"
#include "base/util.h"
#include "metrics_values.h"

enum {
	VALUE_MAX = 120, /* bytes of a label's value; longer ones end in "..." */
	LABELS_MAX = 2048, /* four such labels, when each byte becomes three */
};

struct text {
	FILE *file;
	enum metrics_format format;
	const struct metrics_values *values;
	char labels[LABELS_MAX]; /* of the series that comes next */
	size_t len;		 /* of these */
};

/* ---- Labels ----------------------------------------------------------------------- */

static void put(struct text *text, const void *bytes, size_t len)
{
	if (len > sizeof(text->labels) - text->len)
		return;
	memcpy(text->labels + text->len, bytes, len);
	text->len += len;
}

static void put_text(struct text *text, const char *string)
{
	put(text, string, strlen(string));
}

/* UTF-8, escaped as both formats have it. */
static void put_value(struct text *text, const char *value)
{
	const uint8_t *begin = (const uint8_t *)value, *s = begin;
	size_t len;

	for (; *s && s - begin < VALUE_MAX; s += len ?: 1) {
		len = utf8_length(s);
		if (*s == '\n')
			put_text(text, "\\n");
		else if (!len)
			put_text(text, UTF8_REPLACEMENT);
		else {
			if (*s == '"' || *s == '\\')
				put_text(text, "\\");
			put(text, s, len);
		}
	}
	if (*s)
		put_text(text, "...");
}

static void add_label(struct text *text, const char *name, const char *value)
{
	put_text(text, text->len ? "," : "");
	put_text(text, name);
	put_text(text, "=\"");
	put_value(text, value);
	put_text(text, "\"");
}

static void add_index(struct text *text, const char *name, size_t value)
{
	char number[24];

	snprintf(number, sizeof(number), "%zu", value);
	add_label(text, name, number);
}

/* ---- Sets of values: what a metric has a series for --------------------------------- */

/*
 * Adds the labels of series @i, and returns the struct that its value is in; NULL: there is
 * none. SKIP: none for this @i.
 */
typedef const void *metric_set(struct text *text, size_t i);

static const char skip;
#define SKIP ((const void *)&skip)

static const void *set_one(struct text *text, size_t i)
{
	return i ? NULL : text->values;
}

static const void *set_unparsed(struct text *text, size_t i)
{
	const char *name = netobs_unparsed_name(i);

	if (name)
		add_label(text, "reason", name);
	return name ? &text->values->stats.unparsed[i] : NULL;
}

static const void *set_lost(struct text *text, size_t i)
{
	const char *name = netobs_lost_name(i);

	if (name)
		add_label(text, "reason", name);
	return name ? &text->values->stats.lost[i] : NULL;
}

/* Each has two directions. All without series of their own come last. */
static const void *set_interface(struct text *text, size_t i)
{
	static const char *const directions[] = { "ingress", "egress" };
	const struct metrics_values *values = text->values;
	const struct metrics_interface *series;
	bool are_others = i / 2 == METRICS_INTERFACES;

	if (i / 2 > METRICS_INTERFACES)
		return NULL;
	series = values->by_interface + i / 2;
	if (!are_others && !series->is_used)
		return SKIP;
	/* No name of an interface has a space. */
	add_label(text, "interface", are_others ? "all others" : series->name);
	add_label(text, "netns", are_others ? "" : series->netns ?: "");
	add_label(text, "direction", directions[i % 2]);
	return are_others ? &values->others[i % 2] : &series->crossed[i % 2];
}

static void add_sink(struct text *text, const struct metrics_sink *sink)
{
	add_label(text, "sink", sink->name);
	add_index(text, "output", sink->index);
}

static const void *set_sink(struct text *text, size_t i)
{
	const struct metrics_sink *sink = text->values->sinks + i;

	if (i == text->values->n_sinks)
		return NULL;
	add_sink(text, sink);
	return &sink->stats;
}

/* Those that have delivered something. */
static const void *set_delivering_sink(struct text *text, size_t i)
{
	const struct metrics_sink *sink = text->values->sinks + i;

	if (i < text->values->n_sinks && !sink->stats.delivered_ns)
		return SKIP;
	return set_sink(text, i);
}

static const void *set_sink_drop(struct text *text, size_t i)
{
	const struct metrics_sink *sink =
		text->values->sinks + i / NETOBS_SINK_DROPS;
	unsigned int reason = i % NETOBS_SINK_DROPS;

	if (i / NETOBS_SINK_DROPS == text->values->n_sinks)
		return NULL;
	add_sink(text, sink);
	add_label(text, "reason", netobs_sink_drop_name(reason));
	return &sink->stats.dropped[reason];
}

static const void *set_sink_counter(struct text *text, size_t i)
{
	const struct metrics_sink *sink =
		text->values->sinks + i / METRICS_COUNTERS;

	if (i / METRICS_COUNTERS == text->values->n_sinks)
		return NULL;
	i %= METRICS_COUNTERS;
	if (i >= sink->n_counters)
		return SKIP;
	add_sink(text, sink);
	add_label(text, "counter", sink->counters[i].name);
	return &sink->counters[i].value;
}

static const void *set_rule(struct text *text, size_t i)
{
	const struct metrics_rule *rule = text->values->rules + i;

	if (i == text->values->n_rules)
		return NULL;
	add_index(text, "rule", rule->index);
	add_label(text, "action", rule->action);
	add_label(text, "filter", rule->filter);
	return &rule->count;
}

static const void *set_log_level(struct text *text, size_t i)
{
	static const char *const levels[] = { "error", "warning" };

	if (i == ARRAY_SIZE(levels))
		return NULL;
	add_label(text, "level", levels[i]);
	return i ? &text->values->warnings : &text->values->errors;
}

static const void *set_build(struct text *text, size_t i)
{
	static const uint64_t one = 1;

	if (!i)
		add_label(text, "version", NETOBS_VERSION);
	return i ? NULL : &one;
}

/* ---- The table -------------------------------------------------------------------- */

enum metric_type { COUNTER, GAUGE, HISTOGRAM };

/*
 * The name of a counter goes without its "_total". Its last word is the unit, if it is
 * bytes or seconds.
 */
struct metric {
	const char *name;
	enum metric_type type;
	const char *help;
	metric_set *set;
	size_t offset;	     /* of a uint64_t in what the set returns */
	unsigned int digits; /* of it behind the point: 9 of nanoseconds */
};

#define ONE(member) \
	.set = set_one, .offset = offsetof(struct metrics_values, member)
#define OF(function, type, member) \
	.set = (function), .offset = offsetof(struct type, member)
#define SINK(member) OF(set_sink, netobs_sink_stats, member)

/* Packets, and their bytes. */
#define COUNTS(name, type, help, member)                                      \
	{ name "_packets", type, help, ONE(stats.member.packets) },           \
	{                                                                     \
		name "_bytes", type, help BYTES_HELP, ONE(stats.member.bytes) \
	}
#define COUNTS_OF(name, type, help, set)                                 \
	{ name "_packets", type, help, OF(set, netobs_count, packets) }, \
	{                                                                \
		name "_bytes", type, help BYTES_HELP,                    \
			OF(set, netobs_count, bytes)                     \
	}
#define BYTES_HELP ": bytes from the IP header on"

/* Records, and the packets in them. */
#define SINK_COUNTS(name, type, help, member)                    \
	{ name "_records", type, help, SINK(member.records) },   \
	{                                                        \
		name "_packets", type, help ": packets in them", \
			SINK(member.packets)                     \
	}

static const struct metric metrics[] = {
	COUNTS("netobs_seen", COUNTER,
	       "Packets that reached any observed interface, each counted where it was observed first",
	       seen),
	COUNTS("netobs_observed", COUNTER,
	       "Packets at all interfaces and directions that they crossed",
	       observed),
	COUNTS("netobs_exported", COUNTER, "Packets delivered in records",
	       exported),
	COUNTS("netobs_pending", GAUGE,
	       "Packets drained that will be delivered later", pending),
	COUNTS("netobs_filtered", COUNTER,
	       "Packets left out by the filter, by rules or for their flow's size",
	       filtered),
	COUNTS("netobs_small", COUNTER,
	       "Filtered packets: those of flows below the least size", small),
	COUNTS("netobs_sampled_out", COUNTER, "Packets left out by sampling",
	       sampled_out),
	COUNTS_OF("netobs_unparsed", COUNTER,
		  "Packets that did not become flows, by reason", set_unparsed),
	COUNTS_OF("netobs_lost", COUNTER, "Packets lost, by reason", set_lost),
	COUNTS("netobs_spilled", COUNTER,
	       "Observed packets that took the slow way through an overflow table",
	       spilled),
	COUNTS("netobs_inferred", COUNTER,
	       "Seen packets whose first observation does not follow from the interfaces",
	       inferred),
	{ "netobs_records", COUNTER, "Flow records delivered", ONE(stats.flows) },
	{ "netobs_sampling_interval", GAUGE,
	  "One packet or flow of so many is counted", ONE(sampling) },

	COUNTS_OF("netobs_interface", COUNTER,
		  "Packets in flows, at each interface and direction that they crossed",
		  set_interface),
	{ "netobs_interfaces", GAUGE, "Interfaces observed now", ONE(interfaces) },
	{ "netobs_shadowed_directions", GAUGE,
	  "Directions of interfaces where another program may hide packets",
	  ONE(shadowed) },

	{ "netobs_flow_table_entries", GAUGE,
	  "Flows per interface and direction in the last drain",
	  ONE(stats.table_entries) },
	{ "netobs_flow_table_limit", GAUGE,
	  "Flows per interface and direction that an interval can have",
	  ONE(engine.max_flows) },
	{ "netobs_flow_memory_bytes", GAUGE,
	  "Memory of the process for flows until their interval ends",
	  ONE(stats.flow_memory) },
	{ "netobs_kernel_memory_bytes", GAUGE,
	  "Memory of the BPF maps, without the entries of overflow tables",
	  ONE(stats.kernel_memory) },

	{ "netobs_drain_duration_seconds", HISTOGRAM,
	  "Time that drains took, from their begin to their last record",
	  ONE(engine.drains_by_time) },
	{ "netobs_drain_cpu_seconds", COUNTER, "CPU time of drains",
	  ONE(engine.drain_cpu_ns), .digits = 9 },
	{ "netobs_early_drains", COUNTER,
	  "Drains ahead of time, because flows reached their cap",
	  ONE(stats.early_drains) },

	{ "netobs_bpf_programs", GAUGE, "BPF programs loaded for interfaces",
	  ONE(programs) },
	{ "netobs_bpf_stats_enabled", GAUGE,
	  "1 while the kernel counts runs of BPF programs (kernel.bpf_stats_enabled)",
	  ONE(bpf_stats_enabled) },
	{ "netobs_bpf_runs", COUNTER, "Runs of the BPF programs, while counted",
	  ONE(engine.program_runs) },
	{ "netobs_bpf_run_seconds", COUNTER,
	  "Time of the BPF programs in these runs", ONE(engine.program_ns),
	  .digits = 9 },

	SINK_COUNTS("netobs_sink_taken", COUNTER, "Records given to the sink",
		    taken),
	SINK_COUNTS("netobs_sink_recovered", COUNTER,
		    "Records of an earlier run, found in the spool", recovered),
	SINK_COUNTS("netobs_sink_delivered", COUNTER, "Records delivered",
		    delivered),
	SINK_COUNTS("netobs_sink_unconfirmed", COUNTER,
		    "Delivered records that the other side may not have read",
		    unconfirmed),
	SINK_COUNTS("netobs_sink_pending", GAUGE,
		    "Records that wait to be delivered", pending),
	{ "netobs_sink_dropped_records", COUNTER, "Records dropped, by reason",
	  OF(set_sink_drop, netobs_sink_count, records) },
	{ "netobs_sink_dropped_packets", COUNTER,
	  "Records dropped, by reason: packets in them",
	  OF(set_sink_drop, netobs_sink_count, packets) },
	{ "netobs_sink_pending_seconds", GAUGE,
	  "Time that the oldest pending record has waited, at most",
	  SINK(pending_ms), .digits = 3 },
	{ "netobs_sink_last_delivery_timestamp_seconds", GAUGE,
	  "When records were delivered last",
	  OF(set_delivering_sink, netobs_sink_stats, delivered_ns), .digits = 9 },
	{ "netobs_sink_spool_bytes", GAUGE, "Size of the spool",
	  SINK(spool_bytes) },
	{ "netobs_sink_spool_limit_bytes", GAUGE,
	  "Size that the spool can have", SINK(spool_max_bytes) },
	{ "netobs_sink_durable_records", COUNTER,
	  "Records on disk, from the beginning of the spool on",
	  SINK(durable_records) },
	{ "netobs_sink_counter", COUNTER,
	  "Counters of the kind of sink: netobs-sinks(7)",
	  .set = set_sink_counter },

	COUNTS_OF("netobs_rule", COUNTER,
		  "Packets that a rule decided about, at each point", set_rule),

	{ "netobs_log_messages", COUNTER, "Messages logged",
	  .set = set_log_level },
	{ "netobs_build_info", GAUGE, "The version of netobs", .set = set_build },
	{ "process_cpu_seconds", COUNTER, "CPU time of the process",
	  ONE(process.cpu_ms), .digits = 3 },
	{ "process_resident_memory_bytes", GAUGE, "Resident memory",
	  ONE(process.resident_bytes) },
	{ "process_virtual_memory_bytes", GAUGE, "Virtual memory",
	  ONE(process.virtual_bytes) },
	{ "process_open_fds", GAUGE, "Open file descriptors", ONE(process.fds) },
	{ "process_max_fds", GAUGE, "Most file descriptors that can be open",
	  ONE(process.max_fds) },
	{ "process_start_time_seconds", GAUGE,
	  "When the process started, since 1970", ONE(process.start_ms),
	  .digits = 3 },
};

/* ---- Writing ---------------------------------------------------------------------- */

static void write_value(struct text *text, uint64_t value, unsigned int digits)
{
	uint64_t unit = 1;

	for (unsigned int i = 0; i < digits; i++)
		unit *= 10;
	fprintf(text->file, "%" PRIu64, value / unit);
	if (digits)
		fprintf(text->file, ".%0*" PRIu64, (int)digits, value % unit);
	fputc('\n', text->file);
}

static bool ends_in(const char *name, const char *suffix)
{
	size_t len = strlen(name), suffix_len = strlen(suffix);

	return len > suffix_len && !strcmp(name + len - suffix_len, suffix);
}

static void write_head(struct text *text, const struct metric *metric)
{
	static const char *const types[] = {
		[COUNTER] = "counter",
		[GAUGE] = "gauge",
		[HISTOGRAM] = "histogram",
	};
	static const char *const units[] = { "bytes", "seconds" };
	const bool is_open = text->format == METRICS_OPENMETRICS;
	const char *suffix = metric->type == COUNTER && !is_open ? "_total" : "";

	fprintf(text->file, "# HELP %s%s %s.\n# TYPE %s%s %s\n", metric->name,
		suffix, metric->help, metric->name, suffix, types[metric->type]);
	for (size_t i = 0; is_open && i < ARRAY_SIZE(units); i++)
		if (ends_in(metric->name, units[i]))
			fprintf(text->file, "# UNIT %s %s\n", metric->name,
				units[i]);
}

static void write_series(struct text *text, const struct metric *metric)
{
	const char *suffix = metric->type == COUNTER ? "_total" : "";
	const void *item = SKIP;

	for (size_t i = 0; item; i++) {
		text->len = 0;
		item = metric->set(text, i);
		if (!item || item == SKIP)
			continue;
		fprintf(text->file, "%s%s", metric->name, suffix);
		if (text->len)
			fprintf(text->file, "{%.*s}", (int)text->len,
				text->labels);
		fputc(' ', text->file);
		write_value(text,
			    *(const uint64_t *)((const char *)item +
						metric->offset),
			    metric->digits);
	}
}

/* Classes are of drains; there is no other histogram. */
static void write_histogram(struct text *text, const struct metric *metric)
{
	const struct netobs_engine_stats *engine = &text->values->engine;
	uint64_t sum = 0;

	for (int i = 0; i < NETOBS_DRAIN_TIMES - 1; i++) {
		sum += engine->drains_by_time[i];
		fprintf(text->file, "%s_bucket{le=\"%.9g\"} %" PRIu64 "\n",
			metric->name, (double)(64ULL << i) / 1e6, sum);
	}
	fprintf(text->file, "%s_bucket{le=\"+Inf\"} %" PRIu64 "\n",
		metric->name, engine->drains);
	fprintf(text->file, "%s_count %" PRIu64 "\n%s_sum ", metric->name,
		engine->drains, metric->name);
	write_value(text, engine->drain_ns, 9);
}

static void write_all(struct text *text)
{
	for (size_t i = 0; i < ARRAY_SIZE(metrics); i++) {
		write_head(text, &metrics[i]);
		if (metrics[i].type == HISTOGRAM)
			write_histogram(text, &metrics[i]);
		else
			write_series(text, &metrics[i]);
	}
	if (text->format == METRICS_OPENMETRICS)
		fputs("# EOF\n", text->file);
}

int metrics_format(const struct metrics_values *values,
		   enum metrics_format format, char **ret_text, size_t *ret_len)
{
	struct text text = { .format = format, .values = values };
	char *buf = NULL;
	size_t size = 0;
	bool has_failed;

	text.file = open_memstream(&buf, &size);
	if (!text.file)
		return -ENOMEM;
	write_all(&text);
	has_failed = ferror(text.file);
	if (fclose(text.file) || has_failed) {
		free(buf);
		return -ENOMEM;
	}
	*ret_text = buf;
	*ret_len = size;
	return 0;
}
