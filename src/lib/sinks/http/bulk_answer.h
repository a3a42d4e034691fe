/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * The answer to a _bulk request of Elasticsearch or OpenSearch, read as it comes: whether
 * there are errors, and the status of each item, in the order of the request.
 *
 *	{"errors":true,"items":[{"create":{"status":201}},
 *	  {"create":{"status":400,"error":{"reason":"failed to parse"}}}]}
 */
#ifndef NETOBS_SINKS_HTTP_BULK_ANSWER_H
#define NETOBS_SINKS_HTTP_BULK_ANSWER_H

#include <stdbool.h>
#include <stddef.h>

enum { BULK_TEXT_MAX = 256 };

struct bulk_answer {
	/* An item; its status, 0 if it has none, and its error in words, or "". */
	void (*take_item)(void *ctx, int status, const char *reason);
	void *ctx;

	bool has_errors; /* the answer reports errors */
	bool is_answer;	 /* the answer has "errors", true or false */

	/* State of the JSON parser. */
	unsigned int depth;
	bool is_in_items, is_in_string, is_escaped;
	bool has_value; /* text is a value, or a key */
	size_t len;
	char text[BULK_TEXT_MAX], key[BULK_TEXT_MAX];
	int status; /* status of the item that is being read */
	char reason[BULK_TEXT_MAX];
};

/** Begin another answer. */
void bulk_answer_begin(struct bulk_answer *answer,
		       void (*take_item)(void *ctx, int status,
					 const char *reason),
		       void *ctx);

/** Read @len more bytes of it, which may be anything. */
void bulk_answer_read(struct bulk_answer *answer, const char *bytes, size_t len);

#endif
