// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "http.h"

#include "base/json.h"
#include "base/util.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static bool buffer_put(struct buffer *buffer, const char *string)
{
	return buffer_add(buffer, string, strlen(string));
}

/* ---- Labels --------------------------------------------------------------------- */

enum { LABELS_SIZE = 4096 };

/* Loki's: [a-zA-Z_][a-zA-Z0-9_]*. */
static bool is_label(const char *name)
{
	static const char letters[] =
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789";

	return *name && (*name < '0' || *name > '9') &&
	       !name[strspn(name, letters)];
}

static void read_own_labels(struct spec *spec, struct json *json,
			    bool *ret_has_job, bool *ret_has_host)
{
	static const char prefix[] = "label.";
	const struct spec_option *option;
	size_t position = 0;

	while ((option = spec_next(spec, prefix, &position))) {
		const char *name = option->name + strlen(prefix);

		if (!is_label(name))
			spec_refuse(spec, "option %s: '%s' is not a label",
				    option->name, name);
		if (!strcmp(name, "type"))
			spec_refuse(spec,
				    "option %s: streams have a label 'type': choose another name",
				    option->name);
		*ret_has_job |= !strcmp(name, "job");
		*ret_has_host |= !strcmp(name, "host");
		json_key(json, name);
		json_string(json, option->value);
	}
}

static void read_labels(struct format *format, struct spec *spec)
{
	bool has_job = false, has_host = false;
	char text[LABELS_SIZE];
	char host[AGENT_NAME_SIZE];
	struct json json;

	json_begin(&json, text, sizeof(text));
	read_own_labels(spec, &json, &has_job, &has_host);
	if (!has_job) {
		json_key(&json, "job");
		json_string(&json, "netobs");
	}
	agent_find_name(host, sizeof(host));
	if (!has_host && *host)
		json_key_string(&json, "host", host);
	if (json_end(&json) < 0)
		spec_refuse(spec, "the labels are longer than %d bytes",
			    LABELS_SIZE);
	else
		format->labels = strdup(text);
}

/* The labels of a stream, up to its values: flows have no label of their type, as they have none in JSON. */
static bool open_stream(const struct format *format, uint32_t type,
			struct buffer *body)
{
	char label[64] = "";

	if (type != NETOBS_RECORD_FLOW)
		snprintf(label, sizeof(label), ",\"type\":\"%s\"",
			 netobs_record_type_name(type));
	return buffer_put(body, "{\"stream\":{") &&
	       buffer_put(body, format->labels) && buffer_put(body, label) &&
	       buffer_put(body, "},\"values\":[");
}

/* ---- Records -------------------------------------------------------------------- */

static size_t put_object(const struct format *format,
			 const struct netobs_record *record, char *to)
{
	return host_fields_json(&format->host_fields, record, to);
}

static int64_t time_of(const struct netobs_record *record)
{
	return record->type == NETOBS_RECORD_FLOW ? as_flow(record)->end_ns :
						    record->time_ns;
}

static size_t put_json(const struct format *format,
		       const struct netobs_record *record, char *to)
{
	size_t len = put_object(format, record, to);

	to[len] = '\n';
	return len + 1;
}

/* ["<ns since 1970>","<line>"]: JSON in a string of JSON. */
static size_t put_loki(const struct format *format,
		       const struct netobs_record *record, char *to)
{
	char line[SINK_JSON_MAX];
	size_t len = put_object(format, record, line);
	char *at = to + sprintf(to, "[\"%" PRId64 "\",\"", time_of(record));

	for (size_t i = 0; i < len; i++) {
		if (line[i] == '"' || line[i] == '\\')
			*at++ = '\\';
		*at++ = line[i];
	}
	*at++ = '"';
	*at++ = ']';
	return (size_t)(at - to);
}

static size_t put_action(char *to)
{
	static const char action[] = "{\"create\":{}}\n";

	memcpy(to, action, strlen(action));
	return strlen(action);
}

/* Data streams need @timestamp, which ECS has. */
static size_t put_bulk(const struct format *format,
		       const struct netobs_record *record, char *to)
{
	int64_t ms = time_of(record) / NSEC_PER_MSEC;
	size_t start = put_action(to), head = start, len;

	if (!format->host_fields.is_ecs)
		head += (size_t)sprintf(to + start, "{\"@timestamp\":%" PRId64,
					ms);
	len = put_object(format, record, to + head);
	if (head > start)
		to[head] = ','; /* in place of the record's bracket */
	to[head + len] = '\n';
	return head + len + 1;
}

size_t format_record(const struct format *format,
		     const struct netobs_record *record, char *to)
{
	return format->encoding->put_record(format, record, to);
}

/* ---- Bodies --------------------------------------------------------------------- */

