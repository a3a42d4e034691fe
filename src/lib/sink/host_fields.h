/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * Members that are added to each JSON record: the host that made it, and the administrator's. They
 * are formatted once; a record costs a copy.
 */
#ifndef NETOBS_SINK_HOST_FIELDS_H
#define NETOBS_SINK_HOST_FIELDS_H

#include "base/spec.h"
#include "record/any.h"
#include "member_names.h"

#include <assert.h>
#include <netobs/record.h>
#include <stddef.h>
#include <stdint.h>
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
 * Read layout=, host=, agent_ip= and field.NAME=. What is wrong is refused, also a name that records have.
 *
 * @param has_host  whether records have the host unless host=no; else only with host=yes
 */
void host_fields_read(struct host_fields *fields, struct spec *spec,
		      bool has_host);

/* Whose names records have: netobs's own, in ECS or of attributes in OTLP. */
enum vocabulary { VOCABULARY_NETOBS, VOCABULARY_ECS, VOCABULARY_OTLP };

/* Takes the vocabulary's name of AgentIP, HostName or HostId, or that of a field of the administrator's. */
typedef void host_field_fn(void *ctx, const char *name, const char *text);

/* Read the options as host_fields_read(), but give each field to @take. */
void host_fields_each(struct spec *spec, bool has_host,
		      enum vocabulary vocabulary, host_field_fn *take, void *ctx);

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

/*
 * Write a record of a library's, with these fields. @to has SINK_JSON_MAX. @return its length
 */
static inline size_t host_fields_json(const struct host_fields *fields,
				      const struct netobs_record *record,
				      char *to)
{
	int len = netobs_record_json(record, to, RECORD_JSON_MAX);

	assert(len > 0);
	return host_fields_add(fields, to, (size_t)len);
}

/* The host that made the records: its address, its name, and an identifier. */

enum {
	AGENT_NAME_SIZE = 65, /* size as in struct utsname */
	AGENT_ID_SIZE = 33,   /* 32 hexadecimal digits and a NUL */
};

/* Read the address in @spec (agent_ip=), or else find one. @ip: as in struct netobs_flow; all 0: unknown */
void agent_read_address(struct spec *spec, uint8_t ip[16]);

/* "" if it is unknown. */
void agent_find_name(char *name, size_t size);

/*
 * Make an id of the host that stays the same across restarts and new names, as
 * sd_id128_get_machine_app_specific(3) does. It does not reveal /etc/machine-id, which is secret.
 *
 * @param machine_id  the file's text
 * @param id          "" if the text is no id
 */
void agent_make_id(const char *machine_id, char id[AGENT_ID_SIZE]);

/* Make the id of this host's /etc/machine-id; "" if it has none. */
void agent_find_id(char id[AGENT_ID_SIZE]);

#endif
