/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include "output.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static bool can_refresh(void)
{
	const char *term = getenv("TERM");

	return isatty(STDOUT_FILENO) && term && *term && strcmp(term, "dumb");
}

static int parse_kind(const char *spec, bool refresh,
		      const struct output_kind **ret_kind, const char **ret_path)
{
	if (!strcmp(spec, "table")) {
		*ret_kind = refresh && can_refresh() ? &output_live :
						       &output_table;
	} else if (!strcmp(spec, "json")) {
		*ret_kind = &output_json;
	} else if (!strncmp(spec, "json:", 5) && spec[5]) {
		*ret_kind = &output_json;
		*ret_path = spec + 5;
	} else {
		return -EINVAL;
	}
	return 0;
}

int output_parse(const char *spec, bool refresh, struct output *ret_output)
{
	struct output output = { 0 };
	int r;

	if (!spec)
		spec = isatty(STDOUT_FILENO) ? "table" : "json";
	r = parse_kind(spec, refresh, &output.kind, &output.path);
	if (r == 0)
		*ret_output = output;
	return r;
}

int output_open(struct output *output)
{
	int r;

	r = output->path ? stream_open_file(&output->stream, output->path) :
			   stream_open_stdout(&output->stream);
	if (r < 0)
		return r;
	return output->kind->open ? output->kind->open(output) : 0;
}

static bool is_usable(const struct output *output)
{
	return output->stream.buf && !output->stream.error;
}

void output_flow(struct output *output, const struct netobs_flow *flow)
{
	if (is_usable(output))
		output->kind->flow(output, flow);
}

void output_interval(struct output *output)
{
	if (!is_usable(output))
		return;
	if (output->kind->interval)
		output->kind->interval(output);
	stream_flush(&output->stream);
}

void output_resize(struct output *output)
{
	if (is_usable(output) && output->kind->resize)
		output->kind->resize(output);
}

bool output_note(struct output *output, const char *message)
{
	return is_usable(output) && output->kind->note &&
	       output->kind->note(output, message);
}

void output_close(struct output *output)
{
	if (output->kind && output->kind->close)
		output->kind->close(output);
	stream_close(&output->stream);
}
