// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "trace_outputs.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/util.h"

/* ---- Values of -o -------------------------------------------------------------------------- */

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

static int read_sink(struct trace_outputs *outputs, const char *spec,
		     const char *type)
{
	struct output *sink = &outputs->sinks.list[outputs->sinks.n];
	char why[200];
	int err;

	if (output_refuse(spec, "table", why, sizeof(why)))
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
	return read_sink(outputs, spec, type);
}

/* @return whether more than one of the lines and the sinks is written to standard output */
static bool shares_stdout(const struct trace_outputs *outputs)
{
	size_t n = outputs->lines != TRACE_NO_LINES;

	for (size_t i = 0; i < outputs->sinks.n; i++)
		n += outputs->sinks.list[i].is_stdout;
	return n > 1;
}

int trace_outputs_read(struct trace_outputs *outputs,
		       const struct args_list *specs, const char *type)
{
	outputs->lines = specs->n ? TRACE_NO_LINES : TRACE_TABLE;
	outputs->sinks.list = calloc(specs->n + 1, sizeof(*outputs->sinks.list));
	if (!outputs->sinks.list || ((outputs->has_summary || outputs->svg) &&
				     netobs_journeys_new(&outputs->journeys)))
		return -ENOMEM;
	for (size_t i = 0; i < specs->n; i++) {
		int err = read_spec(outputs, specs->items[i], type);

		if (err)
			return err;
	}
	if (outputs->has_summary)
		outputs->lines = outputs->lines ?: TRACE_TABLE;
	if (!shares_stdout(outputs))
		return 0;
	fprintf(stderr,
		"netobsctl trace: -o: only one output can go to standard output; "
		"give the others a file, such as json:PATH\n");
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

static int report_unwritten(const char *path, int err)
{
	if (err && err != -EINTR)
		fprintf(stderr, "netobsctl trace: --svg: cannot write '%s': %s\n",
			path, strerror(-err));
	return err;
}

int trace_outputs_make(struct trace_outputs *outputs)
{
	const char *svg = outputs->svg;

	return svg ? report_unwritten(svg, file_replacement_begin(
						   &outputs->picture, svg)) :
		     0;
}

/* A sink that cannot be opened logs why. */
int trace_outputs_open(struct trace_outputs *outputs)
{
	int err = 0;

	for (size_t i = 0; !err && i < outputs->sinks.n; i++)
		err = output_open(&outputs->sinks.list[i]);
	return err;
}

static void write_line(char line[TRACE_LINE_MAX],
		       const struct netobs_record *record)
{
	const void *it = record;

	if (record->type == NETOBS_RECORD_JOURNEY)
		trace_line_journey(line, it);
	else if (record->type == NETOBS_RECORD_TRACE)
		trace_line_event(line, it);
	else if (record->type == NETOBS_RECORD_TURN)
		trace_line_turn(line, it);
	else
		trace_line_alert(line, it);
}

int trace_outputs_print(const struct trace_outputs *outputs,
			const struct netobs_record *record)
{
	char line[TRACE_LINE_MAX], text[NETOBS_TRACE_JSON_MAX];

	if (outputs->lines == TRACE_NO_LINES)
		return 0;
	if (outputs->lines == TRACE_JSON)
		return netobs_record_json(record, text, sizeof(text)) > 0 ?
			       puts(text) :
			       0;
	write_line(line, record);
	return puts(line);
}

void trace_outputs_sum(struct trace_outputs *outputs,
		       const struct netobs_journey *journey)
{
	if (outputs->journeys)
		netobs_journeys_add(outputs->journeys, journey);
}

int trace_outputs_flush(struct trace_outputs *outputs)
{
	int err = 0;

	output_list_interval(&outputs->sinks);
	for (size_t i = 0; i < outputs->sinks.n; i++)
		err = err ?: outputs->sinks.list[i].error;
	return err;
}

/* ---- The end ------------------------------------------------------------------------------- */

static void print_summary(const struct trace_outputs *outputs)
{
	struct winsize size = { 0 };

	if (outputs->lines == TRACE_JSON) {
		trace_summary_print_json(outputs->journeys);
		return;
	}
	ioctl(STDOUT_FILENO, TIOCGWINSZ, &size);
	trace_summary_print(outputs->journeys, size.ws_col);
}

int trace_outputs_report(struct trace_outputs *outputs)
{
	if (outputs->has_summary)
		print_summary(outputs);
	if (!outputs->picture.file)
		return 0;
	trace_svg_print(outputs->picture.file, outputs->journeys, outputs->title);
	return report_unwritten(outputs->svg,
				file_replacement_end(&outputs->picture, 0));
}

bool trace_outputs_close(struct trace_outputs *outputs)
{
	const bool is_complete = output_list_close(&outputs->sinks);

	output_list_free(&outputs->sinks);
	if (outputs->picture.file)
		file_replacement_end(&outputs->picture, -ECANCELED);
	netobs_journeys_free(TAKE_PTR(outputs->journeys));
	return is_complete;
}
