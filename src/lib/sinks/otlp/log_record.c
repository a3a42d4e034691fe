// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/* A record as a LogRecord: an event whose attributes are the members of JSON. */
#include "otlp.h"

#include "base/text.h"
#include "sink/host_fields.h"
#include "sinks/pbflow/wire.h"

#include <netobs/record.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Numbers in logs.proto. */
enum {
	SCOPE_LOGS_LOG_RECORDS = 2,

	LOG_RECORD_TIME = 1,
	LOG_RECORD_SEVERITY_NUMBER = 2,
	LOG_RECORD_SEVERITY_TEXT = 3,
	LOG_RECORD_ATTRIBUTES = 6,
	LOG_RECORD_OBSERVED_TIME = 11,
	LOG_RECORD_EVENT_NAME = 12,

	SEVERITY_INFO = 9,
	SEVERITY_WARN = 13,
};

/* @return the end of the time that the record is about */
static int64_t end_of(const struct netobs_record *record)
{
	switch (record->type) {
	case NETOBS_RECORD_FLOW:
		return as_flow(record)->end_ns;
	case NETOBS_RECORD_SESSION:
		return ((const struct netobs_session *)record)->end_ns;
	case NETOBS_RECORD_JOURNEY:
		return ((const struct netobs_journey *)record)->end_ns;
	case NETOBS_RECORD_TURN:
		return ((const struct netobs_turn *)record)->end_ns;
	case NETOBS_RECORD_QUEUE:
		return ((const struct netobs_queue *)record)->end_ns;
	case NETOBS_RECORD_HOST:
		return ((const struct netobs_host *)record)->end_ns;
	case NETOBS_RECORD_VERDICT:
		return ((const struct netobs_verdict *)record)->end_ns;
	default:
		return record->time_ns;
	}
}

static uint8_t *put_log_head(uint8_t *to, const struct netobs_record *record)
{
	const bool is_alert = record->type == NETOBS_RECORD_ALERT;
	const char *severity = is_alert ? "WARN" : "INFO";
	const uint64_t end = (uint64_t)end_of(record);
	char name[64];
	int len = snprintf(name, sizeof(name), "netobs.%s",
			   netobs_record_type_name(record->type));

	to = put_fixed64(to, LOG_RECORD_TIME, end);
	to = put_fixed64(to, LOG_RECORD_OBSERVED_TIME, end);
	to = put_number(to, LOG_RECORD_SEVERITY_NUMBER,
			is_alert ? SEVERITY_WARN : SEVERITY_INFO);
	to = put_bytes(to, LOG_RECORD_SEVERITY_TEXT, severity, strlen(severity));
	return put_bytes(to, LOG_RECORD_EVENT_NAME, name, (size_t)len);
}

static uint8_t *put_log_record(uint8_t *to, const struct netobs_record *record)
{
	/* The type is the event's name. */
	static const char *const without[] = { "type", NULL };
	uint8_t *message = to + WIRE_HEAD_MAX;
	uint8_t *end = put_log_head(message, record);

	end = put_record_attributes(end, LOG_RECORD_ATTRIBUTES, record, without);
	return put_moved(to, SCOPE_LOGS_LOG_RECORDS, message,
			 (size_t)(end - message));
}

/* ---- Entries ---------------------------------------------------------------------- */

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

/* ---- Members ------------------------------------------------------------------------- */

/* The text is this library's own: it has no blanks, and numbers are integers. */

/* json.c writes \" and \\, and control characters, also of C1, as \u00XX. */
static char *unescape(const char **from, char *to)
{
	char digits[3] = "";
	unsigned long code;

	if ((*from)[1] != 'u') {
		*to++ = (*from)[1];
		*from += 2;
		return to;
	}
	memcpy(digits, *from + 4, 2);
	*from += 6;
	code = strtoul(digits, NULL, 16);
	if (code >= 0x80) /* as UTF-8 */
		*to++ = (char)0xc2;
	*to++ = (char)code;
	return to;
}

/* Decode a text in place: @text is behind the quotation mark. */
static size_t read_text(char *text)
{
	const char *from = text;
	char *to = text;

	while (*from != '"') {
		if (*from == '\\')
			to = unescape(&from, to);
		else
			*to++ = *from++;
	}
	return (size_t)(to - text);
}

/* Read a value; the text in a bracket stays as it is, for value_next() or member_next(). */
static void read_value(char *at, struct value *ret_value)
{
	*ret_value = (struct value){ .type = VALUE_IS_INT };
	switch (*at) {
	case '"':
		ret_value->type = VALUE_IS_TEXT;
		ret_value->text = at + 1;
		ret_value->len = read_text(at + 1);
		break;
	case '[':
	case '{':
		ret_value->type = *at == '[' ? VALUE_IS_ARRAY : VALUE_IS_OBJECT;
		ret_value->elements = at + 1;
		break;
	case 't':
	case 'f':
		ret_value->type = VALUE_IS_BOOL;
		ret_value->number = *at == 't';
		break;
	case '-':
		ret_value->number = strtoll(at, NULL, 10);
		break;
	default:
		ret_value->number = (int64_t)strtoull(at, NULL, 10);
	}
}

bool value_next(char **at, struct value *ret_value)
{
	char *value = *at;

	*ret_value = (struct value){ .type = VALUE_IS_END };
	if (*value == ']')
		return false;
	*at += raw_value_len(value);
	*at += **at == ',';
	read_value(value, ret_value);
	return true;
}

bool member_next(char **at, struct member *ret_member)
{
	const char *next = *at;

	if (!raw_member_next(&next, &ret_member->raw))
		return false;
	*at += next - *at;
	read_value((char *)ret_member->raw.value, &ret_member->value);
	return true;
}

/* ---- Resources ----------------------------------------------------------------------- */

/* Writes the part in front of the entries of a request: the host and netobs. */

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
