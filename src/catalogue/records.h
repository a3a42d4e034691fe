/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * Macros to read records.def: an encoder makes a table of each list, of struct record_field and
 * what it needs beside that, and walks it. So a new type of record needs no code of its own.
 */
#ifndef NETOBS_CATALOGUE_RECORDS_H
#define NETOBS_CATALOGUE_RECORDS_H

#include "fields.h"

#include <netobs/alert.h>
#include <netobs/connection.h>
#include <netobs/diagnosis.h>
#include <netobs/drop.h>
#include <netobs/mapping.h>
#include <netobs/series.h>
#include <netobs/session.h>
#include <netobs/stats.h>
#include <netobs/trace.h>
#include <netobs/turn.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum record_field_type {
	RECORD_number,
	RECORD_count,
	RECORD_hash,
	RECORD_ns,
	RECORD_ms,
	RECORD_offset,
	RECORD_lasted,
	RECORD_address,
	RECORD_local,
	RECORD_array,
	RECORD_agent,
	RECORD_Unit,
	RECORD_stats,
	RECORD_string,
	RECORD_tcp,
	RECORD_classes,
	RECORD_times,
	RECORD_total,
	RECORD_part,
	RECORD_source,
	RECORD_destination,
	RECORD_way,
	RECORD_took,
	RECORD_fact,
	RECORD_cut,
	RECORD_unknown,
	RECORD_missing,
	RECORD_LAST_PLAIN = RECORD_missing,
#define ITEM(kind, ...) RECORD_##kind,
#include "records.def"
	RECORD_ITEMS_END,
#define ENUM(type, ...) RECORD_##type,
#include "records.def"
};

struct record_field {
	uint16_t offset, size; /* in its struct */
	uint16_t type;
	/* The field is known if the number there has one of the former bits, or lacks one of the
	 * latter; size 0: always. */
	uint16_t known_offset, known_size;
	uint64_t known_bits, unknown_bits;
	/* Where it is known, it is absent if it is equal to the member there, of its size; else, if it is 0.
	 * 0: there is no such member. */
	uint16_t same_offset;
};

#define RECORD_OFFSET(kind, member) offsetof(struct netobs_##kind, member)
#define RECORD_SIZE(kind, member) sizeof(((struct netobs_##kind *)NULL)->member)

#define KNOWN_ALWAYS(kind, member) ~, (0, 0, 0, 0)
#define KNOWN_NONZERO(kind, member)                                 \
	~, (RECORD_OFFSET(kind, member), RECORD_SIZE(kind, member), \
	    UINT64_MAX, 0)
#define KNOWN_RTT(kind, member) \
	~, (RECORD_OFFSET(kind, rtt.samples), sizeof(uint64_t), UINT64_MAX, 0)
#define KNOWN_RESPONSE(kind, member)                                 \
	~, (RECORD_OFFSET(kind, response.samples), sizeof(uint64_t), \
	    UINT64_MAX, 0)
#define KNOWN_THINK(kind, member) \
	~, (RECORD_OFFSET(kind, think.samples), sizeof(uint64_t), UINT64_MAX, 0)
#define KNOWN_APP(kind, member) \
	~, (RECORD_OFFSET(kind, app.samples), sizeof(uint64_t), UINT64_MAX, 0)
#define KNOWN_BIT(bit) \
	(offsetof(struct netobs_record, has), sizeof(uint32_t), bit, 0)
