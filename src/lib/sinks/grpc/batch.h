/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* Records that are sent in one call. */
#ifndef NETOBS_SINKS_GRPC_BATCH_H
#define NETOBS_SINKS_GRPC_BATCH_H

#include "session.h"

#include "base/buffer.h"
#include "sink/spool/position.h"
#include "sinks/pbflow/pbnetobs.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct batch {
	struct buffer message; /* behind SESSION_PREFIX: a message Records */
	uint32_t n_records;
	uint64_t from;	     /* records before the first of them */
	struct position end; /* behind the last of them */
	struct position settled; /* to be acknowledged with them: end, or behind it */
	char first[192];	 /* the first one, for the log */
	struct call call;
};

/** @return whether one more record fits into a message of @max_bytes */
bool batch_has_room(struct batch *batch, size_t max_bytes);

/* Add a record, for which batch_has_room(). */
void batch_add(struct batch *batch, const struct sink_item *item,
	       const struct pbflow_options *options);

/* Empty it and keep its memory. */
void batch_clear(struct batch *batch);

/* A zeroed batch is fine. */
void batch_free(struct batch *batch);

#endif
