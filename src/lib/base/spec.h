/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * The destination of records, as the user writes it:
 *
 *   KIND[:TARGET][?NAME=VALUE[&NAME=VALUE]...]
 *
 * The characters % & = ? and + have a meaning. %XX, two hex digits, is the character itself:
 * RFC 3986, 2.1.
 */
#ifndef NETOBS_BASE_SPEC_H
#define NETOBS_BASE_SPEC_H

#include "log.h"
#include "options.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { SPEC_OPTIONS_MAX = 64 };

struct spec_option {
	const char *name;
	const char *value;
	bool is_known;		      /* the option was read */
	struct suggestion suggestion; /* among the names that were asked for */
};

struct spec {
	const struct log *log;
	char *text; /* memory that the members above point into */
	const char *kind;
	const char *target; /* NULL: none was given */
	struct spec_option options[SPEC_OPTIONS_MAX];
	size_t n_options;
	bool is_wrong; /* a value was; it was logged */
	bool is_trial; /* check it only: open nothing */
};

/* -EINVAL: it cannot be understood, which is logged; -ENOMEM. */
int spec_parse(struct spec *spec, const char *text, const struct log *log);

void spec_free(struct spec *spec);

/*
 * Options by name; where one is not given, or is wrong, @otherwise. The first that
 * is wrong is logged, and spec_finish() fails.
 */
const char *spec_string(struct spec *spec, const char *name,
			const char *otherwise);

uint64_t spec_number(struct spec *spec, const char *name, uint64_t least,
		     uint64_t most, uint64_t otherwise);

/* A number of bytes, as VALUE_BYTES. */
uint64_t spec_size(struct spec *spec, const char *name, uint64_t least,
		   uint64_t most, uint64_t otherwise);

/* A time in milliseconds, as VALUE_DURATION. */
uint64_t spec_duration_ms(struct spec *spec, const char *name, uint64_t least,
			  uint64_t most, uint64_t otherwise);

/* Permissions of a file, in octal: at most 777. */
unsigned int spec_mode(struct spec *spec, const char *name,
		       unsigned int otherwise);

/* The index of the choice; @choices ends with NULL. */
int spec_choice(struct spec *spec, const char *name, const char *const *choices,
		int otherwise);

/* @return the options that start with @prefix, one after the other: NULL at the end */
const struct spec_option *spec_next(struct spec *spec, const char *prefix,
				    size_t *position);

/* Refuse the spec for another reason. */
__attribute__((format(printf, 2, 3))) void spec_refuse(struct spec *spec,
						       const char *format, ...);

/*
 * All options have been read, and nothing has been opened.
 *
 * @return 0; -EINVAL: something was wrong, or an unknown option is left; -ECANCELED: the
 *         spec is right, and only to be checked
 */
int spec_finish(struct spec *spec);

#endif
