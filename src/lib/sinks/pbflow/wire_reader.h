/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* The other way than wire.h: the fields of a message, which may be any bytes. */
#ifndef NETOBS_SINKS_PBFLOW_WIRE_READER_H
#define NETOBS_SINKS_PBFLOW_WIRE_READER_H

#include "wire.h"

struct wire_reader {
	const uint8_t *at, *end;
	bool is_wrong; /* the bytes are no message */
};

struct wire_field {
	uint32_t number;
	enum wire wire;
	uint64_t value; /* for WIRE_VARINT; fixed-size numbers are not read */
	const uint8_t *bytes; /* for WIRE_BYTES */
	size_t len;
};

static inline struct wire_reader wire_read(const void *bytes, size_t len)
{
	return (struct wire_reader){ bytes, (const uint8_t *)bytes + len, false };
}

static inline uint64_t wire_read_varint(struct wire_reader *reader)
{
	uint64_t value = 0;

	for (unsigned int shift = 0; shift < 64; shift += 7) {
		if (reader->at == reader->end)
			break;
		value |= (uint64_t)(*reader->at & 0x7f) << shift;
		if (!(*reader->at++ & 0x80))
			return value;
	}
	reader->is_wrong = true;
	return 0;
}

static inline const uint8_t *wire_read_bytes(struct wire_reader *reader,
					     uint64_t len)
{
	const uint8_t *bytes = reader->at;

	if (len > (uint64_t)(reader->end - bytes)) {
		reader->is_wrong = true;
		return bytes;
	}
	reader->at += len;
	return bytes;
}

/** @return false: there are no more, or reader.is_wrong; @ret_field is empty then, or wrong */
static inline bool wire_next(struct wire_reader *reader,
			     struct wire_field *ret_field)
{
	struct wire_field *field = ret_field;
	uint64_t tag;

	*field = (struct wire_field){ 0 };
	if (reader->is_wrong || reader->at == reader->end)
		return false;
	tag = wire_read_varint(reader);
	field->number = (uint32_t)(tag >> 3);
	field->wire = tag & 7;
	switch (field->wire) {
	case WIRE_VARINT:
		field->value = wire_read_varint(reader);
		break;
	case WIRE_BYTES:
		field->len = wire_read_varint(reader);
		field->bytes = wire_read_bytes(reader, field->len);
		break;
	case WIRE_FIXED64:
		wire_read_bytes(reader, 8);
		break;
	case WIRE_FIXED32:
		wire_read_bytes(reader, 4);
		break;
	default:
		reader->is_wrong = true;
	}
	reader->is_wrong |= !field->number;
	return !reader->is_wrong;
}

#endif
