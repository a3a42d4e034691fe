/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include "view_output.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <netobs/netobs.h>
#include <netobs/stats.h>

#include "base/util.h"
#include "screen.h"
#include "service/text/human.h"

/* @return whether @spec can be no output at all, and why */
static bool refuse_output(const char *spec, char *ret_why, size_t size)
{
	if (strncmp(spec, "table", 5) || (spec[5] != ':' && spec[5] != '?'))
		return output_refuse(spec, "table", ret_why, size);
	snprintf(ret_why, size,
		 "a table goes to standard output and has no options");
	return true;
}

static bool can_refresh(void)
{
	const char *term = getenv("TERM");

	return isatty(STDOUT_FILENO) && term && *term && strcmp(term, "dumb");
}

struct output view_output_of(const char *spec, bool refresh)
{
	struct output output;

	if (!spec)
		spec = isatty(STDOUT_FILENO) ? "table" : "json";
	output = output_of(spec);
	if (output_is_for_people(&output)) {
		output.kind = refresh && can_refresh() ? &output_live :
							 &output_table;
		output.is_stdout = true;
	}
	return output;
}

bool output_is_for_people(const struct output *output)
{
	return !strcmp(output->spec, "table");
}

bool output_take_groups(struct output *output)
{
	if (output_is_for_people(output))
		return true;
	if (strcmp(output->spec, "json") != 0)
		return false;
	output->kind = &output_groups;
	return true;
}

/* ---- Screens ----------------------------------------------------------------------- */

bool output_takes_keys(const struct output *output)
{
	return output->kind == &output_top || output->kind == &output_tcp;
}

bool output_is_screen(const struct output *output)
{
	return output->kind == &output_live || output_takes_keys(output);
}

/* @return false: it is none, or it is not open, or it has failed */
static bool is_usable_screen(const struct output *output)
{
	return output->is_open && !output->error && output_is_screen(output);
}

bool output_note(struct output *output, const char *message)
{
	const bool is_usable = is_usable_screen(output);

	if (is_usable)
		screen_note(output, message);
	return is_usable;
}

bool output_want_colour(void)
{
	const char *text = getenv("NO_COLOR");

	return !text || !*text;
}

bool output_losses(const struct output *output, char *ret_text, size_t size)
{
	struct netobs_stats stats = { .sz = sizeof(stats) };
	char lost[16], unparsed[16];

	*ret_text = '\0';
	if (netobs_stats_get(output->context, &stats) < 0)
		return false;
	human_count(lost, sizeof(lost), human_lost_packets(&stats));
	human_count(unparsed, sizeof(unparsed), human_unparsed_packets(&stats));
	snprintf(ret_text, size, "%s lost", lost);
	if (human_unparsed_packets(&stats))
		text_append(ret_text, size, ", %s unparsed", unparsed);
	return human_lost_packets(&stats);
}

/* ---- All outputs of a command ------------------------------------------------------ */

static enum args_result refuse_specs(const struct args_command *command,
				     const struct args_list *specs)
{
	char why[160];

	for (size_t i = 0; i < specs->n; i++) {
		if (!refuse_output(specs->items[i], why, sizeof(why)))
			continue;
		args_complain(command, "-o '%s': %s", specs->items[i], why);
		return ARGS_WRONG;
	}
	return ARGS_RUN;
}

enum args_result output_list_parse(struct output_list *ret_list,
				   const struct args_command *command,
				   const struct args_list *specs, bool refresh)
{
	const size_t n = specs->n ?: 1;
	size_t on_stdout = 0;

	*ret_list = (struct output_list){ .command = command };
	if (refuse_specs(command, specs) != ARGS_RUN)
		return ARGS_WRONG;
	ret_list->list = calloc(n, sizeof(*ret_list->list));
	if (!ret_list->list)
		args_out_of_memory(command);
	for (; ret_list->n < n; ret_list->n++) {
		struct output *output = &ret_list->list[ret_list->n];

		*output = view_output_of(
			specs->n ? specs->items[ret_list->n] : NULL, refresh);
		on_stdout += output->is_stdout;
	}
	if (on_stdout <= 1)
		return ARGS_RUN;
	args_complain(command, "-o: only one output can go to standard output; "
			       "give the others a file, such as json:PATH");
	return ARGS_WRONG;
}

