/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include "record_reader.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/safe_text.h"

enum {
	PLACE_MAX = 512,
	REPORTS_MAX = 10, /* lines that are reported; the others are counted */
};

void record_reader_complain(const char *format, ...)
{
	char text[1200];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	safe_cell(text);
	fprintf(stderr, "netobsctl map: %s\n", text);
}

void record_reader_refuse(struct record_reader *reader,
			  const struct record_input *input, const char *why)
{
	char place[PLACE_MAX];

	reader->is_failed = true;
	if (++reader->unreadable <= REPORTS_MAX)
		record_reader_complain(
			"%s: %s",
			record_input_place(input, place, sizeof(place)), why);
}

/* It cannot be read, or no further. */
static void report_file(struct record_reader *reader,
			const struct record_input *input)
{
	char place[PLACE_MAX];

	reader->is_failed = true;
	record_reader_complain(
		"%s: %s",
		input->number ? record_input_place(input, place, sizeof(place)) :
				input->path,
		input->why);
}

static int open_input(struct record_input *input, const char *path,
		      enum record_formats formats)
{
	int r = record_input_open(input, path);

	if (r || input->kind == INPUT_LINES || formats == RECORDS_OF_ANY)
		return r;
	snprintf(input->why, sizeof(input->why),
		 "it has no records of netobs as lines of JSON");
	return -EINVAL;
}

/* @return 1: @ret_record is one; 0: there are no more; < 0: it failed, which was reported */
static int next_record(struct record_reader *reader, struct record_input *input,
		       char **ret_text, struct json_value *ret_record)
{
	for (;;) {
		const int r = record_input_next(input, ret_text);

		if (r == -EBADMSG) {
			record_reader_refuse(reader, input, input->why);
			continue;
		}
		if (r < 0)
			report_file(reader, input);
		if (r <= 0)
			return r;
		*ret_record = json_parse(*ret_text);
		if (ret_record->at && *ret_record->at == '{')
			return 1;
		if ((*ret_text)[strspn(*ret_text, " \t\r")])
			record_reader_refuse(reader, input,
					     "it is no JSON object");
	}
}

int record_reader_read(struct record_reader *reader, const char *path,
		       enum record_formats formats,
		       int (*take)(const struct record_input *input,
				   const char *text, struct json_value record,
				   void *user),
		       void *user)
{
	struct record_input input;
	struct json_value record = { NULL };
	char *text;
	int r = open_input(&input, path, formats);

	if (r)
		report_file(reader, &input);
	while (!r && (r = next_record(reader, &input, &text, &record)) > 0)
		r = take(&input, text, record, user);
	if (input.warnings)
		record_reader_complain("%s: %" PRIu64
				       " warnings, the last one: %s",
				       path, input.warnings, input.warning);
	record_input_close(&input);
	return r;
}
