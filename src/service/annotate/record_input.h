/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * Records of a file, one after the other, as JSON objects: lines of JSON, IPFIX files, and what
 * nfcapd(1) writes, which nfdump(1) reads.
 */
#ifndef NETOBS_SERVICE_ANNOTATE_RECORD_INPUT_H
#define NETOBS_SERVICE_ANNOTATE_RECORD_INPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/buffer.h"

enum { INPUT_RECORD_MAX = 1 << 20 }; /* bytes; longer ones are refused */

struct ipfix_file;
struct ipfix_file_module;

struct record_input {
	const char *path; /* "-": standard input */
	FILE *stream;
	enum { INPUT_LINES, INPUT_IPFIX, INPUT_NFCAPD } kind;
	uint64_t number;	/* of the last line or record, from 1 */
	unsigned char first[2]; /* bytes, of which @n_first are yet to be read */
	size_t n_first;
	struct buffer text;
	int nfdump;	     /* its process; 0: none */
	int nfdump_messages; /* a file with what it says to stderr; -1: none */
	const struct ipfix_file_module *ipfix;
	struct ipfix_file *ipfix_file;
	char why[512];	   /* of errors */
	uint64_t warnings; /* of libfixbuf */
	char warning[256]; /* the last one */
};

/**
 * Open a file of any of these formats, which its first bytes show.
 *
 * @param path       stays yours
 * @param ret_input  yours, also on failure: record_input_close()
 * @return 0; < 0: @why says what is wrong
 */
int record_input_open(struct record_input *ret_input, const char *path);

/**
 * Read a record: of lines of JSON a line, without its end, and of others an object without
 * line feeds.
 *
 * @param ret_text  valid until the next call
 * @return 1; 0: there are no more; -EBADMSG: a line cannot be a record, those that follow may be;
 *         others: it failed. @why says what is wrong
 */
int record_input_next(struct record_input *input, char **ret_text);

/** Where the last record was, such as "flows.json:12". @return @buf */
const char *record_input_place(const struct record_input *input, char *buf,
			       size_t size);

void record_input_close(struct record_input *input);

#endif
