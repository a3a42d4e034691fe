/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * The layout of records on the wire, RFC 7011 and 7012: a template per kind of record.
 * Their IDs are derived from their contents, since collectors keep templates by address,
 * domain and ID, also beyond a restart with other options.
 */
#ifndef NETOBS_SINKS_IPFIX_LAYOUT_H
#define NETOBS_SINKS_IPFIX_LAYOUT_H

#include <netobs/flow.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wstrict-prototypes"
#include <fixbuf/public.h>
#pragma GCC diagnostic pop

struct layout_options {
	bool is_extended;
	uint32_t pen; /* private enterprise number of our elements */
	bool has_no_flows;
	uint32_t types; /* types of records, beside flows, that are sent: bits */
};

enum layout_kind {
	LAYOUT_FLOW4,
	LAYOUT_FLOW4_ICMP,
	LAYOUT_FLOW4_HEALTH, /* extended, with what was measured of TCP */
	/* extended, with the processes at its ends, their addresses by NAT, and drops */
	LAYOUT_FLOW4_PROCESS,
	LAYOUT_FLOW4_BOTH,	   /* with both */
	LAYOUT_FLOW4_ICMP_PROCESS, /* with the latter */
	LAYOUT_FLOW6,
	LAYOUT_FLOW6_ICMP,
	LAYOUT_FLOW6_HEALTH,
	LAYOUT_FLOW6_PROCESS,
	LAYOUT_FLOW6_BOTH,
	LAYOUT_FLOW6_ICMP_PROCESS,
	LAYOUT_SAMPLED, /* the same twelve, of sampled flows */
	LAYOUT_SAMPLED_LAST = LAYOUT_SAMPLED + LAYOUT_FLOW6_ICMP_PROCESS,
/* LAYOUT_TYPE4 and LAYOUT_TYPE6 of each other type that has templates */
#define KINDS_none(TYPE)
#define KINDS_templates(TYPE) LAYOUT_##TYPE##4, LAYOUT_##TYPE##6,
#define RECORD(TYPE, kind, name, number, Message, templates, ...) \
	KINDS_##templates(TYPE)
#include "catalogue/records.def"
	LAYOUT_SAMPLING,	/* samplingInterval, as NetFlow had it */
	LAYOUT_INTERFACE,	/* name of an ifindex */
	LAYOUT_INTERFACE_NETNS, /* extended: of an ifindex in a network namespace */
	LAYOUT_METERING,	/* RFC 7011, 4.1 */
	LAYOUT_METERING_LOSS,  /* 4.2 */
	LAYOUT_EXPORTING_LOSS, /* 4.3 */
	LAYOUT_ELEMENT,	       /* one of ours: RFC 5610 */
	LAYOUT_KINDS,
};

struct layout_template {
	uint16_t id;
	uint16_t internal_id; /* id of the struct in record.h */
	uint16_t record_len;
	uint16_t template_len; /* length with its header */
	uint16_t n_scope;      /* fields; 0: no options template */
};

struct layout {
	fbInfoModel_t *model;
	struct layout_template templates[LAYOUT_KINDS];
	struct layout_options options;
};

/* FNV-1a, 32 bits: always the same number for the same bytes. */
#define FNV_START 2166136261U

static inline uint32_t fnv_mix(uint32_t hash, const void *bytes, size_t len)
{
	const uint8_t *at = bytes;

	while (len--)
		hash = (hash ^ *at++) * 16777619;
	return hash;
}

/* @return one of our own elements; NULL: there are no more */
const fbInfoElement_t *layout_own_element(unsigned int i);

/* @return whether records with these options may have it */
bool layout_uses_element(const struct layout_options *options,
			 const fbInfoElement_t *element);

/* @return whether records with these options may use a template */
bool layout_uses(const struct layout_options *options, enum layout_kind kind);

/* Aborts without memory, as GLib does. */
void layout_open(struct layout *layout, const struct layout_options *options);

void layout_close(struct layout *layout);

/** Add all templates to a session, without sending them. @return 0; -EIO: an element is missing */
int layout_add_to(const struct layout *layout, fbSession_t *session);

#endif
