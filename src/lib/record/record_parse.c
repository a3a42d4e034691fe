// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/*
 * Reads records of turns, queues, hosts and verdicts from JSON, by the tables that record_json.c
 * writes them with. The text may come from anywhere: json_parse() checks all of it first, and each
 * value is held against the size of its member.
 */
#include "any.h"
#include "base/json_reader.h"
#include "base/text.h"
#include "record_tables.h"

/* Where a value goes. */
struct place {
	const struct record_field *field;
	void *it; /* the record, or an item of a list */
	char *at; /* the member */
};

/* Whether a string is @name, which has no escapes. */
static bool is_text(struct json_value value, const char *name)
{
	const size_t len = strlen(name);

	return value.at && *value.at == '"' &&
	       !strncmp(value.at + 1, name, len) && value.at[1 + len] == '"';
}

/* ---- A field, by its type: each returns false if the value is wrong ------------------- */

static bool read_fields(struct json_value object,
			const struct json_field *fields, void *it, uint32_t *has);

static bool read_number(struct json_value value, uint64_t *ret_number)
{
	const char *at = value.at;
	uint64_t number = 0;

	for (; *at >= '0' && *at <= '9'; at++)
		if (__builtin_mul_overflow(number, 10, &number) ||
		    __builtin_add_overflow(number, *at - '0', &number))
			return false;
	*ret_number = number;
	return at > value.at && *at != '.' && *at != 'e' && *at != 'E';
}

static bool put_number(char *to, size_t size, uint64_t number)
{
	const bool is_big = __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__;

	memcpy(to, (char *)&number + is_big * (sizeof(number) - size), size);
	return size == sizeof(number) || !(number >> 8 * size);
}

/* The time of the record is known before. */
static bool read_integer(struct json_value value, const struct place *to)
{
	const struct netobs_record *record = to->it;
	const unsigned int type = to->field->type;
	const bool is_signed = type == RECORD_ns || type == RECORD_offset;
	const bool is_negative = is_signed && *value.at == '-';
	uint64_t number;

	value.at += is_negative;
	if (!read_number(value, &number) ||
	    (is_signed && number > (uint64_t)INT64_MAX + is_negative))
		return false;
	number = is_negative ? -number : number;
	if (type == RECORD_took)
		number += (uint64_t)record->time_ns;
	return put_number(to->at, to->field->size, number);
}

static bool read_address(struct json_value value, const struct place *to)
{
	char text[NETOBS_ADDR_STR_MAX];

	return *value.at == '"' && json_length(value) < sizeof(text) + 2 &&
	       ip_read(json_text(value, text, sizeof(text)), (uint8_t *)to->at);
}

/* The text may fill all of its array; what does not fit is cut. */
static bool read_array(struct json_value value, const struct place *to)
{
	char text[sizeof(((struct netobs_verdict *)NULL)->cgroup) + 1];
	const size_t size = to->field->size;

	if (*value.at != '"' || size >= sizeof(text))
		return false;
	memset(to->at, 0, size);
	memcpy(to->at, text, strlen(json_text(value, text, size + 1)));
	return true;
}

static bool read_times(struct json_value value, const struct place *to)
{
	struct json_item item = { 0 };
	uint64_t number;

	for (char *at = to->at; json_next(value, &item); at += sizeof(number))
		if (at == to->at + to->field->size ||
		    !read_number(item.value, &number) ||
		    !put_number(at, sizeof(number), number))
			return false;
	return *value.at == '[';
}

static bool read_name(struct json_value value, unsigned int type, uint64_t *ret_i)
{
	const struct names *names = &names_of_types[type];

	for (*ret_i = 0; *ret_i < names->n; ++*ret_i)
		if (names->names[*ret_i] && is_text(value, names->names[*ret_i]))
			return true;
	return false;
}

static bool read_enum(struct json_value value, const struct place *to)
{
	uint64_t i;

	return read_name(value, to->field->type, &i) &&
	       put_number(to->at, to->field->size, i);
}

static bool read_bits(struct json_value value, const struct place *to)
{
	struct json_item item = { 0 };
	uint64_t bits = 0, i;

	for (; json_next(value, &item); bits |= 1ULL << i)
		if (!read_name(item.value, record_bits(to->field), &i))
			return false;
	return *value.at == '[' && put_number(to->at, to->field->size, bits);
}

