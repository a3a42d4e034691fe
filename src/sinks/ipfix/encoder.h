/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* Records become IPFIX messages, RFC 7011, 3. Nothing here knows where they go. */
#ifndef NETOBS_SINKS_IPFIX_ENCODER_H
#define NETOBS_SINKS_IPFIX_ENCODER_H

#include "layout.h"
#include "record.h"

enum { ENCODER_SIZE_MIN = 512, ENCODER_SIZE_MAX = 65535 };

struct encoder_message {
	const uint8_t *bytes; /* valid until the next one is taken */
	size_t len;
	uint32_t sequence;
	uint32_t records;
};

struct encoder {
	struct layout layout;
	uint32_t domain;
	bool one_set; /* in each message, of one template or its records */
	fBuf_t *fbuf; /* with its session and exporter */
	size_t size;  /* of a message, at most */
	size_t used;  /* of the one that is gathered; 0: nothing is */
	uint16_t set; /* that it ends with */
	uint32_t records;
	uint32_t sequence; /* data records before it: 3.1 */
	uint8_t bytes[ENCODER_SIZE_MAX];
};

/* -EIO: libfixbuf does not know what we need; -ENOMEM. */
int encoder_open(uint32_t domain, const struct layout_options *options,
		 struct encoder **ret_encoder);

void encoder_free(struct encoder *encoder);

/* A new session with messages of @size; what was gathered is forgotten. -EIO. */
int encoder_start(struct encoder *encoder, size_t size, uint32_t sequence);

/*
 * Add to the message that is gathered. 0: it has no room, and is to be taken first.
 * -EIO: libfixbuf refused it, which leaves the message as it was. Templates and
 * records are not in one message.
 */
int encoder_add_template(struct encoder *encoder, enum layout_kind kind);
int encoder_add_flow(struct encoder *encoder, const struct netobs_flow *flow);

/* @record: the struct of that kind. */
int encoder_add(struct encoder *encoder, enum layout_kind kind, void *record,
		size_t len);

static inline bool encoder_is_empty(const struct encoder *encoder)
{
	return !encoder->used;
}

/* -EIO: it is lost. */
int encoder_take(struct encoder *encoder, struct encoder_message *ret_message);

#endif
