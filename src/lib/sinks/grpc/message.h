/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* The messages of calls that a sink makes of its records. */
#ifndef NETOBS_SINKS_GRPC_MESSAGE_H
#define NETOBS_SINKS_GRPC_MESSAGE_H

#include "sinks/otlp/otlp.h"
#include "sinks/pbflow/pbnetobs.h"

/* Options of messages in the spec. */
struct message_options {
	struct pbflow_options pbflow;
	struct otlp otlp;
};

struct message_kind {
	size_t head_max;  /* bytes in front of the records of a message */
	size_t entry_max; /* size of a record */
	uint16_t port; /* default port of targets; 0: the target must have one */
	/* Read the options, for @types of records; errors are refused. */
	void (*read_options)(struct spec *spec, struct message_options *options,
			     uint32_t types);
	/* Choose the method for @types of records; errors are refused. */
	const char *(*choose_method)(struct spec *spec, uint32_t types);
	/* Write a record at @to, which has entry_max. @return bytes */
	size_t (*put_entry)(const struct message_options *options,
			    const struct netobs_record *record, uint8_t *to);
	/* Write the bytes in front of @len bytes of records, at @to; NULL: none. */
	size_t (*put_head)(const struct message_options *options, size_t len,
			   uint8_t *to);
	/*
	 * How much of an accepted call is refused. NULL: none. If it is there, calls are made
	 * one at a time: then all records before those of a call are settled.
	 */
	bool (*read_answer)(const void *bytes, size_t len,
			    struct otlp_answer *ret_answer);
	/* Count the items of a record that read_answer() counts: log records, data points. */
	uint32_t (*count_items)(const struct netobs_record *record);
};

/* flow.proto and netobs.proto */
extern const struct message_kind message_pbflow;

/* logs_service.proto and metrics_service.proto of OpenTelemetry */
extern const struct message_kind message_otlp;

#endif
