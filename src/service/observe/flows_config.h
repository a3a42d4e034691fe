/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* What was asked for on the command line of netobsctl flows, or top. */
#ifndef NETOBS_SERVICE_OBSERVE_FLOWS_CONFIG_H
#define NETOBS_SERVICE_OBSERVE_FLOWS_CONFIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "service/options/alert_rules.h"
#include "service/options/args.h"
#include "cli/view/conns.h"
#include "service/metrics/metrics.h"
#include "service/outputs/output.h"
#include "service/options/rules.h"
#include "cli/view/view.h"

struct netobs_opts;

/* Choices of options. */
enum attach { ATTACH_AUTO, ATTACH_TCX, ATTACH_CLSACT };
enum timestamps { TIMESTAMPS_COARSE, TIMESTAMPS_PRECISE };
enum flows_direction { FLOWS_BOTH, FLOWS_INGRESS, FLOWS_EGRESS };

struct flows_config {
	const struct args_command *command;
	struct args_list interfaces, exclude, output_specs, files, filter_words;
	int direction, timestamps, attach,
		attach_order; /* index of the choice; -1: not given */
	uint32_t duration_ms, interval_ms, active_ms, idle_ms; /* 0: not given */
	uint32_t max_flows, verbose, top;
	uint64_t max_memory;
	uint64_t count;
	bool per_interface, stats, list, want_names, live;
	bool once;	 /* of top: one table, and no screen */
	bool has_screen; /* a table on a terminal is refreshed in place */
	bool is_top;	 /* in that of top */
	bool is_tcp;	 /* connections are shown, and no flows */
	bool is_alerts;	 /* alerts are reported, and no flows */
	int rtt; /* the health of TCP connections is measured: enum netobs_rtt */
	bool process;	/* the processes at the ends of flows are found */
	int conns_sort; /* enum conns_sort, index of the choice; -1: not given */
	uint32_t max_connections; /* 0: not given */
	const char *socket; /* of the service, with live; NULL: not given */
	const char *by, *sort, *sampling; /* NULL: not given */
	enum netobs_sampling sampling_mode;
	uint32_t sampling_interval; /* one of so many; 0: all */
	uint64_t min_bytes;
	char *filter;		/* of filter_words; NULL: none */
	const char *rules_path; /* NULL: not given */
	struct rules rules;
	struct args_list alert_specs;
	struct alert_rules alerts; /* of these */
	struct metrics_config metrics;

	struct view_options view; /* of the output that can show one */
	struct output *outputs;
	size_t n_outputs;
	char subject[160]; /* what is observed, for people */
};

/* What --direction may be. */
extern const char *const flows_directions[];

/* What --attach may be, and the features that are not to be used then. */
extern const char *const flows_attachments[];

/* By enum netobs_rtt. */
extern const char *const flows_rtt_modes[];
uint64_t flows_attachment_disables(int attachment);

/* The words as one expression, which the caller frees; none without words. */
int flows_join_filter(const struct args_command *for_command,
		      const struct args_list *words, char **ret_filter);

/** @return the option with this long name, of struct flows_config; NULL: there is none */
const struct args_option *flows_config_find(const char *name);

/**
 * What the values of options must be besides.
 *
 * @param ret_why  unchanged if they are right
 * @return whether they are
 */
bool flows_check_interface(const char *name, char *ret_why, size_t size);
bool flows_check_interval(uint32_t interval_ms, char *ret_why, size_t size);
bool flows_parse_sampling(struct flows_config *config, char *ret_why,
			  size_t size);

extern const struct args_command flows_command;

/* Nothing is given yet; args_parse() adds the options. */
void flows_config_init(struct flows_config *config,
		       const struct args_command *command);

/**
 * Understand the outputs, and refuse what does not go together.
 *
 * @return ARGS_RUN; ARGS_WRONG
 */
enum args_result flows_config_finish(struct flows_config *config);

/**
 * Of commands that show one thing on standard output: refuse all outputs but table, which is
 * the default, and json.
 *
 * @return ARGS_RUN; ARGS_WRONG
 */
enum args_result flows_config_one_output(struct flows_config *config);

/** With --once: all that is seen until the end is of one interval, which the end comes before. */
void flows_config_observe_once(struct flows_config *config);

/** Show the records of the running service. @return an exit status */
int flows_live(const struct flows_config *config);

void flows_config_clear(struct flows_config *config);

/*
 * The library's messages begin with the name of its own option. Returns the option of
 * the commands that observe packets, and in @ret_rest the text after the name; else NULL.
 */
const char *flows_config_option(const char *message, const char **ret_rest);

struct netobs;

/* On stderr: for people beside tables, for programs beside anything else. */
void flows_print_stats(const struct flows_config *config,
		       const struct netobs *ctx);

/* The same of alerts: what each rule has done, or with less said, whether some were lost. */
void flows_print_alerts(const struct flows_config *config,
			const struct netobs *ctx);

/* Everything but the callbacks; borrows from @config. */
void flows_config_fill(const struct flows_config *config,
		       struct netobs_opts *opts);

/* Observe, or read files, until the end or a signal. @return an exit status */
int flows_session(struct flows_config *config);

#endif
