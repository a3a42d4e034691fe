/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include "report.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Greater ones are no counts: a record with them is refused. */
#define COUNT_MAX (1ULL << 53)
#define PRODUCT_MAX (1ULL << 60) /* of a time, and its number of samples */

#define REPORT_NAME(member, name) [MEMBER_##member] = (name),
static const char *const names[MEMBERS] = { REPORT_MEMBERS(REPORT_NAME) };
#undef REPORT_NAME

/* @key is behind its quotation mark; names that are looked for have no escapes. */
static bool is_name(const char *key, const char *name)
{
	const size_t len = strlen(name);

	return !strncmp(key, name, len) && key[len] == '"';
}

bool members_is_json(struct json_value value, const char *text)
{
	const size_t len = strlen(text);

	return json_length(value) == len && !strncmp(value.at, text, len);
}

/*
 * Tables have a column for each member, also for those that a record lacks: these have the values
 * that packaging/clickhouse gives them.
 */
static bool is_default(size_t member, struct json_value value)
{
	static const char *const texts[MEMBERS] = {
		[MEMBER_TYPE] = "\"\"",	      [MEMBER_COMBINED] = "-1",
		[MEMBER_PATH_RTT] = "0",      [MEMBER_XLAT_SRC] = "\"::\"",
		[MEMBER_XLAT_DST] = "\"::\"", [MEMBER_ORIG_SRC] = "\"::\"",
		[MEMBER_ORIG_DST] = "\"::\"",
	};

	return texts[member] && members_is_json(value, texts[member]);
}

void members_read(struct json_value record, struct members *ret_members)
{
	struct json_item item = { 0 };

	while (json_next(record, &item)) {
		const char *key = item.key.at + 1;

		if (*item.value.at == 'n')
			continue;
		for (size_t i = 0; i < MEMBERS; i++)
			if (*key == *names[i] && is_name(key, names[i]) &&
			    !is_default(i, item.value))
				ret_members->values[i] = item.value;
	}
}

uint64_t members_check_number(const struct members *members, enum member member,
			      struct json_value value, uint64_t most)
{
	uint64_t number = 0;

	if (!flow_number_read(value, most, &number))
		snprintf(members->why, REPORT_WHY_MAX,
			 "%s is no whole number from 0 to %" PRIu64,
			 names[member], most);
	return number;
}

uint64_t members_number(const struct members *members, enum member member,
			uint64_t most)
{
	const struct json_value value = members->values[member];

	return value.at ? members_check_number(members, member, value, most) : 0;
}

uint64_t members_count(const struct members *members, enum member member)
{
	return members_number(members, member, COUNT_MAX);
}

uint64_t members_mean(const struct members *members, enum member member,
		      uint64_t n)
{
	const uint64_t time_ns = members_count(members, member);
	uint64_t sum;

	if (__builtin_mul_overflow(time_ns, n, &sum) || sum > PRODUCT_MAX)
		snprintf(members->why, REPORT_WHY_MAX,
			 "%s is too long for %" PRIu64 " measurements",
			 names[member], n);
	return time_ns;
}

void members_address(const struct members *members, enum member member,
		     uint8_t ret_ip[16])
{
	if (!flow_address_read(members->values[member], ret_ip))
		snprintf(members->why, REPORT_WHY_MAX, "%s is no address",
			 names[member]);
}

uint64_t members_id(const struct members *members)
{
	static const char digits[] = "0123456789abcdefABCDEF";
	char text[32];
	const char *id = json_text(members->values[MEMBER_CONVERSATION], text,
				   sizeof(text));

	if (id[strspn(id, digits)] || strlen(id) > 16)
		snprintf(members->why, REPORT_WHY_MAX,
			 "%s is no number of 64 bits in hexadecimal",
			 names[MEMBER_CONVERSATION]);
	return strtoull(id, NULL, 16);
}
