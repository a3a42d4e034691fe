/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* The structs that libfixbuf makes records from, in this machine's byte order: layout.c. */
#ifndef NETOBS_SINKS_IPFIX_RECORD_H
#define NETOBS_SINKS_IPFIX_RECORD_H

#include "layout.h"
#include "catalogue/fields.h"

#include <netobs/flow.h>

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
#define slot_time(member) uint64_t member; /* as the layout's timestamps */
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
				   const struct netobs_record *record,
				   const struct layout_options *options);

/** @return @ns since 1970 in the format of RFC 7011, 6.1.7 to 6.1.10 */
uint64_t record_time(int64_t ns, enum layout_timestamps timestamps);

#endif
