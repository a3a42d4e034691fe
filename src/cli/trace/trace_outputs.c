// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "trace_outputs.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"

static const char pcapng_kind[] = "pcapng";

/* ---- Values of -o -------------------------------------------------------------------------- */

static bool is_pcapng(const char *spec)
{
	const size_t len = strcspn(spec, ":?");

	return len == strlen(pcapng_kind) && !strncmp(spec, pcapng_kind, len);
}

bool trace_outputs_have_pcapng(const struct args_list *specs)
{
	for (size_t i = 0; i < specs->n; i++)
		if (is_pcapng(specs->items[i]))
			return true;
	return false;
}

static int complain(const char *spec, const char *why)
{
	fprintf(stderr, "netobsctl trace: -o '%s': %s\n", spec, why);
	return -EINVAL;
}

static int read_lines(struct trace_outputs *outputs, const char *spec,
		      enum trace_lines lines)
{
	if (outputs->lines)
		return complain(spec,
				"only one output can go to standard output");
	outputs->lines = lines;
	return 0;
}

static int read_pcapng(struct trace_outputs *outputs, const char *spec)
{
	const char *path = spec + strlen(pcapng_kind);

	if (outputs->pcapng_path)
		return complain(spec, "there is another one");
	if (*path == '?')
		return complain(spec, "pcapng has no options");
	if (*path == ':' && !path[1])
		return complain(spec, "the name of the file is missing");
	outputs->pcapng_path = *path ? path + 1 : "-";
	return 0;
}

static int read_sink(struct trace_outputs *outputs, const char *spec,
		     const char *type)
{
	struct output *sink = &outputs->sinks.list[outputs->sinks.n];
	char why[200];
	int err;

	if (output_refuse(spec, "table, pcapng", why, sizeof(why)))
		return complain(spec, why);
	*sink = output_of(spec);
	sink->on_log = outputs->on_log;
	sink->user = outputs->user;
	outputs->sinks.n++;
	err = output_take_records(sink, type) ?: output_check(sink);
	return err == -EINVAL ? complain(spec, "see netobs-sinks(7)") : err;
}

static int read_spec(struct trace_outputs *outputs, const char *spec,
		     const char *type)
{
	if (!strcmp(spec, "table"))
		return read_lines(outputs, spec, TRACE_TABLE);
	if (!strcmp(spec, "json"))
		return read_lines(outputs, spec, TRACE_JSON);
	if (is_pcapng(spec))
		return read_pcapng(outputs, spec);
	return read_sink(outputs, spec, type);
}

/* @return whether more than one of the lines, the packets and the sinks is written to standard output */
static bool shares_stdout(const struct trace_outputs *outputs)
{
	size_t n = outputs->lines != TRACE_NO_LINES;

	n += outputs->pcapng_path && !strcmp(outputs->pcapng_path, "-");
	for (size_t i = 0; i < outputs->sinks.n; i++)
		n += outputs->sinks.list[i].is_stdout;
	return n > 1;
}

int trace_outputs_read(struct trace_outputs *outputs,
		       const struct args_list *specs, const char *type,
		       bool is_printed)
{
	outputs->lines = specs->n ? TRACE_NO_LINES : TRACE_TABLE;
	outputs->sinks.list = calloc(specs->n + 1, sizeof(*outputs->sinks.list));
	if (!outputs->sinks.list)
		return -ENOMEM;
	for (size_t i = 0; i < specs->n; i++) {
		int err = read_spec(outputs, specs->items[i], type);

		if (err)
			return err;
	}
	if (is_printed)
		outputs->lines = outputs->lines ?: TRACE_TABLE;
	if (!shares_stdout(outputs))
		return 0;
	fprintf(stderr,
		"netobsctl trace: -o: only one output can go to standard output; "
		"give the others a file, such as pcapng:PATH\n");
	return -EINVAL;
}

bool trace_outputs_take(const struct trace_outputs *outputs, const char *type)
{
	for (size_t i = 0; i < outputs->sinks.n; i++)
		if (output_spec_takes(outputs->sinks.list[i].spec, type))
			return true;
	return false;
}

/* ---- Records ------------------------------------------------------------------------------- */

int trace_outputs_make(struct trace_outputs *outputs)
{
	int err;

	if (!outputs->pcapng_path)
		return 0;
	err = trace_pcapng_open(outputs->pcapng_path, &outputs->pcapng);
	if (err && err != -EINTR)
		fprintf(stderr, "netobsctl trace: -o: cannot write '%s': %s\n",
			outputs->pcapng_path, strerror(-err));
	return err;
}

/* A sink that cannot be opened logs why. */
int trace_outputs_open(struct trace_outputs *outputs)
{
	int err = 0;

	if (outputs->pcapng)
		trace_pcapng_start(outputs->pcapng);
	for (size_t i = 0; !err && i < outputs->sinks.n; i++)
		err = output_open(&outputs->sinks.list[i]);
	return err;
}

int trace_outputs_flush(struct trace_outputs *outputs)
{
	int err = outputs->pcapng ? trace_pcapng_flush(outputs->pcapng) : 0;

	output_list_interval(&outputs->sinks);
	for (size_t i = 0; i < outputs->sinks.n; i++)
		err = err ?: outputs->sinks.list[i].error;
	return err;
}

/* ---- The end ------------------------------------------------------------------------------- */

/* The reader of a pipe may close it: that is no failure. */
static bool close_pcapng(struct trace_outputs *outputs)
{
	const int err = trace_pcapng_close(TAKE_PTR(outputs->pcapng));

	if (!err || err == -EPIPE)
		return true;
	fprintf(stderr, "netobsctl trace: -o: cannot write '%s': %s\n",
		outputs->pcapng_path, strerror(-err));
	return false;
}

bool trace_outputs_close(struct trace_outputs *outputs)
{
	bool is_complete = close_pcapng(outputs);

	is_complete &= output_list_close(&outputs->sinks);
	output_list_free(&outputs->sinks);
	return is_complete;
}
