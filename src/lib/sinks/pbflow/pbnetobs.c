// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/* Written as a table of records.def says, which netobs.proto is made of as well. */
#include "pbflow.h"

#include "catalogue/records.h"
#include "wire.h"

enum { RECORDS_ENTRY = 1 }; /* number of the field in netobs.proto.in */

struct pb_field {
	struct record_field field;
	const char *key; /* NULL: the end of the table */
	uint32_t number;
};

#define FIRST(number, ...) number
#define FIRST_OF(...) FIRST(__VA_ARGS__)

#define RECORD(TYPE, kind, ...) \
	static const struct pb_field fields_of_##kind[] = {
#define FIELD(kind, member, type, has, key, proto, ...) \
	{ RECORD_FIELD(kind, member, type, has), key,   \
	  FIRST_OF(FIELD_ARGUMENTS proto) },
#define RECORD_END(...)     \
	{ { 0 }, NULL, 0 }, \
	}                   \
	;
#define ITEM(kind, ...) static const struct pb_field fields_of_##kind[] = {
#define ITEM_FIELD FIELD
#define ITEM_END RECORD_END
#include "catalogue/records.def"

static const struct {
	uint32_t number;
	const struct pb_field *fields;
} messages[NETOBS_RECORD_TYPES] = {
#define RECORD(TYPE, kind, name, number, ...) \
	[NETOBS_RECORD_##TYPE] = { number, fields_of_##kind },
#include "catalogue/records.def"
};

/* The items of each type of list in a record. */
static const struct {
	const struct pb_field *fields;
	size_t size;
} items[] = {
#define ITEM(kind, ...) \
	[RECORD_##kind] = { fields_of_##kind, sizeof(struct netobs_##kind) },
#include "catalogue/records.def"
};

/* ---- A field ------------------------------------------------------------------------ */

/* A number with a bit of its own may be 0. */
static uint8_t *put_record_value(uint8_t *to, const struct pb_field *field,
				 uint64_t value)
{
	return field->field.known_size && !record_is_enum(&field->field) ?
		       put_any_number(to, field->number, value) :
		       put_number(to, field->number, value);
}

static uint8_t *put_fields(uint8_t *to, const struct pb_field *fields,
			   const void *it, const struct pbflow_options *options);

/* Numbers of bits, each a byte. */
static uint8_t *put_bits(uint8_t *to, uint32_t number, uint64_t bits)
{
	to = put_varint(put_tag(to, number, WIRE_BYTES),
			(uint64_t)__builtin_popcountll(bits));
	for (; bits; bits &= bits - 1)
		*to++ = (uint8_t)__builtin_ctzll(bits);
	return to;
}

static uint8_t *put_classes(uint8_t *to, const struct pb_field *field,
			    const uint64_t *classes)
{
	const size_t n = field->field.size / sizeof(*classes);
	size_t len = 0;

	for (size_t i = 0; i < n; i++)
		len += varint_size(classes[i]);
	to = put_varint(put_tag(to, field->number, WIRE_BYTES), len);
	for (size_t i = 0; i < n; i++)
		to = put_varint(to, classes[i]);
	return to;
}

static uint8_t *put_list(uint8_t *to, const struct pb_field *field,
			 const void *it, const struct pbflow_options *options)
{
	const size_t size = items[field->field.type].size;
	const uint64_t n = record_n_items(&field->field, it, size);
	struct netobs_journey_step step;

	for (uint64_t i = 0; i < n; i++) {
		uint8_t *message = to + WIRE_HEAD_MAX;
		const uint8_t *end = put_fields(
			message, items[field->field.type].fields,
			record_item(&field->field, it, i, size, &step), options);

		to = put_moved(to, field->number, message,
			       (size_t)(end - message));
	}
	return to;
}

/* A record from elsewhere may have any times. */
static int64_t record_lasted_ns(const int64_t *start)
{
	return (int64_t)((uint64_t)start[1] - (uint64_t)start[0]);
}

static uint8_t *put_record_field(uint8_t *to, const struct pb_field *field,
				 const void *it,
				 const struct pbflow_options *options)
{
	const void *at = record_at(&field->field, it);

	switch (field->field.type) {
	case RECORD_agent:
		return put_agent(to, field->number, options->agent_ip);
	case RECORD_address:
	case RECORD_local:
		return put_ip(to, field->number, at, is_v4_mapped(at));
	case RECORD_array:
		return put_array(to, field->number, at, field->field.size);
	case RECORD_ms:
		return put_record_value(
			to, field, (uint64_t)record_ms(*(const int64_t *)at));
	case RECORD_lasted:
		return put_record_value(
			to, field, (uint64_t)record_ms(record_lasted_ns(at)));
	case RECORD_took:
		return put_record_value(to, field,
					record_took(&field->field, it));
	case RECORD_fact:
		return put_record_value(to, field, true);
	case RECORD_cut:
		return put_record_value(to, field, record_is_cut(it));
	case RECORD_unknown:
		return put_bits(to, field->number,
				record_number(&field->field, it) &
					((1U << NETOBS_JOURNEY_PARTS) - 1));
	case RECORD_missing:
		return put_bits(to, field->number,
				record_number(&field->field, it) &
					(2 * NETOBS_MISSING_RECORDS - 1));
	case RECORD_classes:
	case RECORD_times:
		return put_classes(to, field, at);
	default:
		if (record_is_list(&field->field))
			return put_list(to, field, it, options);
		return put_record_value(to, field,
					record_number(&field->field, it));
	}
}

/* ---- Messages ---------------------------------------------------------------------- */

static uint8_t *put_fields(uint8_t *to, const struct pb_field *fields,
			   const void *it, const struct pbflow_options *options)
{
	for (const struct pb_field *field = fields; field->key; field++)
		if (field->number && record_is_known(&field->field, it))
			to = put_record_field(to, field, it, options);
	return to;
}

size_t pbnetobs_record(const struct netobs_record *record,
		       const struct pbflow_options *options, uint8_t *buf)
{
	uint8_t *message = buf + WIRE_HEAD_MAX;
	const uint8_t *end = put_fields(message, messages[record->type].fields,
					record, options);

	assert(pbnetobs_has(record));
	end = put_moved(buf, messages[record->type].number, message,
			(size_t)(end - message));
	return (size_t)(end - buf);
}

size_t pbnetobs_entry(const struct netobs_record *record,
		      const struct pbflow_options *options, uint8_t *buf)
{
	uint8_t *message = buf + WIRE_HEAD_MAX;
	size_t len = pbnetobs_record(record, options, message);

	return (size_t)(put_moved(buf, RECORDS_ENTRY, message, len) - buf);
}
