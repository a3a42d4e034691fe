/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* The structs that libfixbuf makes records from, in this machine's byte order: layout.c. */
#ifndef NETOBS_SINKS_IPFIX_RECORD_H
#define NETOBS_SINKS_IPFIX_RECORD_H

#include "layout.h"
#include "catalogue/fields.h"

#include <netobs/alert.h>
#include <netobs/flow.h>
#include <netobs/session.h>

enum {
	RECORD_NAME_SIZE = 16,
	RECORD_ELEMENT_NAME_SIZE = 32,
	RECORD_ALERT_NAME_SIZE = 64,
	RECORD_ALERT_RULE_SIZE = 256, /* longer ones are cut */
};

#define slot_number(member) typeof(((struct netobs_flow *)0)->member) member;
#define slot_id slot_number
#define slot_count slot_number
#define slot_duration slot_number
#define slot_mac slot_number
#define slot_tunnel_end slot_number
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

/* Both templates of alerts; what follows the addresses of one is not read. */
struct record_alert {
	uint64_t time, start; /* as the layout's timestamps */
	uint64_t value, threshold, baseline;
	uint64_t point; /* ifindex */
	uint64_t netns_inode;
	uint32_t pid;
	uint16_t client_port, server_port;
	uint8_t protocol, metric, way, hits, among;
	char interface[RECORD_NAME_SIZE];
	char process[RECORD_NAME_SIZE];
	char name[RECORD_ALERT_NAME_SIZE];
	char rule[RECORD_ALERT_RULE_SIZE];
	union {
		struct {
			uint32_t client, server;
		} v4;
		struct {
			uint8_t client[16], server[16];
		} v6;
	};
} __attribute__((packed));

/* The same of sessions. */
struct record_session {
	uint64_t time, start, end; /* as the layout's timestamps */
	uint64_t netns_inode;
	uint16_t local_port, remote_port;
	uint8_t protocol;
#define SESSION_NUMBER(number, type, member, ...) type member;
#define SESSION_TEXT(number, octets, member, ...) char member[octets];
#include "sessions.def"
	union {
		struct {
			uint32_t local, remote;
		} v4;
		struct {
			uint8_t local[16], remote[16];
		} v6;
	};
} __attribute__((packed));

struct record_sampling {
	uint32_t domain;
	uint32_t interval;
} __attribute__((packed));

struct record_selector {
	uint64_t selector;
	union {
		struct {
			uint32_t interval, space;
		} all; /* packets */
		struct {
			uint32_t size, population;
		} some;
		double probability; /* of flows */
	};
	uint16_t algorithm; /* RFC 5477, 8.2.1; of flows RFC 7014, 6.1 */
} __attribute__((packed));

struct record_interface {
	uint32_t ifindex;
	char name[RECORD_NAME_SIZE];
} __attribute__((packed));

struct record_element {
	uint32_t pen;
	uint16_t id;
	uint8_t type, semantics; /* RFC 5610, 3.1 and 3.10 */
	uint16_t units;
	char name[RECORD_ELEMENT_NAME_SIZE];
} __attribute__((packed));

struct record_metering {
	uint32_t domain;
	uint64_t messages, flows_exported, octets;
	uint64_t flows_observed;
} __attribute__((packed));

struct record_metering_loss {
	uint32_t domain;
	uint64_t packets, octets;
	uint64_t start_ms, end_ms;
} __attribute__((packed));

struct record_exporting_loss {
	uint32_t process;
	uint64_t flows, packets, octets;
	uint64_t start_ms, end_ms;
} __attribute__((packed));

/** @return the point where the flow came in, or went out; NULL: unknown */
const struct netobs_point *record_ingress(const struct netobs_flow *flow);
const struct netobs_point *record_egress(const struct netobs_flow *flow);

/** @return the kind of template that the record fits */
enum layout_kind record_from_flow(struct record_flow *record,
				  const struct netobs_flow *flow,
				  const struct layout_options *options);

/** @return the kind of template that the record fits */
enum layout_kind record_from_alert(struct record_alert *record,
				   const struct netobs_alert *alert,
				   const struct layout_options *options);

/** @return the kind of template that the record fits */
enum layout_kind record_from_session(struct record_session *record,
				     const struct netobs_session *session,
				     const struct layout_options *options);

/** @return @ns since 1970 in the format of RFC 7011, 6.1.7 to 6.1.10 */
uint64_t record_time(int64_t ns, enum layout_timestamps timestamps);

#endif
