/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * Members that are added to each JSON record: the host that made it, and the administrator's. They
 * are formatted once; a record costs a copy.
 */
#ifndef NETOBS_SINK_HOST_FIELDS_H
#define NETOBS_SINK_HOST_FIELDS_H

#include "base/spec.h"
#include "ecs.h"
#include "record/any.h"

#include <string.h>

enum {
	HOST_FIELDS_MAX = 2 << 10, /* bytes */
	SINK_JSON_MAX = RECORD_JSON_MAX + ECS_MORE +
			HOST_FIELDS_MAX, /* a record with them */
};

/* All zero: no fields. */
struct host_fields {
	char text[HOST_FIELDS_MAX]; /* ,"AgentIP":"192.0.2.1"} */
	size_t len;
	bool is_ecs; /* records have the names of ECS */
};

/*
 * Read layout=, host=, agent_ip= and field.NAME=. What is wrong is refused.
 *
 * @param has_host  whether records have the host unless host=no; else only with host=yes
 */
void host_fields_read(struct host_fields *fields, struct spec *spec,
		      bool has_host);

/* Takes AgentIP, HostName or HostId, or the name of a field of the administrator's. */
typedef void host_field_fn(void *ctx, const char *name, const char *text);

/* Read the options as host_fields_read(), but give each field to @take. */
void host_fields_each(struct spec *spec, bool has_host, host_field_fn *take,
		      void *ctx);

/*
 * Add them to a record, and give it the layout.
 *
 * @param json  an object of @len bytes, as netobs_record_json() writes it; has room for
 *              ECS_MORE and HOST_FIELDS_MAX more
 * @return its length
 */
static inline size_t host_fields_add(const struct host_fields *fields,
				     char *json, size_t len)
{
	if (fields->is_ecs)
		len = ecs_rename(json, len);
	if (!fields->len)
		return len;
	memcpy(json + len - 1, fields->text, fields->len);
	return len - 1 + fields->len;
}

#endif
