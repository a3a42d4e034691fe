// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "pack.h"

#include "flow_view.h"
#include "base/util.h"

#include <errno.h>
#include <string.h>

/* Then: the struct, the points, and each point's name with its NUL. */
struct packed_head {
	uint16_t flow_size;
	uint16_t point_size;
	uint32_t n_points;
};

_Static_assert(sizeof(struct packed_head) + sizeof(struct netobs_flow) +
			       PACK_POINTS_MAX * (sizeof(struct netobs_point) +
						  PACK_NAME_MAX) <=
		       SEGMENT_RECORD_MAX,
	       "a record fits into a segment");

static char *put(char *to, const void *from, size_t len)
{
	memcpy(to, from, len);
	return to + len;
}

size_t pack_flow(const struct netobs_flow *flow, char *buf)
{
	const struct packed_head head = {
		.flow_size = sizeof(*flow),
		.point_size = sizeof(struct netobs_point),
		.n_points = (uint32_t)min_u64(flow->n_points, PACK_POINTS_MAX),
	};
	char *to = put(buf, &head, sizeof(head));

	to = put(to, flow, sizeof(*flow));
	for (uint32_t i = 0; i < head.n_points; i++) {
		const struct netobs_point point = flow_view_point(flow, i);

		to = put(to, &point, sizeof(point));
	}
	for (uint32_t i = 0; i < head.n_points; i++) {
		const char *name = netobs_flow_point(flow, i)->name ?: "";

		to = put(to, name, strnlen(name, PACK_NAME_MAX - 1));
		*to++ = '\0';
	}
	return (size_t)(to - buf);
}

/* What the other struct has not is zero, what this one has not is left out. */
static const char *take(void *to, size_t size, const char *from, size_t len)
{
	memset(to, 0, size);
	memcpy(to, from, min_u64(size, len));
	return from + len;
}

static int take_names(struct unpacked *to, uint32_t n, const char *at,
		      const char *end)
{
	for (uint32_t i = 0; i < n; i++) {
		const char *nul = memchr(at, '\0', (size_t)(end - at));

		if (!nul)
			return -EBADMSG;
		to->points[i].name = *at ? at : NULL;
		at = nul + 1;
	}
	return 0;
}

int unpack_flow(const void *packed, size_t len, struct unpacked *to)
{
	const char *at = packed, *end = at + len;
	struct packed_head head;

	if (len < sizeof(head))
		return -EBADMSG;
	at = take(&head, sizeof(head), at, sizeof(head));
	if (head.n_points > PACK_POINTS_MAX ||
	    (size_t)(end - at) <
		    head.flow_size + (size_t)head.n_points * head.point_size)
		return -EBADMSG;
	at = take(&to->flow, sizeof(to->flow), at, head.flow_size);
	for (uint32_t i = 0; i < head.n_points; i++)
		at = take(&to->points[i], sizeof(to->points[i]), at,
			  head.point_size);
	to->flow.sz = sizeof(to->flow);
	to->flow.n_points = head.n_points;
	to->flow.point_size = sizeof(to->points[0]);
	to->flow.points = to->points;
	return take_names(to, head.n_points, at, end);
}
