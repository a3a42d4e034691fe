/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * Members that are added to each JSON record: the host that made it, and the administrator's. They
 * are formatted once; a record costs a copy.
 */
#ifndef NETOBS_SINK_HOST_FIELDS_H
#define NETOBS_SINK_HOST_FIELDS_H

#include "base/spec.h"
#include "record/any.h"

#include <assert.h>
#include <netobs/record.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Names of members of JSON records in other conventions: catalogue/names.def. */

enum {
	NAMES_VERSION = 1,
	NAME_MAX_LEN = 64, /* bytes of a name, with its NUL */
};

/* OpenTelemetry semantic conventions: https://opentelemetry.io/docs/specs/semconv/ */
#define NAMES_SCHEMA_URL "https://opentelemetry.io/schemas/1.37.0"
/* Elastic Common Schema */
#define NAMES_ECS_VERSION "8.11.0"

enum names_of { NAMES_OF_OTEL, NAMES_OF_ECS, NAMES_OF };

/**
 * @param key  of a member of a record in JSON, @len bytes, at most half of NAME_MAX_LEN
 * @param buf  has NAME_MAX_LEN; may be used
 * @return its name
 */
const char *member_name(enum names_of names_of, const char *key, size_t len,
			char *buf);

/** @return what both call the transport protocol of IP @proto; NULL: neither lists it, nor has it ports */
const char *member_transport(int64_t proto);

/* A member of a record in JSON, as netobs_record_json() writes it: keys have no escapes. */
struct raw_member {
	const char *key, *value;
	size_t key_len, value_len;
};

/** @return the length of a value, up to a comma, or the end of its object or array */
size_t raw_value_len(const char *value);

/**
 * Take the next member.
 *
 * @param at  behind the bracket of the object, or where the last call left it
 * @return false: there are no more
 */
bool raw_member_next(const char **at, struct raw_member *ret_member);

bool raw_member_is(const struct raw_member *member, const char *key);

/*
 * Records in JSON with the names of the Elastic Common Schema: members keep their values, and have the
 * names of catalogue/names.def. Names with dots are objects to Elasticsearch.
 */

enum { ECS_MORE = 4 << 10 }; /* bytes that names may take more */

/**
 * @param json  a record as netobs_record_json() writes it, of @len bytes, at most RECORD_JSON_MAX; has room
 *              for ECS_MORE more
 * @return its length
 */
size_t ecs_rename(char *json, size_t len);

/** @return a name that these records have or may get, and that clashes with @name; NULL: none */
const char *ecs_find_clash(const char *name);

/** @return whether both are one, or one would be an object and the other a value: a.b and a */
bool names_clash(const char *one, const char *other);

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

/* The names that fields have in records: those of netobs, of ECS, or of attributes in OTLP. */
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
