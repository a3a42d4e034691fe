// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/*
 * Records other than flows as JSON, and connections, which are no records: made of records.def.
 * Names are those that flow records have for the same things.
 */
#include "any.h"
#include "base/json.h"
#include "base/text.h"
#include "base/util.h"
#include "record_tables.h"

#include <errno.h>
#include <stdio.h>

/* ---- Values that have names --------------------------------------------------------- */

#define ENUM(type, other) static const char *const names_of_##type[] = {
#define ENUM_VALUE(type, number, NAME, name, ...) [number] = name,
#define ENUM_END(type) \
	}              \
	;
#include "catalogue/records.def"

const struct names names_of_types[] = {
#define ENUM(type, other)                                                 \
	[RECORD_##type] = { names_of_##type, ARRAY_SIZE(names_of_##type), \
			    other },
#include "catalogue/records.def"
};

#define NAME_FUNCTION(name, type)                            \
	const char *name(unsigned int value)                 \
	{                                                    \
		return value < ARRAY_SIZE(names_of_##type) ? \
			       names_of_##type[value] :      \
			       NULL;                         \
	}
NAME_FUNCTION(netobs_alert_metric_name, Metric)
NAME_FUNCTION(netobs_drop_kind_name, DropKind)
NAME_FUNCTION(netobs_drop_layer_name, DropLayer)
NAME_FUNCTION(netobs_session_ended_name, Ended)
NAME_FUNCTION(netobs_session_by_name, By)
NAME_FUNCTION(netobs_connection_state_name, State)
NAME_FUNCTION(netobs_unparsed_name, Unparsed)
NAME_FUNCTION(netobs_trace_layer_name, TraceLayer)
NAME_FUNCTION(netobs_trace_point_name, TracePoint)
NAME_FUNCTION(netobs_journey_part_name, JourneyPart)
NAME_FUNCTION(netobs_turn_kind_name, TurnKind)
NAME_FUNCTION(netobs_turn_limit_name, TurnLimit)
NAME_FUNCTION(netobs_queue_kind_name, QueueKind)
NAME_FUNCTION(netobs_verdict_place_name, VerdictPlace)
NAME_FUNCTION(netobs_verdict_cause_name, VerdictCause)
NAME_FUNCTION(netobs_certainty_name, Certainty)
NAME_FUNCTION(netobs_lost_name, LostBy)

_Static_assert(ARRAY_SIZE(names_of_Ended) == NETOBS_SESSION_ENDINGS &&
		       ARRAY_SIZE(names_of_By) == NETOBS_SESSION_BY_KINDS &&
		       ARRAY_SIZE(names_of_Metric) == NETOBS_ALERT_METRICS &&
		       ARRAY_SIZE(names_of_DropKind) == NETOBS_DROP_KINDS &&
		       ARRAY_SIZE(names_of_DropLayer) == NETOBS_DROP_LAYERS &&
		       ARRAY_SIZE(names_of_TraceLayer) == NETOBS_TRACE_LAYERS &&
		       ARRAY_SIZE(names_of_TracePoint) == NETOBS_TRACE_POINTS &&
		       ARRAY_SIZE(names_of_JourneyPart) == NETOBS_JOURNEY_PARTS &&
		       ARRAY_SIZE(names_of_TurnKind) == NETOBS_TURN_KINDS &&
		       ARRAY_SIZE(names_of_TurnLimit) == NETOBS_TURN_LIMITS &&
		       ARRAY_SIZE(names_of_QueueKind) == NETOBS_QUEUE_KINDS &&
		       ARRAY_SIZE(names_of_VerdictPlace) == NETOBS_PLACES &&
		       ARRAY_SIZE(names_of_VerdictCause) == NETOBS_CAUSES &&
		       ARRAY_SIZE(names_of_Certainty) == NETOBS_CERTAINTIES &&
		       1 << (ARRAY_SIZE(names_of_VerdictMissing) - 1) ==
			       NETOBS_MISSING_RECORDS &&
		       ARRAY_SIZE(names_of_Unparsed) == NETOBS_UNPARSED_REASONS &&
		       ARRAY_SIZE(names_of_LostBy) == NETOBS_LOST_REASONS,
	       "each value has a name");
_Static_assert(NETOBS_UNPARSED_REASONS <= NETOBS_REASONS_MAX &&
		       NETOBS_LOST_REASONS <= NETOBS_REASONS_MAX,
	       "there is room");

/* ---- Tables ------------------------------------------------------------------------- */

#define RECORD(TYPE, kind, ...) OBJECT(kind)
#define RECORD_END OBJECT_END
#define FIELD(kind, member, type, has, key, ...) \
	OBJECT_FIELD(kind, member, type, has, key, )
#define ITEM(kind, ...) OBJECT(kind)
#define ITEM_FIELD(kind, member, type, has, key, ...) \
	OBJECT_FIELD(kind, member, type, has, key, )
#define ITEM_END OBJECT_END
#define OBJECT(kind) static const struct json_field fields_of_##kind[] = {
#define OBJECT_FIELD(kind, member, type, has, key, ...) \
	{ RECORD_FIELD(kind, member, type, has), key },
#define OBJECT_END(...)  \
	{ { 0 }, NULL }, \
	}                \
	;