/* A word with brackets of its own, so that those of the others follow it. */
#define KNOWN_PART(part)                            \
	~, (RECORD_OFFSET(journey, unknown_parts),  \
	    RECORD_SIZE(journey, unknown_parts), 0, \
	    1U << NETOBS_JOURNEY_##part) KNOWN_NO_MORE
#define KNOWN_WITH(kind, member)                                    \
	~, (RECORD_OFFSET(kind, member), RECORD_SIZE(kind, member), \
	    UINT64_MAX, 0)KNOWN_NO_MORE
/* These are restored by netobs_record_parse(). */
#define KNOWN_NOT_ONE(kind, member) \
	~, (RECORD_OFFSET(kind, member), RECORD_SIZE(kind, member), ~1ULL, 1)
#define KNOWN_UNLIKE(kind, other) \
	~, (0, 0, 0, 0, +RECORD_OFFSET(kind, other))KNOWN_NO_MORE
#define KNOWN_UNLIKE_IF(kind, where, bits, other)                          \
	~, (RECORD_OFFSET(kind, where), RECORD_SIZE(kind, where), bits, 0, \
	    +RECORD_OFFSET(kind, other))KNOWN_NO_MORE
#define KNOWN_NO_MORE(kind, member)

#define RECORD_FIELD(kind, member, type, has)                              \
	{                                                                  \
		RECORD_OFFSET(kind, member), RECORD_SIZE(kind, member),    \
			RECORD_##type,                                     \
			FIELD_CALL(RECORD_KNOWN, ,                         \
				   FIELD_CHOOSE(KNOWN_##has(kind, member), \
						KNOWN_BIT(has)))           \
	}
#define RECORD_KNOWN(empty, offset, size, bits, others, ...) \
	offset, size, bits, others, 0 __VA_ARGS__

/* Read a number of 1, 2, 4 or 8 bytes; of more, the first 8. */
static inline uint64_t record_read(const void *at, size_t size)
{
	uint64_t u64;
	uint32_t u32;
	uint16_t u16;

	switch (size) {
	case 1:
		return *(const uint8_t *)at;
	case 2:
		return memcpy(&u16, at, sizeof(u16)), u16;
	case 4:
		return memcpy(&u32, at, sizeof(u32)), u32;
	default:
		return memcpy(&u64, at, sizeof(u64)), u64;
	}
}

static inline const void *record_at(const struct record_field *field,
				    const void *it)
{
	return (const char *)it + field->offset;
}

static inline uint64_t record_number(const struct record_field *field,
				     const void *it)
{
	return record_read(record_at(field, it), field->size);
}

/* @return whether it is the name of a number, or a list of counts with a name each */
static inline bool record_is_enum(const struct record_field *field)
{
	return field->type > RECORD_ITEMS_END;
}

/* @return the enumeration whose values are bits of a mask */
static inline unsigned int record_bits(const struct record_field *field)
{
	return field->type == RECORD_missing ? RECORD_VerdictMissing :
					       RECORD_JourneyPart;
}

static inline bool record_is_list(const struct record_field *field)
{
	return field->type > RECORD_LAST_PLAIN && field->type < RECORD_ITEMS_END;
}

static inline bool record_has_bits(const struct record_field *field,
				   const void *it)
{
	uint64_t bits;

	if (!field->known_size)
		return true;
	bits = record_read((const char *)it + field->known_offset,
			   field->known_size);
	return bits & field->known_bits || ~bits & field->unknown_bits;
}

static inline bool record_is_known(const struct record_field *field,
				   const void *it)
{
	static const char none[16];
	const bool has_bits = record_has_bits(field, it);

	if (!field->same_offset)
		return has_bits;
	return memcmp(record_at(field, it),
		      has_bits ? (const char *)it + field->same_offset : none,
		      field->size);
}

/* A record from elsewhere may have any times. */
static inline uint64_t record_took(const struct record_field *field,
				   const void *it)
{
	const struct netobs_record *record = it;

	return record_number(field, it) - (uint64_t)record->time_ns;
}

static inline bool record_is_cut(const void *it)
{
	const struct netobs_record *record = it;

	return record->has & NETOBS_JOURNEY_HAS_CUT;
}

/* @return how many items of a list are in use; @size: of an item */
static inline uint64_t record_n_items(const struct record_field *field,
				      const void *it, size_t size)
{
	const uint64_t n = record_read((const char *)it + field->known_offset,
				       field->known_size);

	return n < field->size / size ? n : field->size / size;
}

/* @return an item of a list; a step as @step, whose time is the one since the journey's beginning */
static inline const void *record_item(const struct record_field *field,
				      const void *it, uint64_t i, size_t size,
				      struct netobs_journey_step *step)
{
	const struct netobs_record *record = it;
	const char *item = (const char *)record_at(field, it) + i * size;

	if (field->type != RECORD_journey_step)
		return item;
	memcpy(step, item, sizeof(*step));
	step->time_ns =
		(int64_t)((uint64_t)step->time_ns - (uint64_t)record->time_ns);
	return step;
}

/* Down to whole milliseconds, also before 1970. */
static inline int64_t record_ms(int64_t ns)
{
	return ns / 1000000 - (ns % 1000000 < 0);
}

#endif
