/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* The catalogue of fields, for tests that walk it. */
#ifndef HARNESS_LIB_FIELDS_H
#define HARNESS_LIB_FIELDS_H

#include "catalogue/fields.h"

#include <stddef.h>
#include <stdint.h>

struct field {
	const char *member;
	const char *type;
	const char *key;    /* in JSON */
	const char *column; /* of the table */
	size_t offset, size;
	uint64_t has;
};

#define FIELD_SIZE(structure, member) sizeof(((struct structure *)0)->member)
#define FIELD_ROW(structure, member, type, json, column, bit) \
	{ #member,                                            \
	  type,                                               \
	  json,                                               \
	  column,                                             \
	  offsetof(struct structure, member),                 \
	  FIELD_SIZE(structure, member),                      \
	  bit },

#define POINT_FIELD(...)
#define FIELD(member, type, bit, merge, json, proto, ipfix, unit, column, text) \
	FIELD_ROW(netobs_flow, member, #type, json, #column, bit)

static const struct field fields[] = {
#include "catalogue/fields.def"
};

#define FIELD(...)
#define POINT_FIELD(member, type, json, ...) \
	FIELD_ROW(netobs_point, member, #type, json, "WHERE", FIELD_ALWAYS)

static const struct field point_fields[] = {
#include "catalogue/fields.def"
};

#define FIELD(...)
#define POINT_FIELD(...)
#define PROCESS_FIELD(member, type, json, ...) \
	FIELD_ROW(netobs_process, member, #type, json, "PROCESS", FIELD_ALWAYS)

static const struct field process_fields[] = {
#include "catalogue/fields.def"
};

enum {
	N_PROCESS_FIELDS = sizeof(process_fields) / sizeof(process_fields[0]),
	N_FIELDS = sizeof(fields) / sizeof(fields[0]),
	N_POINT_FIELDS = sizeof(point_fields) / sizeof(point_fields[0]),
};

/* A flow that has all fields, which no real one has. */
struct netobs_flow fields_flow(void);

struct netobs_process fields_process(void);

/* Another value of that field of a flow, a point or a process, which every encoding can tell from the first. */
void field_change(void *record, const struct field *field);

#endif
