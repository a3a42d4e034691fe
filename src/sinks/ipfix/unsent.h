/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* What a stream or a file has not taken yet of a message. */
#ifndef NETOBS_SINKS_IPFIX_UNSENT_H
#define NETOBS_SINKS_IPFIX_UNSENT_H

#include "encoder.h"

#include <string.h>

struct unsent {
	size_t at, len;
	uint8_t bytes[ENCODER_SIZE_MAX];
};

static inline void unsent_set(struct unsent *unsent,
			      const struct encoder_message *message)
{
	memcpy(unsent->bytes, message->bytes, message->len);
	unsent->at = 0;
	unsent->len = message->len;
}

static inline bool unsent_is_empty(const struct unsent *unsent)
{
	return unsent->at == unsent->len;
}

#endif
