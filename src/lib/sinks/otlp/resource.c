// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/* Writes the part in front of the entries of a request: the host and netobs. */
#include "otlp.h"

#include "attributes.h"
#include "base/text.h"
#include "sink/member_names.h"
#include "sinks/pbflow/wire.h"

/* Numbers in resource.proto, common.proto and, of requests, logs.proto and metrics.proto. */
enum {
	RESOURCE_ATTRIBUTES = 1,

	SCOPE_NAME = 1,
	SCOPE_VERSION = 2,
	SCOPE_ATTRIBUTES = 3,

	REQUEST_RESOURCE_LOGS = 1,
	RESOURCE_LOGS_RESOURCE = 1,
	RESOURCE_LOGS_SCOPE_LOGS = 2,
	SCOPE_LOGS_SCOPE = 1,
	SCOPE_LOGS_SCHEMA_URL = 3,
};

/* ---- The resource ------------------------------------------------------------------- */

struct resource {
	struct otlp *otlp;
	bool is_full;
};

typedef uint8_t *put_fn(uint8_t *to, uint32_t number, const char *name,
			const char *text, size_t len);

static void add_text(struct resource *resource, put_fn *put, const char *name,
		     const char *text)
{
	struct otlp *otlp = resource->otlp;
	char buf[3 * HOST_FIELDS_MAX + 1];
	const char *repaired;
	size_t len;

	resource->is_full |= strlen(text) > HOST_FIELDS_MAX;
	if (resource->is_full)
		return;
	repaired = utf8_repair(text, buf);
	len = strlen(repaired);
	resource->is_full = otlp->resource_len +
				    text_attribute_size(name, len) + LIST_MORE >
			    sizeof(otlp->resource);
	if (resource->is_full)
		return;
	otlp->resource_len =
		(size_t)(put(otlp->resource + otlp->resource_len,
			     RESOURCE_ATTRIBUTES, name, repaired, len) -
			 otlp->resource);
}

static void add_host_attribute(void *ctx, const char *name, const char *text)
{
	add_text(ctx,
		 strcmp(name, "host.ip") != 0 ? put_text_attribute :
						put_list_attribute,
		 name, text);
}

/* A name must not occur twice in one message: the administrator's value is taken. */
static void add_own(struct resource *resource, struct spec *spec,
		    const char *name, const char *text)
{
	static const char prefix[] = "field.";
	const struct spec_option *option;
	size_t position = 0;

	while ((option = spec_next(spec, prefix, &position)))
		if (!strcmp(option->name + strlen(prefix), name))
			return;
	add_text(resource, put_text_attribute, name, text);
}

void otlp_read(struct otlp *otlp, struct spec *spec, uint32_t types)
{
	struct resource resource = { .otlp = otlp };

	if (types & OTLP_METRICS && types & ~(uint32_t)OTLP_METRICS)
		spec_refuse(
			spec,
			"option records: group goes to metrics, all others to logs: give group a sink of its own");
	otlp->resource_len = 0;
	add_own(&resource, spec, "service.name", "netobs");
	add_own(&resource, spec, "service.version", NETOBS_VERSION);
	host_fields_each(spec, true, VOCABULARY_OTLP, add_host_attribute,
			 &resource);
	if (resource.is_full)
		spec_refuse(spec, "fields take more than %d bytes",
			    HOST_FIELDS_MAX);
}

/* ---- Heads -------------------------------------------------------------------------- */

static uint8_t *put_own_scope(uint8_t *to)
{
	to = put_bytes(to, SCOPE_NAME, "netobs", strlen("netobs"));
	to = put_bytes(to, SCOPE_VERSION, NETOBS_VERSION, strlen(NETOBS_VERSION));
	return put_int_attribute(to, SCOPE_ATTRIBUTES, "netobs.names.version",
				 NAMES_VERSION);
}

size_t otlp_head(const struct otlp *otlp, size_t entries_len, uint8_t *to)
{
	uint8_t scope[128], inner[256], *end = inner, *start = to;
	size_t resource_len =
		1 + varint_size(otlp->resource_len) + otlp->resource_len;
	size_t scope_len;

	end = put_bytes(end, SCOPE_LOGS_SCOPE, scope,
			(size_t)(put_own_scope(scope) - scope));
	end = put_bytes(end, SCOPE_LOGS_SCHEMA_URL, NAMES_SCHEMA_URL,
			strlen(NAMES_SCHEMA_URL));
	scope_len = (size_t)(end - inner) + entries_len;
	to = put_varint(put_tag(to, REQUEST_RESOURCE_LOGS, WIRE_BYTES),
			resource_len + 1 + varint_size(scope_len) + scope_len);
	to = put_bytes(to, RESOURCE_LOGS_RESOURCE, otlp->resource,
		       otlp->resource_len);
	to = put_varint(put_tag(to, RESOURCE_LOGS_SCOPE_LOGS, WIRE_BYTES),
			scope_len);
	memcpy(to, inner, (size_t)(end - inner));
	return (size_t)(to + (end - inner) - start);
}
