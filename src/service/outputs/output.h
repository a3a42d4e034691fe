/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * An output of records: a sink of the library, or one of the program's own, such as tables of the
 * command.
 */
#ifndef NETOBS_SERVICE_OUTPUTS_OUTPUT_H
#define NETOBS_SERVICE_OUTPUTS_OUTPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <netobs/flow.h>

#include "base/buffer.h"

/* ---- Stream ---------------------------------------------------------------------------- */

/*
 * Buffered output that is written at line ends only, so that a reader never sees half a line.
 * The first error sticks.
 */

struct stream {
	int fd;
	int error; /* 0, or the negated errno of the first failure */
	struct buffer bytes;
};

/* Standard output: -EBADF when it cannot be written to. */
int stream_open_stdout(struct stream *stream);

__attribute__((format(printf, 2, 3))) void stream_print(struct stream *stream,
							const char *format, ...);

void stream_flush(struct stream *stream);

/* Flushes and frees; the error remains to be read. */
void stream_close(struct stream *stream);

/* ---- Output ---------------------------------------------------------------------------- */

struct netobs_sink;
struct output;
struct view_options; /* of tables and screens: the service has none */

/* Shows records on standard output; all may be NULL. The service has none. */
struct output_kind {
	int (*open)(struct output *output);
	void (*record)(struct output *output, const struct netobs_record *record);
	/* All records of a drain were passed. */
	void (*interval)(struct output *output);
	/* The descriptor to poll for reading, and its handler. */
	int (*fd)(const struct output *output);
	void (*ready)(struct output *output);
	void (*close)(struct output *output);
};

struct output {
	const struct output_kind *kind; /* NULL: a sink: netobs-sinks(7) */
	struct netobs_sink *sink;	/* while it is open; or NULL */
	const char *spec;
	char *own_spec; /* @spec, if it differs from the value of -o; else NULL */
	const char *name; /* name of a sink of the service; NULL: of the command line */
	bool is_prepared; /* it gets no records yet */
	bool is_leaving; /* gets no more records, or some until its successor is open */
	bool has_successor; /* a successor opens the same spool when this one is closed */
	struct stream stream; /* the kind's, as the next one */
	void *state;
	bool is_stdout; /* writes to standard output */
	bool is_open;
	int error;   /* permanent failure: a negated errno value */
	char *stats; /* after closing: a JSON object, or NULL */
	const struct view_options *view; /* of kinds that show records; or NULL */
	uint32_t sampling; /* one of so many packets or flows is counted; 0: all */
	enum netobs_sampling sampling_mode;
	void (*on_log)(int level, const char *message, void *user);
	struct netobs *context; /* context whose records it gets, once it is opened */
	/* Called before the output is closed, with final counters. May be NULL. */
	void (*on_last)(const struct output *output, void *user);
	void *user;
};

/*
 * @return whether @spec, a value of -o, can be no output at all, and why. @other: a kind
 * that the program has besides those of the library, or NULL
 */
bool output_refuse(const char *spec, const char *other, char *ret_why,
		   size_t size);

/* For @spec of a sink, without opening anything. */
struct output output_of(const char *spec);

/** Open and make nothing. @return 0; -EINVAL: the spec is wrong, which was logged */
int output_check(const struct output *output);

/* Returns 0; -EINVAL: the spec is wrong; others: as open(2). The error was logged. */
int output_open(struct output *output);

/* Each of these does nothing once the output has failed or is closed. */
void output_record(struct output *output, const struct netobs_record *record);
void output_interval(struct output *output);
void output_ready(struct output *output);
/* @return 0; < 0: its file cannot be opened again */
int output_reopen(struct output *output);

enum { OUTPUT_FINISH_MS = 5000 }; /* at the end of a process */

/* No record follows: begin to send pending records, which output_ready() continues. */
void output_finish(struct output *output);

/**
 * Send nothing new, since another sink is to continue with the spool on disk.
 *
 * @return whether it can be closed without records that are sent twice
 */
bool output_settle(struct output *output);

/* At the end: send pending records to all of @outputs in parallel, for @timeout_ms at most. */
void output_finish_all(struct output *outputs, size_t n, int timeout_ms);

/* @return whether some of its records are not where they go yet */
bool output_is_pending(const struct output *output);

/** @return whether it keeps pending records in a spool on disk for the next run */
bool output_is_on_disk(const struct output *output);

/** @return the option of @spec that begins so; NULL: it has none */
const char *output_spec_option(const char *spec, const char *start);

/** Have a sink take records of @type, unless its spec says otherwise. @return 0; -ENOMEM */
int output_take_records(struct output *output, const char *type);

/** @return whether a sink of @spec takes records of @type, "alert": its option "records" */
bool output_spec_takes(const char *spec, const char *type);

/* The length of its spec without options, which may be secret. */
int output_name_len(const struct output *output);

/* -1: there is nothing to be waited for. */
int output_fd(const struct output *output);

/* Flushes. False: records did not get where they should, which was logged. */
bool output_close(struct output *output);

/* Forget what closing has left. */
void output_done(struct output *output);

/* For the kinds: print one line for the user. */
void output_say(const struct output *output, const char *message);

/*
 * "ipfix:tcp://192.0.2.1: nothing delivered since 04:05:06.789, 370 records wait"
 *
 * @return false: it has no outage
 */
bool output_describe_outage(const struct output *output, char *buf, size_t size);

#endif
