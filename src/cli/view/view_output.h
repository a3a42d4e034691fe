/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* Outputs of the command, -o OUTPUT: sinks, as the service has them, tables and screens. */
#ifndef NETOBS_CLI_VIEW_VIEW_OUTPUT_H
#define NETOBS_CLI_VIEW_VIEW_OUTPUT_H

#include "service/options/args.h"
#include "service/outputs/output.h"

extern const struct output_kind output_table;	 /* lines */
extern const struct output_kind output_groups;	 /* lines of JSON */
extern const struct output_kind output_sessions; /* lines of sessions */
extern const struct output_kind output_alerts;	 /* lines of alerts */
extern const struct output_kind output_tcp_lines; /* connections: a table, or JSON */
/* Screens, which are refreshed in place, on a terminal: their states begin with a struct screen_state. */
extern const struct output_kind output_live;
extern const struct output_kind output_top; /* takes the whole terminal, and its keys */
extern const struct output_kind output_tcp; /* takes the whole terminal, for connections */

/*
 * For @spec, a value of -o, or NULL for the default, without opening anything.
 * @refresh: a table may be a screen that shows the latest records only.
 */
struct output view_output_of(const char *spec, bool refresh);

/* Let it take groups of flows instead of flows. False: it cannot. */
bool output_take_groups(struct output *output);

/* @return whether it is a table */
bool output_is_for_people(const struct output *output);

bool output_is_screen(const struct output *output);

/* @return whether it has the whole terminal, and reads its keys */
bool output_takes_keys(const struct output *output);

/* Show a log line, if it is an open screen. @return whether that is so */
bool output_note(struct output *output, const char *message);

/* https://no-color.org: any value but an empty one. */
bool output_want_colour(void);

/*
 * Write how many packets were lost since the start, for all screens: "0 lost, 3 unparsed".
 * Returns whether anything was lost.
 */
bool output_losses(const struct output *output, char *ret_text, size_t size);

/* ---- All outputs of a command ------------------------------------------------------ */

struct output_list {
	const struct args_command *command;
	struct output *list;
	size_t n;
};

/**
 * Make the outputs that @specs name, or the default one, without opening them.
 *
 * @param refresh   a table may be a screen that shows the latest records only
 * @param ret_list  to be freed in any case: output_list_free()
 * @return ARGS_RUN; ARGS_WRONG: a message was printed
 */
enum args_result output_list_parse(struct output_list *ret_list,
				   const struct args_command *command,
				   const struct args_list *specs, bool refresh);

/*
 * Let all take records of @type, "session": a table of @table, and a sink of these unless its
 * spec says otherwise.
 */
void output_list_take(struct output_list *outputs, const char *type,
		      const struct output_kind *table);

/**
 * Open all, for records of @context, or of no context.
 *
 * @return 0; -EINVAL: a spec is wrong; < 0: one cannot be opened; a message was printed
 */
int output_list_open(struct output_list *outputs, struct netobs *context);

/* Print that a spec is wrong, after the library's message about it. */
void output_list_report(const struct output_list *outputs,
			const struct output *output);

void output_list_record(struct output_list *outputs,
			const struct netobs_record *record);
void output_list_interval(struct output_list *outputs);
void output_list_resize(struct output_list *outputs);
void output_list_pause(struct output_list *outputs);

/** @return whether one has failed */
bool output_list_has_failed(const struct output_list *outputs);

/** @return whether one is a screen */
bool output_list_has_screen(const struct output_list *outputs);

/** @return whether one goes to a terminal, and reads no keys itself */
bool output_list_needs_keys(const struct output_list *outputs);

/** @return whether one writes to standard output, and has not failed */
bool output_list_has_stdout(const struct output_list *outputs);

/** Send pending records, and close all outputs. @return whether all records were delivered */
bool output_list_close(struct output_list *outputs);

void output_list_free(struct output_list *outputs);

#endif
