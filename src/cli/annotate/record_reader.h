/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* Reads all records of a file for netobsctl map, and reports on stderr what cannot be read. */
#ifndef NETOBS_CLI_ANNOTATE_RECORD_READER_H
#define NETOBS_CLI_ANNOTATE_RECORD_READER_H

#include <stdbool.h>
#include <stdint.h>

#include "record_input.h"
#include "base/json_reader.h"

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
 * @param take  gets each JSON object, and its text; both are valid during the call.
 *              @return 0; < 0: go no further, which it has reported
 * @return 0; < 0: of @take, or the file was not read as a whole
 */
int record_reader_read(struct record_reader *reader, const char *path,
		       int (*take)(const struct record_input *input,
				   const char *text, struct json_value record,
				   void *user),
		       void *user);

#endif
