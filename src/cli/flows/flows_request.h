/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* The command line of netobsctl flows, top, tcp or alerts. */
#ifndef NETOBS_CLI_FLOWS_FLOWS_REQUEST_H
#define NETOBS_CLI_FLOWS_FLOWS_REQUEST_H

#include <stdbool.h>
#include <sys/types.h>

#include "cli/view/view.h"
#include "cli/view/view_output.h"
#include "service/observe/flows_config.h"
#include "service/options/args.h"

struct netobs;

/* Begins with @command alone; args_parse() adds the options. */
struct flows_request {
	struct flows_config config; /* options of observing, as in the service */
	const struct args_command *command;
	struct args_list output_specs, files, filter_words, alert_specs;
	uint32_t duration_ms, verbose;
	uint64_t count, given; /* the options that are given */
	bool stats, live;
	bool once;	    /* top: print one table, and no screen */
	bool has_screen;    /* a table on a terminal is refreshed in place */
	bool is_top;	    /* in that of top */
	bool is_tcp;	    /* connections are shown, and no flows */
	bool is_alerts;	    /* alerts are reported, and no flows */
	const char *socket; /* socket of the service, with live; NULL: not given */
	const char *by, *sort; /* NULL: not given */

	struct view_options view; /* for the output that shows rows */
	struct output_list outputs;
	char subject[160]; /* description of the observed packets, for people */
};

/**
 * Understand the outputs, and refuse what does not go together.
 *
 * @return ARGS_RUN; ARGS_WRONG
 */
enum args_result flows_request_finish(struct flows_request *request);

void flows_request_clear(struct flows_request *request);

/** @return the keys of groups where there is no --by */
const char *flows_default_by(const struct flows_request *request);

/* The words as one expression, which the caller frees; none without words. */
int flows_join_filter(const struct args_command *for_command,
		      const struct args_list *words, char **ret_filter);

/** @return ARGS_RUN; ARGS_WRONG: one is no name of an interface, which was printed */
enum args_result flows_check_names(const struct args_command *command,
				   const struct args_list *names,
				   const char *option);

/**
 * Add the rules that --rule has given.
 *
 * @param has_drops  false: rules about drops are refused
 * @return ARGS_RUN; ARGS_WRONG: one is wrong, which was printed
 */
enum args_result flows_take_rules(const struct args_command *command,
				  const struct args_list *specs, bool has_drops,
				  struct alert_rules *rules);

/** Show the records of the running service. @return an exit status */
int flows_live(const struct flows_request *request);

/* Print statistics on stderr, as a line of JSON. */
void flows_print_stats(const struct flows_request *request,
		       const struct netobs *ctx);

/* Report lost alerts on stderr, and, with --stats, the counters of each rule. */
void flows_print_alerts(const struct flows_request *request,
			const struct netobs *ctx);

/** Observe, or read files, until the end or a signal. @return an exit status */
int flows_session(struct flows_request *request);

#endif
