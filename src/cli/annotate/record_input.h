/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* Reads lines of JSON, a JSON object on each. */
#ifndef NETOBS_CLI_ANNOTATE_RECORD_INPUT_H
#define NETOBS_CLI_ANNOTATE_RECORD_INPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/buffer.h"

enum { INPUT_RECORD_MAX = 1 << 20 }; /* bytes; longer lines are no records */

/* A line of the file, or a part of one that is too long; all lines together are the whole file. */
struct record_line {
	enum {
		LINE_RECORD,
		LINE_DAMAGED, /* it is no record */
		LINE_BLANK,   /* or the rest of a line that is too long */
	} kind;
	char *text; /* valid until the next line is read; a NUL follows */
	size_t len;
	bool has_end;	 /* a line feed follows in the file */
	const char *why; /* why it is damaged */
};

struct record_input {
	const char *path; /* "-": standard input */
	FILE *flushed;	  /* before the input is waited for; NULL: none */
	uint64_t number;  /* of the last line, from 1 */
	int fd;
	bool is_at_end;
	bool is_rest; /* the next bytes belong to the last line */
	struct buffer bytes;
	size_t start; /* start of the next line in @bytes */
};

/**
 * @param path       stays yours
 * @param ret_input  yours, also on failure: record_input_close()
 * @return 0, or -errno
 */
int record_input_open(struct record_input *ret_input, const char *path);

/** @return 1; 0: there are no more; or -errno */
int record_input_next(struct record_input *input, struct record_line *ret_line);

void record_input_close(struct record_input *input);

/* ---- Record reader --------------------------------------------------------------------- */

/* Reads all records of a file, and reports on stderr what cannot be read. */

/* All zero: nothing has been read. */
struct record_reader {
	const char *verb;    /* of netobsctl; NULL: map */
	uint64_t unreadable; /* lines that are no records */
	bool is_failed; /* there are some, or a file was not read as a whole */
};

/** Print a message of netobsctl map, with text from files made safe for a terminal. */
__attribute__((format(printf, 1, 2))) void
record_reader_complain(const char *format, ...);

/** Count the record that was read last as none; the first ten are reported with their place. */
void record_reader_refuse(struct record_reader *reader,
			  const struct record_input *input, const char *why);

/** Report that a file cannot be read, or no further. @err is negative */
void record_reader_fail(struct record_reader *reader, const char *path, int err);

/**
 * Read a file to its end, or until a signal that is caught asks to stop. What cannot be read is reported,
 * and lines that are no JSON objects are refused.
 *
 * @param path  as record_input_open() takes it
 * @param take  gets each JSON object, which is valid during the call.
 *              @return 0; < 0: go no further, which it has reported
 * @return 0; < 0: of @take, or the file was not read as a whole
 */
int record_reader_read(struct record_reader *reader, const char *path,
		       int (*take)(const struct record_input *input,
				   const char *text, void *user),
		       void *user);

#endif
