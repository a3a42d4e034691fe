/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include "record_input.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <string.h>
#include <unistd.h>

#include "base/json_reader.h"
#include "base/text.h"
#include "base/util.h"
#include "service/signals.h"

enum {
	CHUNK = 64 << 10,
	PLACE_MAX = 512,
	REPORTS_MAX = 10, /* lines that are reported; the others are counted */
};

int record_input_open(struct record_input *ret_input, const char *path)
{
	*ret_input = (struct record_input){ .path = path };
	ret_input->fd = strcmp(path, "-") != 0 ?
				open(path, O_RDONLY | O_CLOEXEC) :
				STDIN_FILENO;
	return ret_input->fd < 0 ? -errno : 0;
}

void record_input_close(struct record_input *input)
{
	if (input->fd > STDIN_FILENO)
		close(input->fd);
	input->fd = -1;
	buffer_free(&input->bytes);
}

/* @return 0, or -errno */
static int read_more(struct record_input *input)
{
	struct buffer *bytes = &input->bytes;
	ssize_t n;

	if (input->start) {
		bytes->len -= input->start;
		memmove(bytes->bytes, bytes->bytes + input->start, bytes->len);
		input->start = 0;
	}
	/* one more byte for the NUL */
	if (!buffer_reserve(bytes, CHUNK + 1))
		return -ENOMEM;
	if (input->flushed)
		fflush(input->flushed);
	do {
		n = read(input->fd, bytes->bytes + bytes->len, CHUNK);
	} while (n < 0 && errno == EINTR && !signals_are_stopping());
	if (n < 0 && errno == EINTR)
		n = 0;
	if (n < 0)
		return -errno;
	bytes->len += (size_t)n;
	input->is_at_end = !n;
	return 0;
}

/* @return the bytes that are there of the next line, and in @ret_end its line feed; NULL: there is none */
static size_t find_line(const struct record_input *input, char **ret_end)
{
	const size_t len = input->bytes.len - input->start;

	*ret_end = len ? memchr(input->bytes.bytes + input->start, '\n', len) :
			 NULL;
	return *ret_end ? (size_t)(*ret_end - input->bytes.bytes) - input->start :
			  len;
}

/* Find the kind of a line, the first bytes of which are there. */
static void judge_line(struct record_line *line)
{
	const char *at;

	line->kind = LINE_DAMAGED;
	line->why = "it is no JSON object";
	if (line->len > INPUT_RECORD_MAX) {
		line->why = "it is longer than 1 MiB";
	} else if (strspn(line->text, " \t\r") == line->len) {
		line->kind = LINE_BLANK;
	} else if (strlen(line->text) == line->len) {
		at = json_parse(line->text).at;
		if (at && *at == '{')
			line->kind = LINE_RECORD;
	}
}

int record_input_next(struct record_input *input, struct record_line *ret_line)
{
	char *end;
	size_t len;

	while ((len = find_line(input, &end)) <= INPUT_RECORD_MAX && !end &&
	       !input->is_at_end) {
		int r = read_more(input);

		if (r)
			return r;
	}
	if (!len && !end)
		return 0;
	*ret_line = (struct record_line){
		.kind = LINE_BLANK,
		.text = input->bytes.bytes + input->start,
		.len = len,
		.has_end = end,
	};
	ret_line->text[len] = '\0';
	if (!input->is_rest) {
		input->number++;
		judge_line(ret_line);
	}
	input->is_rest = !end;
	input->start += len + !!end;
	return 1;
}

/* Format the position of the last line, such as "flows.json:12". @return @buf */
static const char *record_input_place(const struct record_input *input,
				      char *buf, size_t size)
{
	if (!strcmp(input->path, "-"))
		snprintf(buf, size, "standard input:%" PRIu64, input->number);
	else
		snprintf(buf, size, "%s:%" PRIu64, input->path, input->number);
	return buf;
}

/* ---- All records of a file ---------------------------------------------------------- */

static void complain(const char *verb, const char *format, va_list args)
{
	char text[1200];

	vsnprintf(text, sizeof(text), format, args);
	safe_cell(text);
	fprintf(stderr, "netobsctl %s: %s\n", verb, text);
}

void record_reader_complain(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	complain("map", format, args);
	va_end(args);
}

__attribute__((format(printf, 2, 3))) static void
report(const struct record_reader *reader, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	complain(reader->verb ?: "map", format, args);
	va_end(args);
}

void record_reader_refuse(struct record_reader *reader,
			  const struct record_input *input, const char *why)
{
	char place[PLACE_MAX];

	reader->is_failed = true;
	if (++reader->unreadable <= REPORTS_MAX)
		report(reader, "%s: %s",
		       record_input_place(input, place, sizeof(place)), why);
}

void record_reader_fail(struct record_reader *reader, const char *path, int err)
{
	reader->is_failed = true;
	report(reader, "%s: %s", path, strerror(-err));
}

int record_reader_read(struct record_reader *reader, const char *path,
		       int (*take)(const struct record_input *input,
				   const char *text, void *user),
		       void *user)
{
	struct record_input input;
	struct record_line line = { 0 };
	int r = record_input_open(&input, path), taken = 0;

	while (!r && !taken && !signals_are_stopping() &&
	       (r = record_input_next(&input, &line)) > 0) {
		r = 0;
		if (line.kind == LINE_DAMAGED)
			record_reader_refuse(reader, &input, line.why);
		else if (line.kind == LINE_RECORD)
			taken = take(&input, line.text, user);
	}
	if (r < 0)
		record_reader_fail(reader, path, r);
	record_input_close(&input);
	return r ?: taken;
}
