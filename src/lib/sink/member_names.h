/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* Names of members of JSON records in other conventions: catalogue/names.def. */
#ifndef NETOBS_SINK_MEMBER_NAMES_H
#define NETOBS_SINK_MEMBER_NAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	NAMES_VERSION = 1,
	NAME_MAX_LEN = 64, /* bytes of a name, with its NUL */
};

/* OpenTelemetry semantic conventions: https://opentelemetry.io/docs/specs/semconv/ */
#define NAMES_SCHEMA_URL "https://opentelemetry.io/schemas/1.37.0"
/* Elastic Common Schema */
#define NAMES_ECS_VERSION "8.11.0"

enum names_of { NAMES_OF_OTEL, NAMES_OF_ECS, NAMES_OF };

/**
 * @param key  of a member of a record in JSON, @len bytes, at most half of NAME_MAX_LEN
 * @param buf  has NAME_MAX_LEN; may be used
 * @return its name
 */
const char *member_name(enum names_of names_of, const char *key, size_t len,
			char *buf);

/** @return what both call the transport protocol of IP @proto; NULL: neither lists it, nor has it ports */
const char *member_transport(int64_t proto);

/* A member of a record in JSON, as netobs_record_json() writes it: keys have no escapes. */
struct raw_member {
	const char *key, *value;
	size_t key_len, value_len;
};

/** @return the length of a value, up to a comma, or the end of its object or array */
size_t raw_value_len(const char *value);

/**
 * Take the next member.
 *
 * @param at  behind the bracket of the object, or where the last call left it
 * @return false: there are no more
 */
bool raw_member_next(const char **at, struct raw_member *ret_member);

bool raw_member_is(const struct raw_member *member, const char *key);

/*
 * Records in JSON with the names of the Elastic Common Schema: members keep their values, and have the
 * names of catalogue/names.def. Names with dots are objects to Elasticsearch.
 */

enum { ECS_MORE = 4 << 10 }; /* bytes that names may take more */

/**
 * @param json  a record as netobs_record_json() writes it, of @len bytes, at most RECORD_JSON_MAX; has room
 *              for ECS_MORE more
 * @return its length
 */
size_t ecs_rename(char *json, size_t len);

/** @return a name that these records have or may get, and that clashes with @name; NULL: none */
const char *ecs_find_clash(const char *name);

/** @return whether both are one, or one would be an object and the other a value: a.b and a */
bool names_clash(const char *one, const char *other);

#endif
