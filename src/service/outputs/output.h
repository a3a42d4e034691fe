/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* Where flow records go: -o OUTPUT. */
#ifndef NETOBS_SERVICE_OUTPUTS_OUTPUT_H
#define NETOBS_SERVICE_OUTPUTS_OUTPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <netobs/flow.h>

#include "stream.h"

struct netobs_connection;
struct netobs_stats;
struct output;
struct view_options;

struct output_kind {
	bool has_stream; /* to standard output */
	/* May be NULL, as all but flow; that where there are no flows. */
	int (*open)(struct output *output);
	void (*flow)(struct output *output, const struct netobs_flow *flow);
	/* A record of another type. */
	void (*record)(struct output *output, const struct netobs_record *record);
	/* All records of a drain have come. */
	void (*interval)(struct output *output);
	/* All records until now belong to that commit. */
	void (*commit)(struct output *output, uint64_t number);
	/* Nothing else comes: send what there is, as interval() does. May be NULL. */
	void (*finish)(struct output *output);
	/* What to wait for, for reading, and what to do then. */
	int (*fd)(const struct output *output);
	void (*ready)(struct output *output);
	/* Some records are not where they go yet. */
	bool (*is_pending)(const struct output *output);
	/* The terminal has another size. */
	void (*resize)(struct output *output);
	/* Keep what is shown, or go on. */
	void (*pause)(struct output *output);
	/* Its file may have been renamed. */
	int (*reopen)(struct output *output);
	/* Read and follow the keys that were pressed; false: the user has seen enough. */
	bool (*keys)(struct output *output);
	/* Show a log line; false: it has to go elsewhere. */
	bool (*note)(struct output *output, const char *message);
	/* False: records did not get where they should, which was logged. */
	bool (*close)(struct output *output);
};

struct output {
	const struct output_kind *kind;
	const char *spec;
	char *own_spec; /* what it is if it is not the user's; NULL */
	const char *name; /* of a sink of the service; NULL: the command line has none */
	bool is_idle;	    /* it gets no records yet, or no more */
	uint64_t resume_at; /* the last commit, when it is opened; 0: there is none */
	struct stream stream;
	void *state;	/* the kind's own */
	bool is_stdout; /* it goes to standard output */
	bool is_file;	/* records are of a file: there will be an end */
	bool is_open;
	int error;	     /* it failed permanently: a negated errno value */
	char *stats;	     /* after closing: a JSON object, or NULL */
	const char *subject; /* what is observed, for people */
	const struct view_options *view; /* of a table, and of groups */
	uint32_t interval_ms;		 /* how often records come */
	uint32_t sampling; /* one of so many packets or flows; 0: all */
	enum netobs_sampling sampling_mode;
	void (*on_log)(int level, const char *message, void *user);
	/* What became of the packets, for those who send that along. */
	int (*get_stats)(struct netobs_stats *ret_stats, void *user);
	/* Call @take for each connection that is measured. @return 0, or -errno */
	int (*each_connection)(void (*take)(const struct netobs_connection *connection,
					    void *arg),
			       void *arg, void *user);
	int conns_sort; /* enum conns_sort: their order */
	void *user;
};

extern const struct output_kind output_sink;   /* netobs-sinks(7) */
extern const struct output_kind output_table;  /* lines */
extern const struct output_kind output_groups; /* lines of JSON */
extern const struct output_kind output_live;   /* a screen that is refreshed */
extern const struct output_kind output_sessions; /* lines of sessions */
extern const struct output_kind output_alerts;	 /* lines of alerts */
extern const struct output_kind output_top; /* one that takes the whole terminal */
extern const struct output_kind output_tcp; /* the same, with connections */
extern const struct output_kind output_tcp_lines; /* these as a table, or as JSON */

/* Whether @spec, a value of -o, can be no output at all, and why. */
bool output_refuse(const char *spec, char *ret_why, size_t size);

/*
 * For @spec, a value of -o, or NULL for the default, without opening anything.
 * @refresh: a table may be a screen that shows the latest records only.
 */
struct output output_of(const char *spec, bool refresh);

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

/* It is one that is refreshed in place. */
bool output_is_screen(const struct output *output);

/* https://no-color.org: any value but an empty one. */
bool output_want_colour(void);

/*
 * What was lost since the start, which may not leave the screen unseen: "0 lost, 3 unparsed".
 * Returns whether anything was lost.
 */
bool output_losses(const struct output *output, char *ret_text, size_t size);

/** Open and make nothing. @return 0; -EINVAL: the spec is wrong, which was logged */
int output_check(const struct output *output);

/* Returns 0; -EINVAL: the spec is wrong; others: as open(2). The error was logged. */
int output_open(struct output *output);

/* Each of these does nothing once the output has failed or is closed. */
void output_flow(struct output *output, const struct netobs_flow *flow);
void output_record(struct output *output, const struct netobs_record *record);
void output_interval(struct output *output);
void output_commit(struct output *output, uint64_t number);
void output_ready(struct output *output);
void output_resize(struct output *output);
void output_pause(struct output *output);
/* @return 0; < 0: its file cannot be opened again */
int output_reopen(struct output *output);

bool output_note(struct output *output, const char *message);

enum { OUTPUT_FINISH_MS = 5000 }; /* at the end of a process */

/* What is wrong with two outputs of that kind. */
#define OUTPUT_STDOUT_TWICE                               \
	"-o: only one output can go to standard output; " \
	"give the others a file, such as json:PATH"

/*
 * At the end: send what is pending to all of @outputs side by side, so that those that
 * are away take up one time together, @timeout_ms at most.
 */
void output_finish_all(struct output *outputs, size_t n, int timeout_ms);

/* Whether some of its records are not where they go yet. */
bool output_is_pending(const struct output *output);

struct netobs_sink;

/* The sink that it is, while it is open; NULL: it is none. */
const struct netobs_sink *output_as_sink(const struct output *output);

/** @return the option of @spec that begins so; NULL: it has none */
const char *output_spec_option(const char *spec, const char *start);

/** @return whether a sink of @spec takes records of @type, "alert": its option "records" */
bool output_spec_takes(const char *spec, const char *type);

/* The length of its spec without options, which may be secret. */
int output_name_len(const struct output *output);

/* -1: there is nothing to be waited for. */
int output_fd(const struct output *output);

/* Flushes. False: records did not get where they should, which was logged. */
bool output_close(struct output *output);

/* Whether one of them is output_live, which reads no keys itself. */
bool output_has_screen(const struct output *outputs, size_t n);

/* Forget what closing has left. */
void output_done(struct output *output);

/* For the kinds: print one line for the user. */
void output_say(const struct output *output, const char *message);

#endif
