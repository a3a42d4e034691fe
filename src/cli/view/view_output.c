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
#include "service/text/human.h"

bool view_output_refuse(const char *spec, char *ret_why, size_t size)
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
		output.kind = refresh && can_refresh() ? &output_live.output :
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

int output_take_records(struct output *output, const char *type,
			const struct output_kind *table)
{
	const char *query = strchr(output->spec, '?');

	if (output_is_for_people(output)) {
		output->kind = table;
		return 0;
	}
	if (query && strstr(query, "records="))
		return 0;
	if (asprintf(&output->own_spec, "%s%crecords=%s", output->spec,
		     query ? '&' : '?', type) < 0) {
		output->own_spec = NULL;
		return -ENOMEM;
	}
	output->spec = output->own_spec;
	return 0;
}

/* ---- Screens ----------------------------------------------------------------------- */

const struct screen_kind *output_screen(const struct output *output)
{
	static const struct screen_kind *const screens[] = { &output_live,
							     &output_top,
							     &output_tcp };

	for (size_t i = 0; i < ARRAY_SIZE(screens); i++)
		if (output->kind == &screens[i]->output)
			return screens[i];
	return NULL;
}

bool output_has_live(const struct output *outputs, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (output_screen(&outputs[i]) == &output_live &&
		    outputs[i].is_open)
			return true;
	return false;
}

/* @return NULL: it is none, or it is not open, or it has failed */
static const struct screen_kind *usable_screen(const struct output *output)
{
	return output->is_open && !output->error ? output_screen(output) : NULL;
}

void output_resize(struct output *output)
{
	const struct screen_kind *screen = usable_screen(output);

	if (screen)
		screen->resize(output);
}

void output_pause(struct output *output)
{
	const struct screen_kind *screen = usable_screen(output);

	if (screen && screen->pause)
		screen->pause(output);
}

bool output_note(struct output *output, const char *message)
{
	const struct screen_kind *screen = usable_screen(output);

	if (screen)
		screen->note(output, message);
	return screen;
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
	size_t used;

	*ret_text = '\0';
	if (netobs_stats_get(output->context, &stats) < 0)
		return false;
	human_count(lost, sizeof(lost), human_lost_packets(&stats));
	human_count(unparsed, sizeof(unparsed), human_unparsed_packets(&stats));
	used = (size_t)snprintf(ret_text, size, "%s lost", lost);
	if (human_unparsed_packets(&stats))
		snprintf(ret_text + used, size - used, ", %s unparsed", unparsed);
	return human_lost_packets(&stats);
}
