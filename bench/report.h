/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * Results of a benchmark: rows of a struct whose members a table of fields names, as
 * JSON and CSV.
 */
#ifndef NETOBS_BENCH_REPORT_H
#define NETOBS_BENCH_REPORT_H

#include "rounds.h"
#include "base/json.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define REPORT_UNKNOWN UINT64_MAX

struct report_field {
	const char *key;
	enum {
		REPORT_TEXT, /* const char * */
		REPORT_U32,
		REPORT_U64,   /* REPORT_UNKNOWN: left out */
		REPORT_NS,    /* double, to a hundredth; NAN: left out */
		REPORT_RATIO, /* to a ten-thousandth */
	} type;
	size_t offset;
};

/* A member of struct @row. */
#define REPORT_FIELD(row, key, type, member)            \
	{                                               \
		key, type, offsetof(struct row, member) \
	}

struct report {
	uint32_t rounds;
	const struct rounds *turns; /* of a comparison; NULL: nothing is compared */
	const struct report_field *fields; /* up to one without a key */
	const void *rows;
	size_t row_size;
	uint32_t n;
	void (*print_table)(const struct report *report);
	/* Members beside those of all reports, or NULL. */
	void (*put_more)(struct json *json, const void *user);
	const void *user;
};

/* On standard output, for programs or for people. This and the next two return 0 or -errno. */
int report_print(const struct report *report, bool is_json);
int report_write_json(const struct report *report, int fd);
int report_write_csv(const struct report *report, int fd);

/* "Linux 6.1.0, AMD EPYC": the machine that the results depend on. */
void report_print_machine(void);

/*
 * A file for results. It is opened before measuring, so that an error shows early, and
 * changed only when there are results.
 */
struct report_file {
	const char *path; /* NULL: none; nothing below does anything */
	int fd;
	bool is_new;
};

/* Reports failure on stderr, as report_file_write() does. */
int report_file_open(struct report_file *file, const char *path);

/* Replace the contents by what @write writes to a descriptor. */
int report_file_write(struct report_file *file, const struct report *report,
		      int (*write)(const struct report *report, int fd));

/* Removes a new file that nothing was written to. */
void report_file_close(struct report_file *file);

#endif
