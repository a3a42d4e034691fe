/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* Encodes records as IPFIX messages (RFC 7011, 3), for all transports. */
#ifndef NETOBS_SINKS_IPFIX_ENCODER_H
#define NETOBS_SINKS_IPFIX_ENCODER_H

#include "layout.h"
#include "record.h"

enum { ENCODER_SIZE_MIN = 776, ENCODER_SIZE_MAX = 65535 };

struct encoder_message {
	const uint8_t *bytes; /* valid until the next one is taken */
	size_t len;
	uint32_t sequence;
	uint32_t records;
};

struct encoder {
	struct layout layout;
	uint32_t domain;
	fBuf_t *fbuf; /* has the session and the exporter */
	size_t size;  /* size of a message at most */
	size_t used;  /* bytes of the current message; 0: it is empty */
	uint16_t set; /* the last one in it */
	uint32_t records;
	uint32_t sequence; /* data records before it: 3.1 */
	uint8_t bytes[ENCODER_SIZE_MAX];
};

/** @return 0; -EIO: libfixbuf lacks an element; -ENOMEM */
int encoder_open(uint32_t domain, const struct layout_options *options,
		 struct encoder **ret_encoder);

void encoder_free(struct encoder *encoder);

/** Begin a session with messages of @size, without what was added. @return 0 or -EIO */
int encoder_start(struct encoder *encoder, size_t size, uint32_t sequence);

/**
 * Add to the message that is filled. Templates and records are not in one message.
 *
 * @return 1; 0: the message has no room, and is to be taken first; -EIO: libfixbuf refused
 *         it, and the message is unchanged
 */
int encoder_add_template(struct encoder *encoder, enum layout_kind kind);
int encoder_add_flow(struct encoder *encoder, const struct netobs_flow *flow);
/* For records of the other types that have templates. */
int encoder_add_other(struct encoder *encoder,
		      const struct netobs_record *record);

/* @record: the struct of that kind. */
int encoder_add(struct encoder *encoder, enum layout_kind kind, void *record,
		size_t len);

static inline bool encoder_is_empty(const struct encoder *encoder)
{
	return !encoder->used;
}

/** @return 0; -EIO: the message is lost */
int encoder_take(struct encoder *encoder, struct encoder_message *ret_message);

#endif