static bool read_list(struct json_value value, const struct place *to)
{
	const struct json_list *list = &lists_of_types[to->field->type];
	struct json_item item = { 0 };
	char *at = to->at;

	for (; json_next(value, &item); at += list->size)
		if (at == to->at + to->field->size ||
		    !read_fields(item.value, list->fields, at, NULL))
			return false;
	return *value.at == '[' &&
	       put_number((char *)to->it + to->field->known_offset,
			  to->field->known_size,
			  (size_t)(at - to->at) / list->size);
}

/* ---- Records -------------------------------------------------------------------------- */

/* NULL: another member says it, as TimeNs says TimeMs. */
static bool (*const reads[RECORD_LAST_PLAIN + 1])(struct json_value value,
						  const struct place *to) = {
	[RECORD_number] = read_integer,	 [RECORD_count] = read_integer,
	[RECORD_ns] = read_integer,	 [RECORD_offset] = read_integer,
	[RECORD_took] = read_integer,	 [RECORD_times] = read_times,
	[RECORD_address] = read_address, [RECORD_array] = read_array,
	[RECORD_unknown] = read_bits,	 [RECORD_missing] = read_bits,
};

/* @has: of the record; NULL: it is an item */
static bool read_field(struct json_value value,
		       const struct record_field *field, void *it, uint32_t *has)
{
	const struct place to = { field, it, (char *)it + field->offset };

	if (field->type == RECORD_fact && !json_is_true(value))
		return *value.at == 'f';
	if (has && !field->same_offset &&
	    field->known_offset == offsetof(struct netobs_record, has))
		*has |= (uint32_t)field->known_bits;
	if (record_is_enum(field) || record_is_list(field))
		return (record_is_enum(field) ? read_enum : read_list)(value,
								       &to);
	return field->type >= ARRAY_SIZE(reads) || !reads[field->type] ||
	       reads[field->type](value, &to);
}

/* Members are usually in the order of the table: search behind the last one. @return it; @last: none */
static const struct json_field *find_field(const struct json_field *fields,
					   const struct json_field *last,
					   struct json_value key)
{
	const struct json_field *field = last + 1;

	while (field != last && !(field->key && is_text(key, field->key)))
		field = field->key ? field + 1 : fields;
	return field;
}

/* A member that is absent, as it is 1, or equal to another one. */
static void restore(const struct record_field *field, void *it)
{
	char *at = (char *)it + field->offset;

	if (field->same_offset && record_has_bits(field, it))
		memcpy(at, (char *)it + field->same_offset, field->size);
	else if (field->unknown_bits)
		put_number(at, field->size, 1);
}

static bool read_fields(struct json_value object,
			const struct json_field *fields, void *it, uint32_t *has)
{
	const struct json_field *field = fields, *last = fields;
	bool is_read[FIELDS_MAX] = { false };
	struct json_item item = { 0 };

	for (; json_next(object, &item); last = field) {
		field = find_field(fields, last, item.key);
		if (!is_text(item.key, field->key))
			continue;
		is_read[field - fields] = true;
		if (!read_field(item.value, &field->field, it, has))
			return false;
	}
	for (field = fields; field->key; field++)
		if (!is_read[field - fields])
			restore(&field->field, it);
	return *object.at == '{';
}

int netobs_record_parse(const char *json, void *buf, size_t size)
{
	struct netobs_record *record = buf;
	struct json_value object, name;
	unsigned int type = NETOBS_RECORD_TURN;

	if (!json || !buf)
		return -EINVAL;
	object = json_parse(json);
	if (!object.at || *object.at != '{')
		return -EBADMSG;
	name = json_member(object, "type");
	while (type <= NETOBS_RECORD_VERDICT &&
	       !is_text(name, netobs_record_type_name(type)))
		type++;
	if (type > NETOBS_RECORD_VERDICT)
		return -ENOTSUP;
	if (size < record_size(type))
		return -ENOBUFS;
	memset(buf, 0, record_size(type));
	record->sz = record_size(type);
	record->type = type;
	record->time_ns = json_signed(json_member(object, "TimeNs"));
	if (!read_fields(object, fields_of_types[type], buf, &record->has))
		return -EBADMSG;
	return (int)record->sz;
}