/* Add the tried records from @from to before @to. */
static bool add_records(const struct batch *records, uint32_t from, uint32_t to,
			bool has_commas, struct buffer *body)
{
	for (uint32_t i = from; i < to; i++) {
		const struct entry *entry = batch_tried(records, i);

		if (i > from && has_commas && !buffer_put(body, ","))
			return false;
		if (!buffer_add(body, records->text.bytes + entry->at, entry->len))
			return false;
	}
	return true;
}

static bool put_lines(const struct format *format, const struct batch *records,
		      struct buffer *body)
{
	(void)format;
	return add_records(records, 0, records->n_tried, false, body);
}

static bool put_elements(const struct format *format,
			 const struct batch *records, struct buffer *body)
{
	(void)format;
	return buffer_put(body, "[") &&
	       add_records(records, 0, records->n_tried, true, body) &&
	       buffer_put(body, "]");
}

static size_t put_otlp(const struct format *format,
		       const struct netobs_record *record, char *to)
{
	(void)format;
	return otlp_entry(record, (uint8_t *)to);
}

static bool put_request(const struct format *format,
			const struct batch *records, struct buffer *body)
{
	uint8_t head[OTLP_HEAD_MAX];
	size_t len = otlp_head(&format->otlp, batch_tried_bytes(records), head);

	return buffer_add(body, head, len) && put_lines(format, records, body);
}

/* A stream for each run of records of a type. */
static bool put_streams(const struct format *format,
			const struct batch *records, struct buffer *body)
{
	bool is_done = buffer_put(body, "{\"streams\":[");

	for (uint32_t from = 0, to; from < records->n_tried; from = to) {
		const uint32_t type = batch_tried(records, from)->type;

		for (to = from + 1; to < records->n_tried; to++)
			if (batch_tried(records, to)->type != type)
				break;
		is_done = is_done && (!from || buffer_put(body, ",")) &&
			  open_stream(format, type, body) &&
			  add_records(records, from, to, true, body) &&
			  buffer_put(body, "]}");
	}
	return is_done && buffer_put(body, "]}");
}

bool format_body(const struct format *format, const struct batch *records,
		 struct buffer *body)
{
	body->len = 0;
	return format->encoding->put_body(format, records, body);
}

/* ---- Options -------------------------------------------------------------------- */

enum { ENCODING_JSON, ENCODING_ARRAY, ENCODING_LOKI, ENCODING_BULK };

static const struct encoding encodings[] = {
	[ENCODING_JSON] = { .content_type = "application/x-ndjson",
			    .put_record = put_json,
			    .put_body = put_lines },
	[ENCODING_ARRAY] = { .content_type = "application/json",
			     .put_record = put_object,
			     .put_body = put_elements },
	/* POST /loki/api/v1/push */
	[ENCODING_LOKI] = { .content_type = "application/json",
			    .put_record = put_loki,
			    .put_body = put_streams },
	/* Elasticsearch and OpenSearch: POST /INDEX/_bulk */
	[ENCODING_BULK] = { .content_type = "application/x-ndjson",
			    .answer = FORMAT_ANSWERS_ITEMS,
			    .put_record = put_bulk,
			    .put_body = put_lines },
};

static const struct encoding encoding_otlp = {
	.content_type = "application/x-protobuf",
	.answer = FORMAT_ANSWERS_COUNT,
	.put_record = put_otlp,
	.put_body = put_request,
};

uint32_t format_items(const struct format *format,
		      const struct netobs_record *record)
{
	return format->encoding == &encoding_otlp ? otlp_items(record) : 1;
}

const char *format_path(const struct format *format, uint32_t types)
{
	if (format->encoding != &encoding_otlp)
		return NULL;
	return types & OTLP_METRICS ? "/v1/metrics" : "/v1/logs";
}

static int read_otlp(struct format *format, struct spec *spec, uint32_t types)
{
	*format = (struct format){ .encoding = &encoding_otlp };
	otlp_read(&format->otlp, spec, types);
	return 0;
}

int format_read(struct format *format, struct spec *spec, uint32_t types)
{
	static const char *const names[] = { "json", "array", "loki", "bulk",
					     NULL };
	int i;

	if (!strncmp(spec->kind, "otlp", strlen("otlp")))
		return read_otlp(format, spec, types);
	i = spec_choice(spec, "encoding", names, ENCODING_JSON);

	*format = (struct format){ .encoding = &encodings[i] };
	host_fields_read(&format->host_fields, spec, true);
	if (i != ENCODING_LOKI)
		return 0;
	read_labels(format, spec);
	return format->labels || spec->is_wrong ? 0 : -ENOMEM;
}

void format_free(struct format *format)
{
	free(format->labels);
	format->labels = NULL;
}
