// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "otlp.h"

/* NULL: it goes to logs. */
static const struct netobs_group_record *group_of(const struct netobs_record *record)
{
	return record->type == NETOBS_RECORD_GROUP ? (const void *)record : NULL;
}

size_t otlp_entry(const struct netobs_record *record, uint8_t *to)
{
	const struct netobs_group_record *group = group_of(record);
	uint8_t *end = group ? put_metrics(to, group) :
			       put_log_record(to, record);

	return (size_t)(end - to);
}

uint32_t otlp_items(const struct netobs_record *record)
{
	const struct netobs_group_record *group = group_of(record);

	return group ? count_metrics(group) : 1;
}
