/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* Encodes records as IPFIX messages (RFC 7011, 3), for all transports. */
#ifndef NETOBS_SINKS_IPFIX_ENCODER_H
#define NETOBS_SINKS_IPFIX_ENCODER_H

#include "layout.h"
#include "catalogue/fields.h"

#include <netobs/flow.h>

/* ---- Records: the structs that libfixbuf makes them from, in this machine's byte order: layout.c -- */

enum { RECORD_OTHER_SIZE = 1024 }; /* room for any type but flows */

#define slot_number(member) typeof(((struct netobs_flow *)0)->member) member;
#define slot_id slot_number
#define slot_count slot_number
#define slot_duration slot_number
#define slot_hash slot_number
#define slot_mac slot_number
#define slot_tunnel_end slot_number
#define slot_text slot_number
#define slot_tcp_flags slot_number
#define slot_dscp slot_number
#define slot_tunnel slot_number
#define slot_time(member) uint64_t member; /* ms since 1970 */
#define slot_address(member)  \
	uint32_t member##_v4; \
	uint8_t member##_v6[16];
#define slot_icmp(member) uint16_t member;
#define slot_netns(member) uint64_t member;
#define slot_direction(member) uint8_t member;

#define OWN_ELEMENT(...)
#define MADE_ELEMENT(type, member, ...) type member;
#define ELEMENT(type, member, ...) slot_##type(member)

/* The elements of all templates of flows. */
struct record_flow {
#include "elements.def"
} __attribute__((packed));

#define OPTIONS(KIND, name, n_scope) struct record_##name {
#define OPTION(type, member, element) __typeof__(type) member;
#define OPTIONS_END \
	}           \
	__attribute__((packed));
#include "options.def"

/** @return the point where the flow came in, or went out; NULL: unknown */
const struct netobs_point *record_ingress(const struct netobs_flow *flow);
const struct netobs_point *record_egress(const struct netobs_flow *flow);

/** @return the kind of template that the record fits */
enum layout_kind record_from_flow(struct record_flow *record,
				  const struct netobs_flow *flow,
				  const struct layout_options *options);

/**
 * Write a record of another type as it is on the wire, but in this machine's byte order.
 *
 * @param to  has RECORD_OTHER_SIZE bytes
 * @return the kind of template that the record fits
 */
enum layout_kind record_from_other(uint8_t *to,
				   const struct netobs_record *record);

/** @return @ns since 1970 in ms: RFC 7011, 6.1.8 */
uint64_t record_time(int64_t ns);

/* ---- Messages --------------------------------------------------------------------- */

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
