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

enum {
	CHUNK = 64 << 10,
	PLACE_MAX = 512,
	REPORTS_MAX = 10, /* lines that are reported; the others are counted */
};

int record_input_open(struct record_input *ret_input, const char *path)
{
	*ret_input = (struct record_input){ .path = path, .number = 1 };
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

/* ---- Reading ------------------------------------------------------------------------ */

static void move_bytes(struct record_input *input)
{
	struct buffer *bytes = &input->bytes;

	bytes->len -= input->start;
	memmove(bytes->bytes, bytes->bytes + input->start, bytes->len);
	input->at -= input->start;
	input->line -= min_u64(input->line, input->start);
	input->start = 0;
}

/* @return 0, or -errno */
static int read_more(struct record_input *input)
{
	struct buffer *bytes = &input->bytes;
	ssize_t n;

	if (input->start)
		move_bytes(input);
	/* one more byte for the NUL */
	if (!buffer_reserve(bytes, CHUNK + 1))
		return -ENOMEM;
	if (input->flushed)
		fflush(input->flushed);
	do {
		n = read(input->fd, bytes->bytes + bytes->len, CHUNK);
	} while (n < 0 && errno == EINTR);
	if (n < 0)
		return -errno;
	bytes->len += (size_t)n;
	input->is_at_end = !n;
	return 0;
}

/* ---- Pieces: each step is a byte; @return whether the piece ends at input->at ------------ */

static bool end_damaged(struct record_input *input, struct record_piece *piece,
			const char *why)
{
	piece->kind = PIECE_DAMAGED;
	piece->why = why;
	input->state = SCAN_BETWEEN;
	return true;
}

/* The rest of the line makes no further piece. */
static bool end_too_long(struct record_input *input, struct record_piece *piece)
{
	end_damaged(input, piece, "it is longer than 1 MiB");
	input->state = SCAN_TAIL;
	return true;
}

static bool step_between(struct record_input *input, char c)
{
	static const char allowed[] = " \t\r\n[],\x1e"; /* RFC 7464 */
	const bool is_between =
		input->state == SCAN_TAIL ? c != '\n' : c && strchr(allowed, c);

	if (is_between || c == '\n') {
		if (c == '\n')
			input->state = SCAN_BETWEEN;
		input->at++;
		return false;
	}
	if (input->at > input->start)
		return true;
	input->state = c == '{' ? SCAN_RECORD : SCAN_DAMAGED;
	input->depth = 0;
	input->is_string = input->is_escaped = input->is_new_line = false;
	return false;
}

static bool step_damaged(struct record_input *input, char c,
			 struct record_piece *piece)
{
	if (input->at++ - input->start == INPUT_RECORD_MAX)
		return end_too_long(input, piece);
	return c == '\n' && end_damaged(input, piece, "it is no JSON object");
}

/*
 * A record that was cut off is not to take those in the lines behind it. Where objects have several lines,
 * only the first one begins with a brace at its very beginning.
 */
static bool may_continue(const struct record_input *input, char c)
{
	static const char begins[] = "\"{}[],:-0123456789tfn";

	return c && strchr(begins, c) && (c != '{' || input->at > input->line);
}

static bool end_record(struct record_input *input, struct record_piece *piece)
{
	char *text = input->bytes.bytes + input->start;
	char *end = input->bytes.bytes + input->at;

	input->saved = input->at < input->bytes.len ? *end : '\0';
	*end = '\0';
	piece->kind = PIECE_RECORD;
	input->state = SCAN_BETWEEN;
	if (json_parse(text).at)
		return true;
	end_damaged(input, piece, "it is no JSON object");
	input->state = SCAN_TAIL;
	return true;
}

static void step_string(struct record_input *input, char c)
{
	if (input->is_escaped)
		input->is_escaped = false;
	else if (c == '\\')
		input->is_escaped = true;
	else if (c == '"')
		input->is_string = false;
}

static bool step_record(struct record_input *input, char c,
			struct record_piece *piece)
{
	if (input->at - input->start == INPUT_RECORD_MAX)
		return end_too_long(input, piece);
	if (input->is_new_line && c != ' ' && c != '\t' && c != '\r' &&
	    c != '\n') {
		if (!may_continue(input, c)) {
			input->at = input->line;
			return end_damaged(input, piece, "it is no JSON object");
		}
		input->is_new_line = false;
	}
	input->at++;
	if (c == '\n') {
		input->line = input->at;
		input->is_new_line = true;
		return input->is_string &&
		       end_damaged(input, piece, "it is no JSON object");
	}
	if (input->is_string) {
		step_string(input, c);
		return false;
	}
	input->is_string = c == '"';
	input->depth += c == '{' || c == '[';
	input->depth -= c == '}' || c == ']';
	return !input->depth && end_record(input, piece);
}

static bool step(struct record_input *input, struct record_piece *piece)
{
	const char c = input->bytes.bytes[input->at];

	switch (input->state) {
	case SCAN_RECORD:
		return step_record(input, c, piece);
	case SCAN_DAMAGED:
		return step_damaged(input, c, piece);
	default:
		return step_between(input, c);
	}
}

/* The last piece is no longer used. */
static void pass_piece(struct record_input *input)
{
	char *at, *end;

	if (!input->taken)
		return;
	at = input->bytes.bytes + input->start;
	end = at + input->taken;
	if (input->saved)
		*end = input->saved;
	input->saved = '\0';
	for (; (at = memchr(at, '\n', (size_t)(end - at))); at++)
		input->number++;
	input->start += input->taken;
	input->taken = 0;
}

int record_input_next(struct record_input *input, struct record_piece *ret_piece)
{
	bool is_found = false;

	pass_piece(input);
	*ret_piece = (struct record_piece){ .kind = PIECE_BETWEEN };
	while (!is_found) {
		bool has_some = input->at > input->start;
		int r;

		if (input->at < input->bytes.len) {
			is_found = step(input, ret_piece);
			continue;
		}
		/* Text between records need not be complete. */
		is_found = has_some &&
			   (input->is_at_end || input->state == SCAN_BETWEEN ||
			    input->state == SCAN_TAIL);
		if (is_found && input->state != SCAN_BETWEEN &&
		    input->state != SCAN_TAIL)
			end_damaged(input, ret_piece, "it is no JSON object");
		if (is_found)
			break;
		if (input->is_at_end)
			return 0;
		r = read_more(input);
		if (r)
			return r;
	}
	input->taken = input->at - input->start;
	ret_piece->text = input->bytes.bytes + input->start;
	ret_piece->len = input->taken;
	return 1;
}

/* Format the position of the last piece, such as "flows.json:12". @return @buf */
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
				   const char *text, void *user),
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
			taken = take(&input, piece.text, user);
	}
	if (r < 0)
		record_reader_fail(reader, path, r);
	record_input_close(&input);
	return r ?: taken;
}
