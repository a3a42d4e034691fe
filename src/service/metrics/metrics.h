/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * Metrics of a process that observes flows, as Prometheus text: served over HTTP,
 * written to a file, or both. docs/metrics.md lists them.
 *
 * A context, its outputs and its rules are read when the metrics are asked for, at most each
 * METRICS_AGE_MS, and nothing here waits: neither for clients nor for the context.
 */
#ifndef NETOBS_SERVICE_METRICS_METRICS_H
#define NETOBS_SERVICE_METRICS_METRICS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <netobs/diagnosis.h>
#include <netobs/drop.h>
#include <netobs/flow.h>
#include <netobs/netobs.h>
#include <netobs/series.h>
#include <netobs/stats.h>

#include "service/options/session_choice.h"

/* ---- Packets that the kernel dropped since the service began, by reason ---------------- */

enum { DROP_REASONS_MAX = 96 };

struct drop_total {
	char reason[64]; /* the kernel's name without prefix; "": no reason */
	const char *kind;
	uint64_t packets, bytes;
};

struct drop_totals {
	/* The last place has all reasons that found none. */
	struct drop_total reasons[DROP_REASONS_MAX + 1];
	size_t n;
	uint64_t lost_packets, missed;
};

void drop_totals_add(struct drop_totals *totals, const struct netobs_drop *drop);

/* ---- The health of TCP connections, summed up over flow records for metrics ------------ */

struct tcp_health {
	/* Times from records with new samples. */
	struct netobs_times rtt, path_rtt, response_time, app_latency;
	uint64_t retransmits, retransmitted_bytes;
	uint64_t out_of_order, late_unknown, duplicate_acks, zero_windows;
};

/** Add a record; one without RTT measurement adds nothing. */
void tcp_health_add(struct tcp_health *health, const struct netobs_flow *flow);

/* ---- Totals of diagnoses of alerts since the service began ----------------------------- */

struct diagnosis_totals {
	uint64_t followed; /* alerts that are being diagnosed, or have been */
	uint64_t verdicts[NETOBS_CERTAINTIES];
	uint64_t without_turns; /* of those followed: no turn of the connection was seen */
	/* Alerts that were not followed: max were, or there was no memory; it was not of TCP. */
	uint64_t over_max, not_tcp;
};

/* ---- Totals of traces for alerts since the service began ------------------------------- */

struct trace_totals {
	uint64_t armed;	  /* alerts whose connection was traced */
	uint64_t refused; /* alerts whose connection was not: max_connections were, or the tracer failed */
	uint64_t connections; /* now */
	uint64_t journeys, complete_journeys, events;
	/* Events that are missing, as in struct netobs_trace_stats. */
	uint64_t cut_by_connection, cut_by_rate, lost_events;
	struct diagnosis_totals diagnoses;
};

/* ---- Metrics --------------------------------------------------------------------------- */

struct alert_rules;
struct output;
struct rules;
struct sink_totals;

enum { METRICS_AGE_MS = 100, METRICS_INTERFACES = 128 /* with series */ };

struct metrics_config {
	const char *listen; /* ADDRESS:PORT, [ADDRESS]:PORT or unix:PATH; NULL */
	const char *textfile; /* replaced once per interval; NULL: none */
};

/* Values beside packets that the service observes for its groups. */
enum metrics_group_counts {
	METRICS_GROUP_TCP = 1 << 0, /* the health of TCP */
	METRICS_GROUP_DROPS = 1 << 1,
	METRICS_GROUP_CONNECTIONS = 1 << 2,
	/* Histograms, which a series has or has not: */
	METRICS_GROUP_RTT = 1 << 3,
	METRICS_GROUP_APP_LATENCY = 1 << 4,
};

/* Groups of flows that have series. */
struct metrics_group {
	const char *name;
	const struct netobs_series *series;
	struct netobs_group_keys keys;
	uint32_t counts; /* enum metrics_group_counts, or-ed */
};

/* The objects that metrics are read from. The caller keeps it, and may change it. */
struct metrics_source {
	const struct netobs *ctx;
	const struct output *outputs;
	size_t n_outputs;
	const struct sink_totals *closed; /* earlier outputs; NULL: none */
	const struct rules *rules;	  /* NULL: none */
	const struct alert_rules *alerts; /* NULL: none */
	const struct metrics_group *groups;
	size_t n_groups;
	uint32_t sampling; /* one packet or flow of so many is counted; 0: all */
	uint64_t errors, warnings; /* messages that were logged */
	struct tcp_health health;  /* of all records, which the caller adds */
	struct session_totals sessions;
	const struct drop_totals *drops; /* NULL: none */
	struct trace_totals trace;
	void (*on_log)(int level, const char *message, void *user);
	void *user;
};

struct metrics;

/** @return whether @config makes sense; if not, @ret_why says why */
bool metrics_check(const struct metrics_config *config, char *ret_why,
		   size_t size);

/**
 * Listen, if @config has an address; nothing is read from @source yet.
 *
 * @param config       copied, but for its strings
 * @param ret_metrics  yours: metrics_close()
 * @return 0, or -errno: @why says what failed
 */
int metrics_open(const struct metrics_config *config,
		 const struct metrics_source *source,
		 struct metrics **ret_metrics, char *why, size_t why_size);

/** @return all metrics for Prometheus, valid until the next call; NULL: out of memory */
const char *metrics_text(struct metrics *metrics);

/* For all below, NULL is fine: there are no metrics. */

/* @return the descriptor to poll for reading; -1: none */
int metrics_fd(const struct metrics *metrics);

/** Answer requests; to be called when metrics_fd() polls readable. */
void metrics_dispatch(struct metrics *metrics);

/*
 * Write the file, at most once per second unless @is_last. To be called at the end of an
 * interval. What fails is logged once, and tried again the next time.
 */
void metrics_write(struct metrics *metrics, bool is_last);

/* Format the address that serves the metrics, with the port that the kernel chose for 0; false: none. */
bool metrics_where(const struct metrics *metrics, char *text, size_t size);

/*
 * Rules of the source have been freed, or its groups are about to leave, which values that were
 * collected before refer to.
 */
void metrics_forget(struct metrics *metrics);

void metrics_close(struct metrics *metrics);

#endif
