// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "any.h"

#include <errno.h>
#include <string.h>

static int flow_record_json(const struct netobs_record *record, char *buf,
			    size_t size)
{
	return netobs_flow_json(as_flow(record), buf, size);
}

static const struct {
	const char *name;
	size_t size;
	int (*json)(const struct netobs_record *record, char *buf, size_t size);
} types[NETOBS_RECORD_TYPES] = {
	[NETOBS_RECORD_FLOW] = { "flow", sizeof(struct netobs_flow),
				 flow_record_json },
	[NETOBS_RECORD_STATS] = { "stats", sizeof(struct netobs_stats_record),
				  stats_record_json },
};

const char *netobs_record_type_name(unsigned int type)
{
	return type < NETOBS_RECORD_TYPES ? types[type].name : NULL;
}

size_t record_size(unsigned int type)
{
	return type < NETOBS_RECORD_TYPES ? types[type].size : 0;
}

const struct netobs_record *record_view(const struct netobs_record *record,
					union any_record *copy)
{
	size_t size;

	if (record->sz < sizeof(*record))
		return NULL;
	size = record_size(record->type);
	if (record->type == NETOBS_RECORD_FLOW && !flow_is_valid(as_flow(record)))
		return NULL;
	if (!size || record->sz >= size)
		return size ? record : NULL;
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
	if (!record)
		return -EINVAL;
	return types[record->type].json(record, buf, size);
}
