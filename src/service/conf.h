/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * Configuration files as netobs.conf(5) describes them: sections, keys and values, each with
 * its place, of a file and its drop-ins. service_config.h interprets them.
 *
 * An own parser: inih as Debian has it cuts names of sections at 49 bytes and lines at 200
 * without an error, has no columns, and takes " ;" in a value for a comment.
 */
#ifndef NETOBS_SERVICE_CONF_H
#define NETOBS_SERVICE_CONF_H

#include <stdbool.h>
#include <stddef.h>

enum {
	CONF_FILE_MAX = 1 << 20,
	CONF_ENTRIES_MAX = 4096,
	CONF_ERRORS_MAX = 100, /* errors that are reported; others are counted */
};

struct conf_place {
	const char *file;
	unsigned int line, column; /* from 1; 0: the whole file */
};

struct conf_entry {
	const char *section, *name; /* [section "name"]; name is "" without one */
	const char *key;	    /* NULL: the header of the section */
	const char *value;	    /* "": the key is reset */
	struct conf_place place;    /* position of the key, or of the header */
	struct conf_place value_place;
};

struct conf {
	struct conf_entry *entries; /* in the order in which they take effect */
	size_t n;
	char **texts; /* texts that entries point into, and names of files */
	size_t n_texts;
	/* An error, as FILE:LINE:COLUMN: MESSAGE. */
	void (*on_error)(const char *line, void *user);
	void *user;
	unsigned int n_errors;
	bool is_out_of_memory;
};

/**
 * Read a file, which must exist, and its drop-ins: the files *.conf in the directory FILE.d, in the
 * order of their names. Errors are reported and counted.
 */
void conf_read(struct conf *conf, const char *file);

/**
 * Add the entries of a text.
 *
 * @param text  @len bytes and a NUL, on the heap; taken over
 */
void conf_parse(struct conf *conf, const char *file, char *text, size_t len);

void conf_clear(struct conf *conf);

/** Report an error at a place. */
void conf_complain(struct conf *conf, const struct conf_place *place,
		   const char *format, ...) __attribute__((format(printf, 3, 4)));

/** @return the entry in effect, which is the last one; NULL: none */
const struct conf_entry *conf_find(const struct conf *conf, const char *section,
				   const char *name, const char *key);

#endif
