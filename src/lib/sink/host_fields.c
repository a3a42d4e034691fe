// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "host_fields.h"

#include "base/json.h"
#include "base/text.h"

#include <netobs/flow.h>

/* A name that may not be added: it is a field of records of this kind, as in records.def. */
struct own_key {
	const char *key, *owner;
};

#define FIELD(member, type, has, merge, key, ...) { key, "flow" },
#define POINT_FIELD(member, type, key, ...) { key, "flow" },
#define PROCESS_FIELD(member, type, key, ...) \
	{ "Src" key, "flow" }, { "Dst" key, "flow" },

static const struct own_key keys_of_flows[] = {
	{ "AgentIP", "all" }, { "HostName", "all" },	 { "HostId", "all" },
	{ "type", "all" },    { "NetnsInodes", "flow" },
#include "catalogue/fields.def"
};

#define FIELD(kind, member, type, has, key, ...) { key, #kind },
#define RECORD(...)
#define RECORD_END(...)

static const struct own_key keys_of_others[] = {
#include "catalogue/records.def"
};

static const char *find_owner(const char *name, const struct own_key *keys,
			      size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (!strcmp(keys[i].key, name))
			return keys[i].owner;
	return NULL;
}

/* @return the kind of records with a field of that name; NULL: none */
static const char *owner_of(const char *name)
{
	return find_owner(name, keys_of_flows, ARRAY_SIZE(keys_of_flows)) ?:
		       find_owner(name, keys_of_others,
				  ARRAY_SIZE(keys_of_others));
}

/* A name that any database takes as that of a column. */
static bool is_name(const char *name)
{
	static const char letters[] =
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-@";

	return *name && !name[strspn(name, letters)];
}

static void take_own_fields(struct spec *spec, host_field_fn *take, void *ctx)
{
	static const char prefix[] = "field.";
	const struct spec_option *option;
	size_t position = 0;

	while ((option = spec_next(spec, prefix, &position))) {
		const char *name = option->name + strlen(prefix);
		const char *owner = owner_of(name);

		if (!is_name(name))
			spec_refuse(spec,
				    "option %s: '%s' is not a name of letters, digits and _ . - @",
				    option->name, name);
		else if (owner)
			spec_refuse(spec,
				    "option %s: '%s' is a field of %.*s records: choose another name",
				    option->name, name,
				    (int)strcspn(owner, "_"), owner);
		else
			take(ctx, name, option->value);
	}
}

static void take_host(const uint8_t ip[16], host_field_fn *take, void *ctx)
{
	static const uint8_t nowhere[16];
	char text[NETOBS_ADDR_STR_MAX + TEXT_SPARE], name[AGENT_NAME_SIZE],
		id[AGENT_ID_SIZE];

	if (memcmp(ip, nowhere, sizeof(nowhere)) != 0) {
		*text_ip(text, ip) = '\0';
		take(ctx, "AgentIP", text);
	}
	agent_find_name(name, sizeof(name));
	if (*name)
		take(ctx, "HostName", name);
	agent_find_id(id);
	if (*id)
		take(ctx, "HostId", id);
}

void host_fields_each(struct spec *spec, bool has_host, host_field_fn *take,
		      void *ctx)
{
	static const char *const no_yes[] = { "no", "yes", NULL };
	uint8_t ip[16];

	has_host = spec_choice(spec, "host", no_yes, has_host);
	agent_read_address(spec, ip);
	if (has_host)
		take_host(ip, take, ctx);
	take_own_fields(spec, take, ctx);
}

static void add_host_field(void *ctx, const char *name, const char *text)
{
	json_key_string(ctx, name, text);
}

static void add_ecs_field(void *ctx, const char *name, const char *text)
{
	if (!strcmp(name, "AgentIP"))
		name = "host.ip";
	else if (!strcmp(name, "HostName"))
		name = "host.name";
	else if (!strcmp(name, "HostId"))
		name = "host.id";
	json_key_string(ctx, name, text);
}

void host_fields_read(struct host_fields *fields, struct spec *spec, bool has_host)
{
	static const char *const layouts[] = { "netobs", "ecs", NULL };
	struct json json;
	int len;

	fields->is_ecs = spec_choice(spec, "layout", layouts, 0);
	json_begin(&json, fields->text, sizeof(fields->text));
	json.comma = true; /* after the record's own members */
	host_fields_each(spec, has_host,
			 fields->is_ecs ? add_ecs_field : add_host_field, &json);
	json_close(&json, '}');
	len = json_end(&json);
	if (len < 0)
		spec_refuse(spec, "fields take more than %d bytes",
			    HOST_FIELDS_MAX);
	fields->len = len < 0 ? 0 : (size_t)len;
}
