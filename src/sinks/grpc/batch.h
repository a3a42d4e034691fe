/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* Records that are sent in one call. */
#ifndef NETOBS_SINKS_GRPC_BATCH_H
#define NETOBS_SINKS_GRPC_BATCH_H

#include "session.h"

#include "sink/position.h"
#include "sinks/pbflow/pbflow.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct batch {
	uint8_t *bytes; /* behind SESSION_PREFIX: a message pbflow.Records */
	size_t len, size;
	uint32_t n_records;
	uint64_t from;	     /* records before the first of them */
	struct position end; /* behind the last of them */
	struct position settled; /* the same, or further on: to be acknowledged with them */
	char first[192]; /* the first one, in words */
	struct call call;
};

/* Room for one more record in at most @max_bytes of message. False: none. */
bool batch_has_room(struct batch *batch, size_t max_bytes);

/* For which there is room. */
void batch_add(struct batch *batch, const struct sink_item *item,
	       const struct pbflow_options *options);

/* Empty it; its memory stays. */
void batch_clear(struct batch *batch);

/* Of no use any more; may be zeroed. */
void batch_free(struct batch *batch);

#endif
