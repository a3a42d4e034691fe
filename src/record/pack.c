// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "pack.h"

#include "base/util.h"

#include <errno.h>
#include <string.h>

/*
 * Then the struct. A flow is followed by its points, and the name of each with its NUL.
 * Version 0.1 had only flows, and takes n_points of other types for damage.
 */
struct packed_head {
	uint16_t size;
	uint16_t point_size;
	uint32_t n_points; /* NOT_A_FLOW */
};

#define NOT_A_FLOW UINT32_MAX

_Static_assert(sizeof(struct packed_head) + sizeof(struct netobs_flow) +
			       PACK_POINTS_MAX * (sizeof(struct netobs_point) +
						  PACK_NAME_MAX) <=
		       PACK_MAX,
	       "a flow fits");
_Static_assert(sizeof(struct packed_head) + sizeof(union any_record) <= PACK_MAX,
	       "any other record fits");
_Static_assert(sizeof(struct packed_head) % PACK_ALIGN == 0,
	       "the struct is aligned");

size_t pack_size(const struct netobs_record *record)
{
	const size_t head = sizeof(struct packed_head);

	if (record->type != NETOBS_RECORD_FLOW)
		return head + record_size(record->type);
	return head +
	       flow_copy_size(as_flow(record), PACK_POINTS_MAX, PACK_NAME_MAX);
}

void pack_record(const struct netobs_record *record, void *packed)
{
	struct packed_head *head = packed;
	struct netobs_record *copy = (struct netobs_record *)(head + 1);

	*head = (struct packed_head){
		.size = (uint16_t)record_size(record->type),
		.n_points = NOT_A_FLOW,
	};
	if (record->type != NETOBS_RECORD_FLOW) {
		memcpy(copy, record, head->size);
		copy->sz = head->size;
		return;
	}
	flow_copy(as_flow(record), PACK_POINTS_MAX, PACK_NAME_MAX,
		  (struct netobs_flow *)copy);
	head->point_size = sizeof(struct netobs_point);
	head->n_points = as_flow(copy)->n_points;
}

const struct netobs_record *packed_record(const void *packed)
{
	return (const struct netobs_record *)((const struct packed_head *)packed +
					      1);
}

/* Members that the other struct lacks are zero; those that this one lacks are left out. */
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
		to->points[i].name = to->points[i].name ? at : NULL;
		at = nul + 1;
	}
	return 0;
}

static int unpack_flow(const struct packed_head *head, const char *at,
		       const char *end, struct unpacked *to)
{
	struct netobs_flow *flow = &to->any.flow;

	if (head->n_points > PACK_POINTS_MAX ||
	    (size_t)(end - at) <
		    head->size + (size_t)head->n_points * head->point_size)
		return -EBADMSG;
	at = take(flow, sizeof(*flow), at, head->size);
	for (uint32_t i = 0; i < head->n_points; i++)
		at = take(&to->points[i], sizeof(to->points[i]), at,
			  head->point_size);
	flow->sz = sizeof(*flow);
	flow->type = NETOBS_RECORD_FLOW;
	flow->n_points = head->n_points;
	flow->point_size = sizeof(to->points[0]);
	flow->points = to->points;
	return take_names(to, head->n_points, at, end);
}

static int unpack_other(const struct packed_head *head, const char *at,
			const char *end, struct unpacked *to,
			const struct netobs_record **ret_record)
{
	struct netobs_record record;
	size_t size;

	if ((size_t)(end - at) < head->size || head->size < sizeof(record))
		return -EBADMSG;
	memcpy(&record, at, sizeof(record));
	if (record.type == NETOBS_RECORD_FLOW)
		return -EBADMSG;
	size = record_size(record.type);
	if (!size)
		return -ENOTSUP;
	*ret_record = (const struct netobs_record *)at;
	if (head->size == size && record.sz == size &&
	    (uintptr_t)at % PACK_ALIGN == 0)
		return 0;
	take(&to->any, size, at, head->size);
	to->any.record.sz = size;
	*ret_record = &to->any.record;
	return 0;
}

int unpack_record(const void *packed, size_t len, struct unpacked *to,
		  const struct netobs_record **ret_record)
{
	const char *at = packed, *end = at + len;
	struct packed_head head;
	int err;

	if (len < sizeof(head))
		return -EBADMSG;
	memcpy(&head, at, sizeof(head));
	at += sizeof(head);
	if (head.n_points == NOT_A_FLOW)
		return unpack_other(&head, at, end, to, ret_record);
	err = unpack_flow(&head, at, end, to);
	if (!err)
		*ret_record = &to->any.record;
	return err;
}
