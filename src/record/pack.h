/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * A record with all that it points to, as one piece, so that it can wait in a spool. Of
 * this machine's layout; a record from a smaller or larger struct, of another version of
 * the library, can be unpacked as well.
 */
#ifndef NETOBS_RECORD_PACK_H
#define NETOBS_RECORD_PACK_H

#include "any.h"
#include "base/util.h"

enum {
	PACK_MAX = 60 << 10, /* bytes of a packed record */
	PACK_ALIGN = 8,	     /* of its address */
	/* Of a packed flow; more points are left out, longer names are cut. */
	PACK_POINTS_MAX = 256,
	PACK_NAME_MAX = 32,
};

/* Then the struct. A flow is followed by its points, and the name of each with its NUL. */
struct packed_head {
	uint16_t size;
	uint16_t point_size;
	uint32_t n_points; /* UINT32_MAX: not a flow */
};

#define PACK_ROOM(type, n_points)                    \
	(sizeof(struct packed_head) + sizeof(type) + \
	 (n_points) * (sizeof(struct netobs_point) + (size_t)PACK_NAME_MAX))

/**
 * @param record  what record_view() returned
 * @return bytes that pack_record() writes at most
 */
static inline size_t pack_room(const struct netobs_record *record)
{
	if (record->type != NETOBS_RECORD_FLOW)
		return PACK_ROOM(union any_record, 0);
	return PACK_ROOM(struct netobs_flow,
			 min_u64(as_flow(record)->n_points, PACK_POINTS_MAX));
}

/**
 * @return bytes that it wrote
 */
size_t pack_record(const struct netobs_record *record, void *packed);

/**
 * The record in what pack_record() wrote, as long as it is where it was written.
 */
static inline const struct netobs_record *packed_record(const void *packed)
{
	return (const struct netobs_record *)((const struct packed_head *)packed +
					      1);
}

/* Where a record is put that cannot be read in place. */
struct unpacked {
	union any_record any;
	struct netobs_point points[PACK_POINTS_MAX];
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
