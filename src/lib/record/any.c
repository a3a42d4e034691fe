// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "any.h"

#include "base/util.h"
#include "catalogue/records.h"

#include <errno.h>
#include <string.h>

static const struct {
	const char *name;
	size_t size;
} types[NETOBS_RECORD_TYPES] = {
#define RECORD(TYPE, kind, name, ...) \
	[NETOBS_RECORD_##TYPE] = { name, sizeof(struct netobs_##kind) },
#include "catalogue/records.def"
};

const char *netobs_record_type_name(unsigned int type)
{
	return type < NETOBS_RECORD_TYPES ? types[type].name : NULL;
}

size_t record_size(unsigned int type)
{
	return type < NETOBS_RECORD_TYPES ? types[type].size : 0;
}

/* The least that is read of a flow, and of its points. */
enum {
	FLOW_SIZE_MIN = offsetof(struct netobs_flow, points) + sizeof(void *),
	POINT_SIZE_MIN = offsetof(struct netobs_point, name) + sizeof(void *),
};

#define POINT_FIELD(...)
#define FIELD(member, type, bit, ...)                                    \
	if (flow->sz <                                                   \
	    offsetof(struct netobs_flow, member) + sizeof(flow->member)) \
		flow->has &= ~(bit);

/*
 * Clear the bits of members that are beyond the flow's size: an older program that copies
 * a record copies these bits.
 */
static void flow_clear_unknown(struct netobs_flow *flow)
{
#include "catalogue/fields.def"
}

const struct netobs_record *record_view(const struct netobs_record *record,
					union any_record *copy)
{
	const struct netobs_flow *flow = as_flow(record);
	size_t size;

	if (record->sz < sizeof(*record) || record->type >= NETOBS_RECORD_TYPES)
		return NULL;
	if (record->type == NETOBS_RECORD_FLOW &&
	    (flow->sz < FLOW_SIZE_MIN ||
	     (flow->n_points &&
	      (!flow->points || flow->point_size < POINT_SIZE_MIN))))
		return NULL;
	size = types[record->type].size;
	if (record->sz >= size)
		return record;
	memset(copy, 0, size);
	memcpy(copy, record, record->sz);
	if (record->type == NETOBS_RECORD_FLOW)
		flow_clear_unknown(&copy->flow);
	return &copy->record;
}

int netobs_record_json(const struct netobs_record *record, char *buf, size_t size)
{
	union any_record copy;

	if (!record || !buf)
		return -EINVAL;
	record = record_view(record, &copy);
	return record ? record_json(record, buf, size) : -EINVAL;
}

const struct netobs_point *netobs_flow_point(const struct netobs_flow *flow,
					     uint32_t i)
{
	return flow && i < flow->n_points ? flow_point(flow, i) : NULL;
}

/* ---- Packed ------------------------------------------------------------------------ */

/* The value of packed_head.n_points in records of other types. */
#define NOT_A_FLOW UINT32_MAX

_Static_assert(PACK_ROOM(struct netobs_flow, PACK_POINTS_MAX) +
			       PACK_PROCESSES_ROOM <=
		       PACK_MAX,
	       "a flow fits");
_Static_assert(PACK_ROOM(union any_record, 0) <= PACK_MAX,
	       "any other record fits");
_Static_assert(sizeof(struct packed_head) % PACK_ALIGN == 0,
	       "the struct is aligned");

static char *align_up(char *at)
{
	return at + (-(uintptr_t)at & (PACK_ALIGN - 1));
}

/* Copy it as this library's struct. Returns behind the copy. */
static char *copy_process(const struct netobs_process *process, char *at,
			  const struct netobs_process **ret_copy)
{
	struct netobs_process *copy = (struct netobs_process *)at;

	if (!process)
		return at;
	*copy = (struct netobs_process){ 0 };
	memcpy(copy, process, min_u64(process->sz, sizeof(*copy)));
	copy->sz = sizeof(*copy);
	*ret_copy = copy;
	return at + sizeof(*copy);
}

/* Returns behind the copy. */
static char *copy_flow(const struct netobs_flow *flow, uint32_t points_max,
		       size_t name_max, struct netobs_flow *copy)
{
	uint32_t n_points = (uint32_t)min_u64(flow->n_points, points_max);
	struct netobs_point *points = (struct netobs_point *)(copy + 1);
	char *name = (char *)(points + n_points);

	*copy = *flow;
	copy->sz = sizeof(*copy);
	copy->n_points = n_points;
	copy->point_size = sizeof(*points);
	copy->points = n_points ? points : NULL;
	for (uint32_t i = 0; i < n_points; i++) {
		size_t len;

		/* It has the layout of this library's struct. */
		points[i] = (struct netobs_point){ 0 };
		memcpy(&points[i], flow_point(flow, i),
		       min_u64(flow->point_size, sizeof(*points)));
		len = points[i].name ? strnlen(points[i].name, name_max - 1) : 0;
		memcpy(name, points[i].name ?: "", len);
		name[len] = '\0';
		points[i].name = points[i].name ? name : NULL;
		name += len + 1;
	}
	if (!flow->src_process && !flow->dst_process)
		return name;
	name = copy_process(flow->src_process, align_up(name),
			    &copy->src_process);
	return copy_process(flow->dst_process, name, &copy->dst_process);
}

/* Most journeys have few of the steps that there is room for. */
static size_t journey_size(const struct netobs_journey *journey)
{
	_Static_assert(offsetof(struct netobs_journey, steps) +
				       sizeof(journey->steps) ==
			       sizeof(*journey),
		       "steps are the last member");
	return offsetof(struct netobs_journey, steps) +
	       min_u64(journey->n_steps, NETOBS_JOURNEY_STEPS_MAX) *
		       sizeof(journey->steps[0]);
}

/* Most groups have no histograms. */
static size_t group_size(const struct netobs_group_record *group)
{
	_Static_assert(offsetof(struct netobs_group_record, rtt_times) +
				       sizeof(group->rtt_times) +
				       sizeof(group->app_latency_times) ==
			       sizeof(*group),
		       "histograms are the last members");
	return group->record.has & (NETOBS_GROUP_HAS_RTT_TIMES |
				    NETOBS_GROUP_HAS_APP_LATENCY_TIMES) ?
		       sizeof(*group) :
		       offsetof(struct netobs_group_record, rtt_times);
}

static size_t packed_size(const struct netobs_record *record)
{
	if (record->type == NETOBS_RECORD_JOURNEY)
		return journey_size((const struct netobs_journey *)record);
	if (record->type == NETOBS_RECORD_GROUP)
		return group_size((const struct netobs_group_record *)record);
	return record_size(record->type);
}

size_t pack_record(const struct netobs_record *record, void *packed)
{
	struct packed_head *head = packed;
	struct netobs_flow *flow = (struct netobs_flow *)(head + 1);
	size_t size;
	char *end;

	if (record->type != NETOBS_RECORD_FLOW) {
		size = packed_size(record);
		*head = (struct packed_head){ .size = (uint16_t)size,
					      .n_points = NOT_A_FLOW };
		memcpy(flow, record, size);
		flow->record.sz = size;
		return sizeof(*head) + size;
	}
	end = copy_flow(as_flow(record), PACK_POINTS_MAX, PACK_NAME_MAX, flow);
	*head = (struct packed_head){ sizeof(*flow), sizeof(struct netobs_point),
				      flow->n_points };
	return (size_t)(end - (char *)packed);
}

/* Members that the other struct lacks are zero; those that this one lacks are left out. */
static const char *take_bytes(void *to, size_t size, const char *from, size_t len)
{
	memset(to, 0, size);
	memcpy(to, from, min_u64(size, len));
	return from + len;
}

/* Returns behind the names; NULL: one has no end. */
static const char *take_names(struct unpacked *to, uint32_t n, const char *at,
			      const char *end)
{
	for (uint32_t i = 0; i < n; i++) {
		const char *nul = memchr(at, '\0', (size_t)(end - at));

		if (!nul)
			return NULL;
		to->points[i].name = to->points[i].name ? at : NULL;
		at = nul + 1;
	}
	return at;
}

/* Returns behind it; NULL: it is not there. */
static const char *take_process(struct netobs_process *to, const char *at,
				const char *end)
{
	size_t size;

	if ((size_t)(end - at) < sizeof(size))
		return NULL;
	memcpy(&size, at, sizeof(size));
	if (size < sizeof(size) || size > (size_t)(end - at) || size % PACK_ALIGN)
		return NULL;
	at = take_bytes(to, sizeof(*to), at, size);
	to->sz = sizeof(*to);
	/* The bytes may be any. */
	to->command[sizeof(to->command) - 1] = '\0';
	to->thread[sizeof(to->thread) - 1] = '\0';
	to->long_name[sizeof(to->long_name) - 1] = '\0';
	to->cgroup_path[sizeof(to->cgroup_path) - 1] = '\0';
	to->container_id[sizeof(to->container_id) - 1] = '\0';
	to->pod_uid[sizeof(to->pod_uid) - 1] = '\0';
	to->unit[sizeof(to->unit) - 1] = '\0';
	to->slice[sizeof(to->slice) - 1] = '\0';
	to->machine[sizeof(to->machine) - 1] = '\0';
	to->container_name[sizeof(to->container_name) - 1] = '\0';
	to->container_image[sizeof(to->container_image) - 1] = '\0';
	to->pod_name[sizeof(to->pod_name) - 1] = '\0';
	to->pod_namespace[sizeof(to->pod_namespace) - 1] = '\0';
	return at;
}

/* @from: where the record began, of which @at is a part. */
static int take_processes(struct unpacked *to, const char *from, const char *at,
			  const char *end)
{
	struct netobs_flow *flow = &to->any.flow;
	const struct netobs_process **ends[] = { &flow->src_process,
						 &flow->dst_process };

	if (!flow->src_process && !flow->dst_process)
		return 0;
	at += -(size_t)(at - from) & (PACK_ALIGN - 1);
	for (size_t i = 0; i < ARRAY_SIZE(ends); i++) {
		if (!*ends[i])
			continue;
		at = at <= end ? take_process(&to->processes[i], at, end) : NULL;
		if (!at)
			return -EBADMSG;
		*ends[i] = &to->processes[i];
	}
	return 0;
}

static int unpack_flow(const struct packed_head *head, const char *at,
		       const char *end, struct unpacked *to)
{
	const char *from = at - sizeof(*head);
	struct netobs_flow *flow = &to->any.flow;

	if (head->n_points > PACK_POINTS_MAX ||
	    (size_t)(end - at) <
		    head->size + (size_t)head->n_points * head->point_size)
		return -EBADMSG;
	at = take_bytes(flow, sizeof(*flow), at, head->size);
	for (uint32_t i = 0; i < head->n_points; i++)
		at = take_bytes(&to->points[i], sizeof(to->points[i]), at,
				head->point_size);
	flow->sz = sizeof(*flow);
	flow->type = NETOBS_RECORD_FLOW;
	flow->n_points = head->n_points;
	flow->point_size = sizeof(to->points[0]);
	flow->points = to->points;
	at = take_names(to, head->n_points, at, end);
	return at ? take_processes(to, from, at, end) : -EBADMSG;
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
	take_bytes(&to->any, size, at, head->size);
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

/* ---- For programs ------------------------------------------------------------------ */

int netobs_flow_dup(const struct netobs_flow *flow, struct netobs_flow **ret_flow)
{
	struct netobs_flow *made;
	union any_record copy;
	size_t size;

	if (!flow || !ret_flow)
		return -EINVAL;
	flow = flow_view(flow, &copy);
	if (!flow)
		return -EINVAL;
	size = sizeof(*flow) + flow->n_points * sizeof(struct netobs_point);
	for (uint32_t i = 0; i < flow->n_points; i++)
		size += strlen(flow_point(flow, i)->name ?: "") + 1;
	made = malloc(size + PACK_PROCESSES_ROOM);
	if (!made)
		return -ENOMEM;
	copy_flow(flow, UINT32_MAX, PTRDIFF_MAX, made);
	*ret_flow = made;
	return 0;
}

void netobs_flow_free(struct netobs_flow *flow)
{
	free(flow);
}
