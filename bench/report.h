/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * Results of a benchmark: rows of a struct whose members a table of fields names, as
 * JSON.
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

/* On standard output, for programs or for people. Returns 0 or -errno. */
int report_print(const struct report *report, bool is_json);

/* "Linux 6.1.0, AMD EPYC": the machine that the results depend on. */
void report_print_machine(void);

#endif