#include "catalogue/records.def"

const struct json_field *const fields_of_types[NETOBS_RECORD_TYPES] = {
#define RECORD(TYPE, kind, ...) [NETOBS_RECORD_##TYPE] = fields_of_##kind,
#include "catalogue/records.def"
};

_Static_assert(ARRAY_SIZE(fields_of_turn) <= FIELDS_MAX &&
		       ARRAY_SIZE(fields_of_verdict) <= FIELDS_MAX,
	       "the largest ones can be read");

const struct json_list lists_of_types[] = {
#define ITEM(kind, ...) \
	[RECORD_##kind] = { fields_of_##kind, sizeof(struct netobs_##kind) },
#include "catalogue/records.def"
};

/* ---- A field, by its type ----------------------------------------------------------- */

static void add_json_fields(struct json *json, const struct json_field *fields,
			    const void *it);

static void add_number(struct json *json, const struct json_field *field,
		       const void *it)
{
	json_key_u64(json, field->key, record_number(&field->field, it));
}

static void add_hash(struct json *json, const struct json_field *field,
		     const void *it)
{
	char text[TEXT_HASH_MAX + 1];

	*text_hash(text, record_number(&field->field, it)) = '\0';
	json_key_string(json, field->key, text);
}

static void add_signed(struct json *json, const struct json_field *field,
		       const void *it)
{
	json_key_i64(json, field->key, (int64_t)record_number(&field->field, it));
}

static void add_ms(struct json *json, const struct json_field *field,
		   const void *it)
{
	json_key_i64(json, field->key,
		     record_ms((int64_t)record_number(&field->field, it)));
}

/* A record from elsewhere may have any times: the longest duration there is, if it does not fit. */
static void add_lasted(struct json *json, const struct json_field *field,
		       const void *it)
{
	const int64_t *start = record_at(&field->field, it), *end = start + 1;
	int64_t ns;

	if (__builtin_sub_overflow(*end, *start, &ns))
		ns = *end < *start ? INT64_MIN : INT64_MAX;
	json_key_i64(json, field->key, ns / NSEC_PER_MSEC);
}

static void add_string(struct json *json, const char *key, const char *text)
{
	if (text)
		json_key_string(json, key, text);
}

static void add_address(struct json *json, const struct json_field *field,
			const void *it)
{
	char text[NETOBS_ADDR_STR_MAX + TEXT_SPARE];

	*text_ip(text, record_at(&field->field, it)) = '\0';
	add_string(json, field->key, text);
}

/* The text may fill all of its array. */
static void add_array(struct json *json, const struct json_field *field,
		      const void *it)
{
	char copy[sizeof(((struct netobs_alert *)NULL)->rule) + 1];
	const char *text = record_at(&field->field, it);
	size_t len = strnlen(text, min_u64(field->field.size, sizeof(copy) - 1));

	memcpy(copy, text, len);
	copy[len] = '\0';
	add_string(json, field->key, len ? copy : NULL);
}

static void add_pointed_string(struct json *json,
			       const struct json_field *field, const void *it)
{
	const char *text;

	memcpy(&text, record_at(&field->field, it), sizeof(text));
	add_string(json, field->key, text);
}

static void add_unit(struct json *json, const struct json_field *field,
		     const void *it)
{
	static const char *const units[NETOBS_ALERT_METRICS] = {
		[NETOBS_ALERT_RTT] = "ns",
		[NETOBS_ALERT_APP_LATENCY] = "ns",
		[NETOBS_ALERT_RETRANSMITS] = "ppm",
		[NETOBS_ALERT_RATE] = "bit/s",
		[NETOBS_ALERT_DROPS] = "packets",
		[NETOBS_ALERT_DROP_SHARE] = "ppm",
	};
	uint64_t metric = record_number(&field->field, it);

	add_string(json, field->key,
		   metric < ARRAY_SIZE(units) ? units[metric] : NULL);
}

static void add_tcp(struct json *json, const struct json_field *field,
		    const void *it)
{
	enum { PROTO_TCP = 6 };

	(void)it;
	json_key_u64(json, field->key, PROTO_TCP);
}

/* Times have no zeros at their end. */
static void add_classes(struct json *json, const struct json_field *field,
			const void *it)
{
	const uint64_t *classes = record_at(&field->field, it);
	size_t n = field->field.size / sizeof(*classes);

	while (field->field.type == RECORD_times && n && !classes[n - 1])
		n--;
	json_key_open(json, field->key, '[');
	for (size_t i = 0; i < n; i++)
		json_u64(json, classes[i]);
	json_close(json, ']');
}

/* ---- Objects in a record ------------------------------------------------------------ */

static void add_json_count(struct json *json, const char *key,
			   const struct netobs_count *count)
{
	json_key_open(json, key, '{');
	json_key_u64(json, "packets", count->packets);
	json_key_u64(json, "bytes", count->bytes);
}

static void add_part(struct json *json, const char *key,
		     const struct netobs_count *count)
{
	char name[32];

	snprintf(name, sizeof(name), "%s_packets", key);
	json_key_u64(json, name, count->packets);
	snprintf(name, sizeof(name), "%s_bytes", key);
	json_key_u64(json, name, count->bytes);
}

/* Add a total with the parts that follow it. */
static void add_total(struct json *json, const struct json_field *field,
		      const void *it)
{
	add_json_count(json, field->key, record_at(&field->field, it));
	for (field++; field->field.type == RECORD_part; field++)
		if (record_is_known(&field->field, it))
			add_part(json, field->key, record_at(&field->field, it));
	json_close(json, '}');
}

static void add_reasons(struct json *json, const struct json_field *field,
			const void *it, const struct names *names)
{
	const struct netobs_count *counts = record_at(&field->field, it);

	json_key_open(json, field->key, '{');
	for (size_t i = 0; i < names->n; i++) {
		add_json_count(json, names->names[i], &counts[i]);
		json_close(json, '}');
	}
	json_close(json, '}');
}

/* A record from elsewhere may have a value that has no name. */
static void add_enum(struct json *json, const struct json_field *field,
		     const void *it)
{
	const struct names *names = &names_of_types[field->field.type];
	uint64_t value;

	if (field->field.size > sizeof(value)) {
		add_reasons(json, field, it, names);
		return;
	}
	value = record_number(&field->field, it);
	add_string(json, field->key,
		   (value < names->n ? names->names[value] : NULL) ?:
			   names->other);
}

static void add_json_stats(struct json *json, const struct json_field *field,
			   const void *it)
{
	add_json_fields(json, fields_of_stats, record_at(&field->field, it));
}

static void add_way(struct json *json, const struct json_field *field,
		    const void *it)
{
	const struct netobs_connection_way *way;

	memcpy(&way, record_at(&field->field, it), sizeof(way));
	json_key_open(json, field->key, '{');
	add_json_fields(json, fields_of_connection_way, way);
	json_close(json, '}');
}

static void add_took(struct json *json, const struct json_field *field,
		     const void *it)
{
	json_key_u64(json, field->key, record_took(&field->field, it));
}

static void add_fact(struct json *json, const struct json_field *field,
		     const void *it)
{
	(void)it;
	json_key_bool(json, field->key, true);
}

static void add_cut(struct json *json, const struct json_field *field,
		    const void *it)
{
	json_key_bool(json, field->key, record_is_cut(it));
}

/* The names of the bits of a mask. */
static void add_bits(struct json *json, const struct json_field *field,
		     const void *it)
{
	const uint64_t bits = record_number(&field->field, it);
	const struct names *names = &names_of_types[record_bits(&field->field)];

	json_key_open(json, field->key, '[');
	for (size_t i = 0; i < names->n; i++)
		if (bits & 1ULL << i)
			json_string(json, names->names[i]);
	json_close(json, ']');
}

static void add_list(struct json *json, const struct json_field *field,
		     const void *it)
{
	const size_t size = lists_of_types[field->field.type].size;
	const uint64_t n = record_n_items(&field->field, it, size);
	struct netobs_journey_step step;

	json_key_open(json, field->key, '[');
	for (uint64_t i = 0; i < n; i++) {
		json_open(json, '{');
		add_json_fields(json, lists_of_types[field->field.type].fields,
				record_item(&field->field, it, i, size, &step));
		json_close(json, '}');
	}
	json_close(json, ']');
}

static void add_process(struct json *json, const struct json_field *field,
			const void *it)
{
	const struct netobs_process *process;

	memcpy(&process, record_at(&field->field, it), sizeof(process));
	if (field->field.type == RECORD_source)
		process_json(json, process, NULL);
	else
		process_json(json, NULL, process);
}

/* ---- All of them -------------------------------------------------------------------- */

typedef void add_fn(struct json *json, const struct json_field *field,
		    const void *it);

/* Parts of the previous field, and fields of protobuf alone, have no function. */
static add_fn *const adds[RECORD_LAST_PLAIN + 1] = {
	[RECORD_number] = add_number,
	[RECORD_count] = add_number,
	[RECORD_hash] = add_hash,
	[RECORD_ns] = add_signed,
	[RECORD_ms] = add_ms,
	[RECORD_offset] = add_signed,
	[RECORD_lasted] = add_lasted,
	[RECORD_address] = add_address,
	[RECORD_local] = add_address,
	[RECORD_array] = add_array,
	[RECORD_Unit] = add_unit,
	[RECORD_stats] = add_json_stats,
	[RECORD_string] = add_pointed_string,
	[RECORD_tcp] = add_tcp,
	[RECORD_classes] = add_classes,
	[RECORD_times] = add_classes,
	[RECORD_total] = add_total,
	[RECORD_source] = add_process,
	[RECORD_destination] = add_process,
	[RECORD_way] = add_way,
	[RECORD_took] = add_took,
	[RECORD_fact] = add_fact,
	[RECORD_cut] = add_cut,
	[RECORD_unknown] = add_bits,
	[RECORD_missing] = add_bits,
};

/* NULL: the field is no member. */
static add_fn *add_of(const struct record_field *field)
{
	if (record_is_enum(field))
		return add_enum;
	if (record_is_list(field))
		return add_list;
	return field->type < ARRAY_SIZE(adds) ? adds[field->type] : NULL;
}

static void add_json_fields(struct json *json, const struct json_field *fields,
			    const void *it)
{
	for (; fields->key; fields++) {
		add_fn *add = add_of(&fields->field);

		if (add && record_is_known(&fields->field, it))
			add(json, fields, it);
	}
}

/* @type: NULL: the object has no such member. */
static int write_object(const char *type, const struct json_field *fields,
			const void *it, char *buf, size_t size)
{
	struct json json;

	json_begin(&json, buf, size);
	json_open(&json, '{');
	add_string(&json, "type", type);
	add_json_fields(&json, fields, it);
	json_close(&json, '}');
	return json_end(&json);
}

int record_json(const struct netobs_record *record, char *buf, size_t size)
{
	if (record->type == NETOBS_RECORD_FLOW)
		return flow_record_json(record, buf, size);
	return write_object(netobs_record_type_name(record->type),
			    fields_of_types[record->type], record, buf, size);
}

int netobs_stats_json(const struct netobs_stats *stats, char *buf, size_t size)
{
	struct netobs_stats known = { 0 };

	if (!stats || !buf || stats->sz < sizeof(stats->sz))
		return -EINVAL;
	memcpy(&known, stats, min_u64(stats->sz, sizeof(known)));
	return write_object(NULL, fields_of_stats, &known, buf, size);
}

int netobs_connection_json(const struct netobs_connection *connection,
			   char *buf, size_t size)
{
	if (!connection || !buf)
		return -EINVAL;
	return write_object("connection", fields_of_connection, connection, buf,
			    size);
}
