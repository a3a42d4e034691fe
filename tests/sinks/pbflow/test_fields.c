/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* Each field of the catalogue is in a Record, under the number that the catalogue has. */
#include "lib_fields.h"
#include "lib_test.h"

#include "sinks/pbflow/pbflow.h"

#include "flow.pb-c.h"

#define netobserv record
#define ROW(member, message, number, name, ...) { #message, number, #name },
#define FIELD(member, type, bit, merge, json, proto, ...) \
	FIELD_CALL(ROW, member, proto)
#define POINT_FIELD(...)

/* In the order of fields[]. */
static const struct {
	const char *message;
	uint32_t number;
	const char *name;
} names[] = {
#include "catalogue/fields.def"
};

#define FIELD(...)
#define POINT_FIELD(member, type, json, proto, ...) \
	FIELD_CALL(ROW, member, proto)

static const struct {
	const char *message;
	uint32_t number;
	const char *name;
} point_names[] = {
#include "catalogue/fields.def"
};

static Pbflow__Record *through(const struct netobs_flow *flow)
{
	static const struct pbflow_options options = { 0 };
	static uint8_t buf[PBFLOW_RECORD_MAX];
	size_t len = pbflow_record(flow, &options, buf);
	Pbflow__Record *record = pbflow__record__unpack(NULL, len, buf);

	assert_non_null(record);
	return record;
}

static void *member_of(void *message, const char *name)
{
	const ProtobufCMessage *base = message;
	const ProtobufCFieldDescriptor *field =
		protobuf_c_message_descriptor_get_field_by_name(base->descriptor,
								name);

	assert_non_null(field);
	return (char *)message + field->offset;
}

/* That part of it alone, as bytes. Returns their number. */
static size_t encode_alone(void *message, uint32_t number, const char *name,
			   uint8_t *bytes)
{
	const ProtobufCMessage *base = message;
	const ProtobufCFieldDescriptor *field =
		protobuf_c_message_descriptor_get_field(base->descriptor, number);
	const void *value;

	if (!field || strcmp(field->name, name)) {
		fail_msg("%s: flow.proto has %s for number %u", name,
			 field ? field->name : "nothing", number);
		return 0;
	}
	value = (const char *)message + field->offset;
	switch (field->type) {
	case PROTOBUF_C_TYPE_MESSAGE:
		assert_non_null(*(ProtobufCMessage *const *)value);
		return protobuf_c_message_pack(*(ProtobufCMessage *const *)value,
					       bytes);
	case PROTOBUF_C_TYPE_STRING:
		strcpy((char *)bytes, *(char *const *)value);
		return strlen((char *)bytes);
	case PROTOBUF_C_TYPE_UINT64:
		memcpy(bytes, value, 8);
		return 8;
	default:
		memcpy(bytes, value, 4);
		return 4;
	}
}

static void assert_differ(void *a, void *b, uint32_t number, const char *name)
{
	uint8_t before[256], after[256];
	size_t len = encode_alone(a, number, name, before);

	if (encode_alone(b, number, name, after) == len &&
	    !memcmp(before, after, len))
		fail_msg("%s, number %u, does not have the field", name, number);
}

static void *message_of(Pbflow__Record *record, const char *name)
{
	return strcmp(name, "record") ? *(void **)member_of(record, name) :
					(void *)record;
}

TEST(record_has_each_field)
{
	for (size_t i = 0; i < N_FIELDS; i++) {
		struct netobs_flow flow = fields_flow(), changed = flow;
		Pbflow__Record *before, *after;

		field_change(&changed, &fields[i]);
		before = through(&flow);
		after = through(&changed);
		assert_differ(message_of(before, names[i].message),
			      message_of(after, names[i].message),
			      names[i].number, names[i].name);
		pbflow__record__free_unpacked(before, NULL);
		pbflow__record__free_unpacked(after, NULL);
	}
}

/* Of an integer, whatever its size. */
static uint64_t read_number(const void *at, size_t size)
{
	uint64_t number = 0;

	memcpy(&number, at, size); /* little endian, as the tests' machines are */
	return number;
}

static bool is_number(const struct field *field)
{
	static const char *const types[] = { "number", "id",	 "count",
					     "dscp",   "tunnel", "tcp_flags" };

	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++)
		if (!strcmp(field->type, types[i]))
			return true;
	return false;
}

/* protobuf-c, which has only flow.proto, reads what was written from the catalogue. */
TEST(numbers_are_those_of_the_flow)
{
	struct netobs_flow flow = fields_flow();
	Pbflow__Record *record = through(&flow);

	for (size_t i = 0; i < N_FIELDS; i++) {
		void *message = message_of(record, names[i].message);
		const char *at = (const char *)&flow + fields[i].offset;
		size_t size = fields[i].size > 4 ? 8 : 4;

		if (is_number(&fields[i]) &&
		    read_number(member_of(message, names[i].name), size) !=
			    read_number(at, fields[i].size))
			fail_msg("%s has another value", fields[i].member);
	}
	pbflow__record__free_unpacked(record, NULL);
}

TEST(points_have_each_field)
{
	for (size_t i = 0; i < N_POINT_FIELDS; i++) {
		struct netobs_flow flow = fields_flow(), changed = flow;
		struct netobs_point point = *flow.points;
		Pbflow__Record *before, *after;

		field_change(&point, &point_fields[i]);
		changed.points = &point;
		before = through(&flow);
		after = through(&changed);
		assert_differ(before->dup_list[0], after->dup_list[0],
			      point_names[i].number, point_names[i].name);
		pbflow__record__free_unpacked(before, NULL);
		pbflow__record__free_unpacked(after, NULL);
	}
}
