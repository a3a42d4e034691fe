/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * Reads IPFIX messages by the letter of RFC 7011, 3, and owes nothing to what wrote
 * them. All is in here, so that a fuzzer can include it too. What must not be ends
 * the program.
 */
#ifndef HARNESS_LIB_IPFIX_H
#define HARNESS_LIB_IPFIX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum { IPFIX_FIELDS_MAX = 96, IPFIX_TEMPLATES_MAX = 64 };

struct ipfix_field {
	uint32_t pen;
	uint16_t element, len;
};

struct ipfix_template {
	uint16_t id, n_fields, n_scope;
	uint16_t record_len;
	struct ipfix_field fields[IPFIX_FIELDS_MAX];
};

struct ipfix_record {
	const struct ipfix_template *template;
	const uint8_t *bytes;
};

struct ipfix_reader {
	struct ipfix_template templates[IPFIX_TEMPLATES_MAX];
	unsigned int n_templates;
	unsigned int templates_read; /* with repetitions */
	unsigned int most_options;   /* options templates of a set */
	uint32_t sequence;	     /* of the next message */
	uint32_t domain;	     /* of the last one */
	void (*on_record)(const struct ipfix_record *record, void *ctx);
	void *ctx;
};

#define ipfix_must(condition)             \
	do {                              \
		if (!(condition))         \
			__builtin_trap(); \
	} while (0)

static inline uint64_t ipfix_number(const uint8_t *bytes, size_t len)
{
	uint64_t value = 0;

	while (len--)
		value = value << 8 | *bytes++;
	return value;
}

/* Its octets and their number; NULL: the record has no such field. */
static inline const uint8_t *ipfix_get(const struct ipfix_record *record,
				       uint32_t pen, uint16_t element,
				       size_t *ret_len)
{
	const uint8_t *at = record->bytes;

	for (unsigned int i = 0; i < record->template->n_fields; i++) {
		const struct ipfix_field *field = &record->template->fields[i];

		*ret_len = field->len;
		if (field->pen == pen && field->element == element)
			return at;
		at += field->len;
	}
	return NULL;
}

/* Of a field that must be there. */
static inline uint64_t ipfix_value(const struct ipfix_record *record,
				   uint32_t pen, uint16_t element)
{
	size_t len;
	const uint8_t *at = ipfix_get(record, pen, element, &len);

	ipfix_must(at && len <= 8);
	return ipfix_number(at, len);
}

static inline bool ipfix_has(const struct ipfix_record *record, uint16_t element)
{
	size_t len;

	return ipfix_get(record, 0, element, &len);
}

static inline struct ipfix_template *ipfix_find(struct ipfix_reader *reader,
						uint16_t id)
{
	for (unsigned int i = 0; i < reader->n_templates; i++)
		if (reader->templates[i].id == id)
			return &reader->templates[i];
	return NULL;
}

/* Its length. */
static inline size_t ipfix_read_template(struct ipfix_reader *reader,
					 const uint8_t *at, const uint8_t *end,
					 bool is_options)
{
	const uint8_t *start = at;
	uint16_t id = (uint16_t)ipfix_number(at, 2);
	struct ipfix_template *template = ipfix_find(reader, id);

	reader->templates_read++;
	if (!template) {
		ipfix_must(reader->n_templates < IPFIX_TEMPLATES_MAX);
		template = &reader->templates[reader->n_templates++];
	}
	*template = (struct ipfix_template){
		.id = id, .n_fields = (uint16_t)ipfix_number(at + 2, 2)
	};
	at += 4;
	if (is_options) {
		template->n_scope = (uint16_t)ipfix_number(at, 2);
		ipfix_must(template->n_scope);
		at += 2;
	}
	ipfix_must(id >= 256 && template->n_fields &&
		   template->n_fields <= IPFIX_FIELDS_MAX);
	for (unsigned int i = 0; i < template->n_fields; i++) {
		struct ipfix_field *field = &template->fields[i];

		ipfix_must(at + 4 <= end);
		field->element = (uint16_t)ipfix_number(at, 2);
		field->len = (uint16_t)ipfix_number(at + 2, 2);
		at += 4;
		if (field->element & 0x8000) {
			ipfix_must(at + 4 <= end);
			field->element &= 0x7fff;
			field->pen = (uint32_t)ipfix_number(at, 4);
			at += 4;
		}
		ipfix_must(field->len && field->len != 65535);
		template->record_len += field->len;
	}
	return (size_t)(at - start);
}

/* The number of data records. */
static inline uint32_t ipfix_read_set(struct ipfix_reader *reader,
				      const uint8_t *at, const uint8_t *end)
{
	uint16_t kind = (uint16_t)ipfix_number(at, 2);
	struct ipfix_record record;
	uint32_t n = 0;

	at += 4;
	ipfix_must(at < end);
	if (kind == 2 || kind == 3) {
		for (; at < end; n++)
			at += ipfix_read_template(reader, at, end, kind == 3);
		ipfix_must(at == end);
		if (kind == 3 && n > reader->most_options)
			reader->most_options = n;
		return 0;
	}
	record.template = ipfix_find(reader, kind);
	ipfix_must(record.template);
	for (; at < end; at += record.template->record_len, n++) {
		ipfix_must(at + record.template->record_len <= end);
		record.bytes = at;
		if (reader->on_record)
			reader->on_record(&record, reader->ctx);
	}
	return n;
}

static inline void ipfix_read(struct ipfix_reader *reader, const uint8_t *bytes,
			      size_t len)
{
	const uint8_t *end = bytes + len, *at = bytes + 16;
	uint32_t n = 0;

	ipfix_must(len > 16 && ipfix_number(bytes, 2) == 10);
	ipfix_must(ipfix_number(bytes + 2, 2) == len);
	ipfix_must(ipfix_number(bytes + 8, 4) == reader->sequence);
	reader->domain = (uint32_t)ipfix_number(bytes + 12, 4);
	while (at < end) {
		size_t set_len;

		ipfix_must(at + 4 <= end);
		set_len = ipfix_number(at + 2, 2);
		ipfix_must(set_len > 4 && at + set_len <= end);
		n += ipfix_read_set(reader, at, at + set_len);
		at += set_len;
	}
	reader->sequence += n;
}

#endif
