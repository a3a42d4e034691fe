/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* The format of a batch of records in the body of a request. */
#ifndef NETOBS_SINKS_HTTP_FORMAT_H
#define NETOBS_SINKS_HTTP_FORMAT_H

#include "base/buffer.h"
#include "base/spec.h"
#include "record/any.h"
#include "sink/host_fields.h"
#include "sinks/batch/batch.h"
#include "sinks/otlp/otlp.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct format;

/* The report on the records in an answer with a status of success. */
enum format_answer {
	FORMAT_ANSWERS_NOTHING,
	FORMAT_ANSWERS_ITEMS, /* the outcome of each: bulk_answer.h */
	FORMAT_ANSWERS_COUNT, /* the number of refused ones: otlp_read_answer() */
};

/* An encoding of bodies. */
struct encoding {
	const char *content_type;
	enum format_answer answer;
	/* For format_record() and format_body(). */
	size_t (*put_record)(const struct format *format,
			     const struct netobs_record *record, char *to);
	bool (*put_body)(const struct format *format,
			 const struct batch *records, struct buffer *body);
};

/* A record takes so many bytes at most: in a Loki line, each may be escaped. */
enum { FORMAT_ROOM = 2 * SINK_JSON_MAX + 256 };

struct format {
	const struct encoding *encoding;
	struct host_fields host_fields;
	char *labels; /* of Loki, the same for all records, as members of JSON */
	struct otlp otlp;
};

_Static_assert((int)OTLP_ENTRY_MAX <= (int)FORMAT_ROOM, "there is room for all");

/**
 * Read the options encoding (not of OTLP), label.NAME and those of host_fields.h. @types: of the sink's records.
 *
 * @return 0 or -ENOMEM; wrong values are refused with a message
 */
int format_read(struct format *format, struct spec *spec, uint32_t types);
void format_free(struct format *format);

/**
 * Write a record as it is in a body.
 *
 * @param to  has FORMAT_ROOM
 * @return bytes
 */
size_t format_record(const struct format *format,
		     const struct netobs_record *record, char *to);

/** @return how many of what an answer counts a record is: FORMAT_ANSWERS_COUNT */
uint32_t format_items(const struct format *format,
		      const struct netobs_record *record);

/** @return the path of a URL that has none; NULL: as it is */
const char *format_path(const struct format *format, uint32_t types);

/**
 * Put a body together of the records that are tried.
 *
 * @return false: no memory
 */
bool format_body(const struct format *format, const struct batch *records,
		 struct buffer *body);

#endif
