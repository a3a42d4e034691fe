/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * The encoding: developers.google.com/protocol-buffers/docs/encoding. Each function writes
 * at @to, where there is room, and returns behind what it wrote. Nothing checks the room:
 * the sizes of whole messages are bounded, and tests fill them.
 */
#ifndef NETOBS_SINKS_PBFLOW_WIRE_H
#define NETOBS_SINKS_PBFLOW_WIRE_H

#include "base/text.h"
#include "base/util.h"

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum wire {
	WIRE_VARINT = 0,
	WIRE_FIXED64 = 1,
	WIRE_BYTES = 2,
	WIRE_FIXED32 = 5
};

enum {
	WIRE_TEXT_MAX = 512,	  /* of an array, before it is repaired */
	WIRE_MOVED_MAX = 1 << 21, /* bytes of a message: three of its length */
	WIRE_HEAD_MAX = 4, /* in front of that, where its number is below 16 */
};

/* Fields of the message IP, which both schemas have. */
enum { IP_IPV4 = 1, IP_IPV6 = 2 };

#define inlined static inline __attribute__((always_inline))

/* Seven bits a byte, the low ones first. */
inlined uint8_t *put_varint(uint8_t *to, uint64_t value)
{
	for (; value >= 0x80; value >>= 7)
		*to++ = (uint8_t)(value | 0x80);
	*to++ = (uint8_t)value;
	return to;
}

inlined uint8_t *put_tag(uint8_t *to, uint32_t number, enum wire wire)
{
	return put_varint(to, number << 3 | wire);
}

/* Writes 0, too. Readers take 0 for the value of an absent field, so others leave it out. */
inlined uint8_t *put_any_number(uint8_t *to, uint32_t number, uint64_t value)
{
	return put_varint(put_tag(to, number, WIRE_VARINT), value);
}

inlined uint8_t *put_number(uint8_t *to, uint32_t number, uint64_t value)
{
	return value ? put_any_number(to, number, value) : to;
}

static inline uint8_t *put_fixed64(uint8_t *to, uint32_t number, uint64_t value)
{
	to = put_tag(to, number, WIRE_FIXED64);
	for (int i = 0; i < 8; i++, value >>= 8) /* little endian */
		*to++ = (uint8_t)value;
	return to;
}

/* Bytes of put_varint(). */
static inline size_t varint_size(uint64_t value)
{
	size_t size = 1;

	while (value >>= 7)
		size++;
	return size;
}

/* Text or a message of any length, which is elsewhere. */
static inline uint8_t *put_bytes(uint8_t *to, uint32_t number,
				 const void *bytes, size_t len)
{
	to = put_varint(put_tag(to, number, WIRE_BYTES), len);
	memcpy(to, bytes, len);
	return to + len;
}

/* Returns where its contents begin, for put_end(): at most 127 bytes. */
inlined uint8_t *put_begin(uint8_t *to, uint32_t number)
{
	return put_tag(to, number, WIRE_BYTES) + 1;
}

inlined uint8_t *put_end(uint8_t *contents, uint8_t *to)
{
	assert(to - contents < 0x80);
	contents[-1] = (uint8_t)(to - contents);
	return to;
}

/* A message of any length that is written already, behind @to: it is moved to its place. */
static inline uint8_t *put_moved(uint8_t *to, uint32_t number,
				 const uint8_t *message, size_t len)
{
	assert(len < WIRE_MOVED_MAX && number < 16);
	to = put_varint(put_tag(to, number, WIRE_BYTES), len);
	memmove(to, message, len);
	return to + len;
}

/* ---- Values ------------------------------------------------------------------------ */

static inline uint8_t *put_ip(uint8_t *to, uint32_t number,
			      const uint8_t address[16], bool is_v4)
{
	uint8_t *contents = put_begin(to, number);

	if (is_v4) {
		to = put_tag(contents, IP_IPV4, WIRE_FIXED32);
		for (int i = 15; i >= 12; i--) /* little endian */
			*to++ = address[i];
	} else {
		to = put_begin(contents, IP_IPV6);
		memcpy(to, address, 16);
		to = put_end(to, to + 16);
	}
	return put_end(contents, to);
}

/* An address of a tunnel says itself whether it is of IPv4. */
inlined bool is_v4_mapped(const uint8_t address[16])
{
	static const uint8_t v4[12] = { [10] = 0xff, 0xff };

	return !memcmp(address, v4, sizeof(v4));
}

/*
 * An array of @size, which @text may fill. Readers refuse the whole message if a string
 * in it is not UTF-8.
 */
static inline uint8_t *put_array(uint8_t *to, uint32_t number, const char *text,
				 size_t size)
{
	char buf[3 * WIRE_TEXT_MAX + 1], copy[WIRE_TEXT_MAX + 1];
	const size_t len = strnlen(text, min_u64(size, WIRE_TEXT_MAX));
	const char *repaired;

	if (!len)
		return to;
	memcpy(copy, text, len);
	copy[len] = '\0';
	repaired = utf8_repair(copy, buf);
	to = put_varint(put_tag(to, number, WIRE_BYTES), strlen(repaired));
	memcpy(to, repaired, strlen(repaired));
	return to + strlen(repaired);
}

/* An address of all 0 is unknown, and left out. */
static inline uint8_t *put_agent(uint8_t *to, uint32_t number,
				 const uint8_t address[16])
{
	static const uint8_t nowhere[16];

	if (!memcmp(address, nowhere, sizeof(nowhere)))
		return to;
	return put_ip(to, number, address, is_v4_mapped(address));
}

/* The other way than above: the fields of a message, which may be any bytes. */

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
