/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * Records as OTLP has them, for the kinds of sinks that send them: requests of log records, or
 * of metrics, https://opentelemetry.io/docs/specs/otlp/. A request is a head and, one after the other, its
 * entries, of which the head knows the length alone. Both have the same numbers:
 *
 *	ExportLogsServiceRequest.resource_logs (1), ExportMetricsServiceRequest.resource_metrics (1)
 *		.resource (1), .scope_logs, .scope_metrics (2)
 *			.scope (1), .schema_url (3)
 *			.log_records, .metrics (2): the entries
 */
#ifndef NETOBS_SINKS_OTLP_OTLP_H
#define NETOBS_SINKS_OTLP_OTLP_H

#include "record/any.h"
#include "sink/host_fields.h"
#include "sink/module.h"

#include <netobs/record.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Attributes as OTLP has them: KeyValue, of AnyValue. */

/*
 * The members of a record in JSON, as netobs_record_json() writes it. So attributes say what JSON
 * says, of any type of record, also of those that are yet to come.
 */

enum value_type {
	VALUE_IS_INT,
	VALUE_IS_BOOL,
	VALUE_IS_TEXT,
	VALUE_IS_ARRAY,
	VALUE_IS_OBJECT,
	VALUE_IS_END
};

struct value {
	enum value_type type;
	int64_t number;	  /* of a bool: 0 or 1 */
	const char *text; /* UTF-8 of @len bytes, without escapes */
	size_t len;
	char *elements; /* of an array: for value_next(); of an object: for member_next() */
};

struct member {
	struct raw_member raw;
	struct value value;
};

/*
 * Take the next member.
 *
 * @param at  behind the bracket of the object, or where the last call left it; what is
 *            behind it may be changed
 * @return false: there are no more
 */
bool member_next(char **at, struct member *ret_member);

/* Take the next element of an array, as member_next() takes a member. */
bool value_next(char **at, struct value *ret_value);

/* Each writes a field @number of the message around it, as wire.h does. */
uint8_t *put_text_attribute(uint8_t *to, uint32_t number, const char *name,
			    const char *text, size_t len);
uint8_t *put_int_attribute(uint8_t *to, uint32_t number, const char *name,
			   int64_t value);

/* Writes an attribute whose value is an array of one text. */
uint8_t *put_list_attribute(uint8_t *to, uint32_t number, const char *name,
			    const char *text, size_t len);

/* @return bytes of put_text_attribute(); of put_list_attribute() up to LIST_MORE more */
size_t text_attribute_size(const char *name, size_t len);

enum { LIST_MORE = 12 };

/*
 * The members of a record, by their names of host_fields.h, and what follows from them by conventions of its own:
 * network.transport, network.type, the first interface as network.interface.name, and, of a container in a
 * pod, k8s.container.name.
 *
 * @param without  keys of members that are no attributes, with a NULL behind them
 */
uint8_t *put_record_attributes(uint8_t *to, uint32_t number,
			       const struct netobs_record *record,
			       const char *const *without);

enum {
	OTLP_TYPES = SINK_TYPES_ALL & ~SINK_TYPE(STATS),
	OTLP_METRICS = SINK_TYPE(GROUP), /* records sent as metrics */
	/* Each text may grow to three times its length. */
	OTLP_POINT_MAX = 3 * PACK_NAME_MAX + 40, /* bytes of an interface */
	OTLP_FIELDS_MAX = 17 << 10,		 /* bytes of all other fields */
	OTLP_ENTRY_MAX = PACK_POINTS_MAX * OTLP_POINT_MAX + OTLP_FIELDS_MAX,
	OTLP_RESOURCE_MAX = 2 * HOST_FIELDS_MAX + 1024,
	OTLP_HEAD_MAX = OTLP_RESOURCE_MAX + 256,
};

/* The part that all records of a sink share. */
struct otlp {
	uint8_t resource[OTLP_RESOURCE_MAX]; /* a message Resource */
	size_t resource_len;
};

/**
 * Read host=, agent_ip= and field.NAME=: attributes of the resource. What is wrong is refused.
 *
 * @param types  of the sink: OTLP_METRICS, or others
 */
void otlp_read(struct otlp *otlp, struct spec *spec, uint32_t types);

/**
 * Write a record: a log record, or metrics.
 *
 * @param record  of OTLP_TYPES
 * @param to      has OTLP_ENTRY_MAX bytes
 * @return its length
 */
size_t otlp_entry(const struct netobs_record *record, uint8_t *to);

/**
 * @return how many log records or data points a record is; answers count these
 */
uint32_t otlp_items(const struct netobs_record *record);

/**
 * Write what is in front of entries.
 *
 * @param entries_len  bytes of them, less than 2^31
 * @param to           has OTLP_HEAD_MAX bytes
 * @return its length
 */
size_t otlp_head(const struct otlp *otlp, size_t entries_len, uint8_t *to);

/* The answer to a request. */
struct otlp_answer {
	uint64_t rejected; /* items that will never be accepted */
	char message[256]; /* why, as printable ASCII; "": it says nothing */
};

/**
 * @return false: it is no answer of OTLP
 */
bool otlp_read_answer(const void *bytes, size_t len,
		      struct otlp_answer *ret_answer);

/* The entries of requests, as fields of the message around them. */

/* Put the metrics of a group: one for each count that is known, with a data point. */
uint8_t *put_metrics(uint8_t *to, const struct netobs_group_record *group);

/** @return how many put_metrics() writes */
uint32_t count_metrics(const struct netobs_group_record *group);

#endif