static int take_records(struct output *output, const char *type,
			const struct output_kind *table)
{
	if (!output_is_for_people(output))
		return output_take_records(output, type);
	output->kind = table;
	return 0;
}

void output_list_take(struct output_list *outputs, const char *type,
		      const struct output_kind *table)
{
	for (size_t i = 0; i < outputs->n; i++)
		if (take_records(&outputs->list[i], type, table) < 0)
			args_out_of_memory(outputs->command);
}

void output_list_report(const struct output_list *outputs,
			const struct output *output)
{
	fprintf(stderr, "netobsctl %s: -o '%.*s': see netobs-sinks(7)\n",
		outputs->command->name, output_name_len(output), output->spec);
}

int output_list_open(struct output_list *outputs, struct netobs *context)
{
	for (size_t i = 0; i < outputs->n; i++) {
		struct output *output = &outputs->list[i];
		int r;

		output->context = context;
		r = output_open(output);
		if (r == -EINVAL)
			output_list_report(outputs, output);
		if (r == -ENOMEM)
			fprintf(stderr, "netobsctl %s: -o '%s': %s\n",
				outputs->command->name, output->spec,
				strerror(-r));
		if (r < 0)
			return r;
	}
	return 0;
}

void output_list_record(struct output_list *outputs,
			const struct netobs_record *record)
{
	for (size_t i = 0; i < outputs->n; i++)
		output_record(&outputs->list[i], record);
}

/* Messages on the screen would be gone at the next refresh, while the outage lasts. */
static void show_outages(struct output_list *outputs)
{
	char text[160] = "";

	for (size_t i = 0; i < outputs->n; i++)
		if (output_describe_outage(&outputs->list[i], text, sizeof(text)))
			break;
	for (size_t i = 0; i < outputs->n; i++)
		if (is_usable_screen(&outputs->list[i]))
			screen_stand(&outputs->list[i], text);
}

void output_list_interval(struct output_list *outputs)
{
	show_outages(outputs);
	for (size_t i = 0; i < outputs->n; i++)
		output_interval(&outputs->list[i]);
}

void output_list_resize(struct output_list *outputs)
{
	for (size_t i = 0; i < outputs->n; i++)
		if (is_usable_screen(&outputs->list[i]))
			screen_resize(&outputs->list[i]);
}

void output_list_pause(struct output_list *outputs)
{
	for (size_t i = 0; i < outputs->n; i++)
		if (is_usable_screen(&outputs->list[i]))
			screen_pause(&outputs->list[i]);
}

bool output_list_has_failed(const struct output_list *outputs)
{
	for (size_t i = 0; i < outputs->n; i++)
		if (outputs->list[i].error)
			return true;
	return false;
}

bool output_list_has_screen(const struct output_list *outputs)
{
	for (size_t i = 0; i < outputs->n; i++)
		if (output_is_screen(&outputs->list[i]))
			return true;
	return false;
}

bool output_list_needs_keys(const struct output_list *outputs)
{
	for (size_t i = 0; i < outputs->n; i++) {
		const struct output *output = &outputs->list[i];

		if (output->is_stdout && output->is_open)
			return isatty(STDOUT_FILENO) &&
			       !output_takes_keys(output);
	}
	return false;
}

bool output_list_has_stdout(const struct output_list *outputs)
{
	for (size_t i = 0; i < outputs->n; i++)
		if (outputs->list[i].is_stdout && !outputs->list[i].error)
			return true;
	return false;
}

bool output_list_close(struct output_list *outputs)
{
	bool is_complete = true;

	output_finish_all(outputs->list, outputs->n, OUTPUT_FINISH_MS);
	for (size_t i = 0; i < outputs->n; i++)
		is_complete &= output_close(&outputs->list[i]);
	return is_complete;
}

void output_list_free(struct output_list *outputs)
{
	for (size_t i = 0; i < outputs->n; i++)
		output_done(&outputs->list[i]);
	free(TAKE_PTR(outputs->list));
	outputs->n = 0;
}
