/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include "record_input.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"

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

void record_reader_fail(struct record_reader *reader, const char *path, int err)
{
	reader->is_failed = true;
	record_reader_complain("%s: %s", path, strerror(-err));
}

int record_reader_read(struct record_reader *reader, const char *path,
		       int (*take)(const struct record_input *input,
				   const char *text, struct json_value record,
				   void *user),
		       void *user)
{
	struct record_input input;
	struct record_piece piece;
	int r = record_input_open(&input, path), taken = 0;

	while (!r && !taken && (r = record_input_next(&input, &piece)) > 0) {
		r = 0;
		if (piece.kind == PIECE_DAMAGED)
			record_reader_refuse(reader, &input, piece.why);
		else if (piece.kind == PIECE_RECORD)
			taken = take(&input, piece.text, piece.record, user);
	}
	if (r < 0)
		record_reader_fail(reader, path, r);
	record_input_close(&input);
	return r ?: taken;
}
