/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* What the calls of a sink carry: the messages that are made of its records. */
#ifndef NETOBS_SINKS_GRPC_MESSAGE_H
#define NETOBS_SINKS_GRPC_MESSAGE_H

#include "sinks/pbflow/pbnetobs.h"

/* What messages have of the spec. */
struct message_options {
	struct pbflow_options pbflow;
};

struct message_kind {
	size_t entry_max; /* bytes of a record in a message */
	/* Read the options; what is wrong is refused. */
	void (*read_options)(struct spec *spec, struct message_options *options);
	/* The method that takes @types of records; what is wrong is refused. */
	const char *(*choose_method)(struct spec *spec, uint32_t types);
	/* Write a record at @to, which has entry_max. @return bytes */
	size_t (*put_entry)(const struct message_options *options,
			    const struct netobs_record *record, uint8_t *to);
};

/* flow.proto and netobs.proto */
extern const struct message_kind message_pbflow;

#endif
