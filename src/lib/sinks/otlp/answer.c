// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "otlp.h"

#include "sinks/pbflow/wire.h"

/* Numbers in logs_service.proto and metrics_service.proto. */
enum {
	RESPONSE_PARTIAL_SUCCESS = 1,
	PARTIAL_SUCCESS_REJECTED = 1,
	PARTIAL_SUCCESS_MESSAGE = 2,
};

static void take_message(const struct wire_field *field,
			 struct otlp_answer *answer)
{
	const size_t len = min_u64(field->len, sizeof(answer->message) - 1);

	for (size_t i = 0; i < len; i++) {
		char c = (char)field->bytes[i];

		answer->message[i] = c >= ' ' && c <= '~' ? c : '?';
	}
	answer->message[len] = '\0';
}

/* A negative number is none. */
static void take_rejected(const struct wire_field *field,
			  struct otlp_answer *answer)
{
	answer->rejected = field->value <= INT64_MAX ? field->value : 0;
}

static bool read_partial_success(const struct wire_field *message,
				 struct otlp_answer *answer)
{
	struct wire_reader reader = wire_read(message->bytes, message->len);
	struct wire_field field;

	while (wire_next(&reader, &field)) {
		if (field.number == PARTIAL_SUCCESS_REJECTED &&
		    field.wire == WIRE_VARINT)
			take_rejected(&field, answer);
		else if (field.number == PARTIAL_SUCCESS_MESSAGE &&
			 field.wire == WIRE_BYTES)
			take_message(&field, answer);
	}
	return !reader.is_wrong;
}

bool otlp_read_answer(const void *bytes, size_t len,
		      struct otlp_answer *ret_answer)
{
	struct wire_reader reader = wire_read(bytes, len);
	struct wire_field field;

	*ret_answer = (struct otlp_answer){ 0 };
	while (wire_next(&reader, &field))
		if (field.number == RESPONSE_PARTIAL_SUCCESS &&
		    field.wire == WIRE_BYTES &&
		    !read_partial_success(&field, ret_answer))
			return false;
	return !reader.is_wrong;
}
