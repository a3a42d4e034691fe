/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * Splits a file into JSON objects and the text between them: line feeds in lines of JSON; brackets
 * and commas in arrays. An object may have several lines.
 */
#ifndef NETOBS_CLI_ANNOTATE_RECORD_INPUT_H
#define NETOBS_CLI_ANNOTATE_RECORD_INPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/buffer.h"

enum { INPUT_RECORD_MAX = 1 << 20 }; /* bytes; longer ones are no records */

/* A piece of the file; all pieces together are the whole file. */
struct record_piece {
	enum {
		PIECE_BETWEEN, /* white space, brackets, commas */
		PIECE_RECORD,
		PIECE_DAMAGED, /* neither, to the end of a line */
	} kind;
	char *text; /* valid until the next piece is read; of records, which are JSON objects, a NUL follows */
	size_t len;
	const char *why; /* why it is damaged */
};

struct record_input {
	const char *path; /* "-": standard input */
	FILE *flushed;	  /* before the input is waited for; NULL: none */
	uint64_t number;  /* line in which the last piece begins, from 1 */
	int fd;
	bool is_at_end;
	struct buffer bytes;
	size_t start; /* start of the piece in @bytes */
	size_t taken; /* bytes of the last piece */
	char saved;   /* the byte that the NUL behind it has replaced */

	/* State after the bytes from @start to @at. */
	enum { SCAN_BETWEEN, SCAN_RECORD, SCAN_DAMAGED, SCAN_TAIL } state;
	size_t at;
	size_t line;	    /* start of the line that contains @at */
	unsigned int depth; /* open brackets */
	bool is_string, is_escaped;
	bool is_new_line; /* only white space is before @at in its line */
};

/**
 * @param path       stays yours
 * @param ret_input  yours, also on failure: record_input_close()
 * @return 0, or -errno
 */
int record_input_open(struct record_input *ret_input, const char *path);

/** @return 1; 0: there are no more; or -errno */
int record_input_next(struct record_input *input, struct record_piece *ret_piece);

void record_input_close(struct record_input *input);

/* ---- Record reader --------------------------------------------------------------------- */

/* Reads all records of a file for netobsctl map, and reports on stderr what cannot be read. */

/* All zero: nothing has been read. */
struct record_reader {
	uint64_t unreadable; /* lines that are no records */
	bool is_failed; /* there are some, or a file was not read as a whole */
};

/** Print a message, with text from files made safe for a terminal. */
__attribute__((format(printf, 1, 2))) void
record_reader_complain(const char *format, ...);

/** Count the record that was read last as none; the first ten are reported with their place. */
void record_reader_refuse(struct record_reader *reader,
			  const struct record_input *input, const char *why);

/** Report that a file cannot be read, or no further. @err is negative */
void record_reader_fail(struct record_reader *reader, const char *path, int err);

/**
 * Read a file to its end. What cannot be read is reported, and lines that are no JSON objects are
 * refused.
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
