/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * Records of any type. A caller's struct may be smaller than this library's, or larger:
 * members that it lacks are zero.
 */
#ifndef NETOBS_RECORD_ANY_H
#define NETOBS_RECORD_ANY_H

#include "base/util.h"

#include <netobs/alert.h>
#include <netobs/diagnosis.h>
#include <netobs/drop.h>
#include <netobs/flow.h>
#include <netobs/series.h>
#include <netobs/session.h>
#include <netobs/stats.h>
#include <netobs/trace.h>
#include <netobs/turn.h>

#include <stdbool.h>

union any_record {
	struct netobs_record record;
#define RECORD(TYPE, kind, ...) struct netobs_##kind kind;
#include "catalogue/records.def"
};

/** @return the size of a type's struct; 0: the type is unknown */
size_t record_size(unsigned int type);

/**
 * @return @record as this library's struct: itself, or @copy where its own is smaller;
 *         NULL: the type is unknown, or a size is impossible
 */
const struct netobs_record *record_view(const struct netobs_record *record,
					union any_record *copy);

/**
 * The flow that @record is the header of.
 */
static inline const struct netobs_flow *as_flow(const struct netobs_record *record)
{
	return (const struct netobs_flow *)record;
}

/**
 * @return as record_view(); NULL also where it is no flow
 */
static inline const struct netobs_flow *flow_view(const struct netobs_flow *flow,
						  union any_record *copy)
{
	const struct netobs_record *record = record_view(&flow->record, copy);

	return record && record->type == NETOBS_RECORD_FLOW ? as_flow(record) :
							      NULL;
}

/**
 * @return point @i, which a flow has, of a library whose points may be larger
 */
static inline const struct netobs_point *
flow_point(const struct netobs_flow *flow, uint32_t i)
{
	return (const void *)((const char *)flow->points +
			      (size_t)i * flow->point_size);
}

/**
 * Like netobs_record_json(), for a record that record_view() returned: of any type, or a flow.
 */
int record_json(const struct netobs_record *record, char *buf, size_t size);
int flow_record_json(const struct netobs_record *record, char *buf, size_t size);

struct json;

/*
 * Add the processes at the ends of a flow or a connection to its object.
 *
 * @param src,dst  NULL: not known
 */
void process_json(struct json *json, const struct netobs_process *src,
		  const struct netobs_process *dst);

/* ---- Packed: a record with all that it points to, as one piece ------------------ */

/*
 * Packed records can wait in a spool. They have this machine's layout; one from a smaller or
 * larger struct, of another version of the library, can be unpacked as well.
 */
enum {
	PACK_MAX = 60 << 10, /* bytes of a packed record */
	PACK_ALIGN = 8,	     /* of its address */
	/* Limits of a packed flow; more points are left out, longer names are cut. */
	PACK_POINTS_MAX = 256,
	PACK_NAME_MAX = 32,
	/* The longest JSON text: with as many points as there can be, and all bytes of names escaped. */
	RECORD_JSON_MAX = 76 << 10,
};

_Static_assert(PACK_POINTS_MAX *(6 * PACK_NAME_MAX + 30) + NETOBS_FLOW_JSON_MAX <=
		       RECORD_JSON_MAX,
	       "any record fits");

/*
 * Then the struct. A flow is followed by its points, the name of each with its NUL, and from the
 * next multiple of PACK_ALIGN on its processes.
 */
struct packed_head {
	uint16_t size;
	uint16_t point_size;
	uint32_t n_points; /* UINT32_MAX: not a flow */
};

#define PACK_ROOM(type, n_points)                    \
	(sizeof(struct packed_head) + sizeof(type) + \
	 (n_points) * (sizeof(struct netobs_point) + (size_t)PACK_NAME_MAX))

enum { PACK_PROCESSES_ROOM = 2 * sizeof(struct netobs_process) + PACK_ALIGN };

/**
 * @param record  what record_view() returned
 * @return bytes that pack_record() writes at most
 */
static inline size_t pack_room(const struct netobs_record *record)
{
	if (record->type != NETOBS_RECORD_FLOW)
		return PACK_ROOM(union any_record, 0);
	return PACK_ROOM(struct netobs_flow,
			 min_u64(as_flow(record)->n_points, PACK_POINTS_MAX)) +
	       PACK_PROCESSES_ROOM;
}

/**
 * @return bytes that it wrote
 */
size_t pack_record(const struct netobs_record *record, void *packed);

/**
 * @return the record that pack_record() packed at @packed, which has not been moved since
 */
static inline const struct netobs_record *packed_record(const void *packed)
{
	return (const struct netobs_record *)((const struct packed_head *)packed +
					      1);
}

/* Room for a record that cannot be read in place. */
struct unpacked {
	union any_record any;
	struct netobs_point points[PACK_POINTS_MAX];
	struct netobs_process processes[2];
};

/**
 * Find the record in bytes that were packed by another process, or moved since.
 *
 * @param to          storage that it may need
 * @param ret_record  valid as long as both @packed and @to
 * @return 0; -EBADMSG: it is not a record; -ENOTSUP: its type is unknown
 */
int unpack_record(const void *packed, size_t len, struct unpacked *to,
		  const struct netobs_record **ret_record);

#endif
