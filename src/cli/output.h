/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* Where flow records go: -o OUTPUT. */
#ifndef NETOBS_CLI_OUTPUT_H
#define NETOBS_CLI_OUTPUT_H

#include <stdbool.h>
#include <stdint.h>

#include "stream.h"

struct netobs_flow;
struct output;

struct output_kind {
	/* May be NULL, as all but flow. */
	int (*open)(struct output *output);
	void (*flow)(struct output *output, const struct netobs_flow *flow);
	/* All records of a drain have come. */
	void (*interval)(struct output *output);
	/* The terminal has another size. */
	void (*resize)(struct output *output);
	/* Show a log line; false: it has to go elsewhere. */
	bool (*note)(struct output *output, const char *message);
	void (*close)(struct output *output);
};

struct output {
	const struct output_kind *kind;
	struct stream stream;
	void *state;	      /* the kind's own */
	const char *path;     /* NULL: standard output */
	const char *subject;  /* what is observed, for people */
	uint32_t interval_ms; /* how often records come */
};

extern const struct output_kind output_json;
extern const struct output_kind output_table; /* lines */
extern const struct output_kind output_live;  /* a screen that is refreshed */

/*
 * Understand @spec, a value of -o, or NULL for the default, without opening
 * anything. @refresh: a table may be a screen that shows the latest records
 * only. Returns 0 or -EINVAL.
 */
int output_parse(const char *spec, bool refresh, struct output *ret_output);

/* Returns 0 or -errno. */
int output_open(struct output *output);

/* Each of these does nothing once the output has failed or is closed. */
void output_flow(struct output *output, const struct netobs_flow *flow);
void output_interval(struct output *output);
void output_resize(struct output *output);
bool output_note(struct output *output, const char *message);

/* Flushes; stream.error remains to be read. */
void output_close(struct output *output);

static inline const char *output_name(const struct output *output)
{
	return output->path ? output->path : "standard output";
}

#endif
