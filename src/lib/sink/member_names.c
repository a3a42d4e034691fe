// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "member_names.h"

#include "base/util.h"

#include <assert.h>
#include <stdbool.h>
#include <string.h>

static const struct name {
	size_t len;
	const char *key, *names[NAMES_OF];
} names[] = {
#define NAME(key, otel, ecs) { sizeof(key) - 1, key, { otel, ecs } },
#include "catalogue/names.def"
};

/* L2Bytes: l2_bytes. */
static const char *make_name(const char *key, size_t len, char *buf)
{
	static const char prefix[] = "netobs.";
	char *to = buf + strlen(prefix);
	bool was_upper = false;

	assert(len <= (NAME_MAX_LEN - sizeof(prefix)) / 2);
	memcpy(buf, prefix, strlen(prefix));
	for (size_t i = 0; i < len; i++) {
		bool is_upper = key[i] >= 'A' && key[i] <= 'Z';

		if (is_upper && i && !was_upper)
			*to++ = '_';
		*to++ = (char)(is_upper ? key[i] - 'A' + 'a' : key[i]);
		was_upper = is_upper;
	}
	*to = '\0';
	return buf;
}

const char *member_name(enum names_of names_of, const char *key, size_t len,
			char *buf)
{
	/* Few have the length of another one. */
	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (names[i].len == len && !memcmp(names[i].key, key, len) &&
		    *names[i].names[names_of])
			return names[i].names[names_of];
	return make_name(key, len, buf);
}

const char *member_transport(int64_t proto)
{
	switch (proto) {
	case 6:
		return "tcp";
	case 17:
		return "udp";
	case 33:
		return "dccp";
	case 132:
		return "sctp";
	case 136:
		return "udplite";
	default:
		return NULL;
	}
}
