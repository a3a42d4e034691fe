/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* Outputs of the command, -o OUTPUT: sinks, as the service has them, tables and screens. */
#ifndef NETOBS_CLI_VIEW_VIEW_OUTPUT_H
#define NETOBS_CLI_VIEW_VIEW_OUTPUT_H

#include "service/outputs/output.h"

/* An output that is refreshed in place, on a terminal. */
struct screen_kind {
	struct output_kind output;
	/* The terminal has another size. */
	void (*resize)(struct output *output);
	/* Keep what is shown, or go on. NULL: that is one of its keys. */
	void (*pause)(struct output *output);
	/* Read and follow the keys that were pressed; false: the user has seen enough. */
	bool (*keys)(struct output *output);
	/* Show a log line. */
	void (*note)(struct output *output, const char *message);
};

extern const struct output_kind output_table;	 /* lines */
extern const struct output_kind output_groups;	 /* lines of JSON */
extern const struct output_kind output_sessions; /* lines of sessions */
extern const struct output_kind output_alerts;	 /* lines of alerts */
extern const struct output_kind output_tcp_lines; /* connections: a table, or JSON */
extern const struct screen_kind output_live;
extern const struct screen_kind output_top; /* takes the whole terminal */
extern const struct screen_kind output_tcp; /* the same, with connections */

/* Whether @spec, a value of -o, can be no output at all, and why. */
bool view_output_refuse(const char *spec, char *ret_why, size_t size);

/*
 * For @spec, a value of -o, or NULL for the default, without opening anything.
 * @refresh: a table may be a screen that shows the latest records only.
 */
struct output view_output_of(const char *spec, bool refresh);

/* Let it take groups of flows instead of flows. False: it cannot. */
bool output_take_groups(struct output *output);

/*
 * Let it take records of @type, "session": a table of @table, and a sink of these unless its spec
 * says otherwise. @return 0, or -ENOMEM
 */
int output_take_records(struct output *output, const char *type,
			const struct output_kind *table);

/* It is a table. */
bool output_is_for_people(const struct output *output);

/* @return what it does as a screen; NULL: it is none */
const struct screen_kind *output_screen(const struct output *output);

/* Whether one of them is an open output_live, which reads no keys itself. */
bool output_has_live(const struct output *outputs, size_t n);

/* Each of these does nothing unless it is a screen that is open. */
void output_resize(struct output *output);
void output_pause(struct output *output);
/* @return whether the line is shown */
bool output_note(struct output *output, const char *message);

/* https://no-color.org: any value but an empty one. */
bool output_want_colour(void);

/*
 * What was lost since the start, which may not leave the screen unseen: "0 lost, 3 unparsed".
 * Returns whether anything was lost.
 */
bool output_losses(const struct output *output, char *ret_text, size_t size);

#endif
