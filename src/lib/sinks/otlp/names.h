/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* The names of attributes: catalogue/names.def. */
#ifndef NETOBS_SINKS_OTLP_NAMES_H
#define NETOBS_SINKS_OTLP_NAMES_H

#include <stddef.h>

enum {
	NAMES_VERSION = 1,
	/* Of a semantic convention. https://opentelemetry.io/docs/specs/semconv/ */
	NAME_MAX_LEN = 64, /* bytes of a name, with its NUL */
};

#define NAMES_SCHEMA_URL "https://opentelemetry.io/schemas/1.37.0"

/**
 * @param key  of a member of a record in JSON, @len bytes, at most half of NAME_MAX_LEN
 * @param buf  has NAME_MAX_LEN; may be used
 * @return the name of the attribute
 */
const char *names_find(const char *key, size_t len, char *buf);

#endif
