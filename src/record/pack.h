/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * A flow record with all that it points to, as one piece, so that it can wait in a
 * spool. Of this machine's layout; a record that a smaller or larger struct was
 * made from, by another version of the library, is understood as well.
 */
#ifndef NETOBS_RECORD_PACK_H
#define NETOBS_RECORD_PACK_H

#include <netobs/flow.h>

#include "sink/spool/segment.h"

/* Points that a packed record has at most; more are left out. */
enum { PACK_POINTS_MAX = 256, PACK_NAME_MAX = 32 };

/* Of what flow_view() returned. The length; @buf has SEGMENT_RECORD_MAX bytes. */
size_t pack_flow(const struct netobs_flow *flow, char *buf);

struct unpacked {
	struct netobs_flow flow;
	struct netobs_point points[PACK_POINTS_MAX];
};

/* @to borrows the names from @packed. -EBADMSG: it is none. */
int unpack_flow(const void *packed, size_t len, struct unpacked *to);

#endif
