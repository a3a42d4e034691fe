/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * What flows are grouped by: --by KEY[,KEY]... A key takes a value from a flow; a group
 * has the values of all keys behind one another, which compare as bytes.
 */
#ifndef NETOBS_CLI_BY_H
#define NETOBS_CLI_BY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct json;
struct names;
struct netobs_flow;
struct by_key;

enum { BY_KEYS = 4, BY_SIZE = 96 };

struct by {
	size_t n; /* 0: flows, each by itself */
	const struct by_key *keys[BY_KEYS];
	size_t size;	/* of a value, a multiple of 8 */
	bool both_ends; /* a flow counts at both of its hosts */
};

/* One of the ends of a flow. */
enum by_end { BY_SOURCE, BY_DESTINATION };

/**
 * Parse "KEY[,KEY]..."; "flow" alone is no key.
 *
 * @return 0; -EINVAL: @ret_why has the reason
 */
int by_parse(const char *text, struct by *ret_by, char *ret_why, size_t size);

/**
 * @return where the value of @key begins in a group's, and its size in @ret_size; -1: it is
 *         not among the keys
 */
int by_offset(const struct by *by, const char *key, size_t *ret_size);

/**
 * Take the values of a flow, @end being the host that it counts for.
 */
void by_fill(const struct by *by, const struct netobs_flow *flow,
	     enum by_end server, enum by_end end, uint8_t ret_value[BY_SIZE]);

const char *by_heading(const struct by *by, size_t key);

/**
 * The value of one key as text. @names: of hosts and ports, or NULL.
 */
void by_text(const struct by *by, size_t key, const uint8_t value[BY_SIZE],
	     struct names *names, char *buf, size_t size);

/**
 * Add the values of all keys to an object.
 */
void by_json(const struct by *by, const uint8_t value[BY_SIZE],
	     struct json *json);

#endif
